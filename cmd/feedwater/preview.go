package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/png"
	"io"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"slices"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/feedwater-io/feedwater/batch"
	"github.com/feedwater-io/feedwater/client/agent"
	"github.com/feedwater-io/feedwater/cmd/feedwater/internal/sheet"
	"github.com/feedwater-io/feedwater/pipeline"
	"github.com/feedwater-io/feedwater/pipeline/dataset"
	"github.com/feedwater-io/feedwater/pipeline/transform"
	"github.com/feedwater-io/feedwater/server/tables"
)

// previewOptions are the flags of `feedwater preview`.
type previewOptions struct {
	folder, plan, out string
	samples, epochs   int
	seed              uint64
	width             int
	greeting          string // of the Python package, if that runs it

	beforeDrawing func() // of tests

	table string // file of the list that the plan names
	named string // its SHA-256

	columns dataset.Columns // of the plan's source
}

func newPreview() *cobra.Command {
	o := &previewOptions{beforeDrawing: func() {}}
	c := &cobra.Command{
		Use:   "preview FOLDER",
		Short: "Draw a sheet of pictures, before and after the transforms",
		Long: `Draws a sheet as a PNG file: a row for each of some samples, with the picture as it is and what a plan makes of it in one epoch after
the other, each over what was drawn for it. A plan with views has them side by side.

In Python loader.preview() does this with a Loader's own transforms, and notebooks show it. docs/plan.md says how to write a plan by hand.`,
		Example: `  feedwater preview /data/photos --plan plan.json
  echo '{"transforms": [{"op": "RandomResizedCrop", "size": 224}]}' | feedwater preview /data/photos --plan - -o sheet.png`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usageError{fmt.Errorf("preview takes one folder, not %d", len(args))}
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			o.folder = args[0]
			return o.runPreview(c.Context(), c.InOrStdin(), c.OutOrStdout(), c.ErrOrStderr())
		},
	}
	f := c.Flags()
	f.StringVar(&o.plan, "plan", "", "`file` with the plan, JSON; - for standard input; none: pictures as they are")
	f.StringVarP(&o.out, "out", "o", "preview.png", "`file` to write; - for standard output")
	f.IntVar(&o.samples, "samples", 4, "rows: samples, from all over the folder")
	f.IntVar(&o.epochs, "epochs", 5, "results in a row, one for each epoch")
	f.Uint64Var(&o.seed, "seed", 0, "other samples")
	f.StringVar(&o.greeting, "greeting", "", "what the Python package says of itself")
	_ = f.MarkHidden("greeting")
	f.StringVar(&o.table, "table", "", "`file` of the list that the plan names by its SHA-256")
	_ = f.MarkHidden("table")
	f.IntVar(&o.width, "width", 224, "largest width and height of a picture on the sheet, in pixels")
	return c
}

func (o *previewOptions) checkFlags() error {
	for _, n := range []struct {
		name             string
		value, low, high int
	}{{"samples", o.samples, 1, 1000}, {"epochs", o.epochs, 1, 100}, {"width", o.width, 32, 2048}} {
		if n.value < n.low || n.value > n.high {
			return usageError{fmt.Errorf("--%s %d is not within %d to %d", n.name, n.value, n.low, n.high)}
		}
	}
	return o.checkSheet(1)
}

// checkSheet bounds the sheet of so many views in each epoch.
func (o *previewOptions) checkSheet(views int) error {
	const most = 1 << 28
	if pixels := o.samples * (o.epochs*views + 1) * o.width * o.width; pixels > most {
		return usageError{fmt.Errorf("a sheet of %d million pixels; the limit is %d: fewer --samples or --epochs, or a smaller --width", pixels>>20, most>>20)}
	}
	return nil
}

func (o *previewOptions) runPreview(ctx context.Context, in io.Reader, out, status io.Writer) error {
	if err := o.checkFlags(); err != nil {
		return err
	}
	if o.greeting != "" {
		if err := agent.CheckPackage(o.greeting, version, buildOf()); err != nil {
			return err
		}
	}
	plan, err := o.parsePlan(in)
	if err != nil {
		return err
	}
	to, err := o.openOut(out)
	if err != nil {
		return err
	}
	drawn, err := o.drawSheet(ctx, plan)
	if err == nil {
		err = to.writeSheet(drawn.png)
	} else {
		to.removeUnwritten()
	}
	switch {
	case errors.Is(err, context.Canceled):
		return errors.New("interrupted; nothing was written")
	case err != nil:
		return err
	case drawn.failure != nil:
		return drawn.failure
	case o.out == "-":
		return nil
	}
	_, err = fmt.Fprintf(status, "%s: %d samples, each as it is and in %d epochs\n", o.out, o.samples, o.epochs)
	return err
}

