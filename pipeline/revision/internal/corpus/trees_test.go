package corpus

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/status"

	"github.com/feedwater-io/feedwater/batch"
	"github.com/feedwater-io/feedwater/client"
	"github.com/feedwater-io/feedwater/client/node"
	"github.com/feedwater-io/feedwater/pipeline"
	"github.com/feedwater-io/feedwater/pipeline/revision"
	"github.com/feedwater-io/feedwater/pipeline/revision/internal/treetest"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
)

// module is the folder of this module.
var module = filepath.Join("..", "..", "..", "..")

// build is a tree and the node that it makes.
type build struct {
	name  string
	dir   string
	units revision.Set
	addr  string
	node  node.Node
}

// edits make another pixel, each in one unit.
var edits = map[string]struct{ unit, file, old, now string }{
	"png": {"codec/png", "pipeline/codec/png/expand.go", "\tn := len(dst) / 3\n", "\tn := len(dst) / 3\n\tdefer func() { dst[0] ^= 1 }()\n"},
	"op": {
		"op/ColorJitter", "pipeline/transform/color_jitter.go",
		"factors[i] = drawUniform(x[i], *r)\n", "factors[i] = drawUniform(x[i], *r) * 0.9\n",
	},
}

// Three trees, as they are and with a pixel changed in a codec and in an op, each raised by the command: nodes that are
// built of them are kept apart for plans and files that use what changed, and joined for all else, over random plans.
// Where they are joined their bytes are the same.
func TestTwoTrees(t *testing.T) {
	runtime.LockOSThread() // on which nodes depend
	defer runtime.UnlockOSThread()
	folder := formatsFolder(t)
	base := &build{name: "base", dir: treetest.Copy(t, module)}
	builds := []*build{base}
	before := base.digests()
	for name, e := range edits {
		b := &build{name: name, dir: treetest.Copy(t, module)}
		treetest.Replace(t, filepath.Join(b.dir, e.file), e.old, e.now)
		if moved := movedSince(before, b.digests()); !slices.Equal(moved, []string{e.unit}) {
			t.Fatalf("%s: the digests of %v have moved", name, moved)
		}
		if said, err := b.run("go", "run", "./pipeline/revision/internal/cmd/units", "raise", e.unit); err != nil {
			t.Fatal(said)
		}
		builds = append(builds, b)
	}
	for _, b := range builds {
		b.start(t, folder)
	}
	r := rand.New(rand.NewPCG(7, 7))
	seen := map[string]int{}
	for range 40 {
		compareBuilds(t, base, builds[1+r.IntN(2)], randomPlan(r), seen)
	}
	t.Log(seen)
	if seen["kept apart by the plan"] < 10 || seen["kept apart by a file"] < 5 || seen["joined"] < 50 || seen["different"] < 10 || seen["made by the other"] < 20 {
		t.Errorf("too few to say anything: %v", seen)
	}
}

// compareBuilds asks another build's node for what a job is made of that began on base, file by file.
func compareBuilds(t *testing.T, base, other *build, plan string, seen map[string]int) {
	t.Helper()
	info, err := base.node.Open(t.Context(), &pb.OpenRequest{Plan: plan, Protocol: pb.Protocol})
	if err != nil {
		t.Fatalf("%s: %v", plan, err)
	}
	if _, err := other.node.Open(t.Context(), &pb.OpenRequest{Plan: plan, Protocol: pb.Protocol}); err != nil {
		t.Fatalf("%s: %v", plan, err)
	}
	f, err := client.New(client.Options{Plan: plan, Job: "trees", Nodes: []string{base.addr, other.addr}, Revisions: info.Revisions})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	apart := base.units.Of(usesOf([]byte(plan))).Differing(other.units)
	for i, format := range Formats {
		units := slices.Concat(apart, base.units.OfFormat(format).Differing(other.units))
		right, _ := base.replay(t, info, nil, i)
		strange, _ := other.replay(t, info, nil, i)
		_, unit := other.replay(t, info, info.Revisions, i)
		same := bytes.Equal(right, strange)
		switch {
		case unit == "" && len(units) > 0 || unit != "" && !slices.Contains(units, unit):
			t.Errorf("%s: a %s is refused for %q, and differ do %v\n%s", other.name, format, unit, units, plan)
		case unit == "" && !same:
			t.Errorf("%s: a %s would be joined and differs\n%s", other.name, format, plan)
		case unit == "":
			seen["joined"]++
		case len(apart) > 0:
			seen["kept apart by the plan"]++
		default:
			seen["kept apart by a file"]++
		}
		if !same {
			seen["different"]++
		}
		checkJob(t, f, i, right, unit == "", other, seen)
	}
}

// checkJob asks a job of both nodes for a file.
func checkJob(t *testing.T, f *client.Fleet, index int, right []byte, joined bool, other *build, seen map[string]int) {
	t.Helper()
	for range 4 {
		r := fetch(f, index)
		if r.Err != nil || !bytes.Equal(r.Data[:len(right)], right) {
			t.Fatalf("%s: %v, other bytes in file %d from %s", other.name, r.Err, index, r.Node)
		}
		if r.Node == other.addr && !joined {
			t.Errorf("%s made file %d for a job that it differs from", other.name, index)
		}
		if r.Node == other.addr {
			seen["made by the other"]++
		}
	}
}

