package client_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/image/bmp"

	"github.com/feedwater-io/feedwater/batch"
	"github.com/feedwater-io/feedwater/client"
	"github.com/feedwater-io/feedwater/client/loader"
	"github.com/feedwater-io/feedwater/client/membership"
	"github.com/feedwater-io/feedwater/client/node"
	"github.com/feedwater-io/feedwater/pipeline"
	"github.com/feedwater-io/feedwater/pipeline/dataset"
	"github.com/feedwater-io/feedwater/pipeline/revision"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
	"github.com/feedwater-io/feedwater/server"
)

// first is a build that has all units of this one in revision 1.
func first() revision.Set {
	s := revision.Build()
	for unit := range s {
		s[unit] = 1
	}
	return s
}

// ofRevision is that build with one unit of another revision.
func ofRevision(unit string, n uint32) revision.Set {
	s := first()
	s[unit] = n
	return s
}

// startRevision runs a real node whose build has these revisions.
func (c *cluster) startRevision(addr, root, build string, s revision.Set) {
	c.t.Helper()
	p, err := pipeline.Open(pipeline.Options{Workers: 1, Revisions: s})
	if err != nil {
		c.t.Fatal(err)
	}
	c.serve(addr, server.Options{
		Version: "0", Build: build, Engine: server.NewEngine(p, dataset.Options{CacheDir: filepath.Join(c.root, addr)}),
		Roots: map[string]string{"photos": root},
	}, p.Close)
}

// formats are those of mixedFolder's pictures, by index modulo their number.
var formats = []string{"bmp", "gif", "jpeg", "png"}

