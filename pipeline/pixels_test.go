package pipeline

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/feedwater-io/feedwater/batch"
	"github.com/feedwater-io/feedwater/pipeline/codec"
	"github.com/feedwater-io/feedwater/pipeline/pixelcache"
)

// keepAll has a job make epochs until so many pictures are kept.
func keepAll(t *testing.T, j *Job, c *pixelcache.Cache, sound int64) {
	t.Helper()
	for epoch := range uint32(200) {
		if c.Counts().Pictures >= sound {
			return
		}
		epochDigest(t, j, epoch, 1)
	}
	t.Fatalf("%d pictures are kept of %d", c.Counts().Pictures, sound)
}

// countSound is how many pictures of a folder decode, and take some time: those of BMP files may take none.
func countSound(t *testing.T, dir, plan string) (n int64) {
	t.Helper()
	for _, s := range replayed(t, dir, plan) {
		if s.Err == nil && !strings.HasPrefix(s.Key, "bmp") {
			n++
		}
	}
	return n
}

// Kept pixels change no byte and no verdict: of any format, damaged or not, turned or not, of crops, whole pictures and views; when they are kept,
// when they are used, by many workers or one, with an index or without.
func TestKeptPixelsChangeNothing(t *testing.T) {
	dir, _ := mixed(t)
	whole := `{"seed": 17, "shuffle": true, "transforms": [{"op": "Resize", "size": [20, 30]}], "on_error": "skip"}`
	for what, plan := range map[string]string{
		"crops":  skipPlan,
		"turned": fmt.Sprintf(cropPlan, `, "on_error": "skip", "apply_exif": true`),
		"whole":  whole,
		"views":  viewsPlan(`, "on_error": "skip"`),
	} {
		t.Run(what, func(t *testing.T) {
			want := epochs(t, open(t, dir, plan, Options{}))
			all := countSound(t, dir, plan)
			for _, o := range []Options{{}, {Workers: 1, Kernels: "scalar"}, {Index: &IndexOptions{Dir: t.TempDir()}}} {
				o.Pixels = pixelcache.New(1 << 30)
				j := open(t, dir, plan, o)
				if got := epochs(t, j); got != want {
					t.Errorf("%+v: other bytes while pixels are kept", o)
				}
				keepAll(t, j, o.Pixels, all)
				before := o.Pixels.Counts().Hits
				if got := epochs(t, j); got != want {
					t.Errorf("%+v: other bytes of pixels that are kept", o)
				}
				if n := o.Pixels.Counts().Hits - before; n < 2*all {
					t.Errorf("%+v: %d of %d pictures were used", o, n, 2*all)
				}
			}
		})
	}
}

// Pictures whose pixels are kept are counted with those that had to be decoded, to which an index may be kept or not: each once.
func TestKeptPixelsAreCounted(t *testing.T) {
	dir, _ := mixed(t)
	all := countSound(t, dir, skipPlan)
	for _, index := range []*IndexOptions{nil, {Dir: t.TempDir(), Counts: new(IndexCounts)}} {
		o := Options{Index: index, Pixels: pixelcache.New(1 << 30)}
		j := open(t, dir, skipPlan, o)
		name := batch.Name{Count: int(j.Samples())}
		if _, r := fetch(t, j, name); r.Err != nil || r.Index.Kept != 0 {
			t.Errorf("nothing is kept yet: %+v, %v", r.Index, r.Err)
		}
		keepAll(t, j, o.Pixels, all)
		if index != nil {
			*index.Counts = IndexCounts{}
		}
		before := o.Pixels.Counts().Hits
		_, r := fetch(t, j, name)
		kept := o.Pixels.Counts().Hits - before
		if r.Err != nil || r.Index.Kept != kept || kept < all {
			t.Errorf("%d of %d pictures were kept, counted are %+v, %v", kept, all, r.Index, r.Err)
		}
		if index == nil {
			if r.Index != (IndexUse{Kept: kept}) {
				t.Errorf("without an index: %+v", r.Index)
			}
			continue
		}
		if sum := r.Index.Decoded() + r.Index.Kept; sum != int64(j.Samples()) || index.Counts.Use() != r.Index {
			t.Errorf("%+v of the batch are %d of %d pictures; in all %+v", r.Index, sum, j.Samples(), index.Counts.Use())
		}
	}
}

// Limits of a plan decide verdicts, and whether pictures are turned decides pixels: what is kept for one plan is none of another.
func TestKeptPixelsOfOtherPlans(t *testing.T) {
	dir, _ := mixed(t)
	o := Options{Pixels: pixelcache.New(1 << 30)}
	j := open(t, dir, skipPlan, o)
	keepAll(t, j, o.Pixels, countSound(t, dir, skipPlan))
	for _, more := range []string{`"limits": {"side": 60}`, `"apply_exif": true`} {
		other := fmt.Sprintf(cropPlan, `, "on_error": "skip", `+more)
		want := epochs(t, open(t, dir, other, Options{}))
		if got := epochs(t, prepare(t, j.p, dir, other)); got != want {
			t.Errorf("%s: other bytes", more)
		}
	}
}

