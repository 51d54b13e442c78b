package store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/feedwater-io/feedwater/pipeline/dataset/buckettest"
	"github.com/feedwater-io/feedwater/pipeline/dataset/store"
	"github.com/feedwater-io/feedwater/pipeline/dataset/treetest"
)

// serve starts a server, and gives this process its keys.
func serve(t *testing.T) *buckettest.Server {
	t.Helper()
	t.Setenv("AWS_ACCESS_KEY_ID", buckettest.Access)
	t.Setenv("AWS_SECRET_ACCESS_KEY", buckettest.Secret)
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	for _, name := range []string{"AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_SESSION_TOKEN"} {
		t.Setenv(name, "")
	}
	s := buckettest.New()
	t.Cleanup(s.Close)
	return s
}

func open(t *testing.T, place string, within time.Duration) store.Store {
	t.Helper()
	s, err := store.OpenURL(place, store.RemoteOptions{Within: within})
	treetest.Must(t, err)
	t.Cleanup(func() { treetest.Must(t, s.Close()) })
	return s
}

// object is what a store says of a name.
func object(t *testing.T, s store.Store, name string) *store.Object {
	t.Helper()
	a, err := s.Stat(t.Context(), name)
	treetest.Must(t, err)
	return &store.Object{Name: []byte(name), Size: a.Size, Version: []byte(a.Version)}
}

// read reads a range of an object as it is listed.
func read(t *testing.T, s store.Store, o *store.Object, off int64, n int) ([]byte, error) {
	t.Helper()
	p := make([]byte, n)
	return p, s.ReadAt(t.Context(), o, p, off)
}

func bytesOf(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(b) // it never fails
	return b
}

// TestReadsOfServers: ranges and whole objects, of buckets and of web servers, of names with odd characters.
func TestReadsOfServers(t *testing.T) {
	s := serve(t)
	data := bytesOf(100_000)
	for _, name := range []string{"x.bin", "a b+c/ü&=%20.bin", "deep/er/(1).bin"} {
		s.Put("p/"+name, data)
		for kind, place := range map[string]string{"s3": s.Place("p"), "http": s.Plain("p")} {
			from := open(t, place, time.Minute)
			o := object(t, from, name)
			for _, r := range [][2]int{{0, 100_000}, {0, 10}, {99_999, 1}, {777, 5000}} {
				got, err := read(t, from, o, int64(r[0]), r[1])
				if err != nil || !bytes.Equal(got, data[r[0]:r[0]+r[1]]) {
					t.Errorf("%s %s: %v: %v, or other bytes", kind, name, r, err)
				}
			}
		}
	}
}

// TestListsOfBuckets: pages, folders, objects that only mark a folder, the whole bucket.
func TestListsOfBuckets(t *testing.T) {
	s := serve(t)
	s.PageKeys = 3
	var want []string
	for i := range 10 {
		s.Put(fmt.Sprintf("p/%d.jpg", i), []byte{byte(i)})
		s.Put(fmt.Sprintf("p/f %d/x.jpg", i), []byte("x"))
		want = append(want, fmt.Sprintf("%d.jpg", i), fmt.Sprintf("f %d/", i))
	}
	s.Put("p/", nil)
	s.Put("pp/other.jpg", nil)
	slices.Sort(want)
	for place, dir := range map[string]string{s.Place("p"): "", s.Place(""): "p"} {
		from := open(t, place, time.Minute)
		d, err := from.OpenDirectory(t.Context(), dir, nil)
		treetest.Must(t, err)
		got := entries(t, d)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", place, got, want)
		}
	}
	from := open(t, s.Place(""), time.Minute)
	if _, err := from.OpenDirectory(t.Context(), "none", nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder that is not there: %v", err)
	}
	if a, err := from.Stat(t.Context(), "p"); err != nil || a.Kind != store.KindFolder {
		t.Errorf("a prefix is %+v, %v", a, err)
	}
	if _, err := from.Stat(t.Context(), "none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a name that is not there: %v", err)
	}
}

