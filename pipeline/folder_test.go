package pipeline_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedwater-io/feedwater/pipeline"
	"github.com/feedwater-io/feedwater/pipeline/bulkhead"
	"github.com/feedwater-io/feedwater/pipeline/dataset"
	"github.com/feedwater-io/feedwater/pipeline/dataset/buckettest"
)

// Part of a folder may hang while the root answers. A scan that was given up there keeps neither its lock nor its turn: the next one finds out for
// itself.
func TestScanThatWasGivenUpKeepsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		roots := bulkhead.New(bulkhead.Options{Deadline: 20 * time.Millisecond, Patience: time.Millisecond})
		defer roots.Close()
		folder, lists := t.TempDir(), t.TempDir()
		if err := os.MkdirAll(filepath.Join(folder, "class"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, "class", "a.jpg"), []byte("no picture"), 0o600); err != nil {
			t.Fatal(err)
		}
		answer := make(chan struct{})
		hung := dataset.Options{CacheDir: lists, Progress: func(int) { <-answer }}
		if _, err := pipeline.OpenFolder(t.Context(), roots, folder, hung); !errors.As(err, new(*bulkhead.HungError)) {
			t.Fatalf("a scan that stands still ended with %v", err)
		}
		defer func() {
			close(answer)
			for len(roots.States()) > 0 { // it writes its list
				time.Sleep(time.Second)
			}
		}()
		for locks := 1; locks > 0; { // it is given up beside the caller
			left, err := filepath.Glob(filepath.Join(lists, "*.lock"))
			if err != nil {
				t.Fatal(err)
			}
			locks = len(left)
		}
		patient := bulkhead.New(bulkhead.Options{})
		defer patient.Close()
		s, err := pipeline.OpenFolder(t.Context(), patient, folder, dataset.Options{CacheDir: lists})
		if err != nil {
			t.Fatal(err)
		}
		if s.Len() != 1 {
			t.Errorf("%d samples", s.Len())
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// refusedWithin is long enough for a first connection to be refused on a machine that is busy with other things.
const refusedWithin = 2 * time.Second

// Who waits for a server that nobody is at is told why there is no answer.
func TestServerThatRefusesConnections(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "a")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "b")
	address, err := buckettest.RefusingAddress()
	if err != nil {
		t.Fatal(err)
	}
	roots := bulkhead.New(bulkhead.Options{Deadline: refusedWithin})
	defer roots.Close()
	_, err = pipeline.OpenFolder(t.Context(), roots, "s3://bucket/x?region=a&endpoint=http://"+address, dataset.Options{CacheDir: t.TempDir()})
	if !errors.As(err, new(*bulkhead.HungError)) || !strings.Contains(err.Error(), address+": connect: connection refused") {
		t.Errorf("%v", err)
	}
}

// Whoever comes to storage on a server after it was found not to answer hears why, as the first one does, and as whoever is told of the root.
func TestWhyAServerDoesNotAnswer(t *testing.T) {
	t.Parallel()
	addr, err := buckettest.RefusingAddress()
	if err != nil {
		t.Fatal(err)
	}
	roots := bulkhead.New(bulkhead.Options{Deadline: refusedWithin, ProbeEvery: time.Hour})
	defer roots.Close()
	told := make(chan error, 1)
	roots.OnChange(func(s bulkhead.State) {
		if s.Sick {
			told <- s.Cause
		}
	})
	for i := range 3 {
		_, err := pipeline.OpenFolder(t.Context(), roots, "http://"+addr+"/x.tar", dataset.Options{CacheDir: t.TempDir()})
		if hung := new(bulkhead.HungError); !errors.As(err, &hung) || !errors.Is(err, syscall.ECONNREFUSED) || strings.Count(err.Error(), "connection refused") != 1 {
			t.Errorf("call %d: %v", i, err)
		}
	}
	if cause := <-told; !errors.Is(cause, syscall.ECONNREFUSED) {
		t.Errorf("who is told of the root hears: %v", cause)
	}
}
