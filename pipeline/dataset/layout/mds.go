package layout

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/feedwater-io/feedwater/pipeline/dataset/manifest"
	"github.com/feedwater-io/feedwater/pipeline/dataset/store"
)

// MDS is the layout of MosaicML's shards: a folder whose index.json names them. Samples come in the order of the
// shards, and of samples in them.
type MDS struct {
	// Image is the column of pictures. Empty: the one that is called so.
	Image string
	Choice
}

const (
	mdsIndex = "index.json"
	// maxIndexBytes is how long an index may be.
	maxIndexBytes = 64 << 20
)

// imageColumns and numberColumns are what columns of pictures and of labels may be called.
var (
	imageColumns  = []string{"image", "img", "jpg", "jpeg", "png", "picture"}
	numberColumns = []string{"label", "labels", "class", "target", "cls"}
)

// mdsShard is what an index says of one.
type mdsShard struct {
	Format      string
	Compression *string
	Names       []string `json:"column_names"`
	Encodings   []string `json:"column_encodings"`
	Sizes       []*int64 `json:"column_sizes"` // null: samples differ
	Samples     int64
	Raw         struct {
		Basename string
		Bytes    int64
	} `json:"raw_data"`
}

// indexFile is index.json, of MDS and of others who call theirs so.
type indexFile struct {
	Version int
	Shards  []mdsShard
	Chunks  []json.RawMessage // of LitData
	Kind    string            `json:"__kind__"` // of wids
}

// readIndex reads the index of a folder.
func readIndex(ctx context.Context, from store.Store) (x indexFile, a store.Attributes, err error) {
	o, a, err := openObject(ctx, from, mdsIndex)
	if err != nil {
		return x, a, err
	}
	if a.Size > maxIndexBytes {
		return x, a, wrong("%s has %d bytes, at most %d", mdsIndex, a.Size, maxIndexBytes)
	}
	text, err := io.ReadAll(o)
	if err != nil {
		return x, a, err
	}
	if err := json.Unmarshal(text, &x); err != nil {
		return x, a, wrong("%s is no index of shards: no JSON object, or one of other members%s", mdsIndex, placeIn(err))
	}
	return x, a, nil
}

// HoldsMDS reports whether a folder is one of MDS.
func HoldsMDS(ctx context.Context, from store.Store) bool {
	x, _, err := readIndex(ctx, from)
	return err == nil && len(x.Shards) > 0
}

// describeIndex says whose index.json a folder has that is not read; "" for all others.
func describeIndex(ctx context.Context, from store.Store) string {
	x, _, err := readIndex(ctx, from)
	switch {
	case err == nil && len(x.Chunks) > 0:
		return mdsIndex + " is that of LitData's chunks, which are not read: " + rewrite
	case err == nil && strings.HasPrefix(x.Kind, "wids"):
		return mdsIndex + " is an index of wids: name the tar files themselves, as {000..146}.tar or *.tar"
	}
	return ""
}

// Form implements Layout.
func (l MDS) Form() manifest.Form {
	return (manifest.Members | manifest.Labelled).WithValues(len(l.Values))
}

// Scan implements Layout. It reads the index, and of shards where samples and columns begin, and labels.
func (l MDS) Scan(ctx context.Context, from store.Store, o Options, to *manifest.Builder) error {
	x, a, err := readIndex(ctx, from)
	if err != nil {
		return err
	}
	to.Watch(mdsIndex, a)
	l.nameValues(to)
	names, shards, err := x.byName()
	if err != nil {
		return err
	}
	if err := l.checkColumns(names, shards); err != nil {
		return err
	}
	sink := &shardSink{to: to, progress: progress{report: o.Progress}, label: l.labelRule()}
	err = inOrder(ctx, names, o.Readers, func(ctx context.Context, name string) (*shard, error) {
		o.Slow()
		return l.readShard(ctx, from, shards[name])
	}, sink.take)
	if err != nil {
		return err
	}
	if to.Samples() == 0 {
		return wrong("%s: %d shards and no sample in them", mdsIndex, len(names))
	}
	sink.progress.last()
	return nil
}