// entries are the names in a directory, those of folders with a slash.
func entries(t *testing.T, d store.Directory) (all []string) {
	t.Helper()
	for {
		name, kind, err := d.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		treetest.Must(t, err)
		a, known := d.Known()
		if !known || a.Kind != kind || kind == store.KindFile && a.Version == "" {
			t.Errorf("%s is known as %+v", name, a)
		}
		if kind == store.KindFolder {
			name = append(name, '/')
		}
		all = append(all, string(name))
	}
}

// TestChangedObjects: whatever a server makes of conditions, bytes of another version are never given.
func TestChangedObjects(t *testing.T) {
	s := serve(t)
	old := bytesOf(5000)
	for _, heedless := range []bool{false, true} {
		s.HeedsNothing = heedless
		for kind, place := range map[string]string{"s3": s.Place("p"), "http": s.Plain("p")} {
			for name, change := range map[string]func(){
				"replaced":  func() { s.Put("p/x", append([]byte{1}, old[1:]...)) },
				"longer":    func() { s.Put("p/x", append(old, 1)) },
				"shortened": func() { s.Put("p/x", old[:10]) },
				"removed":   func() { s.Delete("p/x") },
			} {
				for _, r := range [][2]int{{0, 5000}, {100, 1000}} {
					s.Put("p/x", old)
					from := open(t, place, time.Minute)
					o := object(t, from, "x")
					change()
					var changed *store.ChangedError
					if _, err := read(t, from, o, int64(r[0]), r[1]); !errors.As(err, &changed) {
						t.Errorf("%s, heedless %v: %s, %v: %v, want a ChangedError", kind, heedless, name, r, err)
					} else if name == "replaced" && !strings.Contains(changed.What, string(o.Version)) {
						t.Errorf("%v does not name the version that was listed", changed)
					}
				}
			}
		}
	}
}

// TestPassingTrouble: what may pass is asked again, until it has passed.
func TestPassingTrouble(t *testing.T) {
	s := serve(t)
	data := bytesOf(50_000)
	s.Put("p/x", data)
	for name, fail := range map[string]func(http.ResponseWriter, *http.Request){
		"503 SlowDown":       func(w http.ResponseWriter, _ *http.Request) { buckettest.Refuse(w, 503, "SlowDown") },
		"500":                func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) },
		"429":                func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(429) },
		"400 RequestTimeout": func(w http.ResponseWriter, _ *http.Request) { buckettest.Refuse(w, 400, "RequestTimeout") },
		"a reset":            func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"a body that is cut": func(w http.ResponseWriter, _ *http.Request) { partly(w, data, 1000, 2000, 2000) },
		"a range too long":   func(w http.ResponseWriter, _ *http.Request) { partly(w, data, 1000, 2000, 3000) },
		"a range elsewhere":  func(w http.ResponseWriter, _ *http.Request) { partly(w, data, 1001, 2000, 2000) },
		"200 in place of 206": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("ETag", buckettest.ETag(data))
			_, _ = w.Write(data)
		},
	} {
		from := open(t, s.Place("p"), time.Minute)
		o := object(t, from, "x")
		var tries atomic.Int32
		s.Fail(func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method != http.MethodGet || tries.Add(1) > 3 {
				return false
			}
			fail(w, r)
			return true
		})
		got, err := read(t, from, o, 1000, 2000)
		if err != nil || !bytes.Equal(got, data[1000:3000]) || tries.Load() != 4 {
			t.Errorf("%s: %v after %d requests, or other bytes", name, err, tries.Load())
		}
		s.Fail(nil)
	}
}

// partly answers with a range, says that it has so many bytes, and sends half of them.
func partly(w http.ResponseWriter, data []byte, begin, n, said int) {
	w.Header().Set("ETag", buckettest.ETag(data))
	w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", begin, begin+n-1, len(data)))
	w.Header().Set("Content-Length", fmt.Sprint(said))
	w.WriteHeader(http.StatusPartialContent)
	_, _ = w.Write(data[begin : begin+n/2])
}

// TestSilentServer: a read of a server that says nothing ends with its context.
func TestSilentServer(t *testing.T) {
	s := serve(t)
	s.Put("p/x", []byte("xyz"))
	from := open(t, s.Place("p"), time.Hour)
	o := object(t, from, "x")
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan struct{})
	s.Fail(func(_ http.ResponseWriter, r *http.Request) bool {
		cancel()
		<-r.Context().Done()
		close(gone)
		panic(http.ErrAbortHandler)
	})
	if err := from.ReadAt(ctx, o, make([]byte, 3), 0); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want %v", err, context.Canceled)
	}
	<-gone
}

