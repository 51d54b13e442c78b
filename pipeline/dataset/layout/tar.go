package layout

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/feedwater-io/feedwater/pipeline/dataset/manifest"
	"github.com/feedwater-io/feedwater/pipeline/dataset/store"
	"github.com/feedwater-io/feedwater/pipeline/imageformat"
)

// Tar is the layout of WebDataset's shards: tar files, whose members are samples' pictures and labels. A sample is
// members that are neighbours and have the same name up to the first dot of its last part. Samples come in the order
// of the shards, and of members in them.
type Tar struct {
	// Pattern names the shards; see match.
	Pattern string
	Choice
}

// pictures are what a sample's picture may be called behind the first dot, the first one that there is.
var pictures = imageformat.Endings()

// Form implements Layout.
func (l Tar) Form() manifest.Form {
	return (manifest.Members | manifest.Labelled).WithValues(len(l.Values))
}

// Scan implements Layout. It reads the headers of members and the labels.
func (l Tar) Scan(ctx context.Context, from store.Store, o Options, to *manifest.Builder) error {
	names, err := match(ctx, from, l.Pattern, to)
	if err != nil {
		return err
	}
	sink := &shardSink{to: to, progress: progress{report: o.Progress}, label: l.labelRule()}
	l.nameValues(to)
	err = inOrder(ctx, names, o.Readers, func(ctx context.Context, name string) (*shard, error) {
		o.Slow()
		return l.readShard(ctx, from, name)
	}, sink.take)
	if err != nil {
		return explainMissing(ctx, from, l.Pattern, names, err)
	}
	if to.Samples() == 0 {
		return wrong("%s: %d shards and no sample in them: a picture is a member that ends in .%s",
			l.Pattern, len(names), strings.Join(pictures, ", ."))
	}
	sink.progress.last()
	return nil
}

// WhyUnlabelled says why no sample has a label, for people.
func (l Tar) WhyUnlabelled(context.Context, store.Store, string) string {
	return "no sample has " + l.labelRule().String()
}

