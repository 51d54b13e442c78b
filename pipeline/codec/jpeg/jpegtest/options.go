package jpegtest

// Factors are the sampling factors of a component: blocks across and down in an MCU, 1 to 4 each.
type Factors [2]int

// Samplings by their usual names; S440 is also called 1x2.
var (
	S444 = []Factors{{1, 1}, {1, 1}, {1, 1}}
	S420 = []Factors{{2, 2}, {1, 1}, {1, 1}}
	S422 = []Factors{{2, 1}, {1, 1}, {1, 1}}
	S440 = []Factors{{1, 2}, {1, 1}, {1, 1}}
	S411 = []Factors{{4, 1}, {1, 1}, {1, 1}}
	S410 = []Factors{{4, 2}, {1, 1}, {1, 1}}
	Grey = []Factors{{1, 1}}
	CMYK = []Factors{{1, 1}, {1, 1}, {1, 1}, {1, 1}}
)

// Header says which marker segments tell the colour space.
type Header int

// The headers. Without any, decoders go by the components' numbers, which are 1, 2, 3 unless Options.IDs says otherwise.
const (
	HeaderJFIF Header = iota
	HeaderNone
	HeaderAdobeYCbCr
	HeaderAdobeRGB
	HeaderAdobeYCCK
)

// Options say what kind of file Encode writes. The zero value is a baseline JFIF file without subsampling.
type Options struct {
	// Sampling has the factors of each component; nil: S444. One component makes a grey file, four one of C, M, Y, K, or of Y, Cb, Cr, K with
	// HeaderAdobeYCCK.
	Sampling []Factors
	// Quality from 1 to 100 scales the example tables of the standard as libjpeg does; 0: 90.
	Quality int
	// Restart is how many MCUs lie between restart markers; 0: none.
	Restart int
	// Header chooses the marker segments. With HeaderAdobeRGB, or IDs of "RGB", the samples are RGB.
	Header Header
	// IDs are the components' numbers; nil: 1, 2, 3, 4.
	IDs []byte
	// Scans lists the components of each scan; nil: one scan of all.
	Scans [][]int
	// Progressive makes a progressive file of these scans, instead of Scans.
	Progressive []Band
	// StandardTables uses the example Huffman tables of the standard; else each scan has tables made for it.
	StandardTables bool
	// OmitTables leaves the standard tables out of the file.
	OmitTables bool
	// Extended writes the frame header of an extended sequential file (SOF1).
	Extended bool
	// WideQuant writes quantisation tables of 16 bits.
	WideQuant bool
	// ClaimQuant, if not nil, is written instead of the tables used: the first for the first component, the second for the
	// others, both row by row.
	ClaimQuant *[2][64]uint16
}

func (o Options) withDefaults() Options {
	if o.Sampling == nil {
		o.Sampling = S444
	}
	if o.Quality == 0 {
		o.Quality = 90
	}
	if o.IDs == nil {
		o.IDs = []byte{1, 2, 3, 4}
	}
	o.StandardTables = (o.StandardTables || o.OmitTables) && o.Progressive == nil
	if o.Scans == nil {
		all := []int{}
		for i := range o.Sampling {
			all = append(all, i)
		}
		o.Scans = [][]int{all}
	}
	return o
}

// rgb reports whether the samples are RGB.
func (o *Options) rgb() bool {
	if len(o.Sampling) == 4 {
		return o.Header != HeaderAdobeYCCK
	}
	return o.Header == HeaderAdobeRGB || o.Header == HeaderNone && string(o.IDs) == "RGB"
}
