package strip

import (
	"errors"
	"fmt"
	"image"
)

// CheckRegion is what every decoder asks before it decodes region r of a picture of w×h pixels: that a file of the format was parsed,
// and that r is not empty and lies inside.
func CheckRegion(format string, parsed bool, r image.Rectangle, w, h int) error {
	if !parsed {
		return errors.New(format + ": decode without a parsed file")
	}
	if r.Empty() || !r.In(image.Rect(0, 0, w, h)) {
		return fmt.Errorf("%s: region %v is not inside the picture of %dx%d", format, r, w, h)
	}
	return nil
}
