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

	"github.com/feedwater-io/feedwater/client"
	"github.com/feedwater-io/feedwater/client/node"
	"github.com/feedwater-io/feedwater/filename"
	"github.com/feedwater-io/feedwater/pipeline/revision"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
)

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
	Revisions *client.Revisions `json:"revisions"`
	// Stores of a job that goes on.
	Stores       map[string]string `json:"stores"`
	Workers      int               `json:"workers"`
	StartTimeout float64           `json:"start_timeout"`
	Timeout      float64           `json:"timeout"`
}

// addresses are those of nodes, some of which name files.
type addresses []filename.Name

func (a addresses) toStrings() []string {
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

func (p *tlsParams) toFiles() *node.TLSFiles {
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
	Stores      map[string]string `json:"stores"`
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

// openWith is open with the file of a table, where there is one.
func (l *loader) openWith(ctx context.Context, params json.RawMessage, files []*os.File) (*openResult, error) {
	if len(files) > 1 {
		closeAll(files)
		return nil, fmt.Errorf("open: %d handles", len(files))
	}
	var file *os.File
	if len(files) == 1 {
		file = files[0]
	}
	r, err := l.openPlan(ctx, params, file)
	if err != nil && file != nil {
		l.mu.Lock()
		kept := l.table == file // of a fleet that goes on
		l.mu.Unlock()
		if !kept {
			_ = file.Close() // it was read
		}
	}
	return r, err
}

// tableOf is the list of files that a plan names, whose text is in a file.
func tableOf(text []byte, file *os.File) (*client.Table, error) {
	if file == nil {
		return nil, nil
	}
	var plan struct {
		Source struct {
			Table string `json:"table"`
		} `json:"source"`
	}
	if err := json.Unmarshal(text, &plan); err != nil {
		return nil, &failure{Kind: "plan", Field: "plan", Message: err.Error()}
	}
	fi, err := file.Stat()
	if err != nil {
		return nil, fmt.Errorf("open: the table: %w", err)
	}
	return &client.Table{SHA256: plan.Source.Table, Bytes: fi.Size(), Text: file}, nil
}

func (l *loader) openPlan(ctx context.Context, params json.RawMessage, file *os.File) (*openResult, error) {
	var p openParams
	if err := json.Unmarshal(params, &p); err != nil {
		return nil, fmt.Errorf("open: %w", err)
	}
	text, err := p.planText()
	if err != nil {
		return nil, err
	}
	table, err := tableOf(text, file)
	if err != nil {
		return nil, err
	}
	fleet, err := l.agent.options.Connect(ctx, Plan{
		Text: text, Table: table, Nodes: p.Nodes.toStrings(), Insecure: p.Insecure, TLS: p.TLS.toFiles(), TokenFile: string(p.TokenFile), Local: string(p.Local), Job: p.Job, Numerics: p.Numerics, Fingerprint: p.Fingerprint, Revisions: p.pinnedRevisions(), Stores: p.Stores, Workers: p.Workers,
		StartTimeout: toDuration(p.StartTimeout), Timeout: toDuration(p.Timeout), Log: slog.New(&noticeHandler{l.sendNotice}),
	})
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	twice := l.fleet != nil
	if !twice {
		l.fleet, l.table = fleet, file
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
	l.session = l.agent.registry.OpenSession(p.Job, info.PlanHash, time.Now())
	result := newOpenResult(info, fleet)
	l.stores = len(result.Stores)
	l.mu.Unlock()
	return result, nil
}

// pinnedRevisions are the revisions of a job that goes on, those of a state of version 1 by its numerics.
func (p *openParams) pinnedRevisions() *pb.Revisions {
	if p.Revisions != nil {
		return p.Revisions.Message()
	}
	if units, known := revision.OfNumerics(p.Numerics); known {
		return &pb.Revisions{Plan: units, Codecs: units, Build: revision.BeforeRevisions}
	}
	return nil
}

// toDuration is a time-out of the trainer's: 0 means for ever, to a fleet that is what is negative.
func toDuration(s float64) time.Duration {
	if s <= 0 {
		return -1
	}
	return time.Duration(min(s, 1e9) * float64(time.Second))
}

// planText is the plan as JSON text. With nodes its source is written as people do, "root/path below it".
func (p *openParams) planText() ([]byte, error) {
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
	revisions, stores := fleet.Pins()
	r := &openResult{
		Plan: info.Plan, PlanHash: info.PlanHash, OrderHash: info.OrderHash, PixelHash: info.PixelHash,
		Numerics: info.Numerics, Fingerprint: info.Fingerprint, Samples: info.Samples,
		Version: info.Version, Kernels: info.Kernels, Workers: info.Workers,
		Revisions: revisions, Stores: stores,
		Window: fleet.Window(1), Nodes: statesOf(fleet), Traced: fleet.Traced(), Ops: []opJSON{},
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