// drawnSheet is a sheet as PNG. failure says why none of its samples came out, if so.
type drawnSheet struct {
	png     []byte
	failure error
}

// drawSheet draws. When ctx ends it returns at once: what decodes or draws at that moment ends with the process, and holds nothing but
// memory and files that are read.
func (o *previewOptions) drawSheet(ctx context.Context, plan *pipeline.Plan) (drawnSheet, error) {
	type drawn struct {
		sheet drawnSheet
		rows  int
		err   error
	}
	done := make(chan drawn, 1)
	go func() {
		d := drawn{}
		var rows []sheet.Row
		if rows, d.err = o.makeRows(ctx, plan); d.err == nil {
			d.rows, d.sheet.failure = len(rows), failureOf(rows)
			o.beforeDrawing()
			d.sheet.png, d.err = encodePNG(ctx, sheet.Draw(rows, o.columnTitles(plan), o.width))
		}
		done <- d
	}()
	select {
	case d := <-done:
		o.samples = d.rows
		return d.sheet, d.err
	case <-ctx.Done():
		return drawnSheet{}, ctx.Err()
	}
}

// columnTitles are those of the sheet: the original, then each epoch with each of its views.
func (o *previewOptions) columnTitles(plan *pipeline.Plan) []string {
	titles := []string{"original"}
	for epoch := range o.epochs {
		if len(plan.Views) == 0 {
			titles = append(titles, fmt.Sprintf("epoch %d", epoch))
		}
		for view := range plan.Views {
			titles = append(titles, fmt.Sprintf("epoch %d, view %d", epoch, view))
		}
	}
	return titles
}

// chainsOf are the chains of a plan's views.
func chainsOf(plan *pipeline.Plan) []transform.Chain {
	if len(plan.Views) > 0 {
		return plan.Views
	}
	return []transform.Chain{plan.Transforms}
}

// failureOf is an error if no sample came out.
func failureOf(rows []sheet.Row) error {
	if len(rows) == 0 || slices.ContainsFunc(rows, func(r sheet.Row) bool { return r.Made }) {
		return nil
	}
	return fmt.Errorf("none of %d samples came out, the first: %s", len(rows), rows[0].Cause)
}

// outFile is where a sheet goes. What lies there stays until the sheet is made.
type outFile struct {
	io.Writer
	file *os.File // nil: standard output
	made bool     // it was not there before
}

// openOut finds out before anything is drawn whether the sheet can be written.
func (o *previewOptions) openOut(out io.Writer) (*outFile, error) {
	if o.out == "-" {
		return &outFile{Writer: out}, nil
	}
	_, err := os.Lstat(o.out)
	f, openErr := os.OpenFile(o.out, os.O_WRONLY|os.O_CREATE, 0o666)
	if openErr != nil {
		return nil, fmt.Errorf("-o: %w", openErr)
	}
	return &outFile{f, f, errors.Is(err, fs.ErrNotExist)}, nil
}

// writeSheet puts the sheet in the place of what was there.
func (f *outFile) writeSheet(sheet []byte) error {
	if f.file == nil {
		_, err := f.Write(sheet)
		return err
	}
	if info, err := f.file.Stat(); err == nil && info.Mode().IsRegular() {
		if err := f.file.Truncate(0); err != nil {
			return errors.Join(err, f.file.Close())
		}
	}
	_, err := f.Write(sheet)
	return errors.Join(err, f.file.Close())
}

// removeUnwritten leaves what was there, or nothing.
func (f *outFile) removeUnwritten() {
	if f.file == nil {
		return
	}
	_ = f.file.Close()
	if f.made {
		_ = os.Remove(f.file.Name())
	}
}

// readPlan reads what --plan names; - is standard input.
func readPlan(name string, in io.Reader) ([]byte, error) {
	var text []byte
	var err error
	if name == "-" {
		text, err = io.ReadAll(io.LimitReader(in, 2<<20))
	} else {
		text, err = os.ReadFile(name)
	}
	if err != nil {
		return nil, fmt.Errorf("--plan: %w", err)
	}
	return text, nil
}

