package pipeline

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"image"
	"image/png"
	"maps"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/feedwater-io/feedwater/batch"
	"github.com/feedwater-io/feedwater/control/share"
	"github.com/feedwater-io/feedwater/pipeline/codec"
	"github.com/feedwater-io/feedwater/pipeline/codec/jpeg/jpegtest"
	"github.com/feedwater-io/feedwater/pipeline/dataset"
	"github.com/feedwater-io/feedwater/pipeline/internal/kernel"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const cropPlan = `{"seed": 17, "shuffle": true, "transforms": [{"op": "RandomResizedCrop", "size": [64, 48]}, {"op": "RandomHorizontalFlip"}]%s}`

// pictures are small pictures of every kind, by key.
var pictures = sync.OnceValue(func() map[string][]byte {
	kinds := []jpegtest.Options{{}, {Sampling: jpegtest.S420}, {Sampling: jpegtest.S422}, {Sampling: jpegtest.S440}, {Sampling: jpegtest.Grey}, {Sampling: jpegtest.S420, Restart: 2}}
	files := map[string][]byte{}
	for class := range 3 {
		for i := range 7 {
			seed := uint64(class*7 + i)
			picture := jpegtest.Photograph(seed, class, 40+int(seed)*13%90, 30+int(seed)*29%80)
			files[fmt.Sprintf("class_%d/img_%d.jpg", class, i)] = jpegtest.Encode(picture, kinds[seed%6])
		}
	}
	return files
})

// folder makes an image folder of them.
func folder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for key, data := range pictures() {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(key)), 0o755); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, key), data)
	}
	return dir
}

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

// open opens a plan on a folder.
func open(t *testing.T, dir, plan string, o Options) *Job {
	t.Helper()
	p, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return prepare(t, p, dir, plan)
}