// replay returns the pixels of a file, or the unit for which the node refuses it.
func (b *build) replay(t *testing.T, info *pb.OpenResponse, pinned *pb.Revisions, index int) (pixels []byte, unit string) {
	t.Helper()
	r, err := b.node.Replay(t.Context(), &pb.ReplayRequest{
		Plan: info.Plan, Numerics: info.Numerics, Name: sample(index), Pixels: true, Revisions: pinned,
	})
	if err == nil {
		return r.Samples[0].Image, ""
	}
	for _, detail := range status.Convert(err).Details() {
		if e, is := detail.(*errdetails.ErrorInfo); is && e.Reason == pb.Reason_REASON_REVISION.String() {
			return nil, e.Metadata["unit"]
		}
	}
	t.Fatalf("%s: %v", b.name, err)
	return nil, ""
}

func sample(index int) *pb.Name {
	return &pb.Name{Samples: &pb.Name_List{List: &pb.List{Indices: []uint64{uint64(index)}, Repeats: []uint32{0}}}}
}

// randomPlan is a chain of ops as the corpus draws them.
func randomPlan(r *rand.Rand) string {
	all := ops()
	for {
		var chain []string
		for range 1 + r.IntN(3) {
			drawn := draw(r, all[r.IntN(len(all))])
			chain = append(chain, drawn[r.IntN(len(drawn))])
		}
		if r.IntN(4) == 0 {
			chain = append(chain, `{"op": "ColorJitter", "brightness": 0.4}`)
		}
		chain = append(chain, `{"op": "CenterCrop", "size": [40, 36]}`)
		if plan := with(planOf(chain...), `"source": {"root": "photos"}`); parses(plan) {
			return string(plan)
		}
	}
}

// formatsFolder has a picture of each format, in the order of Formats.
func formatsFolder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "a"), 0o755); err != nil {
		t.Fatal(err)
	}
	for i, name := range []string{"masks.bmp", "interlaced.gif", "420.jpg", "interlaced.png", "lossy.webp"} {
		text, err := os.ReadFile(filepath.Join(module, "pipeline", "numerics", name))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, "a", fmt.Sprintf("%d.jpg", i)), text, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func fetch(f *client.Fleet, index int) client.Result {
	result := make(chan client.Result, 1)
	f.Want(&client.Want{Name: sample(index), Request: batch.Request{Dst: make([]byte, 1<<20)}, Done: func(r client.Result) { result <- r }})
	return <-result
}

// run runs a command in the tree and returns all that it says.
func (b *build) run(name string, arguments ...string) (string, error) {
	run := exec.Command(name, arguments...)
	run.Dir, run.Env = b.dir, append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-trimpath -buildvcs=false")
	out, err := run.CombinedOutput()
	return string(out), err
}

// digests are what each unit's source has, by unit.
func (b *build) digests() map[string]string {
	said, _ := b.run("go", "run", "./pipeline/revision/internal/cmd/units", "show")
	all := map[string]string{}
	for line := range strings.Lines(said) {
		if unit, rest, is := strings.Cut(line, ", revision "); is {
			all[unit] = strings.SplitN(rest, ", ", 3)[1]
		}
	}
	return all
}

// movedSince are the units whose digest is another, sorted.
func movedSince(before, now map[string]string) (units []string) {
	for unit, digest := range now {
		if before[unit] != digest {
			units = append(units, unit)
		}
	}
	slices.Sort(units)
	return units
}

// start builds a node, with the numerics that its author would have committed, and runs it until the end of the test.
func (b *build) start(t *testing.T, folder string) {
	t.Helper()
	b.compile(t)
	said, err := b.run("./feedwater", "version")
	if err != nil {
		t.Fatal(said)
	}
	_, rest, _ := strings.Cut(said, "numerics")
	if measured := strings.Fields(rest)[0]; measured != pipeline.Exact {
		treetest.Replace(t, filepath.Join(b.dir, "pipeline", "numerics.go"), `committedNumerics = "`+pipeline.Exact, `committedNumerics = "`+measured)
		b.compile(t)
	}
	text, err := os.ReadFile(filepath.Join(b.dir, "pipeline", "revision", "table.txt"))
	if err != nil {
		t.Fatal(err)
	}
	table, err := revision.Parse(string(text))
	if err != nil {
		t.Fatal(err)
	}
	b.units = revision.Set{}
	for name, u := range table {
		b.units[name] = u.Revision
	}
	b.serve(t, folder)
}

func (b *build) compile(t *testing.T) {
	t.Helper()
	if said, err := b.run("go", "build", "-o", "feedwater", "./cmd/feedwater"); err != nil {
		t.Fatal(said)
	}
}

func (b *build) serve(t *testing.T, folder string) {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "s")
	b.addr = "unix:" + socket
	ctx, stop := context.WithCancel(context.Background())
	run := exec.CommandContext(ctx, filepath.Join(b.dir, "feedwater"), "serve", "--listen", b.addr, "--data", "photos="+folder, "--workers", "1")
	run.Env, run.SysProcAttr = append(os.Environ(), "XDG_CACHE_HOME="+t.TempDir(), "HOME="+b.dir), treetest.EndWithParent()
	out, err := run.StderrPipe()
	if err == nil {
		err = run.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stop()
		_ = run.Wait()
	})
	untilListening(t, out)
	if b.node, err = node.Dial(b.addr, node.DialOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.node.Close() })
}

// untilListening reads a node's log until it listens, and on in the background.
func untilListening(t *testing.T, log io.Reader) {
	t.Helper()
	var said strings.Builder
	room := make([]byte, 4096)
	for !strings.Contains(said.String(), "listening") {
		n, err := log.Read(room)
		said.Write(room[:n])
		if err != nil {
			t.Fatalf("a node did not listen: %s", said.String())
		}
	}
	go func() { _, _ = io.Copy(io.Discard, log) }() // until the node ends
}
