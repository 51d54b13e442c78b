package transform

import (
	"testing"
)

func TestJPEGAllocatesNothing(t *testing.T) {
	allocatesNothing(t, `{"op":"JPEG","quality":[1,100]},{"op":"Resize","size":[33,21]},{"op":"JPEG","quality":80}`)
}
