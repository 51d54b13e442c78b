package main

import (
	"log/slog"
	"sync"

	"github.com/spf13/pflag"

	"github.com/feedwater-io/feedwater/cmd/feedwater/internal/bytesize"
	"github.com/feedwater-io/feedwater/pipeline/dataset"
	"github.com/feedwater-io/feedwater/pipeline/dataset/readcache"
	"github.com/feedwater-io/feedwater/server/tables"
)

// listPlace is where lists of files are kept: the flags --cache-dir and --cache-limit, or for an agent the environment variables of the same names.
type listPlace struct {
	dir    string
	limit  bytesize.Size
	tables bytesize.Size // that trainers give
	blocks string        // folder of the read cache; empty: none
	room   bytesize.Size // in it
}

// Limits where nobody gives others.
const (
	standardLists  bytesize.Size = 1 << 30
	standardTables bytesize.Size = 1 << 30
	standardBlocks bytesize.Size = 50 << 30
)

func (p *listPlace) addFlags(f *pflag.FlagSet) {
	p.limit, p.tables, p.room = standardLists, standardTables, standardBlocks
	f.StringVar(&p.dir, "cache-dir", "", "`folder` for lists of files, so that a restart need not scan again (default: the user's cache folder)")
	f.Var(bytesize.Positive{Size: &p.limit}, "cache-limit", "what the lists of all data sets may take; those that were not opened for longest make room")
	f.Var(bytesize.Positive{Size: &p.tables}, "table-limit", "what the tables that one identity gives may take in --cache-dir; those that were not used for longest make room")
	f.StringVar(&p.blocks, "read-cache", "", "`folder` of a local disk for what was read from buckets and web servers, or unpacked; none by default")
	f.Var(bytesize.Positive{Size: &p.room}, "read-cache-limit", "what --read-cache may take; what was not used for longest makes room")
}

// openBlocks opens the read cache; nil: there is none. The caller closes it.
func (p *listPlace) openBlocks(log *slog.Logger) (*readcache.Cache, error) {
	if p.blocks == "" {
		return nil, nil //nolint:nilnil // none
	}
	return readcache.Open(p.blocks, int64(p.room), func(err error) {
		log.Warn("what is read is not kept in the read cache for some seconds", "err", err)
	})
}

// listsFromEnvironment is that of programs without these flags.
func listsFromEnvironment() (p listPlace, err error) {
	f := pflag.NewFlagSet(agentCommand, pflag.ContinueOnError)
	p.addFlags(f)
	err = fillFlags(agentCommand, f, nil)
	return p, err
}

// openTables keeps the tables that trainers give. The caller closes it.
func (p *listPlace) openTables() *tables.Store {
	return tables.New((&dataset.Options{CacheDir: p.dir}).CacheFolder, int64(p.tables))
}

// openLists opens all that is kept in the place: lists and the read cache in the options, and the tables that trainers give. close ends both.
func (p *listPlace) openLists(log *slog.Logger) (lists dataset.Options, given *tables.Store, closeLists func(), err error) {
	if lists, err = p.datasetOptions(log); err != nil {
		return lists, nil, nil, err
	}
	given = p.openTables()
	given.Trouble = func(err error) {
		log.Warn("a table that a trainer gave is not kept for the next start; --cache-dir, or FEEDWATER_CACHE_DIR, names another folder", "err", err)
	}
	return lists, given, func() {
		_ = lists.ReadCache.Close() // what is in it is checked when it is read
		_ = given.Close()           // what is left is in the folder for temporary files
	}, nil
}

// apart are the folders of the place.
func (p *listPlace) apart() (all []dataset.Apart) {
	if dir, err := (&dataset.Options{CacheDir: p.dir}).CacheFolder(); err == nil {
		all = append(all, apart("cache-dir", dir))
	}
	if p.blocks != "" {
		all = append(all, apart("read-cache", p.blocks))
	}
	return all
}

// warnings say what the options ask for and do not get.
func (p *listPlace) warnings() (all []string) {
	if dir, err := (&dataset.Options{CacheDir: p.dir}).CacheFolder(); err == nil {
		all = roomWarnings(ownLimit{"cache-limit", p.limit, standardLists, dir}, ownLimit{"table-limit", p.tables, standardTables, dir})
	}
	if p.blocks != "" {
		all = append(all, roomWarnings(ownLimit{"read-cache-limit", p.room, standardBlocks, p.blocks})...)
	}
	return all
}

// datasetOptions keep lists in the place, and log once where else they are kept. The caller closes the read cache in them.
func (p *listPlace) datasetOptions(log *slog.Logger) (dataset.Options, error) {
	blocks, err := p.openBlocks(log)
	var once sync.Once
	return dataset.Options{CacheDir: p.dir, CacheBytes: int64(p.limit), ReadCache: blocks, Apart: p.apart(), Trouble: func(err error) {
		once.Do(func() {
			log.Warn("lists of files are not kept for the next start; --cache-dir, or FEEDWATER_CACHE_DIR, names another folder", "err", err)
		})
	}}, err
}