// hangFirst has a server not answer the next request, and counts it and those that follow.
func hangFirst(s *buckettest.Server) *atomic.Int32 {
	asked := new(atomic.Int32)
	s.Fail(func(_ http.ResponseWriter, r *http.Request) bool {
		if asked.Add(1) > 1 {
			return false
		}
		<-r.Context().Done()
		panic(http.ErrAbortHandler)
	})
	return asked
}

// TestSlowRead: beside a read that takes long another one is sent, whose bytes are taken.
func TestSlowRead(t *testing.T) {
	s := serve(t)
	data := bytesOf(5000)
	s.Put("p/x", data)
	from := open(t, s.Place("p"), time.Hour)
	o := object(t, from, "x")
	for range 20 {
		_, err := read(t, from, o, 0, 5000)
		treetest.Must(t, err)
	}
	hangFirst(s)
	if got, err := read(t, from, o, 0, 5000); err != nil || !bytes.Equal(got, data) {
		t.Errorf("%v, or other bytes", err)
	}
}

// TestSlowQuestions: beside a listing, and a look at an object, that takes long another one is sent.
func TestSlowQuestions(t *testing.T) {
	s := serve(t)
	s.Put("p/x", bytesOf(10))
	from := open(t, s.Place("p"), time.Hour)
	for name, ask := range map[string]func() error{
		"look": func() error {
			_, err := from.Stat(t.Context(), "x")
			return err
		},
		"list": func() error {
			d, err := from.OpenDirectory(t.Context(), "", nil)
			if err == nil {
				d.Close()
			}
			return err
		},
	} {
		for range 20 {
			treetest.Must(t, ask())
		}
		asked := hangFirst(s)
		if err := ask(); err != nil || asked.Load() != 2 {
			t.Errorf("%s: %v after %d questions", name, err, asked.Load())
		}
		s.Fail(nil)
	}
}

// TestAccess: keys that are wrong, missing, expired, and renewed meanwhile; no message has one in it.
func TestAccess(t *testing.T) {
	s := serve(t)
	s.Put("p/x", []byte("xyz"))
	ask := func() error {
		from := open(t, s.Place("p"), time.Minute)
		d, err := from.OpenDirectory(t.Context(), "", nil)
		if err == nil {
			d.Close()
		}
		return err
	}
	for code, set := range map[string][2]string{
		"InvalidAccessKeyId": {"AWS_ACCESS_KEY_ID", "another"}, "SignatureDoesNotMatch": {"AWS_SECRET_ACCESS_KEY", "wrong-secret"},
		"no credentials": {"AWS_ACCESS_KEY_ID", ""},
	} {
		t.Run(code, func(t *testing.T) {
			fresh := serve(t)
			t.Setenv(set[0], set[1])
			t.Setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")
			from := open(t, fresh.Place("p"), time.Minute)
			_, err := from.OpenDirectory(t.Context(), "", nil)
			if !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), code) {
				t.Errorf("%v, want a refusal with %s", err, code)
			}
			if err != nil && (strings.Contains(err.Error(), "wrong-secret") || strings.Contains(err.Error(), buckettest.Secret)) {
				t.Errorf("%v shows a key", err)
			}
		})
	}
	s.Fail(expireOnce())
	if err := ask(); err != nil {
		t.Errorf("keys that were renewed: %v", err)
	}
}

// expireOnce says once that a token has expired.
func expireOnce() func(http.ResponseWriter, *http.Request) bool {
	var asked atomic.Int32
	return func(w http.ResponseWriter, _ *http.Request) bool {
		if asked.Add(1) > 1 {
			return false
		}
		buckettest.Refuse(w, http.StatusBadRequest, "ExpiredToken")
		return true
	}
}

