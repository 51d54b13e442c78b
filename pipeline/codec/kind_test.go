package codec

import (
	"errors"
	"strings"
	"testing"
)

// TestWhatFilesAre: what is refused is named, with the way out.
func TestWhatFilesAre(t *testing.T) {
	zeros := func(n int) string { return strings.Repeat("\x00", n) }
	for file, want := range map[string][]string{
		"": {"an empty file is not a picture", "again"},
		"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n": {"a Git LFS pointer is", "git lfs pull"},
		"/annex/objects/SHA256E-s31390--f50d.jpg\n":                                 {"a git-annex pointer", "git annex get"},
		"\x00\x00\x00\x1cftypavif\x00\x00\x00\x00avifmif1miaf":                      {"an AVIF is", "convert"},
		"\x00\x00\x00\x18ftypmif1\x00\x00\x00\x00mif1avif":                          {"an AVIF is"},
		"\x00\x00\x00\x18ftypheic\x00\x00\x00\x00mif1heic":                          {"a HEIC is", "convert"},
		"\x00\x00\x00\x18ftypmif1\x00\x00\x00\x00mif1heic":                          {"a HEIC is"},
		"\x00\x00\x00\x14ftypmif1\x00\x00\x00\x00miaf":                              {"a HEIF is"},
		"\x00\x00\x00\x14ftypisom\x00\x00\x02\x00isom":                              {"an MP4 file", "remove"},
		"\x00\x00\x00\x14ftypcrx \x00\x00\x00\x01crx ":                              {"CR3"},
		"\x1f\x8b\x08\x08abc":                                                       {"a gzip file", "unpack"},
		"PK\x03\x04\x14\x00":                                                        {"a zip archive"},
		zeros(257) + "ustar\x0000":                                                  {"a tar archive"},
		"\x00\x00\x01\x00\x01\x00":                                                  {"an icon (ICO)", "convert"},
		"\xff\x0a\x10\x20":                                                          {"a JPEG XL", "convert"},
		"\x00\x00\x00\x0cJXL \r\n\x87\n\x00":                                        {"a JPEG XL"},
		"\x00\x00\x00\x0cjP  \r\n\x87\n\x00":                                        {"a JPEG 2000"},
		"\xff\x4f\xff\x51\x00":                                                      {"a JPEG 2000"},
		"II*\x00\x08\x00\x00\x00":                                                   {"a TIFF", "convert"},
		"II*\x00\x10\x00\x00\x00CR\x02":                                             {"CR2"},
		"MM\x00+\x00\x08\x00\x00":                                                   {"a BigTIFF"},
		"8BPS\x00\x01":                                                              {"Photoshop", "convert"},
		"<!DOCTYPE html><title>403</title>":                                         {"a web page (HTML)", "download"},
		"\xef\xbb\xbf \r\n<HTML><body>sign in":                                      {"a web page (HTML)"},
		"<?xml version=\"1.0\"?>\n<Error><Code>NoSuchKey</Code></Error>":            {"an object store's error", "download"},
		"<?xml version=\"1.0\"?><svg xmlns=\"http://www.w3.org/2000/svg\"/>":        {"an SVG", "convert"},
		"<?xml version=\"1.0\"?><annotation/>":                                      {"a text file (HTML, XML or SVG)"},
		"%PDF-1.7":                                                                  {"a PDF"},
		"%!PS-Adobe-3.0 EPSF-3.0":                                                   {"a PostScript file"},
		"P6\n2 2\n255\n":                                                            {"a PPM is", "convert"},
		"P5 2 2 255 ":                                                               {"a PGM is"},
		"P4\n1 1\n":                                                                 {"a PBM is"},
		"Pf\n1 1\n":                                                                 {"a PFM is"},
		"{\"error\": \"not found\"}":                                                {"a text file is", "download"},
		"Not Found":                                                                 {"a text file is"},
		strings.Repeat("é", 600):                                                    {"a text file is"},
		"\x00\x05\x16\x07\x00\x02\x00\x00Mac OS X":                                  {"AppleDouble", "._", "remove"},
		zeros(4096): {"a file of zeros", "again"},
		zeros(2) + "\x02" + zeros(9) + "\x01\x00\x01\x00\x18\x00abc" + "TRUEVISION-XFILE.\x00": {"a TGA"},
		zeros(128) + "DICM\x02": {"a DICOM file"},
		"\n\x05\x01\x08\x00":    {"a PCX is", "convert"},
		"\n\x00\x01\x01\x00":    {"a PCX is"},
		"(\x00\x00\x00\x28\x00": {"a DIB", "convert"},
		"|\x00\x00\x00\x28\x00": {"a DIB"},
		"qoif\x00\x00\x00\x01":  {"a QOI"},
		"DDS |\x00":             {"DDS"},
		"v/1\x01\x02\x00":       {"OpenEXR"},
		"\x93NUMPY\x01\x00":     {"a NumPy array"},
		"broken":                {"a text file is"},
		"\x80\x81\x82":          {`a file of another kind is`},
		"abc":                   {`a file of another kind is`},
		"\xff\xd7\xff":          {`a file of another kind is`},
	} {
		_, _, err := NewDecoder("scalar").Parse([]byte(file), DefaultLimits())
		if !errors.Is(err, ErrFormat) {
			t.Errorf("%.40q: %v", file, err)
			continue
		}
		for _, part := range want {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%.40q: %q lacks %q", file, err, part)
			}
		}
	}
}

// What a file holds that is no picture stands in no message: whoever may train on a root may not read all that lies there.
func TestNoMessageTellsWhatAFileHolds(t *testing.T) {
	for _, file := range []string{"PASSWORD=correct horse\n", "PASSWORD\x80", "\x80PASSWORD\x00\x01"} {
		if _, _, err := NewDecoder("scalar").Parse([]byte(file), DefaultLimits()); err == nil || strings.Contains(err.Error(), "PASS") {
			t.Errorf("%q: %v", file, err)
		}
	}
}

// No file is named that is decoded.
func TestNoNameOfWhatIsDecoded(t *testing.T) {
	for name, file := range archived(t).files {
		if strings.HasPrefix(name, "damaged-") {
			continue
		}
		for _, k := range kinds {
			if len(file) > k.at && k.at == 0 && strings.HasPrefix(string(file), k.prefix) {
				t.Errorf("%s begins as %s does", name, k.name)
			}
		}
	}
}