// byName are the shards in their order, checked.
func (x *indexFile) byName() ([]string, map[string]*mdsShard, error) {
	if len(x.Shards) == 0 || len(x.Shards) > maxObjects {
		return nil, nil, wrong("%s names %d shards, and has to name 1 to %d", mdsIndex, len(x.Shards), maxObjects)
	}
	var names []string
	by := map[string]*mdsShard{}
	for i := range x.Shards {
		s := &x.Shards[i]
		name := s.Raw.Basename
		switch {
		case !fs.ValidPath(name) || name == "." || strings.ContainsRune(name, 0) || len(name) > manifest.MaxKeyBytes-24:
			return nil, nil, wrong("%s: the shard %.99q leads out of the folder, or has no name", mdsIndex, name)
		case by[name] != nil:
			return nil, nil, wrong("%s names the shard %.99s twice", mdsIndex, name)
		case s.Format != "mds":
			return nil, nil, wrong("%s: %.99s has another format than mds, which alone is read: write it by MDSWriter", mdsIndex, name)
		case s.Compression != nil && *s.Compression != "":
			return nil, nil, wrong("%s: %.99s is compressed%s: no picture in it can be read alone; write it by MDSWriter(compression=None)",
				mdsIndex, name, byProgram(*s.Compression))
		case len(s.Names) == 0 || len(s.Encodings) != len(s.Names) || len(s.Sizes) != len(s.Names):
			return nil, nil, wrong("%s: the columns of %.99s make no sense", mdsIndex, name)
		case s.Samples < 0 || s.Samples > s.Raw.Bytes/4:
			return nil, nil, wrong("%s: %.99s has %d samples in %d bytes", mdsIndex, name, s.Samples, s.Raw.Bytes)
		}
		by[name] = s
		names = append(names, name)
	}
	return names, by, nil
}

// byProgram says which one compressed shards, of those that MDSWriter has; others are told to nobody, as all that indexes hold.
func byProgram(compression string) string {
	name, _, _ := strings.Cut(compression, ":")
	if slices.Contains([]string{"br", "bz2", "gz", "lz4", "snappy", "zstd"}, name) {
		return " by " + name
	}
	return ""
}

// mdsColumns are the columns that are needed of a shard's.
type mdsColumns struct {
	shard        *mdsShard
	image, label int // label -1: none
	values       []int
	varying      int
}

// choose finds the columns of a shard.
func (l MDS) choose(s *mdsShard) (*mdsColumns, error) {
	c := &mdsColumns{shard: s}
	names := imageColumns
	if l.Image != "" {
		names = []string{l.Image}
	}
	if c.image = column(s.Names, names); c.image < 0 {
		return nil, wrong("%s: no column is called %s; it has %.999s: name one by image=", s.Raw.Basename, strings.Join(names, ", "), strings.Join(s.Names, ", "))
	}
	if e := s.Encodings[c.image]; !slices.Contains([]string{"bytes", "jpeg", "png"}, e) {
		return nil, wrong("%s: the pictures in %q are of type %.20q, and have to be files: bytes, jpeg or png", s.Raw.Basename, s.Names[c.image], e)
	}
	var err error
	if c.label, c.values, err = l.find(s.Raw.Basename, s.Names, numberColumns, true); err != nil {
		return nil, err
	}
	if c.label >= 0 && integerBytes(s.Encodings[c.label]) == 0 {
		return nil, wrong("%s: the labels in %q are of type %.20q, and have to be whole numbers: int, int64 or str_int", s.Raw.Basename, s.Names[c.label], s.Encodings[c.label])
	}
	for _, size := range s.Sizes {
		switch {
		case size == nil:
			c.varying++
		case *size < 0 || *size > s.Raw.Bytes:
			return nil, wrong("%s: a column of %d bytes in a shard of %d", s.Raw.Basename, *size, s.Raw.Bytes)
		}
	}
	return c, nil
}

