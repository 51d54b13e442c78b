package codec

import (
	"bytes"
	"fmt"
	"unicode/utf8"
)

// kind is what people have in their folders beside pictures that are decoded here: how its files begin, what it is called, and what to do about it.
type kind struct {
	prefix string
	at     int // where the prefix stands
	name   string
	advice string
}

const (
	convert  = "convert it once, to PNG or WebP without loss, say"
	unpack   = "unpack it once"
	fetch    = "it was downloaded in the place of a picture; download that again, or remove it"
	listOnly = "remove it from the folder of the pictures"
)

// kinds are looked at in this order.
var kinds = []kind{
	{"version https://git-lfs.github.com/spec/", 0, "a Git LFS pointer", "git lfs pull fetches the pictures"},
	{"/annex/objects/", 0, "a git-annex pointer", "git annex get fetches the pictures"},
	{"\x00\x05\x16\x07", 0, "an AppleDouble file of macOS, which stands beside a picture under a name with ._ in front", listOnly},
	{"\x00\x05\x16\x00", 0, "an AppleSingle file of macOS", listOnly},
	{"\x00\x00\x00\x0cJXL \r\n\x87\n", 0, "a JPEG XL", convert},
	{"\xff\x0a", 0, "a JPEG XL", convert},
	{"\x00\x00\x00\x0cjP  \r\n\x87\n", 0, "a JPEG 2000", convert},
	{"\xff\x4f\xff\x51", 0, "a JPEG 2000", convert},
	{"II*\x00\x10\x00\x00\x00CR", 0, "a Canon raw file (CR2)", convert},
	{"II*\x00", 0, "a TIFF, or a camera's raw file", convert},
	{"MM\x00*", 0, "a TIFF, or a camera's raw file", convert},
	{"II+\x00", 0, "a BigTIFF", convert},
	{"MM\x00+", 0, "a BigTIFF", convert},
	{"II\xbc\x01", 0, "a JPEG XR", convert},
	{"8BPS", 0, "a Photoshop file (PSD)", convert},
	{"gimp xcf", 0, "a GIMP file (XCF)", convert},
	{"\x00\x00\x01\x00", 0, "an icon (ICO)", convert},
	{"\x00\x00\x02\x00", 0, "a TGA, or a cursor (CUR)", convert},
	{"\x00\x00\x0a\x00", 0, "a TGA", convert},
	{"\x0a\x05\x01", 0, "a PCX", convert},
	{"\x0a\x03\x01", 0, "a PCX", convert},
	{"\x0a\x02\x01", 0, "a PCX", convert},
	{"\x0a\x00\x01", 0, "a PCX", convert},
	{"\x28\x00\x00\x00", 0, "a DIB, which is a BMP without the header of the file,", convert},
	{"\x6c\x00\x00\x00", 0, "a DIB, which is a BMP without the header of the file,", convert},
	{"\x7c\x00\x00\x00", 0, "a DIB, which is a BMP without the header of the file,", convert},
	{"icns", 0, "an icon of macOS (ICNS)", convert},
	{"qoif", 0, "a QOI", convert},
	{"FLIF", 0, "a FLIF", convert},
	{"BPG\xfb", 0, "a BPG", convert},
	{"farbfeld", 0, "a farbfeld picture", convert},
	{"DDS ", 0, "a DirectDraw surface (DDS)", convert},
	{"v/1\x01", 0, "an OpenEXR picture", convert},
	{"#?RADIANCE", 0, "a Radiance picture (HDR)", convert},
	{"\x01\xda", 0, "an SGI picture", convert},
	{"\x59\xa6\x6a\x95", 0, "a Sun raster", convert},
	{"\x8aMNG\r\n\x1a\n", 0, "an MNG", convert},
	{"\x8bJNG\r\n\x1a\n", 0, "a JNG", convert},
	{"DICM", 128, "a DICOM file", convert},
	{"SIMPLE  =", 0, "a FITS file", convert},
	{"\x89HDF\r\n\x1a\n", 0, "an HDF5 file", convert},
	{"\x93NUMPY", 0, "a NumPy array", convert},
	{"%PDF", 0, "a PDF", convert},
	{"%!PS", 0, "a PostScript file", convert},
	{"\xc5\xd0\xd3\xc6", 0, "an EPS file", convert},
	{"\xd7\xcd\xc6\x9a", 0, "a Windows metafile (WMF)", convert},
	{" EMF", 40, "a Windows metafile (EMF)", convert},
	{"\x1f\x8b", 0, "a gzip file", unpack},
	{"\x28\xb5\x2f\xfd", 0, "a Zstandard file", unpack},
	{"\xfd7zXZ\x00", 0, "an xz file", unpack},
	{"BZh", 0, "a bzip2 file", unpack},
	{"PK\x03\x04", 0, "a zip archive", unpack},
	{"7z\xbc\xaf\x27\x1c", 0, "a 7-Zip archive", unpack},
	{"Rar!\x1a\x07", 0, "a RAR archive", unpack},
	{"ustar", 257, "a tar archive", unpack},
	{"PAR1", 0, "a Parquet file", unpack},
	{"\x1aE\xdf\xa3", 0, "a Matroska or WebM video", listOnly},
	{"OggS", 0, "an Ogg file", listOnly},
	{"ID3", 0, "an MP3 file", listOnly},
	{"FLV\x01", 0, "a Flash video", listOnly},
}