// mixedFolder has pictures of all formats; red is the red of one pixel of the PNGs, whose sizes do not depend on it.
func mixedFolder(t testing.TB, pictures int, red uint8) string {
	t.Helper()
	root := t.TempDir()
	for i := range pictures {
		m := image.NewPaletted(image.Rect(0, 0, 48, 40), color.Palette{color.White, color.Black, color.RGBA{9, 80, 200, 255}})
		for at := range m.Pix {
			m.Pix[at] = uint8((at*7 + i) % 3)
		}
		var b bytes.Buffer
		var err error
		switch formats[i%len(formats)] {
		case "bmp":
			err = bmp.Encode(&b, m)
		case "gif":
			err = gif.Encode(&b, m, nil)
		case "jpeg":
			err = jpeg.Encode(&b, m, nil)
		case "png":
			m.Palette[0] = color.RGBA{red, 255, 255, 255}
			err = (&png.Encoder{CompressionLevel: png.NoCompression}).Encode(&b, m)
		}
		if err == nil {
			err = os.MkdirAll(filepath.Join(root, "a"), 0o755)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(root, "a", fmt.Sprintf("%03d.jpg", i)), b.Bytes(), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// indices is the name of a batch of these samples.
func indices(of ...uint64) *pb.Name {
	return &pb.Name{Samples: &pb.Name_List{List: &pb.List{Indices: of, Repeats: make([]uint32, len(of))}}}
}

const (
	jpegs = `{"source": {"root": "photos"}, "transforms": [{"op": "CenterCrop", "size": 32}]}`
	aJPEG = 2 // index of mixedFolder
	aPNG  = 3
)

// Two nodes of builds that make another pixel of PNG files serve one job: files of other formats come from both, PNG
// files from the node of the job's revision alone. Without that node there is an error that tells all of it, and the
// other files go on.
func TestBuildsThatDifferInACodec(t *testing.T) {
	c := newCluster(t)
	c.startRevision("old", mixedFolder(t, 12, 255), "v1 (aaaa)", first())
	c.startRevision("new", mixedFolder(t, 12, 254), "v2 (bbbb)", ofRevision(revision.Codec("png"), 2))
	o := c.realOptions(jpegs, "new")
	other := ask(c.open(o), indices(aPNG), room)
	o = c.realOptions(jpegs, "old", "new")
	o.Revisions = &pb.Revisions{Plan: first().Of(revision.Plan{Ops: []string{"CenterCrop"}}), Codecs: pipeline.CodecUnits(first()), Build: "v1 (aaaa)"}
	f := c.open(o)
	right, from := ask(c.open(c.realOptions(jpegs, "old")), indices(aPNG), room), map[string]int{}
	if other.Err != nil || right.Err != nil || bytes.Equal(other.Data, right.Data) {
		t.Fatalf("the builds make the same: %v, %v", other.Err, right.Err)
	}
	for range 40 {
		r := ask(f, indices(aPNG), room)
		if r.Err != nil || r.Node != "old" || !bytes.Equal(r.Data, right.Data) {
			t.Fatalf("a PNG: %v from %s, the right bytes: %v", r.Err, r.Node, bytes.Equal(r.Data, right.Data))
		}
		r = ask(f, indices(aJPEG), room)
		if r.Err != nil {
			t.Fatal(r.Err)
		}
		from[r.Node]++
	}
	if len(from) != 2 {
		t.Errorf("JPEG files came from %v", from)
	}
	for _, s := range f.Status() {
		if s.State != client.Ready || s.Failures > 0 {
			t.Errorf("%s is %s, %d failures", s.Addr, s.State, s.Failures)
		}
	}
	if err := f.SetNodes([]string{"new"}); err != nil {
		t.Fatal(err)
	}
	c.checkRevisionError(ask(f, indices(aPNG, aJPEG), room).Err, "codec/png", "a/003.jpg (index 3)")
	if r := ask(f, indices(aJPEG), room); r.Err != nil || r.Node != "new" {
		t.Errorf("a JPEG: %v from %s", r.Err, r.Node)
	}
	if _, err := f.Replay(t.Context(), &pb.ReplayRequest{Name: indices(aPNG), Pixels: true}); !errors.As(err, new(*node.RevisionError)) {
		t.Errorf("replay: %v", err)
	}
	if n := strings.Count(c.log.String(), "a node is of another build"); n != 1 {
		t.Errorf("the log says it %d times:\n%s", n, c.log)
	}
}

// checkRevisionError looks whether an error says all of it.
func (c *cluster) checkRevisionError(err error, words ...string) {
	c.t.Helper()
	var revision *node.RevisionError
	if !errors.As(err, &revision) || revision.Pinned != 1 || revision.Found != 2 || revision.PinnedBuild != "v1 (aaaa)" || revision.Build != "v2 (bbbb)" {
		c.t.Errorf("%#v of %v", revision, err)
		return
	}
	for _, w := range append(words, "new: ", "revision 2 (build v2 (bbbb))", "1 (build v1 (aaaa))", "nodes of build v1 (aaaa)", "strict=False") {
		if !strings.Contains(err.Error(), w) {
			c.t.Errorf("%q is not in %v", w, err)
		}
	}
}

// A want that all its nodes refuse is asked for once at each, whatever it waits for, and not again.
func TestRefusedOnceAtEachNode(t *testing.T) {
	c := newCluster(t)
	root := mixedFolder(t, 12, 255)
	for i := range 3 {
		c.startRevision(fmt.Sprint("n", i), root, fmt.Sprint("v", 2+i%2), ofRevision(revision.Codec("png"), uint32(2+i%2)))
	}
	o := c.realOptions(jpegs, "n0", "n1", "n2")
	o.Revisions = &pb.Revisions{Plan: first().Of(revision.Plan{Ops: []string{"CenterCrop"}}), Codecs: pipeline.CodecUnits(first()), Build: "v1"}
	asked := map[string]int{}
	o.Dial = func(addr string) (node.Node, error) {
		n, err := node.Dial(addr, node.DialOptions{Connect: c.connect})
		return &counting{Node: n, asked: asked, name: addr}, err
	}
	f := c.open(o)
	if r := ask(f, indices(aPNG), room); !errors.As(r.Err, new(*node.RevisionError)) || !strings.Contains(r.Err.Error(), "n2") {
		t.Errorf("%v", r.Err)
	}
	f.Close()
	if all := asked["n0"] + asked["n1"] + asked["n2"]; all != 2 || max(asked["n0"], asked["n1"], asked["n2"]) > 1 {
		t.Errorf("asked %v, not one of each of the two builds", asked)
	}
}

// counting counts what goes to a node.
type counting struct {
	node.Node
	asked map[string]int // of the fleet's goroutine until it is closed
	name  string
}

func (n *counting) Fetch(ctx context.Context, start *pb.Start, notice func(*pb.Notice)) (node.Stream, error) {
	s, err := n.Node.Fetch(ctx, start, notice)
	return &countingStream{s, n}, err
}

type countingStream struct {
	node.Stream
	node *counting
}

func (s *countingStream) Send(a *node.Attempt) {
	s.node.asked[s.node.name]++
	s.Stream.Send(a)
}

// randomOps are ops that random plans are made of.
var randomOps = map[string]string{
	"Resize": `"size": [40, 40]`, "CenterCrop": `"size": 36`, "RandomHorizontalFlip": "", "ColorJitter": `"brightness": 0.5`, "JPEG": `"quality": 60`,
	"GaussianBlur": `"kernel_size": 5`, "RandomRotation": `"degrees": 20`, "TrivialAugmentWide": "", "RandomResizedCrop": `"size": 24`,
}

// randomPlan is a plan of some ops, the last perhaps within another, and the units that it uses.
func randomPlan(r *rand.Rand) (plan string, units map[string]bool) {
	units = map[string]bool{"order": true, "draws": true, "batch": true, "files": true, "kernel/resize": true}
	names := slices.Sorted(maps.Keys(randomOps))
	r.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	var list []string
	for i, name := range names[:1+r.IntN(3)] {
		one := fmt.Sprintf(`{"op": %q}`, name)
		if arguments := randomOps[name]; arguments != "" {
			one = fmt.Sprintf(`{"op": %q, %s}`, name, arguments)
		}
		if i > 0 && r.IntN(2) == 0 {
			one = fmt.Sprintf(`{"op": "RandomApply", "transforms": [%s]}`, one)
			if strings.Contains(one, "size") && !strings.Contains(one, "kernel") { // it would change sizes by chance
				continue
			}
			units["op/RandomApply"] = true
		}
		list = append(list, one)
		units[revision.Op(name)] = true
		units["kernel/jpeg"] = units["kernel/jpeg"] || name == "JPEG"
	}
	list = append(list, `{"op": "CenterCrop", "size": 20}`)
	units["op/CenterCrop"] = true
	return fmt.Sprintf(`{"source": {"root": "photos"}, "transforms": [%s]}`, strings.Join(list, ", ")), units
}

// Nodes of a build that has one unit in another revision are left out of jobs whose plans use it, refuse files of
// formats that use it, and take part in all else: over random plans, units and batches.
func TestRandomPlansOnTwoBuilds(t *testing.T) {
	root := mixedFolder(t, 16, 255)
	rounds := 40
	if loader.Checked {
		rounds = 4
	}
	seen := map[string]int{}
	for seed := range rounds {
		r := rand.New(rand.NewPCG(uint64(seed), 1))
		plan, used := randomPlan(r)
		all := slices.Sorted(maps.Keys(first()))
		if r.IntN(3) > 0 { // or most are of no consequence
			all = append(slices.Sorted(maps.Keys(used)), "codec/png", "codec/jpeg", "kernel/jpeg", "codec/gif", "codec/bmp")
		}
		unit := all[r.IntN(len(all))]
		c := newCluster(t)
		c.startRevision("old", root, "v1", first())
		c.startRevision("new", root, "v2", ofRevision(unit, 2))
		o := c.realOptions(plan, "new")
		o.Revisions = pinnedBy(t, c, plan)
		o.Timeout = time.Minute
		f, err := client.New(o)
		if err != nil {
			t.Fatal(err)
		}
		_, err = f.Open(t.Context())
		if left := errors.As(err, new(*node.RevisionError)); left != used[unit] || err != nil && !left {
			t.Errorf("seed %d: %s differs for %s: %v", seed, unit, plan, err)
		} else if left {
			seen["left out"]++
		}
		for i := range uint64(len(formats)) {
			if err != nil {
				break
			}
			format := formats[i]
			takes := unit == revision.Codec(format) || unit == "kernel/jpeg" && format == "jpeg"
			got := ask(f, indices(i, i+4), room)
			if refused := errors.As(got.Err, new(*node.RevisionError)); refused != takes || got.Err != nil && !refused {
				t.Errorf("seed %d: %s differs for a %s: %v", seed, unit, format, got.Err)
			} else if refused {
				seen["refused"]++
			} else {
				seen["made"]++
			}
		}
		f.Close()
	}
	if !loader.Checked && (seen["left out"] < 8 || seen["refused"] < 8 || seen["made"] < 30) {
		t.Errorf("too few to say anything: %v", seen)
	}
}

// pinnedBy is what a job pins that begins on the old node.
func pinnedBy(t *testing.T, c *cluster, plan string) *pb.Revisions {
	t.Helper()
	info, err := c.open(c.realOptions(plan, "old")).Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return info.Revisions
}

// A job that begins takes the revisions of most nodes, on every rank the same; those of codecs count, too.
func TestRevisionsOfMostNodes(t *testing.T) {
	root := mixedFolder(t, 4, 255)
	for name, c := range map[string]struct {
		units []string // raised in node after node
		want  string   // the build that is pinned
	}{
		"most":  {[]string{"", "codec/png", "codec/png"}, "v1"},
		"order": {[]string{"", "", "order"}, "v0"},
		"even":  {[]string{"op/CenterCrop", ""}, "v1"},
	} {
		nodes, addrs := newCluster(t), []string(nil)
		for i, unit := range c.units {
			s := first()
			if unit != "" {
				s[unit] = 2
			}
			addrs = append(addrs, fmt.Sprint("n", i))
			nodes.startRevision(addrs[i], root, fmt.Sprint("v", i), s)
		}
		for rank := range 3 {
			o := nodes.realOptions(jpegs, addrs...)
			o.Rank = rank
			f, err := client.New(o)
			if err != nil {
				t.Fatal(err)
			}
			info, err := f.Open(t.Context())
			if err != nil || info.GetRevisions().GetBuild() != c.want {
				t.Errorf("%s: rank %d pins %v, %v", name, rank, info.GetRevisions().GetBuild(), err)
			}
			f.Close()
		}
	}
}

// A run that goes on with other bytes than its state's pins as one that begins does: on every rank the same, whoever
// answers first.
func TestRevisionsOfMostNodesWhereAStateNamesNone(t *testing.T) {
	root := mixedFolder(t, 4, 255)
	nodes, addrs := newCluster(t), []string(nil)
	for i, n := range []uint32{1, 2, 2} {
		s := first()
		s["codec/png"] = n
		addrs = append(addrs, fmt.Sprint("n", i))
		nodes.startRevision(addrs[i], root, fmt.Sprint("v", n), s)
	}
	f, err := client.New(nodes.realOptions(jpegs, addrs...))
	if err != nil {
		t.Fatal(err)
	}
	info, err := f.Open(t.Context())
	f.Close()
	if err != nil {
		t.Fatal(err)
	}
	for rank := range 12 {
		o := nodes.realOptions(jpegs, addrs...)
		o.Rank, o.Fingerprint = rank, info.Fingerprint
		f, err := client.New(o)
		if err != nil {
			t.Fatal(err)
		}
		info, err := f.Open(t.Context())
		if err != nil || info.GetRevisions().GetBuild() != "v2" {
			t.Errorf("rank %d pins %v, %v", rank, info.GetRevisions().GetBuild(), err)
		}
		f.Close()
	}
}

// Ranks whose order or last hop is of another build are refused by the node that serves the others, in words.
func TestRanksOfTwoBuilds(t *testing.T) {
	c := newCluster(t)
	c.startRevision("a", mixedFolder(t, 4, 255), "v1", first())
	open := func(job string, units map[string]uint32, build string) error {
		o := c.realOptions(jpegs, "a")
		o.Job, o.Trainer = job, &pb.Trainer{Units: units, Build: build}
		f, err := client.New(o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(f.Close)
		_, err = f.Open(t.Context())
		return err
	}
	own := map[string]uint32{"order": 1, "lasthop": 1}
	if err := open("run", own, "v1"); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(open("run", own, "v3"), open("run", nil, ""), open("other", map[string]uint32{"order": 2, "lasthop": 1}, "v2")); err != nil {
		t.Errorf("refused: %v", err)
	}
	err := open("run", map[string]uint32{"order": 1, "lasthop": 2}, "v2")
	if !errors.As(err, new(*node.RevisionError)) || !strings.Contains(err.Error(), "this trainer has lasthop of revision 2 (build v2), "+
		"and the other trainers of its job have revision 1 (build v1)") {
		t.Errorf("%v", err)
	}
}

// ofFirst has a trainer whose units are of revision 1.
func ofFirst(o client.Options) client.Options {
	o.Trainer = &pb.Trainer{Units: map[string]uint32{revision.Order: 1, revision.LastHop: 1}}
	return o
}

// States of before revisions were told go on if their build is known, with the revisions that it had.
func TestStatesOfVersion1(t *testing.T) {
	c := newCluster(t)
	root := mixedFolder(t, 16, 255)
	c.startRevision("old", root, "v1", first())
	l := newLoader(t, loader.Options{Options: ofFirst(c.realOptions(jpegs, "old")), Batch: 4})
	for b, err := range l.Batches(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		b.Release()
		break
	}
	state := l.State()
	if state.Version != 2 || state.Revisions.Plan["op/CenterCrop"] != 1 || state.Revisions.Codecs["codec/gif"] != 1 ||
		state.Revisions.Trainer["lasthop"] != 1 || state.Revisions.Build != "v1" {
		t.Errorf("state %+v of %+v", state, state.Revisions)
	}
	before := state
	before.Version, before.Revisions = 1, nil
	resume := func(s loader.State, unit string) error {
		nodes := newCluster(t)
		nodes.startRevision("new", root, "v2", ofRevision(unit, 2))
		l := newLoader(t, loader.Options{Options: ofFirst(nodes.realOptions(jpegs, "new")), Batch: 4})
		if err := l.Restore(s); err != nil {
			return err
		}
		for b, err := range l.Batches(t.Context()) {
			if err != nil {
				return err
			}
			b.Release()
		}
		return nil
	}
	for _, s := range []loader.State{state, before} {
		if err := resume(s, "codec/webp"); err != nil {
			t.Error(err)
		}
		way := "goes on with nodes of build v1, or"
		if s.Version == 1 { // nodes of before revisions serve nobody of today
			way = "goes on with the release of Feedwater that its state is of"
		}
		if err := resume(s, "op/CenterCrop"); !errors.As(err, new(*node.RevisionError)) || !strings.Contains(err.Error(), way) {
			t.Errorf("%+v: %v", s, err)
		}
		if err := resume(s, "codec/png"); !errors.As(err, new(*node.RevisionError)) {
			t.Errorf("%+v: %v", s, err)
		}
		s.Numerics, s.Revisions = "", nil // other bytes are meant
		if err := resume(s, "op/CenterCrop"); err != nil {
			t.Error(err)
		}
	}
	before.Numerics = strings.Repeat("ab", 16)
	if err := resume(before, "codec/webp"); !errors.As(err, new(*loader.StateError)) || !strings.Contains(err.Error(), "of a build that is not known here") {
		t.Errorf("%v", err)
	}
	hop := maps.Clone(state.Revisions.Trainer)
	hop["lasthop"] = 7
	state.Revisions = &client.Revisions{Plan: state.Revisions.Plan, Codecs: state.Revisions.Codecs, Trainer: hop, Build: "v0"}
	if err := resume(state, "codec/webp"); !errors.As(err, new(*loader.StateError)) || !strings.Contains(err.Error(), "lasthop was of revision 7 (build v0), and is of 1") {
		t.Errorf("%v", err)
	}
}

// Of a fleet too large to be connected to at once the nodes that can make a batch are found.
func TestTheRightNodeOfMany(t *testing.T) {
	c := newCluster(t)
	root := mixedFolder(t, 12, 255)
	var addrs []string
	for i := range 30 {
		addrs = append(addrs, fmt.Sprint("n", i))
		s := ofRevision(revision.Codec("png"), 2)
		if i == 29 {
			s = first()
		}
		c.startRevision(addrs[i], root, "v", s)
	}
	o := c.realOptions(jpegs, addrs...)
	o.Revisions = &pb.Revisions{Plan: first().Of(revision.Plan{Ops: []string{"CenterCrop"}}), Codecs: pipeline.CodecUnits(first()), Build: "v"}
	f, err := client.New(o)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r := ask(f, indices(aPNG), room); r.Err != nil || r.Node != "n29" {
		t.Errorf("%v from %q", r.Err, r.Node)
	}
}

// A want that a node has refused goes there again when the node is of the job's build, after a restart.
func TestARestartedNodeIsAskedAgain(t *testing.T) {
	c := newCluster(t)
	root := mixedFolder(t, 12, 255)
	c.startRevision("a", root, "v2", ofRevision(revision.Codec("png"), 2))
	o := c.realOptions(jpegs, "a", "gone") // which may come, so that the want waits
	o.Revisions = &pb.Revisions{Plan: first().Of(revision.Plan{Ops: []string{"CenterCrop"}}), Codecs: pipeline.CodecUnits(first()), Build: "v1"}
	f := c.open(o)
	done := make(chan client.Result, 1)
	f.Want(&client.Want{Name: indices(aPNG), Request: batch.Request{Dst: make([]byte, room)}, Done: func(r client.Result) { done <- r }})
	c.until("the node does not refuse it", func() bool { return strings.Contains(c.log.String(), "a node is of another build") })
	c.nodes["a"].kill()
	c.startRevision("a", root, "v1", first())
	if r := <-done; r.Err != nil || r.Node != "a" {
		t.Errorf("%v from %q", r.Err, r.Node)
	}
}

// refusing is a node that takes no stream, since it is of another build than the one that answered.
type refusing struct{ node.Node }

func (refusing) Fetch(context.Context, *pb.Start, func(*pb.Notice)) (node.Stream, error) {
	return nil, &node.RevisionError{Unit: "op/CenterCrop", Pinned: 1, Found: 2, PinnedBuild: "v1", Build: "v2", Message: "another build"}
}

// Where all nodes that are known refuse for their build, Open says so once each of them has, long before StartTimeout:
// whether the job goes on or begins, whoever names the nodes, however many there are, and whether they refuse the plan
// or the stream.
func TestOpenWhereAllNodesAreOfAnotherBuild(t *testing.T) {
	c := newCluster(t)
	root := mixedFolder(t, 4, 255)
	var many []string
	for i := range 12 {
		many = append(many, fmt.Sprint("n", i))
		c.startRevision(many[i], root, "v2", ofRevision(revision.Op("CenterCrop"), 2))
	}
	c.startRevision("v1", root, "v1", first())
	whole, err := c.open(c.realOptions(jpegs, "v1")).Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for what, change := range map[string]func(o *client.Options){
		"a job that goes on":    func(o *client.Options) { o.Numerics, o.Fingerprint = whole.Numerics, whole.Fingerprint },
		"numerics are not told": func(*client.Options) {},
		"of a list":             func(o *client.Options) { o.Nodes, o.Sources = nil, []membership.Source{told(many[:3]...)} },
		"more than are needed":  func(o *client.Options) { o.Nodes = many },
		"one is down":           func(o *client.Options) { o.Nodes = append(o.Nodes, "down") },
		"the stream alone": func(o *client.Options) {
			o.Nodes, o.Dial = []string{"v1"}, func(addr string) (node.Node, error) {
				n, err := node.Dial(addr, node.DialOptions{Connect: c.connect})
				return refusing{n}, err
			}
		},
	} {
		t.Run(what, func(t *testing.T) {
			o := c.realOptions(jpegs, many[:3]...)
			o.Revisions, o.StartTimeout = whole.Revisions, 10*time.Minute
			change(&o)
			f, err := client.New(o)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			ctx, stop := context.WithTimeout(t.Context(), time.Minute)
			defer stop()
			_, err = f.Open(ctx)
			var e *node.RevisionError
			if !errors.As(err, &e) || e.Unit != "op/CenterCrop" || !strings.Contains(err.Error(), "strict=False") {
				t.Errorf("%v", err)
			}
		})
	}
}

// told is a source that tells of nodes once.
func told(nodes ...string) membership.Source {
	s := &script{make(chan membership.Answer, 1)}
	s.answers <- membership.Answer{Nodes: nodes}
	return s
}
