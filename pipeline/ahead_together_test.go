package pipeline

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/feedwater-io/feedwater/batch"
	"github.com/feedwater-io/feedwater/pipeline/dataset"
	"github.com/feedwater-io/feedwater/pipeline/dataset/buckettest"
)

// shardCopies is how often the shard of these tests has each picture.
const shardCopies = 4

// shard is a tar file of pictures; broken is one that does not decode in the place of the sample of this number.
func shard(t *testing.T) []byte {
	t.Helper()
	var out bytes.Buffer
	w, all := tar.NewWriter(&out), pictures()
	n := 0
	for range shardCopies {
		for _, key := range slices.Sorted(maps.Keys(all)) {
			for name, data := range map[string][]byte{"jpg": all[key], "cls": []byte("1")} {
				if err := w.WriteHeader(&tar.Header{Name: fmt.Sprintf("%04d.%s", n, name), Size: int64(len(data)), Mode: 0o600}); err != nil {
					t.Fatal(err)
				}
				if _, err := w.Write(data); err != nil {
					t.Fatal(err)
				}
			}
			n++
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// shardJobs are a job on a shard in a bucket, and one on the same file.
func shardJobs(t *testing.T, o Options, shuffle string) (s *buckettest.Server, there, here *Job) {
	t.Helper()
	s, of, _ := bucket(t, o)
	data := shard(t)
	s.Put("p/x.tar", data)
	path := filepath.Join(t.TempDir(), "x.tar")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(fmt.Sprintf(cropPlan, ""), `"shuffle": true`, `"shuffle": `+shuffle, 1)
	if !strings.Contains(text, shuffle) {
		t.Fatal("the plan says nothing of an order: ", text)
	}
	plan, err := ParsePlan([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var jobs []*Job
	for _, place := range []string{s.Place("p/x.tar"), path} {
		opened, err := dataset.Open(t.Context(), place, dataset.Options{CacheDir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = opened.Close() })
		j, err := of.p.Prepare(plan, opened)
		if err != nil {
			t.Fatal(err)
		}
		jobs = append(jobs, j)
	}
	return s, jobs[0], jobs[1]
}

// Neighbours are read by one question, whatever the order, and batches are those of the file.
func TestNeighboursAreReadTogether(t *testing.T) {
	for shuffle, most := range map[string]int{"false": 3, `"blocks:16"`: 8, "true": 1 << 20} {
		for _, budget := range []int64{0, 20_000} {
			s, there, here := shardJobs(t, Options{Workers: 2, ReadAhead: budget}, shuffle)
			count := len(pictures()) * shardCopies
			before := len(s.Requests())
			got := epochDigest(t, there, 1, count)
			asked := s.Requests()[before:]
			slices.Sort(asked)
			// Workers that have nothing to do take the first samples by themselves.
			if n := len(slices.Compact(asked)); budget == 0 && n > most+8 {
				t.Errorf("%s: %d questions for %d samples", shuffle, n, count)
			}
			if want := epochDigest(t, here, 1, count); got != want {
				t.Errorf("%s, budget %d: %s, want %s", shuffle, budget, got, want)
			}
			if left := there.p.ahead.left(); left != 0 {
				t.Errorf("%s, budget %d: %d bytes are still counted", shuffle, budget, left)
			}
		}
	}
}

// What cannot be read for one sample's sake is read alone: its neighbours are made, and the error names that sample.
func TestOneOfManyReadTogetherFails(t *testing.T) {
	s, j, _ := shardJobs(t, Options{Workers: 2}, "false")
	const bad = 20
	sample, err := j.snapshot.At(bad, nil)
	if err != nil {
		t.Fatal(err)
	}
	var failed atomic.Int32
	s.Fail(func(w http.ResponseWriter, r *http.Request) bool {
		var begin, end int64
		if n, _ := fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-%d", &begin, &end); n != 2 || begin > sample.Offset || end < sample.Offset {
			return false
		}
		failed.Add(1)
		w.WriteHeader(http.StatusTeapot)
		return true
	})
	good := make([]batch.Ref, 0, 60)
	for i := range uint64(60) {
		if i != bad {
			good = append(good, batch.Ref{Index: i})
		}
	}
	all := append(slices.Clone(good), batch.Ref{Index: bad})
	var read *ReadError
	if _, r := fetch(t, j, batch.Name{List: all}); !errors.As(r.Err, &read) || read.Index != bad {
		t.Errorf("%v, want what is wrong with sample %d", r.Err, bad)
	}
	if failed.Load() == 0 {
		t.Error("nothing was asked for")
	}
	if _, r := fetch(t, j, batch.Name{List: good}); r.Err != nil {
		t.Error(r.Err)
	}
	if left := j.p.ahead.left(); left != 0 {
		t.Errorf("%d bytes are still counted", left)
	}
}

// What several samples fail of for their server's sake each of them fails of: the server is not asked for each.
func TestServersTroubleIsOfAllReadTogether(t *testing.T) {
	for _, status := range []int{http.StatusForbidden, http.StatusServiceUnavailable} {
		s, j, _ := shardJobs(t, Options{Workers: 1}, "false")
		brief, err := dataset.Open(t.Context(), s.Place("p/x.tar"), dataset.Options{CacheDir: t.TempDir(), Within: 300 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = brief.Close() })
		failing, err := j.p.Prepare(j.plan, brief)
		if err != nil {
			t.Fatal(err)
		}
		held := make(chan struct{})
		begun := make(chan struct{}, 100)
		s.Fail(func(http.ResponseWriter, *http.Request) bool { begun <- struct{}{}; <-held; return false })
		busy := begin(t, j, batch.Name{List: []batch.Ref{{Index: 60}}}) // the only worker waits for it
		<-begun
		var asked atomic.Int32
		s.Fail(func(w http.ResponseWriter, _ *http.Request) bool {
			asked.Add(1)
			w.WriteHeader(status)
			return true
		})
		done := make(chan Result, 1)
		w := submit(t, failing, batch.Name{Count: 20}, time.Time{}, func(r Result) { done <- r })
		for !j.p.ahead.hasRead(w) {
			time.Sleep(time.Millisecond)
		}
		before := asked.Load()
		s.Fail(nil)
		close(held)
		if r := <-busy; r.Err != nil {
			t.Error(r.Err)
		}
		if r := <-done; !errors.As(r.Err, new(*ReadError)) || !strings.Contains(r.Err.Error(), fmt.Sprint(status)) || before == 0 {
			t.Errorf("%d: %v, want what all failed of, after %d questions", status, r.Err, before)
		}
	}
}

// hasRead reports whether all reads of a want have ended.
func (a *readAhead) hasRead(w *Want) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return !slices.ContainsFunc(w.ahead.reads, func(f fileAhead) bool { return f.state < aheadDone })
}

// A want that is cancelled leaves no reads and no bytes of several samples behind.
func TestReadTogetherEndsWithItsWant(t *testing.T) {
	s, j, _ := shardJobs(t, Options{Workers: 1}, "false")
	begun := make(chan struct{}, 1000)
	s.Fail(func(_ http.ResponseWriter, r *http.Request) bool {
		begun <- struct{}{}
		<-r.Context().Done()
		panic(http.ErrAbortHandler)
	})
	done := make(chan Result, 1)
	w := submit(t, j, batch.Name{Count: 80}, time.Time{}, func(r Result) { done <- r })
	<-begun
	w.Cancel()
	j.p.ahead.running.Wait()
	s.Fail(nil)
	if r := <-done; !errors.Is(r.Err, ErrCancelled) {
		t.Errorf("%v, want %v", r.Err, ErrCancelled)
	}
	if left := j.p.ahead.left(); left != 0 {
		t.Errorf("%d bytes are still counted", left)
	}
	if _, r := fetch(t, j, batch.Name{Count: 80}); r.Err != nil {
		t.Error(r.Err)
	}
}
