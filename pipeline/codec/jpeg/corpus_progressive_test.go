package jpeg

import (
	"fmt"
	"slices"

	"github.com/feedwater-io/feedwater/pipeline/codec/jpeg/jpegtest"
)

// bandScripts are lists of scans; those of the second map leave something out, so that blocks are smoothed.
var bandScripts, shortScripts = func() (whole, short map[string][]jpegtest.Band) {
	const all = jpegtest.All
	each := func(first, last, high, low int) (s []jpegtest.Band) {
		for c := range 3 {
			s = append(s, jpegtest.Band{Components: c, First: first, Last: last, High: high, Low: low})
		}
		return s
	}
	dc, lowDC := jpegtest.Band{Components: all}, jpegtest.Band{Components: all, Low: 1}
	whole = map[string][]jpegtest.Band{
		"libjpeg": jpegtest.Script(3), "spectral": slices.Concat([]jpegtest.Band{dc}, each(1, 63, 0, 0)),
		"apart": slices.Concat(each(0, 0, 0, 0), each(1, 63, 0, 0)), "ac-first": slices.Concat(each(1, 63, 0, 0), []jpegtest.Band{dc}),
		"deep": {{Components: all, Low: 3}}, "bands": {dc}, "single": {dc},
	}
	for low := 3; low >= 0; low-- {
		high := low + 1
		if low == 3 {
			high = 0
		}
		whole["deep"] = append(whole["deep"], each(1, 63, high, low)...)
	}
	whole["deep"] = append(whole["deep"], jpegtest.Band{Components: all, High: 3, Low: 2}, jpegtest.Band{Components: all, High: 2, Low: 1}, jpegtest.Band{Components: all, High: 1})
	for k := 1; k < 64; k++ {
		if k%7 == 1 {
			whole["bands"] = append(whole["bands"], each(k, k+6, 0, 0)...)
		}
		whole["single"] = append(whole["single"], each(k, k, 0, 0)...)
	}
	libjpeg := jpegtest.Script(3)
	short = map[string][]jpegtest.Band{
		"dc": {dc}, "dc-low": {lowDC}, "no-chroma": {dc, {Components: 0, First: 1, Last: 63}}, "five": {dc, {Components: 0, First: 1, Last: 5, Low: 2}},
		"nine": {lowDC, {Components: 0, First: 1, Last: 9, Low: 1}, {Components: 1, First: 1, Last: 9, Low: 3}}, "high": {dc, {Components: 0, First: 6, Last: 63}},
		"no-dc": each(1, 63, 0, 0), "dc-of-one": {{Components: 1}}, "y-dc": {{Components: 0}, {Components: 0, First: 1, Last: 63}},
		"again": slices.Concat(libjpeg[:4], libjpeg[1:3], libjpeg[1:]), "backwards": slices.Concat(libjpeg[4:], libjpeg[:4]), "refined-twice": slices.Concat(libjpeg, libjpeg[7:]),
	}
	for n := range libjpeg {
		short[fmt.Sprintf("first%02d", n+1)] = libjpeg[:n+1]
		short[fmt.Sprintf("without%02d", n)] = slices.Concat(libjpeg[:n], libjpeg[n+1:])
	}
	return whole, short
}()

// progressive are files of all scripts and of all layouts.
func (c *corpus) progressive() {
	i := 0
	for _, scripts := range []map[string][]jpegtest.Band{bandScripts, shortScripts} {
		for _, name := range inOrder(scripts) {
			for _, s := range []string{"420", "444", "12-21-11"} {
				o := jpegtest.Options{Sampling: samplings[s], Progressive: scripts[name], Restart: i % 3 * 5, Quality: 40 + i%60}
				c.add(fmt.Sprintf("bands.%s.%s", name, s), jpegtest.Encode(jpegtest.Photograph(uint64(i), 5, 50+i%30, 70-i%40), o))
				i++
			}
		}
	}
	for _, name := range inOrder(samplings) {
		for _, size := range [][2]int{{61, 45}, {17, 9}, {3, 2}, {1, 1}, {70, 130}} {
			n := len(samplings[name])
			o := jpegtest.Options{Sampling: samplings[name], Progressive: jpegtest.Script(n), Quality: 80, Restart: i % 4}
			m := jpegtest.Photograph(uint64(i), 6, size[0], size[1])
			c.add(fmt.Sprintf("progressive.%s.%dx%d", name, size[0], size[1]), jpegtest.Encode(m, o))
			o.Progressive = o.Progressive[:1+i%5]
			c.add(fmt.Sprintf("partial.%s.%dx%d", name, size[0], size[1]), jpegtest.Encode(m, o))
			i++
		}
	}
}

// fourComponents are CMYK and YCCK, with and without a marker that says so.
func (c *corpus) fourComponents() {
	m := jpegtest.Photograph(3, 2, 45, 31)
	layouts := map[string][]jpegtest.Factors{
		"1111": jpegtest.CMYK, "2112": {{2, 2}, {1, 1}, {1, 1}, {2, 2}}, "21": {{2, 1}, {1, 1}, {1, 1}, {2, 1}}, "12": {{1, 1}, {1, 2}, {1, 1}, {1, 1}},
		"black": {{1, 1}, {1, 1}, {1, 1}, {2, 2}}, "13-blocks": {{2, 2}, {2, 2}, {1, 1}, {2, 2}},
	}
	for _, name := range inOrder(layouts) {
		for h := range jpegtest.HeaderAdobeYCCK + 1 {
			o := jpegtest.Options{Header: h, Sampling: layouts[name], Restart: int(h)}
			c.add(fmt.Sprintf("four.%s.%d", name, h), jpegtest.Encode(m, o))
			o.Scans = [][]int{{0}, {1, 2}, {3}}
			c.add(fmt.Sprintf("four.%s.%d.scans", name, h), jpegtest.Encode(m, o))
			o.Progressive = jpegtest.Script(4)
			c.add(fmt.Sprintf("four.%s.%d.progressive", name, h), jpegtest.Encode(m, o))
			o.Progressive = o.Progressive[:4]
			c.add(fmt.Sprintf("four.%s.%d.partial", name, h), jpegtest.Encode(m, o))
		}
	}
	adobe := []byte("\xff\xee\x00\x0eAdobe\x00\x64\x00\x00\x00\x00\x02")
	c.add("four.jfif-adobe2", insert(jpegtest.Encode(m, jpegtest.Options{Sampling: jpegtest.CMYK}), 20, adobe))
	c.add("four.ids", jpegtest.Encode(m, jpegtest.Options{Sampling: jpegtest.CMYK, IDs: []byte("CMYK"), Header: jpegtest.HeaderNone}))
}