// TestRegions: a bucket of another region is signed for that one, and redirects lead nowhere.
func TestRegions(t *testing.T) {
	s := serve(t)
	s.Region = "eu-north-7"
	s.Put("p/x", []byte("xyz"))
	from := open(t, s.Place("p"), time.Minute)
	if got, err := read(t, from, object(t, from, "x"), 0, 3); err != nil || string(got) != "xyz" {
		t.Errorf("%q, %v", got, err)
	}
	other := serve(t)
	asked := atomic.Bool{}
	other.Fail(func(http.ResponseWriter, *http.Request) bool { asked.Store(true); return false })
	s.Fail(func(w http.ResponseWriter, r *http.Request) bool {
		http.Redirect(w, r, other.URL, http.StatusMovedPermanently)
		return true
	})
	for _, place := range []string{s.Place("p"), s.Plain("p")} {
		if _, err := open(t, place, time.Minute).Stat(t.Context(), "x"); err == nil || !strings.Contains(err.Error(), "redirects are not followed") {
			t.Errorf("%s: %v", place, err)
		}
	}
	if asked.Load() {
		t.Error("a redirect was followed")
	}
}

// TestPlacesThatAreRefused: before anything is asked, with the way out.
func TestPlacesThatAreRefused(t *testing.T) {
	t.Setenv("AWS_ENDPOINT_URL", "")
	for place, want := range map[string]string{
		"gs://b/x": "storage.googleapis.com", "az://b/x": "S3", "hf://b/x": "download", "s3://": "names no", "s3://b/../x": "dot",
		"s3://key:secret@b/x": "environment", "s3://b/x?colour=red": "endpoint, region", "s3://b_/x": "no name of a bucket",
		"https://h/x?token=secret": "none", "s3://bucket/x?style=round": "path or host", "s3://bucket/x?endpoint=ftp://h": "endpoint",
	} {
		_, err := store.OpenURL(place, store.RemoteOptions{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q in it", place, err, want)
		}
		if err != nil && strings.Contains(place, "key:secret") && strings.Contains(err.Error(), "secret@") {
			t.Errorf("%v shows a password", err)
		}
	}
	for _, host := range []string{"169.254.169.254", "[fd00:ec2::254]", "[::ffff:169.254.169.254]"} {
		from := open(t, "http://"+host+"/latest", time.Minute)
		if _, err := from.Stat(t.Context(), "x"); err == nil || !strings.Contains(err.Error(), "never read") {
			t.Errorf("%s: %v", host, err)
		}
	}
}

// TestServersThatTellTooLittle: without a version a change would not be found.
func TestServersThatTellTooLittle(t *testing.T) {
	s := serve(t)
	s.Fail(func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Content-Length", "3")
		w.WriteHeader(200)
		return true
	})
	if _, err := open(t, s.Plain("p"), time.Minute).Stat(t.Context(), "x"); err == nil || !strings.Contains(err.Error(), "ETag") {
		t.Errorf("%v", err)
	}
	if _, err := open(t, s.Plain("p"), time.Minute).OpenDirectory(t.Context(), "", nil); !errors.Is(err, store.ErrNotListed) {
		t.Errorf("%v, want %v", err, store.ErrNotListed)
	}
}

// TestKeysThatAreNoPaths are errors, and never names elsewhere.
func TestKeysThatAreNoPaths(t *testing.T) {
	for _, key := range []string{"p//x.jpg", "p/../x.jpg", "p/./x.jpg"} {
		s := serve(t)
		s.Put(key, []byte("x"))
		d, err := open(t, s.Place("p"), time.Minute).OpenDirectory(t.Context(), "", nil)
		treetest.Must(t, err)
		if name, _, err := d.Next(); err == nil || errors.Is(err, io.EOF) || !strings.Contains(err.Error(), "no path") {
			t.Errorf("%s: %q, %v", key, name, err)
		}
	}
}

// TestTraffic: what was asked is counted.
func TestTraffic(t *testing.T) {
	s := serve(t)
	s.Put("p/x", []byte("xyz"))
	place := s.Plain("p")
	from := open(t, place, time.Minute)
	_, err := read(t, from, object(t, from, "x"), 0, 3)
	treetest.Must(t, err)
	for _, got := range store.Traffics() {
		if got.Place == strings.TrimSuffix(s.URL, "/") {
			if got.Requests != 2 || got.Bytes != 3 || got.Seconds <= 0 || got.Retries != 0 {
				t.Errorf("%+v", got)
			}
			return
		}
	}
	t.Errorf("%s is not in %+v", place, store.Traffics())
}
