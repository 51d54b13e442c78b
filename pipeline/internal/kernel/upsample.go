package kernel

func h2v1Scalar(dst, src []byte) {
	n := len(src) - 2
	dst = dst[:2*n]
	l, c := int32(src[0]), int32(src[1])
	for i, v := range src[2:] {
		r := int32(v)
		d := dst[2*i : 2*i+2 : 2*i+2]
		d[0], d[1] = uint8((3*c+l+1)>>2), uint8((3*c+r+2)>>2)
		l, c = c, r
	}
}

func h2v2Scalar(dst, near, far []byte) {
	n := len(near) - 2
	dst, far = dst[:2*n], far[:n+2]
	l, c := 3*int32(near[0])+int32(far[0]), 3*int32(near[1])+int32(far[1])
	far = far[2:]
	for i, v := range near[2:] {
		r := 3*int32(v) + int32(far[i])
		d := dst[2*i : 2*i+2 : 2*i+2]
		d[0], d[1] = uint8((3*c+l+8)>>4), uint8((3*c+r+7)>>4)
		l, c = c, r
	}
}

func h1v2Scalar(dst, near, far []byte, bias uint16) {
	far, dst = far[:len(near)], dst[:len(near)]
	for i, v := range near {
		dst[i] = uint8((3*uint32(v) + uint32(far[i]) + uint32(bias)) >> 2)
	}
}
