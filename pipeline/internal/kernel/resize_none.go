//go:build !amd64 || purego

package kernel

func resizeVerticalAVX2(_, _ *byte, _ int, _ *int32, _, _ int) {
	panic("kernel: built without assembly")
}

func resizeHorizontalAVX2(_ *byte, _ int, _ *byte, _, _ int, _, _ *int32, _, _ int) {
	panic("kernel: built without assembly")
}

func resizeVerticalAVX512(_, _ *byte, _ int, _ *int32, _, _ int) {
	panic("kernel: built without assembly")
}

func resizeHorizontalAVX512(_ *byte, _ int, _ *byte, _, _ int, _, _ *int32, _, _ int) {
	panic("kernel: built without assembly")
}

func triangleAVX2(_, _, _ *int32, _, _, _, _, _ int, _, _, _ float64) (end, longest, zeros int32) {
	panic("kernel: built without assembly")
}

func packVerticalAVX2(_, _ *int32, _ int) (large int) {
	panic("kernel: built without assembly")
}

func groupTapsAVX2(_, _, _, _ *int32, _, _, _, _ int) {
	panic("kernel: built without assembly")
}

func mixRowsAVX2(_, _, _ *byte, _, _ int) {
	panic("kernel: built without assembly")
}

func mixRowsAVX512(_, _, _ *byte, _, _ int) {
	panic("kernel: built without assembly")
}
