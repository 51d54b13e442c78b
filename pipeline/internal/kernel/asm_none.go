//go:build !amd64 || purego

package kernel

const haveAssembly = false
