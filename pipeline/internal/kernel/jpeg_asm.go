//go:build amd64 && !purego

package kernel

//go:generate sh -c "cd _gen && go run ./jpeg -out ../jpeg_amd64.s -stubs ../jpeg_stubs_amd64.go -pkg kernel"
//go:generate sh -c "cd _gen && go run ./jpeg -avx512 -out ../jpeg_avx512_amd64.s -stubs ../jpeg_avx512_stubs_amd64.go -pkg kernel"

// group is how many samples the assembly takes at a time. Shorter rows go to the scalar twins; longer ones end with a
// group that overlaps the one before it, so that no kernel reads or writes outside its slices.
const group = 32

func vectorJPEG() *JPEG {
	return &JPEG{
		Level: AVX2, Least: group, IDCT: idctAVX2, Color: colorAVX2, Grey: greyAVX2,
		H2V1: h2v1AVX2, H2V2: h2v2AVX2, H1V2: h1v2AVX2, Unstuff: unstuffAVX2,
	}
}

// wideJPEG has kernels of AVX-512 where these gain. Doubling does not: it reads at once what two were needed to write.
func wideJPEG() *JPEG {
	k := vectorJPEG()
	k.Level, k.IDCT, k.Color = AVX512, idctAVX512, colorAVX512
	return k
}

func idctAVX2(dst []byte, stride int, blocks []Block, q *[64]uint16) {
	if len(blocks) == 0 {
		return
	}
	idctRoom(dst, stride, len(blocks))
	idctPairs(&dst[0], stride, &blocks[0][0], &q[0], len(blocks)/2)
}

func colorAVX2(dst, y, cb, cr []byte) {
	n := len(y)
	if n < group {
		colorScalar(dst, y, cb, cr)
		return
	}
	_, _, _ = cb[n-1], cr[n-1], dst[3*n-1]
	colorRow(&dst[0], &y[0], &cb[0], &cr[0], n)
}

// idctAVX512 makes four blocks at a time, and leaves two that may be over to AVX2.
func idctAVX512(dst []byte, stride int, blocks []Block, q *[64]uint16) {
	if len(blocks) == 0 {
		return
	}
	idctRoom(dst, stride, len(blocks))
	fours := len(blocks) / 4
	if fours > 0 {
		idctFours(&dst[0], stride, &blocks[0][0], &q[0], fours)
	}
	if rest := blocks[4*fours:]; len(rest) > 0 {
		idctPairs(&dst[32*fours], stride, &rest[0][0], &q[0], 1)
	}
}

func colorAVX512(dst, y, cb, cr []byte) {
	n := len(y)
	if n < 2*group {
		colorAVX2(dst, y, cb, cr)
		return
	}
	_, _, _ = cb[n-1], cr[n-1], dst[3*n-1]
	colorRowWide(&dst[0], &y[0], &cb[0], &cr[0], n)
}

func greyAVX2(dst, y []byte) {
	n := len(y)
	if n < group {
		greyScalar(dst, y)
		return
	}
	_ = dst[3*n-1]
	greyRow(&dst[0], &y[0], n)
}

func h2v1AVX2(dst, src []byte) {
	n := len(src) - 2
	if n < group {
		h2v1Scalar(dst, src)
		return
	}
	_ = dst[2*n-1]
	h2v1Row(&dst[0], &src[0], n)
}

func h2v2AVX2(dst, near, far []byte) {
	n := len(near) - 2
	if n < group {
		h2v2Scalar(dst, near, far)
		return
	}
	_, _ = dst[2*n-1], far[n+1]
	h2v2Row(&dst[0], &near[0], &far[0], n)
}

func h1v2AVX2(dst, near, far []byte, bias uint16) {
	n := len(near)
	if n < group {
		h1v2Scalar(dst, near, far, bias)
		return
	}
	_, _ = dst[n-1], far[n-1]
	h1v2Row(&dst[0], &near[0], &far[0], n, bias)
}

func unstuffAVX2(dst, src []byte) (written, read int) {
	if len(src) > group {
		_ = dst[len(src)-1]
		written, read = unstuffRun(&dst[0], &src[0], len(src))
	}
	w, r := unstuffScalar(dst[written:], src[read:])
	return written + w, read + r
}
