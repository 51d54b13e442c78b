package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/feedwater-io/feedwater/batch"
	"github.com/feedwater-io/feedwater/client"
	"github.com/feedwater-io/feedwater/client/node"
	"github.com/feedwater-io/feedwater/filename"
	"github.com/feedwater-io/feedwater/pipeline/revision"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
)

// answer runs a call, unless the trainer is of another release, and writes its result to the trainer's file.
func (l *loader) answer(ctx context.Context, c call, mismatch error, result *os.File, more []*os.File) {
	defer result.Close()
	v, blob, err := l.call(ctx, c, mismatch, more)
	body := []byte(nil)
	if err != nil {
		body = describe(err).json()
	} else {
		body = mustJSON(v)
	}
	if werr := write(result, body, blob); werr != nil {
		err = fmt.Errorf("write the result of %s: %w", c.method, werr)
		l.agent.options.Log.Error("a call", "method", c.method, "error", err)
		body, blob = nil, nil
	}
	l.out.send(answerPacket(c.seq, err == nil, len(body), len(blob)))
}

func write(f *os.File, parts ...[]byte) error {
	offset := int64(0)
	for _, p := range parts {
		if _, err := f.WriteAt(p, offset); err != nil {
			return err
		}
		offset += int64(len(p))
	}
	return nil
}

func (l *loader) call(ctx context.Context, c call, mismatch error, files []*os.File) (v any, blob []byte, err error) {
	if mismatch != nil {
		closeAll(files)
		return nil, nil, mismatch
	}
	if c.method == "slots" {
		if len(files) != 1 {
			closeAll(files)
			return nil, nil, fmt.Errorf("slots: %d handles", len(files))
		}
		v, err = l.setSlots(c.params, files[0])
		return v, nil, err
	}
	closeAll(files)
	switch c.method {
	case "open":
		v, err = l.open(ctx, c.params)
	case "replay":
		return l.replay(ctx, c.params)
	case "listing":
		return l.listing(ctx, c.params)
	case "status":
		v = l.status()
	default:
		err = fmt.Errorf("unknown method %q", c.method)
	}
	return v, nil, err
}

type openParams struct {
	Plan        json.RawMessage `json:"plan"`
	Nodes       addresses       `json:"nodes"`
	Insecure    bool            `json:"insecure"`
	TLS         *tlsParams      `json:"tls"`
	TokenFile   filename.Name   `json:"token_file"`
	Local       filename.Name   `json:"local"`
	Job         string          `json:"job"`
	Numerics    string          `json:"numerics"`
	Fingerprint string          `json:"fingerprint"`
	// Revisions of a job that goes on. Numerics without them are those of a state of before they were told.
	Revisions    *client.Revisions `json:"revisions"`
	Workers      int               `json:"workers"`
	StartTimeout float64           `json:"start_timeout"`
	Timeout      float64           `json:"timeout"`
}

// addresses are those of nodes, some of which name files.
type addresses []filename.Name

func (a addresses) strings() []string {
	all := make([]string, len(a))
	for i, n := range a {
		all[i] = string(n)
	}
	return all
}

// tlsParams are paths, and the name that nodes' certificates are made out to.
type tlsParams struct {
	CA         filename.Name `json:"ca"`
	Cert       filename.Name `json:"cert"`
	Key        filename.Name `json:"key"`
	ServerName string        `json:"server_name"`
}

func (p *tlsParams) files() *node.TLSFiles {
	if p == nil {
		return nil
	}
	return &node.TLSFiles{CA: string(p.CA), Cert: string(p.Cert), Key: string(p.Key), ServerName: p.ServerName}
}

