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
