package pipeline

import (
	"fmt"
	"image"
	"sync"
	"sync/atomic"
	"time"

	"github.com/feedwater-io/feedwater/batch"
	"github.com/feedwater-io/feedwater/pipeline/codec"
	"github.com/feedwater-io/feedwater/pipeline/dataset"
	"github.com/feedwater-io/feedwater/pipeline/pixelcache"
	"github.com/feedwater-io/feedwater/pipeline/transform"
)

// pixelKeeping is what a worker knows of the sample at hand, and the pixels of its file's picture.
type pixelKeeping struct {
	found *pixelcache.Picture // nil: it has to be decoded
	key   pixelcache.Key
	later bool // it is worth keeping, and is decoded for that alone when its batch need not wait

	// How it is decoded later.
	format  string
	limits  codec.Limits
	upright bool
}

// namePixels names the data of a plan, and what else decides what the picture of a file is, or whether it is one.
func namePixels(p *Plan) string {
	return fmt.Sprintf("%s, upright %t, limits %+v", p.Source.Fingerprint, p.ApplyEXIF, p.Limits)
}

// findPixels looks for the picture of the file that was read. Where it is kept no index is needed.
func (k *worker) findPixels(j *Job, ref batch.Ref) bool {
	k.pixels = pixelKeeping{}
	cache := k.p.options.Pixels
	if cache == nil || len(j.pictures) == 0 {
		return false
	}
	k.pixels = pixelKeeping{key: pixelcache.Key{Data: j.pixels, Sample: uint32(ref.Index)}, limits: j.plan.Limits, upright: j.plan.ApplyEXIF}
	k.pixels.found = cache.Find(k.pixels.key, k.file)
	if k.pixels.found == nil {
		return false
	}
	k.making, k.found, k.store = recording{}, k.found[:0], nil
	k.want.index.countKept()
	if x := j.p.indexes.index; x != nil {
		x.Counts.countKept()
	}
	return true
}

// release gives the pixels back.
func (x *pixelKeeping) release() {
	if x.found != nil {
		x.found.Release()
		x.found = nil
	}
}

// wholeSource is the whole picture of a file, where that is kept: or is from now on, since it has to be decoded whole
// anyway. Else it is nil, and whether to decode it whole later is noted. The error is ErrCancelled.
func (d *decoder) wholeSource(k *worker, from size, region image.Rectangle) (transform.Source, error) {
	x, cache := &k.pixels, k.p.options.Pixels
	if cache == nil {
		return nil, nil
	}
	if x.found == nil {
		x.format = d.codec.Format(k.file)
		if !cache.Wants(x.format, from.w, from.h) {
			return nil, nil
		}
		needed := region == image.Rect(0, 0, from.w, from.h)
		if !needed && (!d.codec.ReadsWhole() || !k.p.credit.isLeft()) {
			x.later = true
			return nil, nil
		}
		took, err := d.keepPicture(k, from, &k.want.cancelled)
		if !needed {
			k.p.credit.take(took / wholeShare)
		}
		if err != nil || x.found == nil {
			return nil, err
		}
	}
	d.whole = sharedPicture{image: x.found.Image}
	return &d.whole, nil
}

// keepPicture decodes the whole picture of the parsed file into the cache. There is none where it has no room, or where
// damage shows: what that means for the sample is found out without. The error is ErrCancelled.
func (d *decoder) keepPicture(k *worker, from size, cancelled *atomic.Bool) (took time.Duration, err error) {
	cache, x := k.p.options.Pixels, &k.pixels
	p := cache.Reserve(x.format, from.w, from.h)
	if p == nil {
		return 0, nil
	}
	defer func() {
		if x.found == nil { // or the codec panicked
			p.Release()
		}
	}()
	begun := time.Now()
	d.whole.image = p.Image
	err = d.whole.readRegion(d.stopWith(cancelled, d.codec), image.Rect(0, 0, from.w, from.h))
	d.whole = sharedPicture{}
	took = time.Since(begun)
	if d.replaceStopped() {
		return took, ErrCancelled
	}
	if err == nil {
		cache.Put(x.key, k.file, p, took)
		x.found = p
	}
	return took, nil
}

// keepLater decodes the picture of the sample that was finished whole, to keep it, where there is credit.
func (k *worker) keepLater() {
	x, p := &k.pixels, k.p
	if !x.later {
		return
	}
	x.later = false
	if !p.credit.isLeft() {
		return
	}
	d := <-p.decoders
	begun := time.Now()
	ref := batch.Ref{Index: uint64(x.key.Sample)}
	_ = d.catchPanic(p.options.OnPanic, ref, &dataset.Sample{}, func() error { return d.keepRead(k) }) // whoever wants to know is told
	x.release()
	d.releaseFiles()
	p.credit.take(time.Since(begun))
	p.decoders <- d
}

// keepRead decodes and keeps the picture of the file that a worker has read. Its sample was made, so that the file is in
// order; an index that it has is used here too.
func (d *decoder) keepRead(k *worker) error {
	x := &k.pixels
	d.codec.UseIndex(k.found, 0)
	from, err := d.parseFile(k.file, x.upright, x.limits)
	if err != nil {
		return err
	}
	var never atomic.Bool
	_, err = d.keepPicture(k, from, &never)
	return err
}

// decodingCredit is the time that pictures may take of cores to be decoded for keeping alone: what cores were idle, and
// a small part of what samples took. So filling the cache takes little of an epoch, and it fills in the end where cores
// are always busy, which is where it is wanted most.
type decodingCredit struct {
	mu    sync.Mutex
	left  time.Duration
	since time.Time // until when idle cores are counted
}

const (
	// creditShare is the part of busy cores' time.
	creditShare = 16
	// mostCredit is what is saved up at most: batches that come after a pause are late by no more.
	mostCredit = 250 * time.Millisecond
	// wholeShare is the part of the time of a picture that is decoded whole which is not needed for its sample, where
	// the file is read to its end anyway: 14 to 31 % (BenchmarkKept).
	wholeShare = 4
)

// addBusy counts what a sample took of one of so many cores until now.
func (c *decodingCredit) addBusy(busy time.Duration, cores int, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.since.IsZero() {
		c.left += time.Duration(cores) * now.Sub(c.since)
	}
	c.since = now
	c.left = min(c.left-busy+busy/creditShare, mostCredit)
	c.left = max(c.left, -mostCredit)
}

func (c *decodingCredit) isLeft() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.left > 0
}

func (c *decodingCredit) take(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left -= d
}