func prepare(t *testing.T, p *Pipeline, dir, plan string) *Job {
	t.Helper()
	parsed, err := ParsePlan([]byte(plan))
	if err != nil {
		t.Fatal(err)
	}
	s, err := dataset.Open(context.Background(), dir, dataset.Options{CacheDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	j, err := p.Prepare(parsed, s)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// fetch makes one batch, with a checksum.
func fetch(t *testing.T, j *Job, n batch.Name) ([]byte, Result) {
	t.Helper()
	w := &Want{Name: n, Checksum: true}
	_, bytes := j.Layout(n.Len())
	w.Dst = make([]byte, bytes)
	for i := range w.Dst {
		w.Dst[i] = 0xA5 // whatever was there before must not show
	}
	w.Grow = func(n int) []byte { return make([]byte, n) }
	done := make(chan Result, 1)
	w.Done = func(r Result) { done <- r }
	if err := j.Submit(w); err != nil {
		t.Fatal(err)
	}
	r := <-done
	return w.Dst, r
}

// epochDigest hashes an epoch: for each sample index, label, pixels.
func epochDigest(t *testing.T, j *Job, epoch uint32, samples int) string {
	t.Helper()
	h := sha256.New()
	for at := 0; at < int(j.Samples()); at += samples {
		n := min(samples, int(j.Samples())-at)
		b, r := fetch(t, j, batch.Name{Epoch: epoch, Position: uint64(at), Count: n})
		if r.Err != nil {
			t.Fatal(r.Err)
		}
		if sum := crc32.Checksum(b[:r.Bytes], castagnoli); sum != r.CRC32C {
			t.Fatalf("checksum %08x, of the bytes %08x", r.CRC32C, sum)
		}
		for i := range n {
			h.Write(b[batch.OffsetOf(r.Fields, "index")+8*i:][:8])
			h.Write(b[batch.OffsetOf(r.Fields, "label")+8*i:][:8])
			h.Write(b[i*j.pictures[0].bytes : (i+1)*j.pictures[0].bytes])
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

// The one idea: a batch is a name. Whoever makes it, with whatever company, makes the same bytes.
func TestSameNameSameBytes(t *testing.T) {
	dir := folder(t)
	want := epochDigest(t, open(t, dir, fmt.Sprintf(cropPlan, ""), Options{Workers: 1}), 1, 4)
	for _, level := range kernel.Levels() {
		for _, o := range []Options{{Workers: 1, Readers: 1, Kernels: level}, {Workers: 8, Kernels: level}} {
			for _, batch := range []int{1, 5, 21} {
				if got := epochDigest(t, open(t, dir, fmt.Sprintf(cropPlan, ""), o), 1, batch); got != want {
					t.Errorf("%+v, batches of %d: %s, want %s", o, batch, got, want)
				}
			}
		}
	}
}

func TestOtherNameOtherBytes(t *testing.T) {
	dir := folder(t)
	j := open(t, dir, fmt.Sprintf(cropPlan, ""), Options{})
	seen := map[string]string{epochDigest(t, j, 0, 4): "the plan itself"}
	note := func(what, d string) {
		if was, ok := seen[d]; ok {
			t.Errorf("%s gives the same bytes as %s", what, was)
		}
		seen[d] = what
	}
	note("another epoch", epochDigest(t, j, 1, 4))
	for what, plan := range map[string]string{
		"another seed":  strings.Replace(cropPlan, "17", "18", 1),
		"no shuffle":    strings.Replace(cropPlan, "true", "false", 1),
		"another scale": strings.Replace(cropPlan, `"size": [64, 48]`, `"size": [64, 48], "scale": [0.5, 1]`, 1),
		"another p":     strings.Replace(cropPlan, `HorizontalFlip"`, `HorizontalFlip", "p": 1`, 1),
	} {
		note(what, epochDigest(t, open(t, dir, fmt.Sprintf(plan, ""), Options{}), 0, 4))
	}
}

// A list names samples one by one; the same samples by position and by list are the same bytes.
func TestListIsTheSameAsPositions(t *testing.T) {
	j := open(t, folder(t), fmt.Sprintf(cropPlan, ""), Options{})
	byPosition, r := fetch(t, j, batch.Name{Epoch: 2, Position: 19, Count: 6}) // runs over the end: repeats
	var list []batch.Ref
	for i := range 6 {
		index, repeat := j.permutationOf(2).At(19 + uint64(i))
		list = append(list, batch.Ref{Index: uint64(index), Repeat: repeat})
	}
	byList, _ := fetch(t, j, batch.Name{Epoch: 2, List: list})
	if r.Err != nil || !bytes.Equal(byPosition, byList) {
		t.Errorf("positions and list differ (%v)", r.Err)
	}
	if list[2].Repeat != 1 {
		t.Errorf("position 21 of 21 samples has repeat %d", list[2].Repeat)
	}
}

// Every repeat of a sample has draws of its own, in a batch as in a replay.
func TestRepeatsDiffer(t *testing.T) {
	j := open(t, folder(t), fmt.Sprintf(cropPlan, ""), Options{})
	var n batch.Name
	for repeat := range uint32(6) {
		n.List = append(n.List, batch.Ref{Index: 3, Repeat: repeat})
	}
	data, r := fetch(t, j, n)
	again, err := j.Replay(t.Context(), n, math.MaxInt, nil)
	if r.Err != nil || err != nil {
		t.Fatal(r.Err, err)
	}
	seen := map[string]bool{}
	for i, s := range again {
		at := batch.OffsetOf(r.Fields, imageField) + i*len(s.Image)
		if !bytes.Equal(data[at:at+len(s.Image)], s.Image) {
			t.Errorf("repeat %d: the replay differs", i)
		}
		seen[string(s.Image)] = true
	}
	if len(seen) != len(n.List) {
		t.Errorf("%d repeats are %d pictures", len(n.List), len(seen))
	}
}

// A policy is its want's alone.
func TestPolicyEndsWithItsWant(t *testing.T) {
	j := open(t, folder(t), `{"transforms": [{"op": "Resize", "size": [32, 32]}, {"op": "CTAugment", "probe": 0}]}`, Options{Workers: 1})
	n := batch.Name{Count: 21}
	want, _ := fetch(t, j, n)
	for bins := 1; bins < 1000; bins++ {
		n.Policy = bytes.Repeat([]byte{1, 0}, bins)
		if j.checkPolicy(n.Policy) == nil {
			break
		}
	}
	for i := range len(n.Policy) / 2 {
		n.Policy[2*i] = byte(1 + i*i%250)
	}
	other, r := fetch(t, j, n)
	if r.Err != nil || bytes.Equal(other, want) {
		t.Fatal("the policy changes nothing", r.Err)
	}
	if got, _ := fetch(t, j, batch.Name{Count: 21}); !bytes.Equal(got, want) {
		t.Error("it changes a want without one")
	}
}

func TestImageHookGetsEverySampleOnce(t *testing.T) {
	j := open(t, folder(t), fmt.Sprintf(cropPlan, ""), Options{Workers: 4})
	n := batch.Name{Count: 20}
	want, _ := fetch(t, j, n)
	got := make([]byte, 20*j.pictures[0].bytes)
	_, size := j.Layout(20)
	done := make(chan Result, 1)
	w := &Want{
		Name: n, Request: batch.Request{Dst: make([]byte, size), Image: func(_, i int, pix []byte) { copy(got[i*j.pictures[0].bytes:], pix) }}, Done: func(r Result) { done <- r },
	}
	if err := j.Submit(w); err != nil {
		t.Fatal(err)
	}
	if r := <-done; r.Err != nil || !bytes.Equal(got, want[:len(got)]) {
		t.Errorf("images by hook differ (%v)", r.Err)
	}
	if o := batch.OffsetOf(w.assembly.fields, "label"); !bytes.Equal(w.Dst[o:], want[o:]) {
		t.Error("labels and indices differ")
	}
}

func TestPicturesOfDifferentSizes(t *testing.T) {
	dir := folder(t)
	j := open(t, dir, `{"shuffle": true}`, Options{})
	if j.FixedSize() {
		t.Fatal("plain decode of different pictures has one size")
	}
	b, r := fetch(t, j, batch.Name{Count: 21})
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	samples, err := j.Replay(context.Background(), batch.Name{Count: 21}, math.MaxInt, nil)
	if err != nil {
		t.Fatal(err)
	}
	at := batch.OffsetOf(r.Fields, "image")
	for i, s := range samples {
		if r.Sizes[i] != [2]int{s.Height, s.Width} || !bytes.Equal(b[at:at+len(s.Image)], s.Image) {
			t.Fatalf("sample %d differs from its replay", i)
		}
		at += len(s.Image)
	}
	if at != r.Bytes || crc32.Checksum(b[:r.Bytes], castagnoli) != r.CRC32C {
		t.Errorf("%d bytes, %d in pictures, checksum %08x", r.Bytes, at, r.CRC32C)
	}
}

func TestNoRoom(t *testing.T) {
	j := open(t, folder(t), `{}`, Options{})
	done := make(chan Result, 1)
	w := &Want{Name: batch.Name{Count: 3}, Request: batch.Request{Dst: make([]byte, 1000)}, Done: func(r Result) { done <- r }}
	if err := j.Submit(w); err != nil {
		t.Fatal(err)
	}
	var room *RoomError
	if r := <-done; !errors.As(r.Err, &room) || room.Bytes < 3*40*30*3 {
		t.Errorf("%v", r.Err)
	}
	if err := j.Submit(&Want{Name: batch.Name{Count: 3}, Request: batch.Request{Dst: nil}}); !errors.As(err, &room) {
		t.Errorf("no room at all: %v", err)
	}
}

// A want whose memory is refused ends with what it would take, and so does one that meets trouble of this machine: at once, without
// a look at the rest of its samples.
func TestTroubleEndsAWant(t *testing.T) {
	dir := folder(t)
	list := make([]batch.Ref, 5000)
	for i := range list {
		list[i].Index = uint64(i % 21)
	}
	for range 20 {
		j := open(t, dir, `{"on_error": "skip"}`, Options{Workers: 4})
		var charges atomic.Int64
		submit := func(most int64) Result {
			charges.Store(0)
			done := make(chan Result, 1)
			w := &Want{Name: batch.Name{List: list}, Request: batch.Request{Dst: make([]byte, 1<<20)}, Done: func(r Result) { done <- r }}
			w.Charge = func(int) bool { return charges.Add(1) <= most }
			if err := j.Submit(w); err != nil {
				t.Fatal(err)
			}
			return <-done
		}
		var room *RoomError
		if r := submit(10); !errors.As(r.Err, &room) || room.Bytes < 10*2000 || charges.Load() > 50 {
			t.Fatalf("%v after %d samples", r.Err, charges.Load())
		}
		write(t, filepath.Join(dir, "class_1", "img_2.jpg"), []byte("another file"))
		var read *ReadError
		if r := submit(1 << 20); !errors.As(r.Err, &read) || charges.Load() > 200 {
			t.Fatalf("%v after %d samples", r.Err, charges.Load())
		}
		dir = folder(t)
	}
}

// Which of several errors a want ends with does not depend on the order of its workers, as far as others rely on it.
func TestErrorThatDecides(t *testing.T) {
	verdict := func(i int) error { return &SampleError{Offset: i} }
	read := func(i int) error { return &ReadError{Index: uint64(i)} }
	type failure struct {
		at  int
		err error
	}
	early, late, trouble := failure{2, verdict(2)}, failure{7, verdict(7)}, failure{5, read(5)}
	cancelled := failure{1, ErrCancelled}
	for _, c := range []struct {
		met  []failure
		want failure
	}{
		{[]failure{late, early}, early},
		{[]failure{early, late}, early},
		{[]failure{early, trouble}, trouble},
		{[]failure{trouble, early}, trouble},
		{[]failure{trouble, cancelled}, trouble}, // trouble cancels the rest of its want
		{[]failure{early, cancelled}, cancelled},
	} {
		w := &Want{assembly: assembly{failed: 10}}
		for _, f := range c.met {
			w.assembly.setFailure(f.at, f.err)
		}
		if !errors.Is(w.assembly.err, c.want.err) {
			t.Errorf("%v: %v, want %v", c.met, w.assembly.err, c.want.err)
		}
	}
}

// All that a batch of pictures of different sizes takes besides its own memory is told.
func TestCharge(t *testing.T) {
	j := open(t, folder(t), `{}`, Options{Workers: 4})
	var charged atomic.Int64
	done := make(chan Result, 1)
	w := &Want{
		Name: batch.Name{Count: 21}, Request: batch.Request{Dst: make([]byte, 1<<20)}, Done: func(r Result) { done <- r },
		Charge: func(n int) bool { charged.Add(int64(n)); return true },
	}
	if err := j.Submit(w); err != nil {
		t.Fatal(err)
	}
	if r := <-done; r.Err != nil || int(charged.Load()) != r.Bytes-batch.OffsetOf(r.Fields, "image") {
		t.Errorf("%d bytes told of %d, %v", charged.Load(), r.Bytes, r.Err)
	}
}

func TestReplayTellsTheDraws(t *testing.T) {
	j := open(t, folder(t), fmt.Sprintf(cropPlan, ""), Options{})
	b, _ := fetch(t, j, batch.Name{Epoch: 3, Position: 5, Count: 2})
	samples, err := j.Replay(context.Background(), batch.Name{Epoch: 3, Position: 5, Count: 2}, math.MaxInt, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range samples {
		if !bytes.Equal(s.Image, b[i*j.pictures[0].bytes:(i+1)*j.pictures[0].bytes]) || len(s.Draws) != 2 || !strings.Contains(string(s.Draws[0].Parameters), `"top":`) {
			t.Errorf("sample %d: %d bytes, draws %v", i, len(s.Image), s.Draws)
		}
		if index := binary.LittleEndian.Uint64(b[batch.OffsetOf(j.made(2), "index")+8*i:]); index != s.Index {
			t.Errorf("sample %d: index %d, in the batch %d", i, s.Index, index)
		}
	}
	names, err := j.Replay(context.Background(), batch.Name{Epoch: 3, Position: 5, Count: 2}, 0, nil)
	if err != nil || names[0].Key != samples[0].Key || names[0].Image != nil || names[0].EncodedBytes == 0 {
		t.Errorf("without pixels: %+v, %v", names[0], err)
	}
}

// made is the layout of a batch of n samples.
func (j *Job) made(n int) []batch.Field {
	f, _ := j.Layout(n)
	return f
}

// broken breaks some files of a folder and returns their keys, in order.
func broken(t *testing.T, dir string) []string {
	t.Helper()
	whole, err := os.ReadFile(filepath.Join(dir, "class_0", "img_3.jpg"))
	if err != nil {
		t.Fatal(err)
	}
	bad := map[string][]byte{
		"class_0/img_3.jpg": whole[:len(whole)/2],
		"class_1/img_0.jpg": nil,
		"class_2/img_6.jpg": []byte("not a picture at all, but long enough to look at"),
	}
	for key, data := range bad {
		write(t, filepath.Join(dir, key), data)
	}
	return []string{"class_0/img_3.jpg", "class_1/img_0.jpg", "class_2/img_6.jpg"}
}

func TestBrokenSampleRaises(t *testing.T) {
	dir := folder(t)
	keys := broken(t, dir)
	for workers := range 4 {
		j := open(t, dir, `{"transforms": [{"op": "Resize", "size": [20, 20]}]}`, Options{Workers: 1 + workers})
		_, r := fetch(t, j, batch.Name{Count: 21})
		var e *SampleError
		if !errors.As(r.Err, &e) || e.Key != keys[0] || e.Offset != 3 || e.Op != "decode" {
			t.Errorf("%d workers: %v", 1+workers, r.Err) // always the first in order
		}
	}
}

func TestBrokenSampleIsSkipped(t *testing.T) {
	dir := folder(t)
	keys := broken(t, dir)
	j := open(t, dir, `{"on_error": "skip", "transforms": [{"op": "Resize", "size": [20, 20]}]}`, Options{})
	b, r := fetch(t, j, batch.Name{Count: 21})
	if r.Err != nil || len(r.Errors) != 3 {
		t.Fatalf("%v, %d errors", r.Err, len(r.Errors))
	}
	for i, e := range r.Errors {
		hole := b[e.Offset*1200 : (e.Offset+1)*1200]
		if e.Key != keys[i] || e.Substituted || !bytes.Equal(hole, make([]byte, 1200)) {
			t.Errorf("error %d: %+v", i, e)
		}
		if index := binary.LittleEndian.Uint64(b[batch.OffsetOf(r.Fields, "index")+8*e.Offset:]); index != e.Index {
			t.Errorf("hole %d has index %d", i, index)
		}
	}
	if crc32.Checksum(b[:r.Bytes], castagnoli) != r.CRC32C {
		t.Error("checksum of a batch with holes")
	}
}

// Whether a sample turns out broken by its header or in the middle of its pixels, what is left out is the same hole.
func TestHolesAmongPicturesOfDifferentSizes(t *testing.T) {
	dir := folder(t)
	var picture bytes.Buffer
	noise := image.NewNRGBA(image.Rect(0, 0, 90, 70))
	for i := range noise.Pix {
		noise.Pix[i] = byte(i * i >> 5)
	}
	if err := png.Encode(&picture, noise); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "class_0", "img_3.jpg"), nil)
	write(t, filepath.Join(dir, "class_0", "img_5.jpg"), picture.Bytes()[:picture.Len()/2])
	j := open(t, dir, `{"on_error": "skip"}`, Options{})
	b, r := fetch(t, j, batch.Name{Count: 7})
	if r.Err != nil || len(r.Errors) != 2 || r.Errors[0].Offset != 3 || r.Errors[1].Offset != 5 {
		t.Fatalf("%v, %v", r.Err, r.Errors)
	}
	pixels := 0
	for i, s := range r.Sizes {
		if (i == 3 || i == 5) != (s == [2]int{}) {
			t.Errorf("sample %d has %d×%d pixels (%v)", i, s[1], s[0], r.Errors)
		}
		pixels += 3 * s[0] * s[1]
	}
	if r.Bytes != batch.OffsetOf(r.Fields, "image")+pixels || crc32.Checksum(b[:r.Bytes], castagnoli) != r.CRC32C {
		t.Errorf("%d bytes for %d of pixels", r.Bytes, pixels)
	}
}

func TestBrokenSampleIsSubstituted(t *testing.T) {
	dir := folder(t)
	broken(t, dir)
	plan := `{"seed": 4, "on_error": "substitute", "transforms": [{"op": "RandomResizedCrop", "size": [20, 20]}]}`
	first, r := fetch(t, open(t, dir, plan, Options{Workers: 1}), batch.Name{Count: 21})
	again, s := fetch(t, open(t, dir, plan, Options{Workers: 8}), batch.Name{Count: 21})
	if r.Err != nil || s.Err != nil || !bytes.Equal(first, again) || len(r.Errors) != 3 {
		t.Fatalf("%v, %v, %d errors", r.Err, s.Err, len(r.Errors))
	}
	for i, e := range r.Errors {
		index := binary.LittleEndian.Uint64(first[batch.OffsetOf(r.Fields, "index")+8*e.Offset:])
		if !e.Substituted || e.Substitute == e.Index || index != e.Substitute || s.Errors[i].Substitute != e.Substitute {
			t.Errorf("error %d: %+v, index in the batch %d", i, e, index)
		}
	}
}

// A file that cannot be read is this machine's trouble and no verdict, whatever the plan says of broken samples.
func TestChangedFileIsNoVerdict(t *testing.T) {
	dir := folder(t)
	j := open(t, dir, `{"on_error": "skip", "transforms": [{"op": "Resize", "size": [20, 20]}]}`, Options{})
	write(t, filepath.Join(dir, "class_1", "img_2.jpg"), []byte("another file"))
	_, r := fetch(t, j, batch.Name{Count: 21})
	var read *ReadError
	var changed *dataset.ChangedError
	if !errors.As(r.Err, &read) || !errors.As(r.Err, &changed) || read.Key != "class_1/img_2.jpg" {
		t.Errorf("%v", r.Err)
	}
}

func TestLimitsAreVerdicts(t *testing.T) {
	dir := folder(t)
	for _, limits := range []string{`{"encoded_bytes": 100}`, `{"side": 30}`, `{"pixels": 600}`} {
		j := open(t, dir, `{"transforms": [{"op": "Resize", "size": [20, 20]}], "limits": `+limits+`}`, Options{})
		_, r := fetch(t, j, batch.Name{Count: 1})
		var e *SampleError
		if !errors.As(r.Err, &e) || !errors.Is(r.Err, codec.ErrTooLarge) {
			t.Errorf("%s: %v", limits, r.Err)
		}
	}
}

// hold keeps the only worker busy until release is called, in the Image hook of a want that was submitted first.
func hold(t *testing.T, j *Job) (release func(), done chan Result) {
	t.Helper()
	entered, gate := make(chan struct{}), make(chan struct{})
	done = make(chan Result, 1)
	_, size := j.Layout(1)
	w := &Want{Name: batch.Name{Count: 1}, Request: batch.Request{Dst: make([]byte, size), Image: func(_, _ int, _ []byte) {
		close(entered)
		<-gate
	}}, Done: func(r Result) { done <- r }}
	if err := j.Submit(w); err != nil {
		t.Fatal(err)
	}
	<-entered
	return func() { close(gate) }, done
}

func submit(t *testing.T, j *Job, n batch.Name, due time.Time, done func(Result)) *Want {
	t.Helper()
	_, size := j.Layout(n.Len())
	w := &Want{Name: n, Request: batch.Request{Dst: make([]byte, size), Due: due}, Done: done}
	if err := j.Submit(w); err != nil {
		t.Fatal(err)
	}
	return w
}

// tally counts the samples that were made, by their wants' names. In what order wants end says less: a worker that is kept from the
// processor holds back its want for as long, whatever the others do meanwhile.
type tally struct {
	mu   sync.Mutex
	made map[string]int
}

// count is what a want of that name has for Image. At its sample number at it takes a note of how many of each name were made.
func (c *tally) count(name string, at int, note *map[string]int) func(_, _ int, _ []byte) {
	return func(_, _ int, _ []byte) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.made == nil {
			c.made = map[string]int{}
		}
		if c.made[name]++; c.made[name] == at {
			*note = maps.Clone(c.made)
		}
	}
}

// A job that was served much goes behind one that was not, whose wants are no more urgent. It would let pass about as many samples as its own are, but
// what a sample costs is measured, and a worker may be kept from the processor meanwhile: of three times one counts.
func TestSharesAreByAccount(t *testing.T) {
	const wants, samples = 20, 50
	passed := 0
	for range 3 {
		if passed = countPassed(t, wants, samples); passed <= wants*samples*9/10 {
			return
		}
	}
	t.Errorf("%d of %d samples came before those of a job with one want", passed, wants*samples)
}

// countPassed counts the samples of a job with so many wants, after a first one, that come before those of another one with one want.
func countPassed(t *testing.T, wants, samples int) (passed int) {
	t.Helper()
	j := open(t, folder(t), fmt.Sprintf(cropPlan, ""), Options{Workers: 1, Readers: 1})
	busy, calm := share.NewAccount(1), share.NewAccount(1)
	all := make(chan struct{}, wants+2)
	var c tally
	var other, calmly map[string]int
	put := func(a *share.Account, name string, position uint64) {
		note := &other
		if a == calm {
			note = &calmly
		}
		_, size := j.Layout(samples)
		w := &Want{Name: batch.Name{Position: position, Count: samples}, Request: batch.Request{Dst: make([]byte, size), Image: c.count(name, samples-2, note)}, Account: a, Done: func(Result) { all <- struct{}{} }}
		if err := j.Submit(w); err != nil {
			t.Fatal(err)
		}
	}
	put(busy, "first", 0) // tells what a sample costs
	<-all
	release, _ := hold(t, j)
	for i := range wants {
		put(busy, fmt.Sprint("busy ", i), uint64(samples*i))
	}
	put(calm, "calm", 0)
	release()
	for range wants + 1 {
		<-all
	}
	for i := range wants {
		passed += calmly[fmt.Sprint("busy ", i)]
	}
	return passed
}

// A pipeline does no more than its workers can in the time in which it has work.
func TestWork(t *testing.T) {
	j := open(t, folder(t), fmt.Sprintf(cropPlan, ""), Options{Workers: 2})
	if w := j.p.Work(); w != (Work{}) {
		t.Errorf("before any work %+v", w)
	}
	_, r := fetch(t, j, batch.Name{Count: 50})
	w := j.p.Work()
	if math.Abs(w.CoreSeconds-r.CoreSeconds) > 1e-6 || w.CoreSeconds <= 0 || w.CoreSeconds > 2.01*w.BusySeconds {
		t.Errorf("%+v after a batch of %v core-seconds", w, r.CoreSeconds)
	}
	if again := j.p.Work(); again != w {
		t.Errorf("%+v without work, was %+v", again, w)
	}
}

func TestEarliestDueIsMadeFirst(t *testing.T) {
	j := open(t, folder(t), fmt.Sprintf(cropPlan, ""), Options{Workers: 1, Readers: 1})
	release, _ := hold(t, j)
	ended := make(chan struct{}, 3)
	now := time.Now()
	var c tally
	var far, near, first map[string]int
	for _, w := range []struct {
		name     string
		position uint64
		due      time.Time
		note     *map[string]int
	}{{"far", 1, now.Add(time.Hour), &far}, {"near", 201, now.Add(time.Minute), &near}, {"now", 401, time.Time{}, &first}} {
		_, size := j.Layout(200)
		want := &Want{Name: batch.Name{Position: w.position, Count: 200}, Request: batch.Request{Dst: make([]byte, size), Due: w.due, Image: c.count(w.name, 198, w.note)}, Done: func(Result) { ended <- struct{}{} }}
		if err := j.Submit(want); err != nil {
			t.Fatal(err)
		}
	}
	release()
	for range 3 {
		<-ended
	}
	// The second worker may have read one file of the first want.
	if first["near"] > 2 || first["far"] > 2 || near["far"] > 2 {
		t.Errorf("made when nearly all were that are due at once: %v; when those of in a minute were: %v", first, near)
	}
}

func TestCancel(t *testing.T) {
	j := open(t, folder(t), fmt.Sprintf(cropPlan, ""), Options{Workers: 1, Readers: 1})
	release, held := hold(t, j)
	cancelled, kept := make(chan Result, 1), make(chan Result, 1)
	w := submit(t, j, batch.Name{Position: 1, Count: 20}, time.Time{}, func(r Result) { cancelled <- r })
	submit(t, j, batch.Name{Position: 1, Count: 2}, time.Time{}, func(r Result) { kept <- r })
	w.Cancel()
	w.Cancel()
	release()
	if r := <-cancelled; !errors.Is(r.Err, ErrCancelled) {
		t.Errorf("cancelled want: %v", r.Err)
	}
	for _, c := range []chan Result{held, kept} {
		if r := <-c; r.Err != nil {
			t.Errorf("a want beside it: %v", r.Err)
		}
	}
}

func TestCloseEndsEveryWant(t *testing.T) {
	p, err := Open(Options{Workers: 1, Readers: 1})
	if err != nil {
		t.Fatal(err)
	}
	j := prepare(t, p, folder(t), fmt.Sprintf(cropPlan, ""))
	release, held := hold(t, j)
	rest := make(chan Result, 10)
	for i := range 10 {
		submit(t, j, batch.Name{Position: uint64(i), Count: 3}, time.Time{}, func(r Result) { rest <- r })
	}
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		p.Close()
	}()
	release()
	<-closed
	if r := <-held; r.Err != nil {
		t.Errorf("the sample that was begun: %v", r.Err)
	}
	for range 10 {
		if r := <-rest; r.Err != nil && !errors.Is(r.Err, ErrClosed) {
			t.Errorf("%v", r.Err)
		}
	}
	if err := j.Submit(&Want{Name: batch.Name{Count: 1}, Request: batch.Request{Dst: make([]byte, 1<<20)}}); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

func TestNamesOutOfRange(t *testing.T) {
	j := open(t, folder(t), `{}`, Options{})
	for _, n := range []batch.Name{
		{}, {Count: -1}, {Count: batch.MaxSamples + 1}, {Count: 1, Position: 1 << 63}, {List: []batch.Ref{}}, {List: []batch.Ref{{Index: 21}}},
	} {
		var e *batch.PlanError
		if err := j.Submit(&Want{Name: n}); !errors.As(err, &e) {
			t.Errorf("%+v: %v", n, err)
		}
		if _, err := j.Replay(context.Background(), n, 0, nil); !errors.As(err, &e) {
			t.Errorf("replay of %+v: %v", n, err)
		}
	}
}
