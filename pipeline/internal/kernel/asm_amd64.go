//go:build !purego

package kernel

const haveAssembly = true
