// Package page is the web page that shows what `feedwater top` shows: static files, all embedded, and JSON documents
// that they fetch. It decides nothing (see watch), remembers nothing (see history), and loads nothing from anywhere else.
// It starts no goroutine.
package page

import (
	"bytes"
	"embed"
	"encoding/base64"
	"encoding/json"
	"errors"
	"image"
	"image/png"
	"io/fs"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/feedwater-io/feedwater/watch"
	"github.com/feedwater-io/feedwater/watch/history"
)

//go:embed web
var web embed.FS

// Options of a page.
type Options struct {
	// Overview is the state now.
	Overview func() *watch.Overview
	// History has the past.
	History *history.History
	// Batch has pictures of a job's batch, as far as whoever asks may see them; nil: this page shows none.
	Batch func(r *http.Request, job, plan string) Batch
}

// Batch is some pictures of one.
type Batch struct {
	Taken       time.Time
	Epoch, Rank uint32
	Pictures    []*image.RGBA
	// Missing is why there are none.
	Missing string
}

// MarshalJSON writes the pictures as PNG.
func (b Batch) MarshalJSON() ([]byte, error) {
	pictures := make([]string, len(b.Pictures))
	for i, p := range b.Pictures {
		var file bytes.Buffer
		if err := png.Encode(&file, p); err != nil {
			return nil, err
		}
		pictures[i] = "data:image/png;base64," + base64.StdEncoding.EncodeToString(file.Bytes())
	}
	return json.Marshal(struct {
		Taken    time.Time `json:"taken"`
		Epoch    uint32    `json:"epoch"`
		Rank     uint32    `json:"rank"`
		Pictures []string  `json:"pictures"`
		Missing  string    `json:"missing,omitempty"`
	}{b.Taken, b.Epoch, b.Rank, pictures, b.Missing})
}

// noBatch is the answer of a page that shows no pictures.
const noBatch = "only a node has pictures: they are on the page that it serves itself"

// Handler serves the page at /, the overview at /watch.json, the past of one subject at /history.json, and pictures of a
// job's batch at /batch.json.
func Handler(o Options) http.Handler {
	files, err := fs.Sub(web, "web")
	if err != nil {
		panic(err) // the folder is embedded above
	}
	mux := http.NewServeMux()
	mux.Handle("GET /{$}", withSafeHeaders(http.FileServerFS(files)))
	mux.Handle("GET /page.css", withSafeHeaders(http.FileServerFS(files)))
	mux.Handle("GET /page.js", withSafeHeaders(http.FileServerFS(files)))
	mux.Handle("GET /watch.json", withSafeHeaders(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, o.Overview())
	})))
	mux.Handle("GET /history.json", withSafeHeaders(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		subject, err := subjectOf(r.URL.Query())
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		writeJSON(w, o.History.Of(subject, time.Now()))
	})))
	mux.Handle("GET /batch.json", withSafeHeaders(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b := Batch{Missing: noBatch}
		if o.Batch != nil {
			b = o.Batch(r, r.URL.Query().Get("job"), r.URL.Query().Get("plan"))
		}
		writeJSON(w, b)
	})))
	return mux
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // a reader that has left is no error
}

// subjectOf reads ?job=NAME&plan=HASH, with &rank=N for one rank, or ?node=ADDRESS.
func subjectOf(q url.Values) (history.Subject, error) {
	if q.Has("node") {
		return history.Subject{Node: q.Get("node")}, nil
	}
	s := history.Subject{Job: q.Get("job"), Plan: q.Get("plan"), Rank: history.AllRanks}
	if q.Has("rank") {
		rank, err := strconv.ParseUint(q.Get("rank"), 10, 31)
		if err != nil {
			return s, errors.New("rank is not a number")
		}
		s.Rank = int(rank)
	}
	return s, nil
}

// withSafeHeaders keeps browsers from running or fetching anything that is not ours, and from keeping an old version.
func withSafeHeaders(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; frame-ancestors 'none'")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Referrer-Policy", "no-referrer")
		w.Header().Set("Cache-Control", "no-cache")
		h.ServeHTTP(w, r)
	})
}

// Live is one source for any number of readers: its rates are over the time between two overviews.
type Live struct {
	source *watch.Source

	mu      sync.Mutex
	watcher *watch.Watcher
	latest  *watch.Overview
}

// NewLive returns what makes overviews of a source.
func NewLive(s *watch.Source) *Live { return &Live{source: s} }

const (
	fresh = 500 * time.Millisecond // an overview is shown to all who ask so soon
	stale = 10 * time.Second       // rates over more than that say nothing of now
	brief = 200 * time.Millisecond // rates need some time
)

// Overview is the state now. After a while without readers it takes a moment.
func (l *Live) Overview() *watch.Overview {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if l.latest != nil && now.Sub(l.latest.Time) < fresh {
		return l.latest
	}
	if l.latest == nil || now.Sub(l.latest.Time) > stale {
		l.watcher = l.source.NewWatcher(now)
		time.Sleep(brief)
		now = time.Now()
	}
	l.latest = watch.Merge([]watch.ProcessState{{Addr: "this node", State: l.watcher.Next(now)}}, now)
	return l.latest
}
