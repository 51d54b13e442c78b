package jpeg

import (
	"bytes"
	"fmt"
	"slices"
)

var eoi = []byte{0xff, 0xd9}

// mutants are copies of a file of one scan with one thing wrong.
func (c *corpus) mutants(kind string, b []byte) {
	add := func(name string, x []byte) { c.add(kind+"."+name, x) }
	add("ok", b)
	scan := find(b, 0xda, 0)
	data := scan.start + 14 // behind the scan header of three components
	end := scan.end
	middle := (data + end) / 2
	c.endings(add, b, data, middle, end)
	c.insertions(add, b, data, middle, end)
	c.tableMutants(add, b)
	c.frameMutants(add, b)
	c.scanMutants(add, b, scan, data, end)
	c.damage(add, b, data, end)
}

// endings cut the file, with and without a marker at the end.
func (c *corpus) endings(add func(string, []byte), b []byte, data, middle, end int) {
	add("no-eoi", b[:end])
	add("half-eoi", b[:end+1])
	for i := range 8 {
		add(fmt.Sprintf("eoi-is-rst%d", i), overwrite(b, end+1, byte(0xd0+i)))
	}
	for _, k := range []int{1, 2, 3, 10, 200} {
		add(fmt.Sprintf("cut%d", k), b[:end-k])
		add(fmt.Sprintf("cut%d-eoi", k), slices.Concat(b[:end-k], eoi))
		add(fmt.Sprintf("cut%d-zeros-eoi", k), slices.Concat(b[:end-k], make([]byte, k+2), eoi))
	}
	for at := 0; at < len(b); at += 1 + len(b)/97 {
		add(fmt.Sprintf("until%d", at), b[:at])
		add(fmt.Sprintf("until%d-eoi", at), slices.Concat(b[:at], eoi))
	}
	add("half-zeros-eoi", slices.Concat(b[:middle], make([]byte, 4000), eoi))
	add("half-ff", slices.Concat(b[:middle], bytes.Repeat([]byte{0xff}, 4000)))
	add("half-ff-eoi", slices.Concat(b[:middle], bytes.Repeat([]byte{0xff}, 4000), eoi[1:]))
	add("no-data", b[:data])
	add("no-data-eoi", slices.Concat(b[:data], eoi))
}

