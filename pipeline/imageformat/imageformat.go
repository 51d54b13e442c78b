// Package imageformat lists the formats of pictures that are decoded: what they are called, and how their files are
// known. Each is stated here once; whoever adds one adds a decoder to package codec, and a test finds what else is to
// be done.
package imageformat

import "slices"

// Format is one of them.
type Format struct {
	// Name is that of its unit, codec/NAME, and of its package below codec.
	Name string
	// Prefix is what its files begin with.
	Prefix string
	// Endings are those of its files' names, in lower case and without the dot, the usual one first.
	Endings []string
	// Indexed says that there are files with an index, which lets a decoder skip what is not needed of them.
	Indexed bool
}

// All are the formats, the most frequent ones first. No prefix begins with another. Not to be changed.
var All = []Format{
	{Name: "jpeg", Prefix: "\xff\xd8", Endings: []string{"jpg", "jpeg"}, Indexed: true},
	{Name: "png", Prefix: "\x89PNG\r\n\x1a\n", Endings: []string{"png"}, Indexed: true},
	{Name: "webp", Prefix: "RIFF", Endings: []string{"webp"}, Indexed: true},
	{Name: "gif", Prefix: "GIF8", Endings: []string{"gif"}},
	{Name: "bmp", Prefix: "BM", Endings: []string{"bmp"}},
}

// Names are the formats' names in order.
func Names() []string {
	var names []string
	for _, f := range All {
		names = append(names, f.Name)
	}
	slices.Sort(names)
	return names
}

// Endings are those of all formats, in the order of All.
func Endings() []string {
	var endings []string
	for _, f := range All {
		endings = append(endings, f.Endings...)
	}
	return endings
}
