package store_test

import (
	"bytes"
	"errors"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/feedwater-io/feedwater/pipeline/dataset/buckettest"
	"github.com/feedwater-io/feedwater/pipeline/dataset/store"
	"github.com/feedwater-io/feedwater/pipeline/dataset/treetest"
)

// cutting lets n bytes of each body pass, and ends the connection then: with a reset, which may take what is on its way
// with it, or in order.
func cutting(n int, reset bool) func(*buckettest.Server) func(http.ResponseWriter, *http.Request) bool {
	return func(s *buckettest.Server) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method != http.MethodGet {
				return false
			}
			s.Object(&cutWriter{ResponseWriter: w, left: n, reset: reset}, r)
			return true
		}
	}
}

// cutWriter is what one body passes.
type cutWriter struct {
	http.ResponseWriter
	left  int
	reset bool
}

func (w *cutWriter) Write(p []byte) (int, error) {
	if len(p) <= w.left {
		w.left -= len(p)
		return w.ResponseWriter.Write(p)
	}
	_, _ = w.ResponseWriter.Write(p[:w.left])
	c := http.NewResponseController(w.ResponseWriter)
	_ = c.Flush()
	if w.reset {
		connection, _, err := c.Hijack()
		if err == nil {
			_ = connection.(*net.TCPConn).SetLinger(0)
			_ = connection.Close()
		}
	}
	panic(http.ErrAbortHandler)
}

// TestReadsGoOnWhereABodyEnded: no connection lasts for more than 100,000 bytes of a body, and reads of more end well,
// with what is lacking asked for, and no more.
func TestReadsGoOnWhereABodyEnded(t *testing.T) {
	const size = 1_000_000
	data := bytesOf(size)
	for kind, reset := range map[string]bool{"ended": false, "reset": true} {
		for _, r := range [][2]int{{0, size}, {777, 500_000}} {
			s := serve(t)
			s.Put("p/x", data)
			for _, place := range []string{s.Place("p"), s.Plain("p")} {
				from := open(t, place, time.Minute)
				o := object(t, from, "x")
				s.Fail(cutting(100_000, reset)(s))
				before := len(s.Requests())
				got, err := read(t, from, o, int64(r[0]), r[1])
				if err != nil || !bytes.Equal(got, data[r[0]:r[0]+r[1]]) {
					t.Errorf("%s, %v: %v, or other bytes", kind, r, err)
				}
				if asked := s.Requests()[before:]; !reset && len(asked) != r[1]/100_000 {
					t.Errorf("%v: %d requests: %q", r, len(asked), asked)
				}
				s.Fail(nil)
			}
		}
	}
}

// TestRestOfAnotherVersion: an object that is replaced while a read goes on is an error, and what came of both is never
// mixed, also where the server heeds no conditions.
func TestRestOfAnotherVersion(t *testing.T) {
	for _, heedless := range []bool{false, true} {
		s := serve(t)
		s.HeedsNothing = heedless
		data := bytesOf(10_000)
		s.Put("p/x", data)
		from := open(t, s.Place("p"), time.Minute)
		o := object(t, from, "x")
		cut := cutting(3000, false)(s)
		var once sync.Once
		s.Fail(func(w http.ResponseWriter, r *http.Request) bool {
			defer once.Do(func() { s.Put("p/x", append([]byte{data[0] ^ 1}, data[1:]...)) })
			return cut(w, r)
		})
		if _, err := read(t, from, o, 0, 10_000); !errors.As(err, new(*store.ChangedError)) {
			t.Errorf("heedless %v: %v, want a ChangedError", heedless, err)
		}
	}
}

// TestAllInPlaceOfTheRest: a server that takes no ranges sends an object from the beginning, and all of it is taken.
func TestAllInPlaceOfTheRest(t *testing.T) {
	s := serve(t)
	data := bytesOf(10_000)
	s.Put("p/x", data)
	from := open(t, s.Place("p"), time.Minute)
	o := object(t, from, "x")
	left := 2
	s.Fail(func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("ETag", buckettest.ETag(data))
		w.Header().Set("Content-Length", strconv.Itoa(len(data)))
		if left--; left >= 0 {
			w = &cutWriter{ResponseWriter: w, left: 3000}
		}
		_, _ = w.Write(data)
		return true
	})
	if got, err := read(t, from, o, 0, len(data)); err != nil || !bytes.Equal(got, data) {
		t.Errorf("%v, or other bytes", err)
	}
}

// TestOtherSizeOfTheSameVersion: one answer may be wrong, and an object that is another one without another ETag, as where
// somebody wrote over a server's file, is told.
func TestOtherSizeOfTheSameVersion(t *testing.T) {
	s := serve(t)
	data := bytesOf(1000)
	s.Put("p/x", data)
	for _, wrong := range []int{1, 3, 1000} {
		for _, r := range [][2]int{{0, 1000}, {100, 200}} {
			from := open(t, s.Place("p"), time.Minute)
			o := object(t, from, "x")
			left := wrong
			s.Fail(func(w http.ResponseWriter, r *http.Request) bool {
				if left--; left < 0 || r.Method != http.MethodGet {
					return false
				}
				w.Header().Set("ETag", buckettest.ETag(data))
				http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(data[:900]))
				return true
			})
			got, err := read(t, from, o, int64(r[0]), r[1])
			if wrong < 4 && (err != nil || !bytes.Equal(got, data[r[0]:r[0]+r[1]])) {
				t.Errorf("%v, after %d wrong answers: %v", r, wrong, err)
			}
			if wrong > 4 && (!errors.As(err, new(*store.ChangedError)) || !strings.Contains(err.Error(), "900 bytes")) {
				t.Errorf("%v: %v, want a ChangedError", r, err)
			}
			s.Fail(nil)
		}
	}
}

// TestReadsAreTold: whoever asks is told of reads that end well, and of no others.
func TestReadsAreTold(t *testing.T) {
	s := serve(t)
	s.Put("p/x", bytesOf(100))
	told := 0
	from, err := store.OpenURL(s.Place("p"), store.RemoteOptions{OnRead: func() { told++ }})
	treetest.Must(t, err)
	o := object(t, from, "x")
	_, err = read(t, from, o, 0, 100)
	treetest.Must(t, err)
	s.Delete("p/x")
	if _, err := read(t, from, o, 0, 100); err == nil || !strings.Contains(err.Error(), "gone") || told != 1 {
		t.Errorf("%v, %d reads were told", err, told)
	}
	treetest.Must(t, from.Close())
}
