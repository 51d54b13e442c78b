package kernel

func colorScalar(dst, y, cb, cr []byte) {
	cb, cr, dst = cb[:len(y)], cr[:len(y)], dst[:3*len(y)]
	for i, l := range y {
		yy, b, r := int32(l), int32(cb[i])-128, int32(cr[i])-128
		d := dst[3*i : 3*i+3 : 3*i+3]
		d[0] = clampByte(yy + (91881*r+32768)>>16)
		d[1] = clampByte(yy + (-22554*b-46802*r+32768)>>16)
		d[2] = clampByte(yy + (116130*b+32768)>>16)
	}
}

func greyScalar(dst, y []byte) {
	dst = dst[:3*len(y)]
	for i, l := range y {
		d := dst[3*i : 3*i+3 : 3*i+3]
		d[0], d[1], d[2] = l, l, l
	}
}
