package dataset

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/feedwater-io/feedwater/pipeline/dataset/buckettest"
	"github.com/feedwater-io/feedwater/pipeline/dataset/treetest"
)

// drawShard is a tar file of pictures and texts of random sizes, some far apart.
func drawShard(t *testing.T, r *rand.Rand, samples int) []byte {
	var members []string
	draw := func(most int) string {
		b := make([]byte, r.IntN(most))
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		return string(b)
	}
	for i := range samples {
		members = append(members, fmt.Sprintf("%04d.jpg", i), "p"+draw(40_000), fmt.Sprintf("%04d.txt", i), draw(300))
		if r.IntN(5) == 0 {
			members = append(members, fmt.Sprintf("%04d.gap", i), draw(3*maxGap))
		}
	}
	return shardOf(t, members...)
}

// TestReadTogether: random sets of samples of a shard are what they are alone, with values and without, from a bucket and through a read cache; of
// the questions there are no more than the samples take that lie apart.
func TestReadTogether(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 1))
	root := t.TempDir()
	const samples = 60
	treetest.Must(t, os.WriteFile(root+"/x.tar", drawShard(t, r, samples), 0o600))
	server := buckettest.OfFolder(t, root)
	for _, values := range []string{"", "txt"} {
		for _, cached := range []bool{false, true} {
			o := options(t)
			if o.Values = values; cached {
				o.ReadCache = openBlocks(t, t.TempDir(), 1<<30)
			}
			plain := options(t)
			plain.Values = values
			alone := opened(t, root+"/x.tar", plain)
			s := opened(t, server.Place("p/x.tar"), o)
			if !s.Joins() || alone.Joins() {
				t.Fatal("samples of a bucket are read together, and those of a file are not")
			}
			earlier := len(server.Requests())
			for range 20 {
				all := r.Perm(samples)[:1+r.IntN(samples)]
				slices.Sort(all)
				before := len(server.Requests())
				checkTogether(t, s, alone, all)
				if asked, most := questionsSince(server, earlier, before), questionsFor(t, s, all); asked > most && !cached {
					t.Errorf("%d questions for %d samples, %d are enough", asked, len(all), most)
				}
				earlier = before
			}
			before := len(server.Requests())
			checkTogether(t, s, alone, upTo(samples))
			checkTogether(t, s, alone, upTo(samples))
			if asked := questionsSince(server, earlier, before); cached && asked > questionsFor(t, s, upTo(samples)) {
				t.Errorf("%d questions of what is kept", asked)
			}
		}
	}
}

// questionsSince is how many questions there were after so many. One that took long was asked twice, the second time
// perhaps after its answer was there: it is one of those after earlier.
func questionsSince(server *buckettest.Server, earlier, before int) int {
	all := server.Requests()
	late := all[earlier:before]
	since := slices.DeleteFunc(slices.Clone(all[before:]), func(q string) bool { return slices.Contains(late, q) })
	slices.Sort(since)
	return len(slices.Compact(since))
}

func upTo(n int) (all []int) {
	for i := range n {
		all = append(all, i)
	}
	return all
}

// questionsFor is how many pieces samples lie in.
func questionsFor(t *testing.T, s *Snapshot, all []int) (n int) {
	var last Extent
	for k, i := range all {
		sample, err := s.At(i, nil)
		treetest.Must(t, err)
		e, whole := s.ExtentOf(&sample)
		if !whole {
			t.Fatalf("sample %d lies apart", i)
		}
		if k == 0 || !last.Join(e) {
			last = e
			n++
		}
	}
	return n
}

// checkTogether reads samples together, and each alone.
func checkTogether(t *testing.T, s, alone *Snapshot, all []int) {
	t.Helper()
	bufs := make([][]byte, len(all))
	for k := range bufs {
		bufs[k] = bytes.Repeat([]byte("used"), k)
	}
	treetest.Must(t, s.ReadTogether(t.Context(), all, bufs))
	for k, i := range all {
		want, err := alone.Read(t.Context(), i, nil)
		treetest.Must(t, err)
		if !bytes.Equal(bufs[k], want) || cap(bufs[k]) < len(want)+Spare {
			t.Errorf("sample %d is another one", i)
		}
		sample, err := alone.At(i, nil)
		treetest.Must(t, err)
		for v := range sample.Values {
			if !bytes.Equal(s.ReadValue(&sample, v, bufs[k]), alone.ReadValue(&sample, v, want)) {
				t.Errorf("value %d of sample %d is another one", v, i)
			}
		}
	}
}

// TestReadTogetherOfWhatChanged: an object that was replaced gives nothing.
func TestReadTogetherOfWhatChanged(t *testing.T) {
	root := t.TempDir()
	shard := string(shardOf(t, "a.jpg", "picture a", "b.jpg", "picture b"))
	treetest.Must(t, os.WriteFile(root+"/x.tar", []byte(shard), 0o600))
	server := buckettest.OfFolder(t, root)
	s := opened(t, server.Place("p/x.tar"), options(t))
	server.Put("p/x.tar", []byte(strings.Replace(shard, "picture", "another", 1)))
	for _, heedless := range []bool{false, true} {
		server.HeedsNothing = heedless
		if err := s.ReadTogether(t.Context(), []int{0, 1}, make([][]byte, 2)); err == nil {
			t.Error("bytes of another version came")
		}
	}
	if _, err := s.Read(t.Context(), 0, nil); !errors.As(err, new(*ChangedError)) {
		t.Error(err)
	}
}

// TestExtentsThatJoin: what lies close by in one object, up to so many bytes.
func TestExtentsThatJoin(t *testing.T) {
	first := Extent{1, 100, 200}
	for next, joins := range map[Extent]bool{
		{1, 200, 300}:                   true,
		{1, 150, 180}:                   true,
		{1, 200 + maxGap, 300 + maxGap}: true,
		{1, 201 + maxGap, 300 + maxGap}: false,
		{1, 200, 100 + mostTogether}:    true,
		{1, 200, 101 + mostTogether}:    false,
		{2, 200, 300}:                   false,
	} {
		e := first
		if got := e.Join(next); got != joins || e.End != map[bool]int64{true: max(200, next.End), false: 200}[joins] {
			t.Errorf("%+v and %+v: %v, %+v", first, next, got, e)
		}
	}
}
