package main

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"

	"github.com/spf13/pflag"

	"github.com/feedwater-io/feedwater/cmd/feedwater/internal/bytesize"
	"github.com/feedwater-io/feedwater/pipeline"
	"github.com/feedwater-io/feedwater/pipeline/dataset"
	"github.com/feedwater-io/feedwater/pipeline/imageindex"
)

// indexPlace is where indexes of pictures are kept: the flags --index, --index-limit and --index-copies, or for an
// agent the environment variables of the same names.
type indexPlace struct {
	flags  *pflag.FlagSet
	dir    string
	limit  bytesize.Size
	copies bytesize.Size
}

// standardIndex is the standard --index-limit.
const standardIndex bytesize.Size = 4 << 30

// indexOff is the --index of those who want none.
const indexOff = "off"

func (p *indexPlace) addFlags(f *pflag.FlagSet, more string) {
	p.flags, p.limit = f, standardIndex
	f.StringVar(&p.dir, "index", "", "`folder` for indexes of JPEG, PNG and WebP files, which make crops faster and change no byte"+more+" (default: index below --cache-dir, else the user's cache folder)")
	f.Var(bytesize.Positive{Size: &p.limit}, "index-limit", "what the indexes of all data sets may take")
	f.Var(&p.copies, "index-copies", "what copies of progressive JPEG and lossy WebP files may take beside that: 1.1 to 1.5 times the files' bytes, for several times the speed; 0: none are made, those that are there are used")
}

// checkFlags refuses copies of an index that is off, where the command line says both. Where one of them comes from elsewhere, so that it may be meant
// for other runs, warnings tell.
func (p *indexPlace) checkFlags() error {
	if p.lacksCopies() && p.flags.Changed("index") && p.flags.Changed("index-copies") {
		return errors.New("--index off and --index-copies contradict each other: copies are a part of the index; leave one of them out")
	}
	return nil
}

// lacksCopies reports whether copies are asked for and cannot be, since there is no index.
func (p *indexPlace) lacksCopies() bool { return p.dir == indexOff && p.copies > 0 }

// warnings say what the options ask for and do not get.
func (p *indexPlace) warnings(cacheDir string) []string {
	if p.lacksCopies() {
		return []string{"the index of pictures is off, so no copies are made or used: --index-copies, or FEEDWATER_INDEX_COPIES, does nothing with --index off, or FEEDWATER_INDEX=off"}
	}
	if p.dir == indexOff && p.limit != standardIndex {
		return []string{"the index of pictures is off: --index-limit, or FEEDWATER_INDEX_LIMIT, does nothing"}
	}
	dir, err := p.resolveFolder(cacheDir)
	if p.dir == indexOff || err != nil {
		return nil
	}
	return roomWarnings(ownLimit{"index-limit", p.limit, standardIndex, dir}, ownLimit{"index-copies", p.copies, 0, dir})
}

// openIndex is nil where none is wanted. What goes wrong is logged, each kind once, and told to people by tell, if there
// is one and a folder for it; hold, if there is one, is told of the memory that indexes take.
func (p *indexPlace) openIndex(cacheDir string, log *slog.Logger, hold func(int64), tell func(string)) *pipeline.IndexOptions {
	if p.dir == indexOff {
		return nil
	}
	if _, err := p.resolveFolder(cacheDir); err != nil {
		tell = nil // whoever has no folder for caches asked for none
	}
	var told sync.Map // what was said
	return &pipeline.IndexOptions{Dir: p.folderOr(cacheDir), MaxBytes: int64(p.limit), CopyBytes: int64(p.copies), Hold: hold, Counts: new(pipeline.IndexCounts), Trouble: func(err error) {
		what := indexTrouble(err)
		if _, again := told.LoadOrStore(what, true); !again {
			log.Warn(what, "err", err)
			if tell != nil {
				tell(what + ": " + err.Error())
			}
		}
	}}
}

// countsOf are those of an index; nil: none is wanted.
func countsOf(index *pipeline.IndexOptions) *pipeline.IndexCounts {
	if index == nil {
		return nil
	}
	return index.Counts
}

// indexTrouble says what an error about the index means, and what helps.
func indexTrouble(err error) string {
	switch {
	case errors.Is(err, pipeline.ErrCopiesFull):
		return "copies of pictures take as much as they may: other files are decoded without; --index-copies, or FEEDWATER_INDEX_COPIES, raises that"
	case errors.Is(err, imageindex.ErrFull):
		return "the index of pictures is as large as it may be; --index-limit, or FEEDWATER_INDEX_LIMIT, raises that"
	case errors.Is(err, pipeline.ErrManyIndexes):
		return "more data sets are in use than have their indexes open: crops of some are slower than they could be"
	}
	return "the index of pictures is not kept: crops are slower than they could be"
}

// folderOr is the folder that the flags come to; empty: imageindex.DefaultDir.
func (p *indexPlace) folderOr(cacheDir string) string {
	if p.dir == "" && cacheDir != "" {
		return filepath.Join(cacheDir, "index")
	}
	return p.dir
}

// apart is the folder, if there is one.
func (p *indexPlace) apart(cacheDir string) []dataset.Apart {
	dir, err := p.resolveFolder(cacheDir)
	if p.dir == indexOff || err != nil {
		return nil
	}
	return []dataset.Apart{apart("index", dir)}
}

// resolveFolder names the folder that is used, for people.
func (p *indexPlace) resolveFolder(cacheDir string) (string, error) {
	if dir := p.folderOr(cacheDir); dir != "" {
		return dir, nil
	}
	dir, err := imageindex.DefaultDir()
	if err != nil {
		return "", fmt.Errorf("no cache folder: %w; give --index", err)
	}
	return dir, nil
}