type openResult struct {
	Plan        string            `json:"plan"`
	PlanHash    string            `json:"plan_hash"`
	OrderHash   string            `json:"order_hash"`
	PixelHash   string            `json:"pixel_hash"`
	Numerics    string            `json:"numerics"`
	Fingerprint string            `json:"fingerprint"`
	Revisions   *client.Revisions `json:"revisions"`
	Samples     uint64            `json:"samples"`
	Classes     []classJSON       `json:"classes"`
	Fields      []fieldJSON       `json:"fields"`
	Ops         []opJSON          `json:"ops"`
	Window      int               `json:"window"`
	Version     string            `json:"version"`
	Kernels     string            `json:"kernels"`
	Workers     uint32            `json:"workers"`
	Nodes       []nodeState       `json:"nodes"`
	Traced      bool              `json:"traced"`
}

type classJSON struct {
	Name    filename.Name `json:"name"`
	Samples uint64        `json:"samples"`
}

type fieldJSON struct {
	Name  string   `json:"name"`
	DType string   `json:"dtype"`
	Shape []uint64 `json:"shape"`
}

type opJSON struct {
	Name      string          `json:"name"`
	Place     string          `json:"place"`
	Dialect   string          `json:"dialect"`
	Tier      string          `json:"tier"`
	Arguments json.RawMessage `json:"arguments"`
}

func (l *loader) open(ctx context.Context, params json.RawMessage) (*openResult, error) {
	var p openParams
	if err := json.Unmarshal(params, &p); err != nil {
		return nil, fmt.Errorf("open: %w", err)
	}
	text, err := p.text()
	if err != nil {
		return nil, err
	}
	fleet, err := l.agent.options.Connect(ctx, Plan{
		Text: text, Nodes: p.Nodes.strings(), Insecure: p.Insecure, TLS: p.TLS.files(), TokenFile: string(p.TokenFile), Local: string(p.Local), Job: p.Job, Numerics: p.Numerics, Fingerprint: p.Fingerprint, Revisions: p.pinned(), Workers: p.Workers,
		StartTimeout: seconds(p.StartTimeout), Timeout: seconds(p.Timeout), Log: slog.New(&noticeHandler{l.notice}),
	})
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	twice := l.fleet != nil
	if !twice {
		l.fleet = fleet
	}
	l.mu.Unlock()
	if twice {
		fleet.Close()
		return nil, errors.New("open: this Loader is open already")
	}
	info, err := fleet.Open(ctx)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	l.info = info
	l.line = l.agent.book.Enter(p.Job, info.PlanHash, time.Now())
	l.mu.Unlock()
	return newOpenResult(info, fleet), nil
}

// pinned are the revisions of a job that goes on, those of a state of version 1 by its numerics.
func (p *openParams) pinned() *pb.Revisions {
	if p.Revisions != nil {
		return p.Revisions.Message()
	}
	if units, known := revision.OfNumerics(p.Numerics); known {
		return &pb.Revisions{Plan: units, Codecs: units, Build: revision.BeforeRevisions}
	}
	return nil
}

// seconds is a time-out of the trainer's: 0 means for ever, to a fleet that is what is negative.
func seconds(s float64) time.Duration {
	if s <= 0 {
		return -1
	}
	return time.Duration(min(s, 1e9) * float64(time.Second))
}

// text is the plan as JSON text. With nodes its source is written as people do, "root/path below it".
func (p *openParams) text() ([]byte, error) {
	text := []byte(p.Plan)
	var quoted string
	if json.Unmarshal(p.Plan, &quoted) == nil {
		text = []byte(quoted)
	}
	if len(p.Nodes) == 0 {
		return text, nil
	}
	var plan, members map[string]json.RawMessage
	var source struct {
		Root string        `json:"root"`
		Path filename.Name `json:"path"`
	}
	if err := json.Unmarshal(text, &plan); err != nil {
		return nil, &failure{Kind: "plan", Field: "plan", Message: err.Error()}
	}
	if err := json.Unmarshal(plan["source"], &source); err != nil || source.Root != "" || filepath.IsAbs(string(source.Path)) {
		return text, nil //nolint:nilerr // the node says what is wrong with it
	}
	if err := json.Unmarshal(plan["source"], &members); err != nil {
		return text, nil //nolint:nilerr // likewise
	}
	root, below, _ := strings.Cut(string(source.Path), "/")
	members["root"], members["path"] = mustJSON(root), mustJSON(filename.Name(below))
	plan["source"] = mustJSON(members)
	return json.Marshal(plan)
}

