package codec

import (
	"image"
	"strings"
	"testing"

	"github.com/feedwater-io/feedwater/pipeline/internal/kernel"
)

// A decoder that has seen a picture takes no memory for the next ones like it, of any format. Damage that is let pass, and chunks of unknown
// names, may take some.
func TestNoAllocations(t *testing.T) {
	c := archived(t)
	counted := map[string]int{}
	for name, file := range c.files {
		if strings.HasPrefix(name, "damaged-") || name == "turned-webp-odd" {
			continue
		}
		d := NewDecoder(kernel.Levels()[0])
		format, decoded := "", true
		var index []byte
		decode := func() {
			d.UseIndex(index, 0)
			w, h, err := d.Parse(file, DefaultLimits())
			if err != nil {
				decoded = false
				return
			}
			format = d.Format(file)
			decoded = d.Decode(image.Rect(0, 0, w, h), nowhere{}) == nil
		}
		if decode(); !decoded {
			continue
		}
		counted[format]++
		if n := testing.AllocsPerRun(5, decode); n > 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
		d.RecordCopies(true)
		d.UseIndex(nil, 8)
		if _, _, err := d.Parse(file, DefaultLimits()); err != nil {
			t.Fatal(err)
		}
		if index = d.AppendIndex(nil); IsCopy(index) {
			counted["copies"]++
		}
		if n := testing.AllocsPerRun(5, decode); n > 0 {
			t.Errorf("%s with its index: %v allocations", name, n)
		}
	}
	for _, format := range []string{"bmp", "gif", "jpeg", "png", "webp", "copies"} {
		if counted[format] < 20 {
			t.Errorf("%s: only %d files", format, counted[format])
		}
	}
}