func (o *previewOptions) parsePlan(in io.Reader) (*pipeline.Plan, error) {
	text := []byte("{}")
	if o.plan != "" {
		var err error
		if text, err = readPlan(o.plan, in); err != nil {
			return nil, err
		}
	}
	plan, err := pipeline.ParsePlan(text)
	if err != nil {
		return nil, usageError{fmt.Errorf("--plan %s: %w", o.plan, err)}
	}
	o.named, o.columns = plan.Source.Table, plan.Source.Columns()
	o.columns.Values = "" // a sheet shows none
	plan.Source, plan.Masks, plan.Fields = pipeline.Source{}, nil, []string{"image", "label"}
	return plan, o.checkSheet(max(1, len(plan.Views)))
}

// makeRows makes what the sheet shows.
func (o *previewOptions) makeRows(ctx context.Context, plan *pipeline.Plan) ([]sheet.Row, error) {
	lists, err := listsFromEnvironment()
	if err != nil {
		return nil, usageError{err}
	}
	p, err := pipeline.Open(pipeline.Options{})
	if err != nil {
		return nil, err
	}
	defer p.Close()
	options, err := lists.datasetOptions(slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	defer options.ReadCache.Close() //nolint:errcheck // what is in it is checked when it is read
	options.Flat, options.Empty, options.Columns = true, true, o.columns
	if o.table != "" {
		given := lists.openTables()
		defer given.Close() //nolint:errcheck // what is left is in the folder for temporary files
		if options.Table, err = o.keepTable(given); err != nil {
			return nil, err
		}
	}
	data, err := pipeline.OpenFolder(ctx, p.Storage(), o.folder, options)
	if err != nil {
		return nil, err
	}
	defer data.Close()
	if data.Unlabelled() {
		plan.Fields = []string{"image"}
	}
	plain := *plan
	plain.Transforms, plain.Views = transform.Chain{}, nil
	original, err := p.Prepare(&plain, data)
	if err != nil {
		return nil, err
	}
	job, err := p.Prepare(plan, data)
	if err != nil {
		return nil, err
	}
	names := o.chooseSamples(uint64(data.Len()))
	rows := make([]sheet.Row, len(names))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(p.Workers())
	for i, name := range names {
		group.Go(func() error { return o.makeRow(ctx, &rows[i], name, original, job) })
	}
	return rows, group.Wait()
}

// keepTable is the file of the list that the plan names, by its name.
func (o *previewOptions) keepTable(given *tables.Store) (string, error) {
	f, err := os.Open(o.table)
	if err != nil {
		return "", err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err == nil {
		err = given.Keep("", o.named, fi.Size(), io.NewSectionReader(f, 0, fi.Size()))
	}
	if err != nil {
		return "", fmt.Errorf("the table %s: %w", o.table, err)
	}
	return given.Find("", o.named)
}

// makeRow makes what the sheet shows of one sample. Pictures of full size are there one at a time.
func (o *previewOptions) makeRow(ctx context.Context, r *sheet.Row, name batch.Ref, original, job *pipeline.Job) error {
	for column := range o.epochs + 1 {
		of, epoch := job, column-1
		if column == 0 {
			of, epoch = original, 0
		}
		made, err := of.Replay(ctx, batch.Name{Epoch: uint32(epoch), List: []batch.Ref{name}}, math.MaxInt, nil)
		if err != nil {
			return err
		}
		r.AddSample(&made[0], column == 0, o.width, chainsOf(of.Plan()))
	}
	return nil
}

// chooseSamples takes samples from all over the data set, other ones for other seeds.
func (o *previewOptions) chooseSamples(samples uint64) []batch.Ref {
	n := min(uint64(o.samples), samples)
	names := make([]batch.Ref, n)
	for i := range names {
		names[i].Index = (uint64(i)*samples/n + o.seed) % samples
	}
	return names
}

// encodePNG ends with the context, too.
func encodePNG(ctx context.Context, m image.Image) ([]byte, error) {
	var b bytes.Buffer
	err := png.Encode(contextWriter{ctx, &b}, m)
	return b.Bytes(), err
}

// contextWriter takes bytes until its context ends.
type contextWriter struct {
	context.Context
	to io.Writer
}

func (w contextWriter) Write(b []byte) (int, error) {
	if err := w.Err(); err != nil {
		return 0, err
	}
	return w.to.Write(b)
}