func newOpenResult(info *pb.OpenResponse, fleet *client.Fleet) *openResult {
	r := &openResult{
		Plan: info.Plan, PlanHash: info.PlanHash, OrderHash: info.OrderHash, PixelHash: info.PixelHash,
		Numerics: info.Numerics, Fingerprint: info.Fingerprint, Samples: info.Samples,
		Version: info.Version, Kernels: info.Kernels, Workers: info.Workers,
		Revisions: fleet.Revisions(),
		Window:    fleet.Window(1), Nodes: states(fleet), Traced: fleet.Traced(), Ops: []opJSON{},
	}
	for _, c := range info.Classes {
		r.Classes = append(r.Classes, classJSON{filename.Name(c.Name), c.Samples})
	}
	for _, f := range info.Fields {
		r.Fields = append(r.Fields, fieldJSON{f.Name, f.Dtype, append([]uint64{}, f.Shape...)})
	}
	for _, o := range info.Ops {
		r.Ops = append(r.Ops, opJSON{o.Name, o.Place, o.Dialect, o.Tier, json.RawMessage(o.Arguments)})
	}
	return r
}

func states(fleet *client.Fleet) []nodeState {
	all := []nodeState{}
	for _, s := range fleet.Status() {
		n := nodeState{Addr: s.Addr, State: string(s.State), Wants: s.Wants}
		if s.Err != nil {
			n.Error = clip(s.Err.Error())
		}
		all = append(all, n)
	}
	return all
}

func (l *loader) status() any {
	l.mu.Lock()
	fleet := l.fleet
	l.mu.Unlock()
	r := struct {
		Nodes  []nodeState   `json:"nodes"`
		Queued float64       `json:"queued"`
		Effort client.Effort `json:"effort"`
	}{Nodes: []nodeState{}}
	if fleet == nil {
		return r
	}
	r.Nodes, r.Effort = states(fleet), fleet.Effort()
	for _, s := range fleet.Status() {
		r.Queued += s.Queued
	}
	return r
}

type slotsParams struct {
	Count   int      `json:"count"`
	Stride  int      `json:"stride"`
	Batch   int      `json:"batch"`
	LastHop LastHops `json:"last_hop"`
}

type slotsResult struct {
	Fields []batch.Field `json:"fields"`
	Bytes  int           `json:"bytes"`
}

