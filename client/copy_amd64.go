//go:build amd64 && !purego

package client

// copyPast copies src to dst, both of the same whole number of lines, dst aligned to one, with stores that pass the caches.
func copyPast(dst, src []byte) { streamLines(&dst[0], &src[0], len(dst)/lineBytes) }

// streamLines copies one line or more.
//
//go:noescape
func streamLines(dst, src *byte, lines int)

// fence returns when all that was streamed can be seen by others.
func fence()