// insertions put markers and junk where none belong.
func (c *corpus) insertions(add func(string, []byte), b []byte, data, middle, end int) {
	first := find(b, 0xdb, 0).start
	insertions := map[string]string{
		"eoi": "\xff\xd9", "soi": "\xff\xd8", "rst3": "\xff\xd3", "rst0": "\xff\xd0", "com": "\xff\xfe\x00\x04ab", "ff01": "\xff\x01",
		"ff02": "\xff\x02", "ffbf": "\xff\xbf", "ffff": "\xff\xff", "ffff00": "\xff\xff\x00", "fff0": "\xff\xf0", "ffc8": "\xff\xc8\x00\x04ab",
		"ffdf": "\xff\xdf\x00\x03\x11", "ffde": "\xff\xde\x00\x03\x11", "dnl": "\xff\xdc\x00\x04\x00\x4b", "dnl-wrong": "\xff\xdc\x00\x04\x00\x30",
		"junk": "abc", "zeros": "\x00\x00", "fill": "\xff\xff\xff\xff\xff", "ff00": "\xff\x00", "rst1": "\xff\xd1",
		"app-len0": "\xff\xe5\x00\x00", "app-len1": "\xff\xe5\x00\x01", "app-len2": "\xff\xe5\x00\x02", "app-long": "\xff\xe5\xff\xff",
		"com-len0": "\xff\xfe\x00\x00", "com-len1": "\xff\xfe\x00\x01", "dnl-len0": "\xff\xdc\x00\x00",
		"dri": "\xff\xdd\x00\x04\x00\x03", "dri0": "\xff\xdd\x00\x04\x00\x00", "dri-len5": "\xff\xdd\x00\x05\x00\x03\x00", "dri-len0": "\xff\xdd\x00\x00",
		"dht-len2": "\xff\xc4\x00\x02", "dht-len1": "\xff\xc4\x00\x01", "dht-short": "\xff\xc4\x00\x06abcd", "dht-overflow": "\xff\xc4\x00\x13\x00\xff" + string(make([]byte, 15)),
		"dqt-len2": "\xff\xdb\x00\x02", "dqt-short": "\xff\xdb\x00\x05\x00ab", "dqt-index": "\xff\xdb\x00\x43\x04" + string(make([]byte, 64)),
		"dac": "\xff\xcc\x00\x04\x00\x10", "dac-bad": "\xff\xcc\x00\x04\x00\x01", "dac-index": "\xff\xcc\x00\x04\x20\x10", "dac-odd": "\xff\xcc\x00\x03\x00", "dac-ac": "\xff\xcc\x00\x04\x10\x01",
		"jfif-short": "\xff\xe0\x00\x07JFIF\x00", "jfif7": "\xff\xe0\x00\x09JFIF\x00\x01\x01", "adobe-short": "\xff\xee\x00\x08Adobe\x00", "adobe7": "\xff\xee\x00\x09Adobe\x00\x64",
		"icc-short": "\xff\xe2\x00\x0eICC_PROFILE\x00", "icc13": "\xff\xe2\x00\x0fICC_PROFILE\x00\x01", "icc14": "\xff\xe2\x00\x10ICC_PROFILE\x00\x01\x01",
		"icc-two": "\xff\xe2\x00\x0fICC_PROFILE\x00\x02\xff\xe2\x00\x10ICC_PROFILE\x00\x01\x02",
		"ps-name": "\xff\xed\x00\x16Photoshop 3.0\x008BIM\x04\x04", "ps-code": "\xff\xed\x00\x15Photoshop 3.0\x008BIM\x04", "ps-size": "\xff\xed\x00\x19Photoshop 3.0\x008BIM\x04\x04\x00\x00\x00",
		"ps-resolution": "\xff\xed\x00\x26Photoshop 3.0\x008BIM\x03\xed\x00\x00\x00\x00\x00\x048888" + "8BIM\x04\x04", "ps-two": "\xff\xed\x00\x26Photoshop 3.0\x008BIM\x03\xee\x00\x00\x00\x00\x00\x048888" + "8BIM\x04\x04",
		"sos": string(b[find(b, 0xda, 0).start:data]),
	}
	for _, name := range inOrder(insertions) {
		x := insertions[name]
		add("header-"+name, insert(b, first, []byte(x)))
		add("middle-"+name, insert(b, middle, []byte(x)))
		add("tail-"+name, insert(b, end, []byte(x)))
		add("behind-"+name, insert(b, end+2, []byte(x)))
	}
	add("lead-junk", slices.Concat([]byte("x"), b))
	add("soi-twice", slices.Concat(b[:2], b))
	add("eoi-soi-header", insert(b, first, []byte("\xff\xd9\xff\xd8")))
	tables := slices.Concat(b[:2], b[first:find(b, 0xc0, 0).start], eoi)
	add("tables-then-picture", slices.Concat(tables, b[:2], b[find(b, 0xc0, 0).start:]))
	add("tables-junk-picture", slices.Concat(tables, []byte{0}, b[:2], b[find(b, 0xc0, 0).start:]))
	add("trail-jpeg", slices.Concat(b, b))
	add("header-only", b[:find(b, 0xda, 0).start])
	app := find(b, 0xe0, 0)
	add("app-swallows", overwrite(b, app.start+2, 0, byte(find(b, 0xdb, 0).end-app.start-2)))
	add("jfif-cut", overwrite(b, app.start+2, 0, 8))
}

