//go:build amd64 && !purego

package vp8l

//go:generate go -C ../../../internal/kernel/_gen run ./vp8l -out ../../../codec/webp/vp8l/kernels_amd64.s -stubs ../../../codec/webp/vp8l/kernels_stubs_amd64.go -pkg vp8l