// unknown says what a file is that no format here knows.
func unknown(src []byte) error {
	name, advice := describe(src)
	if advice == "" {
		return fmt.Errorf("%s is %w", name, ErrFormat)
	}
	return fmt.Errorf("%s is %w: %s", name, ErrFormat, advice)
}

// describe names a file's kind, and what to do about it, if that is known.
func describe(src []byte) (name, advice string) {
	if len(src) == 0 {
		return "an empty file", "a download or copy was broken off; do it again, or remove the file"
	}
	for _, k := range kinds {
		if len(src) > k.at && bytes.HasPrefix(src[k.at:], []byte(k.prefix)) {
			return k.name, k.advice
		}
	}
	for _, look := range []func([]byte) (string, string){media, netpbm, markup, text} {
		if name, advice := look(src); name != "" {
			return name, advice
		}
	}
	switch {
	case bytes.HasSuffix(src, []byte("TRUEVISION-XFILE.\x00")):
		return "a TGA", convert
	case len(bytes.TrimLeft(src, "\x00")) == 0:
		return "a file of zeros", "a download or copy was broken off after its space was taken; do it again, or remove the file"
	}
	return "a file of another kind", ""
}

// brands are those of the ISO base media format, as a file's first box names them.
var brands = map[string][2]string{
	"avif": {"an AVIF", convert}, "avis": {"an AVIF animation", convert},
	"heic": {"a HEIC", convert}, "heix": {"a HEIC", convert}, "heim": {"a HEIC", convert}, "heis": {"a HEIC", convert},
	"hevc": {"a HEIC animation", convert}, "hevx": {"a HEIC animation", convert}, "mif1": {"a HEIF", convert}, "msf1": {"a HEIF animation", convert},
	"jxl ": {"a JPEG XL", convert}, "crx ": {"a Canon raw file (CR3)", convert}, "qt  ": {"a QuickTime video", listOnly},
}

// media names files of the ISO base media format. A general brand is made precise by those that the file is compatible with.
func media(src []byte) (name, advice string) {
	if len(src) < 12 || string(src[4:8]) != "ftyp" {
		return "", ""
	}
	end := min(len(src), int(src[2])<<8|int(src[3]), 512)
	found := brands[string(src[8:12])]
	if general := found[0] == "" || string(src[8:11]) == "mif" || string(src[8:11]) == "msf"; general {
		for at := 16; at+4 <= end; at += 4 {
			if b := brands[string(src[at:at+4])]; b[0] != "" && string(src[at:at+3]) != "mif" && string(src[at:at+3]) != "msf" {
				return b[0], b[1]
			}
		}
	}
	if found[0] == "" {
		return "an MP4 file, or one of its kin", listOnly
	}
	return found[0], found[1]
}

// netpbm names the kinds of PPM, which begin with P and a digit.
func netpbm(src []byte) (name, advice string) {
	if len(src) < 3 || src[0] != 'P' || src[2] != '\n' && src[2] != ' ' && src[2] != '\r' && src[2] != '\t' && src[2] != '#' {
		return "", ""
	}
	switch src[1] {
	case '1', '4':
		return "a PBM", convert
	case '2', '5':
		return "a PGM", convert
	case '3', '6':
		return "a PPM", convert
	case '7':
		return "a PAM", convert
	case 'F', 'f':
		return "a PFM", convert
	}
	return "", ""
}

// lookedAt is how much of a text is looked at.
const lookedAt = 1 << 10

// markup names what begins with an angle bracket.
func markup(src []byte) (name, advice string) {
	head := bytes.ToLower(src[:min(len(src), lookedAt)])
	head = bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf")), " \t\r\n")
	switch {
	case !bytes.HasPrefix(head, []byte("<")):
		return "", ""
	case bytes.Contains(head, []byte("<svg")):
		return "an SVG", convert
	case bytes.Contains(head, []byte("<error>")) && bytes.Contains(head, []byte("<code>")):
		return "an object store's error (XML)", fetch
	case bytes.HasPrefix(head, []byte("<!doctype html")) || bytes.Contains(head, []byte("<html")) || bytes.Contains(head, []byte("<body")):
		return "a web page (HTML)", fetch
	}
	return "a text file (HTML, XML or SVG)", fetch
}

// text names what is readable. Nothing of it is shown: errors go to trainers, which may read pictures of a root and not what else lies there.
func text(src []byte) (name, advice string) {
	head := src[:min(len(src), lookedAt)]
	for back := 0; back < utf8.UTFMax-1 && len(head) < len(src) && !utf8.Valid(head); back++ {
		head = head[:len(head)-1] // a character may be cut
	}
	if !utf8.Valid(head) || len(head) < 4 {
		return "", ""
	}
	for _, c := range head {
		if c < ' ' && c != '\t' && c != '\n' && c != '\r' {
			return "", ""
		}
	}
	return "a text file", fetch
}
