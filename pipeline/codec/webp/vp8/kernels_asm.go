//go:build amd64 && !purego

package vp8

//go:generate go -C ../../../internal/kernel/_gen run ./webp -out ../../../codec/webp/vp8/kernels_amd64.s -stubs ../../../codec/webp/vp8/kernels_stubs_amd64.go -pkg vp8