// tableMutants are wrong quantisation and Huffman tables.
func (c *corpus) tableMutants(add func(string, []byte), b []byte) {
	for i := range 2 {
		q := find(b, 0xdb, i)
		add(fmt.Sprintf("no-dqt%d", i), cut(b, q))
		add(fmt.Sprintf("dqt%d-zero", i), overwrite(b, q.start+5, make([]byte, 64)...))
		add(fmt.Sprintf("dqt%d-index4", i), overwrite(b, q.start+4, 4))
		add(fmt.Sprintf("dqt%d-wide", i), overwrite(b, q.start+4, byte(0x10+i)))
		add(fmt.Sprintf("dqt%d-short", i), overwrite(b, q.start+2, 0, 50))
		sof := find(b, 0xc0, 0)
		add(fmt.Sprintf("dqt%d-late", i), insert(cut(b, q), sof.end-(q.end-q.start), b[q.start:q.end]))
	}
	for i := range 4 {
		h := find(b, 0xc4, i)
		name := func(s string) string { return fmt.Sprintf("dht%d-%s", i, s) }
		add(name("missing"), cut(b, h))
		add(name("over"), overwrite(b, h.start+5, 3))
		add(name("count255"), overwrite(b, h.start+5+15, 255))
		add(name("index4"), overwrite(b, h.start+4, b[h.start+4]|4))
		add(name("class2"), overwrite(b, h.start+4, b[h.start+4]|0x20))
		add(name("symbol16"), overwrite(b, h.start+21, 16))
		add(name("symbol255"), overwrite(b, h.start+21, 255))
		add(name("short"), overwrite(b, h.start+2, 0, 10))
		add(name("reversed"), overwrite(b, h.start+21, b[h.start+22], b[h.start+21]))
		for what, counts := range [][]byte{{2}, {1, 1}, {1, 2}, {0, 3}, {0}, {1}} {
			d := slices.Concat([]byte{b[h.start+4]}, counts, make([]byte, 16-len(counts)), []byte{0, 1, 2}[:sum(counts)])
			add(name(fmt.Sprintf("tree%d", what)), insert(b, find(b, 0xda, 0).start, slices.Concat([]byte{0xff, 0xc4, 0, byte(len(d) + 2)}, d)))
		}
	}
	all := b
	for range 4 {
		all = cut(all, find(all, 0xc4, 0))
	}
	add("no-dht", all)
}

// frameMutants are wrong frame headers.
func (c *corpus) frameMutants(add func(string, []byte), b []byte) {
	s := find(b, 0xc0, 0)
	at := s.start
	changes := map[string][]byte{ // place in the segment, new bytes
		"height0": {5, 0, 0}, "width0": {7, 0, 0}, "height2x": {5, 0, 150}, "height-less": {5, 0, 40}, "width2x": {7, 0, 200}, "width-less": {7, 0, 60},
		"comps1": {9, 1}, "comps2": {9, 2}, "comps4": {9, 4}, "prec12": {4, 12}, "prec0": {4, 0}, "h0": {11, 0x02}, "v0": {11, 0x20}, "h5": {11, 0x52}, "v5": {11, 0x25},
		"samp44": {11, 0x44}, "samp11": {11, 0x11}, "samp41": {11, 0x41}, "samp33": {11, 0x33}, "samp24": {11, 0x24}, "tq5": {12, 5}, "tq3": {12, 3}, "tq1": {12, 1},
		"len18": {2, 0, 18}, "len8": {2, 0, 8}, "len5": {2, 0, 5}, "sof1": {1, 0xc1}, "sof5": {1, 0xc5}, "sof11": {1, 0xcb}, "sof15": {1, 0xcf}, "ids": {13, 1},
	}
	for _, name := range inOrder(changes) {
		x := changes[name]
		add("sof-"+name, overwrite(b, at+int(x[0]), x[1:]...))
	}
	add("sof-twice", repeatPart(b, s))
	add("no-sof", cut(b, s))
	tail := find(b, 0xda, 0).end
	add("sof-in-tail", insert(b, tail, b[s.start:s.end]))
}

