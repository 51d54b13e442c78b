package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// ReadAt implements Store. Where a read takes long another one is sent, and the first to end is taken.
func (r *remote) ReadAt(ctx context.Context, o *Object, p []byte, off int64) error {
	if len(p) == 0 {
		return nil
	}
	after := r.server.slowAfter(len(p))
	if after == 0 || r.server.hedging.Load() >= remoteReads/8 {
		return r.read(ctx, o, p, off)
	}
	first, stopFirst := context.WithCancel(ctx)
	defer stopFirst()
	second, stopSecond := context.WithCancel(ctx)
	defer stopSecond()
	var other []byte
	otherErr, ended := error(nil), make(chan struct{})
	timer := time.AfterFunc(after, func() {
		defer close(ended)
		r.server.hedging.Add(1)
		defer r.server.hedging.Add(-1)
		r.server.hedges.Add(1)
		other = make([]byte, len(p))
		if otherErr = r.read(second, o, other, off); otherErr == nil {
			stopFirst()
		}
	})
	err := r.read(first, o, p, off)
	if timer.Stop() {
		return err
	}
	if err == nil || errors.As(err, new(*ChangedError)) {
		stopSecond()
	}
	<-ended
	if err != nil && otherErr == nil {
		copy(p, other)
		return nil
	}
	return err
}

// read reads a range.
func (r *remote) read(ctx context.Context, o *Object, p []byte, off int64) error {
	begun := time.Now()
	g := &part{of: o, off: off, p: p}
	x := &question{method: http.MethodGet, name: string(o.Name), header: map[string]string{}, bytes: len(p)}
	g.ask(x.header)
	x.take = func(a *http.Response) error {
		err := g.take(a)
		g.ask(x.header)
		return r.named(x, err)
	}
	err := r.ask(ctx, x)
	switch {
	case err == nil:
		r.onRead()
		r.server.received.Add(int64(len(p)))
		r.server.tell(len(p), time.Since(begun))
	case errors.Is(err, fs.ErrNotExist):
		return o.changed("is gone")
	case errors.Is(err, errPrecondition):
		return r.replaced(ctx, o)
	}
	if e, ok := errors.AsType[*ChangedError](err); ok {
		return e
	}
	return err
}

func isTime(version string) bool {
	_, err := http.ParseTime(version)
	return err == nil
}

// errPrecondition says that there is another version.
var errPrecondition = errors.New("it is another version")

// replaced tells what an object is now.
func (r *remote) replaced(ctx context.Context, o *Object) error {
	if a, err := r.look(ctx, string(o.Name)); err == nil {
		return o.changed(fmt.Sprintf("has version %s and %d bytes, had %s and %d", a.Version, a.Size, o.Version, o.Size))
	}
	return o.changed(fmt.Sprintf("has another version than %s", o.Version))
}

// part is a range of an object that is read, as far as it has come: where an answer ends amid its body the next
// question is about the rest, so that a read goes on also where no connection lasts for all of it.
type part struct {
	of  *Object
	off int64
	p   []byte
	n   int // bytes that have come

	otherSizes int // answers that told another size of the same version
}

// sureOfSize is how many answers in a row tell another size of an object whose version is the one that is listed before
// it counts as changed: one may be damaged.
const sureOfSize = 4

// ask writes the headers of a question for what has not come yet.
func (g *part) ask(header map[string]string) {
	delete(header, "Range")
	if !g.isWhole() || g.n > 0 {
		header["Range"] = fmt.Sprintf("bytes=%d-%d", g.off+int64(g.n), g.off+int64(len(g.p))-1)
	}
	switch version := string(g.of.Version); {
	case strings.HasPrefix(version, "W/"): // a weak tag never matches
	case isTime(version):
		header["If-Unmodified-Since"] = version
	default:
		header["If-Match"] = `"` + version + `"`
	}
}

// isWhole reports whether the range is all of the object.
func (g *part) isWhole() bool { return g.off == 0 && int64(len(g.p)) == g.of.Size }

// take takes what an answer brings of the range.
func (g *part) take(a *http.Response) error {
	if err := g.check(a); err != nil {
		return err
	}
	n, err := io.ReadFull(a.Body, g.p[g.n:])
	g.n += n
	if g.n == len(g.p) {
		_, _ = a.Body.Read(make([]byte, 1)) // the end of the body, so that the connection is used again
		return nil
	}
	return &passingError{cause: fmt.Errorf("it ended after %d bytes of %d: %w", g.n, len(g.p), err), advanced: n > 0}
}

// check compares what an answer says of the object with what is listed, and with what was asked for: a server that
// heeds no conditions gives no other version for it.
func (g *part) check(a *http.Response) error {
	size, partial := a.ContentLength, a.StatusCode == http.StatusPartialContent
	off := g.off + int64(g.n)
	if partial {
		var begin int64
		if begin, size = rangeOf(a.Header.Get("Content-Range")); begin != off {
			return &passingError{cause: fmt.Errorf("it answers bytes from %d on with %.60q", off, a.Header.Get("Content-Range"))}
		}
	} else if !g.isWhole() && (size < 0 || size == g.of.Size) {
		return &passingError{cause: errors.New("it answers a question for some bytes with all of them: it has to take ranges")}
	}
	if v := versionOf(a.Header); v != string(g.of.Version) {
		return g.of.changed(fmt.Sprintf("has version %.99s and %d bytes, had %s and %d", v, size, g.of.Version, g.of.Size))
	}
	if size >= 0 && size != g.of.Size {
		what := fmt.Sprintf("has %d bytes, had %d", size, g.of.Size)
		if g.otherSizes++; g.otherSizes < sureOfSize {
			return &passingError{cause: errors.New("it says that the object " + what)}
		}
		return g.of.changed(what)
	}
	g.otherSizes = 0
	if !partial { // all of it, whatever was asked for
		g.n = 0
	}
	if rest := len(g.p) - g.n; a.ContentLength >= 0 && a.ContentLength != int64(rest) {
		return &passingError{cause: fmt.Errorf("it sends %d bytes in place of %d", a.ContentLength, rest)}
	}
	return nil
}

// rangeOf reads "bytes 0-99/1234": where a range begins, and how long the whole is; -1 where it does not say.
func rangeOf(s string) (begin, size int64) {
	span, all, _ := strings.Cut(strings.TrimPrefix(s, "bytes "), "/")
	first, _, _ := strings.Cut(span, "-")
	begin, err := strconv.ParseInt(first, 10, 64)
	if err != nil {
		begin = -1
	}
	if size, err = strconv.ParseInt(all, 10, 64); err != nil {
		size = -1
	}
	return begin, size
}
