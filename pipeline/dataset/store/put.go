package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"math"
	"net/http"
	"time"
)

// body is what a request sends.
type body struct {
	read   io.ReaderAt
	size   int64
	sha256 string
}

// attach has a request send it. Nil sends nothing.
func (b *body) attach(q *http.Request) {
	if b == nil {
		return
	}
	q.Body, q.ContentLength = io.NopCloser(io.NewSectionReader(b.read, 0, b.size)), b.size
	q.Header.Set("X-Amz-Content-Sha256", b.sha256)
}

// maxPutBytes is how large an object may be that is sent at once.
const maxPutBytes = 5 << 30

// Put makes an object of a bucket, below an URL, or replaces it. It is sent again after trouble that may pass.
func Put(ctx context.Context, place, name string, read io.ReaderAt, size int64) error {
	l, err := parse(place)
	if err != nil {
		return err
	}
	if l.scheme != "s3" {
		return unreadable("%s: only buckets are written", place)
	}
	if size > maxPutBytes {
		return unreadable("%s: %s has %d bytes, and is sent at once, which goes up to %d", place, name, size, int64(maxPutBytes))
	}
	opened, err := OpenURL(place, RemoteOptions{})
	if err != nil {
		return err
	}
	defer func() { _ = opened.Close() }() // nothing is left of it
	to, _ := opened.(*bucket)
	h := sha256.New()
	if _, err := io.Copy(h, io.NewSectionReader(read, 0, size)); err != nil {
		return err
	}
	x := &question{method: http.MethodPut, name: name, bytes: int(min(size, math.MaxInt32)), take: func(*http.Response) error { return nil }}
	x.body = &body{read, size, hex.EncodeToString(h.Sum(nil))}
	to.within += 3 * time.Duration(size) * time.Second >> 20 // a MiB a second, three times
	return to.ask(ctx, x)
}
