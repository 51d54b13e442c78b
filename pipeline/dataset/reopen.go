package dataset

import (
	"context"
	"errors"
	"io/fs"

	"github.com/feedwater-io/feedwater/pipeline/dataset/store"
)

// Generation is the latest one of the storage that the snapshot's folder was opened in; see ReadIn.
func (s *Snapshot) Generation() uint64 { return s.generation.Load() }

// readThrough reads through what is open of the folder. That is opened anew in a later generation, and where a read
// fails while another folder lies in the place of the one that is open.
func (s *Snapshot) readThrough(ctx context.Context, generation uint64, read func(*source) error) error {
	from := s.held()
	if from == nil {
		return ErrClosed
	}
	defer func() { _ = from.release() }()
	if store.IsURL(s.path) { // nothing is open of it
		return read(from)
	}
	if s.generation.Load() < generation {
		return s.reopenAndRead(ctx, generation, nil, read)
	}
	err := read(from)
	if err == nil || ctx.Err() != nil {
		return err
	}
	if s.reopenAndRead(ctx, generation, from, read) == nil {
		return nil
	}
	return err
}

var errNotMoved = errors.New("no other folder lies there")

// reopenAndRead reads through the folder that the snapshot's path leads to now. What is read later is read through that
// too, unless the read failed: before a file system is mounted an empty folder lies there, which says nothing about the
// files. With old given nothing is read where the path leads to what that has open.
func (s *Snapshot) reopenAndRead(ctx context.Context, generation uint64, old *source, read func(*source) error) error {
	opened, err := s.reopen()
	if err != nil {
		return err
	}
	fresh := &source{Store: opened}
	if old != nil && isOneFolder(ctx, old, fresh) {
		return errors.Join(errNotMoved, fresh.release())
	}
	if err := read(fresh); err != nil {
		_ = fresh.release() // read only
		if changed, ok := errors.AsType[*store.ChangedError](err); ok {
			return &fs.PathError{Op: "read", Path: changed.Name, Err: errors.New(changed.What + ", in the folder that lies at " + s.path + " now")}
		}
		return err
	}
	s.exchange(fresh, generation)
	return nil
}

// isOneFolder reports whether two stores have the same folder open, of the same mounted file system.
func isOneFolder(ctx context.Context, a, b *source) bool {
	one, err := a.Stat(ctx, "")
	other, otherErr := b.Stat(ctx, "")
	return err == nil && otherErr == nil && one.Device == other.Device && one.Inode == other.Inode
}

// exchange has what is read from now on read through a store that was opened in a generation. Reads through the
// one before may go on for ever.
func (s *Snapshot) exchange(to *source, generation uint64) {
	s.mu.Lock()
	from := s.source
	if from == nil { // closed meanwhile
		from = to
	} else {
		s.source = to
		s.generation.Store(max(s.generation.Load(), generation))
	}
	s.mu.Unlock()
	_ = from.release() // read only
}

// Look looks at a folder, or at a place on a server, as it is now.
func Look(ctx context.Context, folder string) error {
	at, err := openStore(folder, &Options{})
	if err != nil {
		return err
	}
	_, err = at.Stat(ctx, "")
	return errors.Join(err, at.Close())
}