func (l *loader) setSlots(params json.RawMessage, memory *os.File) (*slotsResult, error) {
	p := slotsParams{}
	if err := json.Unmarshal(params, &p); err != nil {
		_ = memory.Close()
		return nil, fmt.Errorf("slots: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.info == nil || p.Batch < 1 {
		_ = memory.Close()
		return nil, fmt.Errorf("slots for batches of %d, before a plan was opened or of no samples", p.Batch)
	}
	s, err := mapSlots(memory, p.Count, p.Stride, p.Batch, l.info.Fields, p.LastHop)
	if err != nil {
		return nil, err
	}
	if l.slots != nil {
		l.slots.drop()
	}
	l.slots = s
	return &slotsResult{s.fields, s.bytes}, nil
}

// finalFields are the arrays as they leave the agent.
func finalFields(fields []*pb.Field, hops LastHops) []batch.Field {
	var all []batch.Field
	for _, f := range fields {
		g := batch.Field{Name: f.Name, DType: f.Dtype, Shape: []int{}}
		for _, d := range f.Shape {
			g.Shape = append(g.Shape, int(d))
		}
		if isPicture(f) {
			hop := hops.of(f.Name)
			if hop.DType != "" {
				g.DType = hop.DType
			}
			if hop.Layout == "chw" {
				g.Shape = []int{g.Shape[2], g.Shape[0], g.Shape[1]}
			}
		}
		all = append(all, g)
	}
	return all
}

type listingParams struct {
	Path filename.Name `json:"path"`
}

type listingResult struct {
	Fingerprint string `json:"fingerprint"`
	Counts      []int  `json:"counts"`
}

func (l *loader) listing(ctx context.Context, params json.RawMessage) (any, []byte, error) {
	var p listingParams
	if err := json.Unmarshal(params, &p); err != nil {
		return nil, nil, fmt.Errorf("listing: %w", err)
	}
	if l.agent.options.List == nil {
		return nil, nil, errors.New("listing: this agent has no folders")
	}
	found, err := l.agent.options.List(ctx, string(p.Path))
	if err != nil {
		return nil, nil, err
	}
	return &listingResult{found.Fingerprint, found.Counts}, found.Keys, nil
}

type replayParams struct {
	Epoch    uint32   `json:"epoch"`
	Position uint64   `json:"position"`
	Count    uint32   `json:"count"`
	Indices  []uint64 `json:"indices"`
	Repeats  []uint32 `json:"repeats"`
	Pixels   bool     `json:"pixels"`
	Policy   []byte   `json:"policy"`
}

type sampleJSON struct {
	Key          filename.Name     `json:"key"`
	Index        uint64            `json:"index"`
	Repeat       uint32            `json:"repeat"`
	Label        int64             `json:"label"`
	EncodedBytes uint64            `json:"encoded_bytes"`
	Height       uint32            `json:"height"`
	Width        uint32            `json:"width"`
	Offset       int               `json:"offset"`
	Draws        []json.RawMessage `json:"draws"`
	Error        *sampleError      `json:"error"`
}

func (l *loader) replay(ctx context.Context, params json.RawMessage) (any, []byte, error) {
	var p replayParams
	if err := json.Unmarshal(params, &p); err != nil {
		return nil, nil, fmt.Errorf("replay: %w", err)
	}
	name := &pb.Name{Epoch: p.Epoch, Samples: &pb.Name_Range{Range: &pb.Range{Position: p.Position, Count: p.Count}}}
	if p.Indices != nil {
		name.Samples = &pb.Name_List{List: &pb.List{Indices: p.Indices, Repeats: p.Repeats}}
	}
	name.Policy = p.Policy
	l.mu.Lock()
	fleet := l.fleet
	l.mu.Unlock()
	if fleet == nil {
		return nil, nil, errors.New("replay before open")
	}
	answer, err := fleet.Replay(ctx, &pb.ReplayRequest{Name: name, Pixels: p.Pixels})
	if err != nil {
		return nil, nil, err
	}
	samples, blob := newSamples(answer.Samples)
	return map[string]any{"samples": samples}, blob, nil
}

// newSamples are samples as the trainer gets them, and their pixels behind each other.
func newSamples(answer []*pb.Sample) (samples []sampleJSON, blob []byte) {
	samples = []sampleJSON{}
	for _, s := range answer {
		j := sampleJSON{
			Key: filename.Name(s.Key), Index: s.Index, Repeat: s.Repeat, Label: s.Label, EncodedBytes: s.EncodedBytes,
			Height: s.Height, Width: s.Width, Offset: len(blob), Draws: []json.RawMessage{},
		}
		for _, d := range s.Draws {
			j.Draws = append(j.Draws, drawJSON(d))
		}
		if s.Error != nil {
			e := newSampleError(s.Error, "")
			j.Error = &e
		}
		blob = append(blob, s.Image...)
		samples = append(samples, j)
	}
	return samples, blob
}

// drawJSON is a draw as one flat object.
func drawJSON(d *pb.Draw) json.RawMessage {
	var all map[string]json.RawMessage
	if json.Unmarshal([]byte(d.Parameters), &all) != nil || all == nil { // parameters are optional
		all = map[string]json.RawMessage{}
	}
	all["op"], all["applied"] = mustJSON(d.Op), mustJSON(d.Applied)
	return mustJSON(all)
}