// checkColumns returns an error where shards have their pictures or labels in columns of other names than the first one that has samples.
func (l MDS) checkColumns(names []string, shards map[string]*mdsShard) error {
	var first *mdsColumns
	for _, name := range names {
		c, err := l.choose(shards[name])
		switch {
		case err != nil:
			return err
		case c.shard.Samples == 0:
			continue
		case first == nil:
			first = c
		}
		where := first.shard.Raw.Basename
		err = checkColumn("pictures", "image", where, first.shard.Names[first.image], name, c.shard.Names[c.image])
		if err == nil && first.label >= 0 && c.label >= 0 {
			err = checkColumn("labels", "label", where, first.shard.Names[first.label], name, c.shard.Names[c.label])
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// WhyUnlabelled says why no sample has a label, for people.
func (l MDS) WhyUnlabelled(context.Context, store.Store, string) string {
	return "no column is called " + strings.Join(numberColumns, ", ")
}

// integerBytes is how many bytes a number of a type takes; -1 for its digits, 0 for what is no whole number.
func integerBytes(encoding string) int {
	switch encoding {
	case "int8", "uint8":
		return 1
	case "int16", "uint16":
		return 2
	case "int32", "uint32":
		return 4
	case "int", "int64", "uint64":
		return 8
	case "str_int":
		return -1
	}
	return 0
}

func (l MDS) readShard(ctx context.Context, from store.Store, s *mdsShard) (*shard, error) {
	c, err := l.choose(s)
	if err != nil {
		return nil, err
	}
	name := s.Raw.Basename
	o, a, err := openObject(ctx, from, name)
	if err != nil {
		return nil, err
	}
	if a.Size != s.Raw.Bytes {
		return nil, wrong("%s has %d bytes, and %s says %d: it is cut, or of another index", name, a.Size, mdsIndex, s.Raw.Bytes)
	}
	begins, err := readBegins(o, s)
	if err != nil {
		return nil, mdsError(name, err)
	}
	found := &shard{name: name, attributes: a}
	for i := range s.Samples {
		if err := c.readSample(o, found, i, begins[i], begins[i+1]); err != nil {
			return nil, mdsError(name, err)
		}
	}
	return found, nil
}

// mdsError names the shard that cannot be read as one, or read at all.
func mdsError(name string, err error) error {
	if errors.As(err, new(*store.ChangedError)) || errors.Is(err, ErrLayout) {
		return err
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return wrong("%s: it ends within what its head says", name)
	}
	return fmt.Errorf("%s: %w", name, err)
}

// readBegins are where the samples of a shard begin, and the end of the last one.
func readBegins(o *object, s *mdsShard) ([]int64, error) {
	head := make([]byte, 4*(s.Samples+2))
	if _, err := io.ReadFull(o, head); err != nil {
		return nil, err
	}
	if n := binary.LittleEndian.Uint32(head); int64(n) != s.Samples {
		return nil, wrong("%s has %d samples, and %s says %d", s.Raw.Basename, n, mdsIndex, s.Samples)
	}
	begins, before := make([]int64, s.Samples+1), int64(len(head))
	for i := range begins {
		begins[i] = int64(binary.LittleEndian.Uint32(head[4*(i+1):]))
		if begins[i] < before || begins[i] > s.Raw.Bytes {
			return nil, wrong("%s: sample %d begins at byte %d, before what is in front of it ends or behind the end of the shard", s.Raw.Basename, i, begins[i])
		}
		before = begins[i]
	}
	return begins, nil
}

// readSample finds the columns of the sample between two offsets.
func (c *mdsColumns) readSample(o *object, to *shard, i, begin, end int64) error {
	head := make([]byte, 4*c.varying)
	if end-begin < int64(len(head)) {
		return wrong("%s: sample %d has %d bytes", to.name, i, end-begin)
	}
	o.at = begin
	if _, err := io.ReadFull(o, head); err != nil {
		return err
	}
	parts, at := make([]manifest.SampleValue, len(c.shard.Sizes)), begin+int64(len(head))
	for k, size := range c.shard.Sizes {
		n := int64(0)
		if size != nil {
			n = *size
		} else {
			n, head = int64(binary.LittleEndian.Uint32(head)), head[4:]
		}
		if parts[k] = (manifest.SampleValue{Offset: at, Size: n}); n > end-at {
			return wrong("%s: the columns of sample %d are longer than it is", to.name, i)
		}
		at += n
	}
	m := member{offset: parts[c.image].Offset, size: parts[c.image].Size}
	if c.label >= 0 {
		label, err := c.readLabel(o, parts[c.label])
		if err != nil {
			return fmt.Errorf("sample %d: %w", i, err)
		}
		m.label = label
		to.labels++
	}
	for _, k := range c.values {
		if err := checkValue(to.name, fmt.Sprintf("%s of sample %d", c.shard.Names[k], i), parts[k].Size); err != nil {
			return err
		}
		to.values = append(to.values, parts[k])
	}
	to.names = fmt.Appendf(to.names, "%07d", i)
	m.nameEnd = uint32(len(to.names))
	to.members = append(to.members, m)
	return nil
}

// readLabel reads a whole number.
func (c *mdsColumns) readLabel(o *object, at manifest.SampleValue) (int64, error) {
	encoding := c.shard.Encodings[c.label]
	n := integerBytes(encoding)
	if at.Size > maxLabelBytes || n > 0 && int64(n) != at.Size {
		return 0, wrong("%s: a label of type %s has %d bytes", c.shard.Raw.Basename, encoding, at.Size)
	}
	var room [maxLabelBytes]byte
	text := room[:at.Size]
	o.at = at.Offset
	if _, err := io.ReadFull(o, text); err != nil {
		return 0, err
	}
	if n < 0 {
		label, err := strconv.ParseInt(string(text), 10, 64)
		if err != nil {
			return 0, wrong("%s: the label is no whole number, but %s", c.shard.Raw.Basename, kindOf(string(text)))
		}
		return label, nil
	}
	number := binary.LittleEndian.Uint64(room[:8])
	if shift := 64 - 8*n; strings.HasPrefix(encoding, "u") {
		if number > 1<<63-1 {
			return 0, wrong("%s: the label %d is no int64", c.shard.Raw.Basename, number)
		}
	} else {
		number = uint64(int64(number<<shift) >> shift)
	}
	return int64(number), nil
}
