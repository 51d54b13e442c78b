//go:build !linux || portable

package dataset

const portable = true