// inOrder finds something for each name, several at once, and takes it in the order of the names.
func inOrder[N, T any](
	parent context.Context, names []N, most int, find func(context.Context, N) (T, error), take func(T) error,
) error {
	group, ctx := errgroup.WithContext(parent)
	group.SetLimit(most + 1)
	begun := make(chan chan T, most)
	group.Go(func() error {
		for done := range begun {
			select {
			case v := <-done:
				if err := take(v); err != nil {
					return err
				}
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	})
	for _, name := range names {
		done := make(chan T, 1)
		select {
		case begun <- done:
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			break
		}
		group.Go(func() error {
			v, err := find(ctx, name)
			if err == nil {
				done <- v
			}
			return err
		})
	}
	close(begun)
	if err := group.Wait(); err != nil {
		return err
	}
	return parent.Err() // nothing may have been begun
}

// shard is what was found in one.
type shard struct {
	name       string
	attributes store.Attributes
	members    []member
	names      []byte // of the pictures
	labels     int    // samples with one
	values     []manifest.SampleValue
}

// member is a sample's picture.
type member struct {
	nameEnd      uint32
	label        int64
	offset, size int64
}

// shardSink adds shards to a manifest.
type shardSink struct {
	to       *manifest.Builder
	progress progress
	before   *shard // the one before
	labelled bool
	label    labelRule
}

func (k *shardSink) take(s *shard) error {
	if len(s.members) > 0 {
		if labelled := s.labels > 0; k.before != nil && labelled != k.labelled {
			return wrong("%s and %s: samples of one have labels, %s, and those of the other have none", k.before.name, s.name, k.label)
		}
		k.before, k.labelled = s, s.labels > 0
		if !k.labelled {
			k.to.Unlabel()
		}
	}
	k.to.Watch(s.name, s.attributes)
	number := k.to.Object(s.name, s.attributes)
	key := append([]byte(s.name), '/')
	stem, begin := len(key), uint32(0)
	values := s.values
	for _, m := range s.members {
		key = append(key[:stem], s.names[begin:m.nameEnd]...)
		begin = m.nameEnd
		sample := manifest.Sample{Key: key, Label: m.label, Size: m.size, Object: number, Offset: m.offset}
		n := len(s.values) / len(s.members)
		sample.Values, values = values[:n:n], values[n:]
		if err := k.to.Sample(&sample); err != nil {
			return err
		}
	}
	k.progress.add(len(s.members))
	return nil
}

// sampleMembers are the members of a sample that were met so far.
type sampleMembers struct {
	key      string
	endings  []string
	rank     int // of the picture in pictures
	picture  member
	name     string // of the picture
	label    int64
	labelled bool
	values   []manifest.SampleValue // Offset 0: not met
}

// shardReader reads one.
type shardReader struct {
	shard  *shard
	object *object
	tar    *tar.Reader
	layout Tar
	label  labelRule
	end    int64          // of the last member, with its padding
	now    *sampleMembers // nil before the first
}

func (l Tar) readShard(ctx context.Context, from store.Store, name string) (*shard, error) {
	if says := describeForeign(name); says != "" {
		return nil, wrong("%s", says)
	}
	o, a, err := openObject(ctx, from, name)
	if err != nil {
		return nil, err
	}
	r := &shardReader{shard: &shard{name: name, attributes: a}, object: o, tar: tar.NewReader(o), layout: l, label: l.labelRule()}
	for {
		h, err := r.tar.Next()
		if errors.Is(err, io.EOF) {
			if err := r.checkEnd(); err != nil {
				return nil, err
			}
			return r.shard, r.endSample()
		}
		if err != nil {
			return nil, r.broken(err)
		}
		r.end = r.object.at
		if h.Typeflag == tar.TypeReg {
			r.end += (h.Size + blockBytes - 1) / blockBytes * blockBytes
		}
		if err := r.member(h); err != nil {
			return nil, err
		}
	}
}

// Tar files are blocks. Behind their end, one or two of zeros, programs fill up a record with more of them.
const (
	blockBytes   = 512
	mostEndBytes = 1 << 20
)

// checkEnd refuses a shard that lost its end, or has something behind it: samples would be missing without a word.
func (r *shardReader) checkEnd() error {
	name, size := r.shard.name, r.object.object.Size
	if r.object.at-r.end < blockBytes {
		return wrong("%s: the shard is cut: it ends at byte %d, without the end of a tar file", name, size)
	}
	behind := size - r.object.at
	rest := make([]byte, min(behind, mostEndBytes))
	if _, err := io.ReadFull(r.object, rest); err != nil {
		return r.broken(err)
	}
	for _, b := range rest {
		if b != 0 {
			return wrong("%s: %d bytes lie behind the end of the tar file, as where files are joined by cat: give each as a shard of its own", name, behind)
		}
	}
	if behind > mostEndBytes {
		return wrong("%s: %d bytes lie behind the end of the tar file, zeros at first, as where a copy broke off: copy it anew", name, behind)
	}
	return nil
}

// broken is the error about a shard that cannot be read as one: of the storage, or of what is in it.
func (r *shardReader) broken(err error) error {
	if errors.As(err, new(*store.ChangedError)) {
		return err
	}
	if errors.Is(err, tar.ErrHeader) || errors.Is(err, tar.ErrFieldTooLong) || errors.Is(err, io.ErrUnexpectedEOF) {
		return wrong("%s: no tar file, or a damaged one: before byte %d: %v", r.shard.name, r.object.at, err)
	}
	return fmt.Errorf("%s: %w", r.shard.name, err)
}

// member looks at one member.
func (r *shardReader) member(h *tar.Header) error {
	switch h.Typeflag {
	case tar.TypeReg:
	case tar.TypeDir, tar.TypeXGlobalHeader:
		return nil
	default:
		return wrong("%s: %.99q is no plain file but of type %q: write the file itself into the shard", r.shard.name, h.Name, h.Typeflag)
	}
	for key := range h.PAXRecords {
		if strings.HasPrefix(key, "GNU.sparse.") {
			return wrong("%s: %.99q is a sparse file: write it without --sparse", r.shard.name, h.Name)
		}
	}
	name := path.Clean(h.Name)
	if len(r.shard.name)+1+len(name) > manifest.MaxKeyBytes {
		return wrong("%s: a name of %d bytes is too long", r.shard.name, len(name))
	}
	if path.IsAbs(name) || name == ".." || strings.HasPrefix(name, "../") || strings.ContainsRune(name, 0) {
		return wrong("%s: %.99q leads out of the shard", r.shard.name, h.Name)
	}
	if r.object.at > r.object.object.Size || h.Size > r.object.object.Size-r.object.at {
		return wrong("%s: it ends within %.99q: the shard is cut", r.shard.name, h.Name)
	}
	base, ending, ok := splitName(name)
	if !ok {
		return nil
	}
	return r.add(base, strings.ToLower(ending), name, h)
}

// splitName cuts a name at the first dot of its last part; false for those that belong to no sample: without a dot,
// or with nothing before it, and WebDataset's own, as __name__.
func splitName(name string) (base, ending string, ok bool) {
	last := path.Base(name)
	before, ending, found := strings.Cut(last, ".")
	if !found || before == "" || strings.HasPrefix(before, "__") && strings.HasSuffix(before, "__") {
		return "", "", false
	}
	return name[:len(name)-len(ending)-1], ending, true
}

// add adds a member to its sample.
func (r *shardReader) add(base, ending, name string, h *tar.Header) error {
	if r.now == nil || r.now.key != base {
		if err := r.endSample(); err != nil {
			return err
		}
		r.now = &sampleMembers{key: base, rank: len(pictures), values: make([]manifest.SampleValue, len(r.layout.Values))}
	}
	s := r.now
	if slices.Contains(s.endings, ending) {
		return wrong("%s: the sample %.99q has two members .%s", r.shard.name, base, ending)
	}
	s.endings = append(s.endings, ending)
	if rank := slices.Index(pictures, ending); rank >= 0 && rank < s.rank {
		s.rank, s.name = rank, name
		s.picture = member{offset: r.object.at, size: h.Size}
	}
	for i, value := range r.layout.Values {
		if strings.EqualFold(value, ending) {
			s.values[i] = manifest.SampleValue{Offset: r.object.at, Size: h.Size}
			if err := checkValue(r.shard.name, h.Name, h.Size); err != nil {
				return err
			}
		}
	}
	if ending != r.label.ending {
		return nil
	}
	var err error
	s.label, err = r.readLabel(h)
	s.labelled = true
	return err
}

// readLabel reads the text of a label.
func (r *shardReader) readLabel(h *tar.Header) (int64, error) {
	if h.Size > r.label.limit() {
		return 0, wrong("%s: %.99q has %d bytes, too many for a label", r.shard.name, h.Name, h.Size)
	}
	text, err := io.ReadAll(r.tar)
	if err != nil {
		return 0, r.broken(err)
	}
	label, err := r.label.parse(text)
	if err != nil {
		return 0, wrong("%s: the label in %.99q: %v", r.shard.name, h.Name, err)
	}
	return label, nil
}

// endSample adds the sample at hand, if there is one.
func (r *shardReader) endSample() error {
	s := r.now
	r.now = nil
	if s == nil {
		return nil
	}
	if s.rank == len(pictures) {
		return wrong("%s: the sample %.99q has no picture, only .%s: one ends in .%s; members of a sample are neighbours, in one shard",
			r.shard.name, s.key, strings.Join(s.endings, ", ."), strings.Join(pictures, ", ."))
	}
	if r.label.asked && !s.labelled {
		return wrong("%s: the sample %.99q has no label: label= names %s, and it has .%s",
			r.shard.name, s.key, r.label, strings.Join(s.endings, ", ."))
	}
	if len(r.shard.members) > 0 && s.labelled != (r.shard.labels > 0) {
		return wrong("%s: of %.99q and the sample before it one has a label, %s, and the other has none", r.shard.name, s.key, r.label)
	}
	for i, v := range s.values {
		if v.Offset == 0 { // where a header is
			return wrong("%s: the sample %.99q has no member .%s, which fields= asks for; it has .%s",
				r.shard.name, s.key, r.layout.Values[i], strings.Join(s.endings, ", ."))
		}
	}
	r.shard.values = append(r.shard.values, s.values...)
	if s.labelled {
		r.shard.labels++
	}
	r.shard.names = append(r.shard.names, s.name...)
	m := s.picture
	m.nameEnd, m.label = uint32(len(r.shard.names)), s.label
	r.shard.members = append(r.shard.members, m)
	return nil
}

// IsShard reports whether a name is that of a tar or Parquet file, or of another file of pictures, which is refused in words.
func IsShard(name string) bool {
	return strings.HasSuffix(strings.ToLower(name), ".tar") || IsParquet(name) || describeForeign(name) != ""
}