// scanMutants are wrong scan headers, and scans too many.
func (c *corpus) scanMutants(add func(string, []byte), b []byte, scan span, data, end int) {
	at := scan.start
	changes := map[string][]byte{
		"bad-id": {5, 9}, "swapped": {5, b[at+7], b[at+8], b[at+5], b[at+6]}, "twice-id": {7, b[at+5]}, "se5": {12, 5}, "al2": {13, 2}, "ah3": {13, 0x31},
		"count0": {4, 0}, "count2": {4, 2}, "count4": {4, 4}, "table4": {6, 0x44}, "dc3": {6, 0x30}, "ac3": {6, 0x03}, "table1": {6, 0x11}, "len9": {2, 0, 9}, "len0": {2, 0, 0}, "len255": {2, 255, 255},
	}
	for _, name := range inOrder(changes) {
		x := changes[name]
		add("sos-"+name, overwrite(b, at+int(x[0]), x[1:]...))
	}
	add("scan-twice", insert(b, end, b[at:end]))
	add("scan-header-twice", insert(b, at, b[at:data]))
	add("scan-of-nothing-behind", insert(b, end, []byte("\xff\xda\x00\x08\x01\x01\x00\x00\x3f\x00")))
	add("scan-header-cut-behind", slices.Concat(b[:end], []byte("\xff\xda\x00\x0c\x03\x01")))
}

// damage flips, drops and scrambles bits of the data.
func (c *corpus) damage(add func(string, []byte), b []byte, data, end int) {
	n := end - data
	for i := range 60 {
		x := bytes.Clone(b)
		for range 1 + i/8 {
			x[data+c.random.IntN(n)] ^= 1 << c.random.IntN(8)
		}
		add(fmt.Sprintf("flip%d", i), x)
	}
	for i := range 30 {
		at := data + c.random.IntN(n-40)
		x := bytes.Clone(b)
		for j := range 20 {
			x[at+j] = byte(c.random.Uint32())
		}
		add(fmt.Sprintf("burst%d", i), x)
		add(fmt.Sprintf("drop%d", i), cut(b, span{start: at, end: at + 1 + c.random.IntN(8)}))
	}
}

// restartMutants are files whose restart markers are missing, wrong, doubled or swapped.
func (c *corpus) restartMutants(b []byte) {
	var at []int
	for i := find(b, 0xda, 0).start; i+1 < len(b); i++ {
		if b[i] == 0xff && b[i+1]&^7 == 0xd0 {
			at = append(at, i)
		}
	}
	add := func(name string, x []byte) { c.add("restart."+name, x) }
	for k := range at {
		part := func(from, to int) []byte { return b[at[from]:at[to]] }
		for d := range 8 {
			add(fmt.Sprintf("number%d+%d", k, d), overwrite(b, at[k]+1, 0xd0|(b[at[k]+1]+byte(d))&7))
		}
		add(fmt.Sprintf("missing%d", k), cut(b, span{start: at[k], end: at[k] + 2}))
		add(fmt.Sprintf("twice%d", k), insert(b, at[k], b[at[k]:at[k]+2]))
		add(fmt.Sprintf("fill%d", k), insert(b, at[k], []byte{0xff, 0xff, 0xff}))
		add(fmt.Sprintf("junk%d", k), insert(b, at[k], []byte("abc")))
		add(fmt.Sprintf("ff02-%d", k), insert(b, at[k], []byte{0xff, 2}))
		add(fmt.Sprintf("eoi%d", k), overwrite(b, at[k], eoi...))
		add(fmt.Sprintf("app%d", k), insert(b, at[k], []byte{0xff, 0xe1, 0, 5, 'a', 'b', 'c'}))
		for n := 1; n < 6 && k+n < len(at); n++ {
			add(fmt.Sprintf("drop%d-%d", k, n), cut(b, span{start: at[k], end: at[k+n]}))
		}
		if k+2 < len(at) {
			add(fmt.Sprintf("swap%d", k), slices.Concat(b[:at[k]], part(k+1, k+2), part(k, k+1), b[at[k+2]:]))
			add(fmt.Sprintf("again%d", k), insert(b, at[k], part(k, k+1)))
			add(fmt.Sprintf("lost-and-cut%d", k), slices.Concat(b[:at[k]-9], b[at[k+1]:]))
		}
	}
}

func sum(counts []byte) (n int) {
	for _, c := range counts {
		n += int(c)
	}
	return n
}

// inOrder gives the keys of a map in a fixed order.
func inOrder[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