// Masks are made of pictures whose pixels are kept as of others.
func TestKeptPixelsOfPicturesWithMasks(t *testing.T) {
	images, masks := greyFolders(t)
	const plan = `{"seed": 5, "transforms": [{"op": "RandomCrop", "size": [9, 9]}], "masks": {}, "fields": ["image", "mask"]}`
	var digests [2]string
	for i, c := range []*pixelcache.Cache{nil, pixelcache.New(1 << 20)} {
		j, err := masked(t, images, masks, plan, Options{Pixels: c})
		if err != nil {
			t.Fatal(err)
		}
		for epoch := uint32(4); c != nil && c.Counts().Pictures == 0 && epoch < 200; epoch++ { // one that costs too little time is not kept
			fetch(t, j, batch.Name{Epoch: epoch, Count: int(j.Samples())})
		}
		for epoch := range uint32(4) {
			w, r := fetch(t, j, batch.Name{Epoch: epoch, Count: int(j.Samples())})
			if r.Err != nil {
				t.Fatal(r.Err)
			}
			digests[i] += fmt.Sprintf("%x ", sha256.Sum256(w[:r.Bytes]))
		}
		if n := c.Counts(); c != nil && n.Hits == 0 {
			t.Errorf("%+v", n)
		}
	}
	if digests[0] != digests[1] {
		t.Error("other bytes")
	}
}

// Whatever made use of pixels gives them back: batches, replays, and samples that fail.
func TestKeptPixelsAreGivenBack(t *testing.T) {
	dir, _ := mixed(t)
	o := Options{Pixels: pixelcache.New(100 << 10)} // not enough for all
	j := open(t, dir, skipPlan, o)
	for epoch := range uint32(4) {
		epochDigest(t, j, epoch, 7)
		if _, err := j.Replay(t.Context(), batch.Name{Epoch: epoch, Count: int(j.Samples())}, math.MaxInt, nil); err != nil {
			t.Fatal(err)
		}
	}
	j.p.Close()
	if n := o.Pixels.Counts(); n.Bytes > n.Limit || n.Kept == 0 || n.Hits == 0 {
		t.Errorf("%+v", n)
	}
	o.Pixels.Close()
	if n := o.Pixels.Counts().Bytes; n != 0 {
		t.Errorf("%d bytes are lent", n)
	}
}

// A picture that is decoded to be kept is left off when its want is cancelled.
func TestCancelledWhileDecodingToKeep(t *testing.T) {
	c := pixelcache.New(1 << 20)
	d, k := newDecoder("scalar"), &worker{p: &Pipeline{options: Options{Pixels: c}}, file: pictures()["class_0/img_0.jpg"]}
	k.pixels.format = "jpeg"
	from, err := d.parseFile(k.file, false, codec.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	var cancelled atomic.Bool
	cancelled.Store(true)
	before := d.codec
	if _, err := d.keepPicture(k, from, &cancelled); !errors.Is(err, ErrCancelled) || k.pixels.found != nil || d.codec == before {
		t.Errorf("%v, %v", err, k.pixels.found)
	}
	if n := c.Counts(); n.Bytes != 0 || n.Kept != 0 {
		t.Errorf("%+v", n)
	}
}

// Decoding to keep takes what cores were idle, and a sixteenth of what they were busy; a quarter of a second is saved up.
func TestDecodingCredit(t *testing.T) {
	const cores, ms = 2, time.Millisecond
	var c decodingCredit
	now := time.Unix(0, 0)
	pass := func(d, busy time.Duration) {
		now = now.Add(d)
		c.addBusy(busy, cores, now)
	}
	if c.isLeft() {
		t.Error("there is some before the first sample")
	}
	check := func(what string, want time.Duration) {
		t.Helper()
		c.take(want - 1)
		if !c.isLeft() {
			t.Errorf("%s: less than %v is left", what, want)
		}
		if c.take(1); c.isLeft() {
			t.Errorf("%s: more than %v is left", what, want)
		}
	}
	pass(0, 0)
	pass(16*ms, 32*ms)
	check("busy", 2*ms)
	pass(20*ms, 0)
	check("idle", 40*ms)
	pass(time.Hour, 0)
	check("a pause", mostCredit)
	pass(0, time.Hour) // that a sample took which began long ago
	pass(mostCredit/2+ms, 0)
	check("a long sample", 2*ms)
}
