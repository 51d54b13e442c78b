package pipeline

import (
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/feedwater-io/feedwater/batch"
	"github.com/feedwater-io/feedwater/pipeline/dataset"
	"github.com/feedwater-io/feedwater/pipeline/dataset/buckettest"
)

// BenchmarkSources: samples a second of the photographs of FEEDWATER_PHOTOS, 224×224, from a folder and from a bucket whose server takes 25 ms for
// each answer and refuses 2 % of them, which lie in this process; with read-ahead and without. Contestants take turns of an epoch each, with four
// batches of 64 in flight; medians of the rounds.
func BenchmarkSources(b *testing.B) {
	dir := os.Getenv("FEEDWATER_PHOTOS")
	if dir == "" {
		b.Skip("FEEDWATER_PHOTOS names no photographs")
	}
	place := slowBucket(b, dir)
	turns := []struct {
		name string
		job  *Job
	}{
		{"folder", sourceJob(b, dir, -1)},
		{"bucket", sourceJob(b, place, 256<<20)},
		{"bucket-no-read-ahead", sourceJob(b, place, -1)},
	}
	rounds := map[string][]float64{}
	for e := uint32(1); b.Loop(); e++ {
		rates := map[string]float64{}
		for _, turn := range turns {
			began := time.Now()
			samples := runEpoch(b, turn.job, e)
			rates[turn.name] = float64(samples) / time.Since(began).Seconds()
		}
		for name, rate := range rates {
			rounds[name] = append(rounds[name], rate)
			if name != "folder" {
				rounds[name+"/folder"] = append(rounds[name+"/folder"], rate/rates["folder"])
			}
		}
	}
	for name, values := range rounds {
		slices.Sort(values)
		b.ReportMetric(values[len(values)/2], name)
	}
}

// slowBucket has the files of a folder, and returns the URL of that prefix.
func slowBucket(b *testing.B, dir string) string {
	s := buckettest.New()
	b.Cleanup(s.Close)
	files := os.DirFS(dir)
	err := fs.WalkDir(files, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(files, path)
		s.Put(filepath.ToSlash(filepath.Join("p", path)), data)
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	requests := make(chan int, 1)
	requests <- 0
	s.Fail(func(w http.ResponseWriter, _ *http.Request) bool {
		time.Sleep(25 * time.Millisecond)
		n := <-requests
		requests <- n + 1
		if n%50 != 49 {
			return false
		}
		buckettest.Refuse(w, http.StatusServiceUnavailable, "SlowDown")
		return true
	})
	for name, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": buckettest.Access, "AWS_SECRET_ACCESS_KEY": buckettest.Secret, "AWS_ENDPOINT_URL": "", "AWS_ENDPOINT_URL_S3": "",
	} {
		b.Setenv(name, value)
	}
	return s.Place("p")
}

// sourceJob is a job on a folder or a bucket, in a pipeline of its own.
func sourceJob(b *testing.B, place string, ahead int64) *Job {
	p, err := Open(Options{Workers: runtime.GOMAXPROCS(0), ReadAhead: ahead})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(p.Close)
	s, err := dataset.Open(b.Context(), place, dataset.Options{CacheDir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = s.Close() })
	plan, err := ParsePlan([]byte(`{"seed": 17, "transforms": [{"op": "RandomResizedCrop", "size": 224}, {"op": "RandomHorizontalFlip"}]}`))
	if err != nil {
		b.Fatal(err)
	}
	j, err := p.Prepare(plan, s)
	if err != nil {
		b.Fatal(err)
	}
	return j
}

// runEpoch makes all batches of an epoch, four at once, and returns how many samples they have.
func runEpoch(b *testing.B, j *Job, epoch uint32) int {
	const size, together = 64, 4
	samples := j.snapshot.Len() / size * size
	free, failed := make(chan []byte, together), make(chan error, 1)
	for range together {
		_, bytes := j.Layout(size)
		free <- make([]byte, bytes)
	}
	for at := 0; at < samples; at += size {
		dst := <-free
		err := j.Submit(&Want{
			Name: batch.Name{Epoch: epoch, Position: uint64(at), Count: size}, Request: batch.Request{Dst: dst},
			Done: func(r Result) {
				if r.Err != nil {
					select {
					case failed <- r.Err:
					default:
					}
				}
				free <- dst
			},
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	for range together {
		<-free
	}
	select {
	case err := <-failed:
		b.Fatal(fmt.Errorf("epoch %d: %w", epoch, err))
	default:
	}
	return samples
}
