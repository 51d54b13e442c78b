package dataset

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"time"
)

// Spare is how many bytes of capacity Read leaves behind the data at least: decoders may read them, and use nothing of what
// they read.
const Spare = 64

// Read reads the file of sample i, whole, over buf and returns buf, grown where it must. When buf is large enough it allocates
// nothing. The error is a *ChangedError when the file is not the one that the snapshot lists, then the next Open scans again; a
// *TooLargeError; or a *fs.PathError with the sample's key when the system cannot read it.
func (s *Snapshot) Read(i int, buf []byte) ([]byte, error) {
	var room [512]byte // longer keys cost an allocation
	sample, f, err := s.openSample(i, room[:])
	if err != nil {
		return buf[:0], err
	}
	defer f.close()
	if err := s.same(f, &sample); err != nil {
		return buf[:0], err
	}
	if need := int(sample.Size) + Spare; cap(buf) < need {
		buf = make([]byte, 0, need+need/4)
	}
	buf = buf[:sample.Size]
	if err := s.fill(f, &sample, buf); err != nil {
		return buf[:0], err
	}
	return buf, nil
}

func (s *Snapshot) openSample(i int, room []byte) (Sample, file, error) {
	sample, err := s.At(i, room)
	if err != nil {
		return Sample{}, file{}, err
	}
	if sample.Size > s.maxBytes {
		return Sample{}, file{}, &TooLargeError{Path: string(sample.Key), Size: sample.Size, Limit: s.maxBytes}
	}
	root := s.held()
	if root == nil {
		return Sample{}, file{}, ErrClosed
	}
	defer func() { _ = root.release() }()
	f, err := root.openFile(sample.Key)
	switch {
	case err == nil:
		return sample, f, nil
	case leadsNowhere(err):
		return Sample{}, file{}, s.changed(&sample, "is gone")
	case errors.Is(err, syscall.ENXIO) || errors.Is(err, errNoFile): // ENXIO: a socket
		return Sample{}, file{}, s.changed(&sample, "is not a regular file any more")
	}
	return Sample{}, file{}, &fs.PathError{Op: "open", Path: string(sample.Key), Err: err}
}

// same checks that an open file has the kind, size and time that the snapshot lists.
func (s *Snapshot) same(f file, sample *Sample) error {
	a, err := f.attributes()
	switch {
	case err != nil:
		return &fs.PathError{Op: "stat", Path: string(sample.Key), Err: err}
	case a.kind != kindFile:
		return s.changed(sample, "is not a regular file any more")
	case a.size != sample.Size:
		return s.changed(sample, fmt.Sprintf("has %d bytes, had %d", a.size, sample.Size))
	case a.modified != sample.ModifiedNanos:
		return s.changed(sample, fmt.Sprintf("was written at %s, had %s", stamp(a.modified), stamp(sample.ModifiedNanos)))
	}
	return nil
}

func stamp(nanos int64) string { return time.Unix(0, nanos).UTC().Format(time.RFC3339Nano) }

// fill reads the whole file. A write sets the file's time before it changes a byte: with the same time after the last byte was
// read, all bytes are of the snapshot's version.
func (s *Snapshot) fill(f file, sample *Sample, buf []byte) error {
	for n := 0; n < len(buf); {
		k, err := f.read(buf[n:])
		if err != nil {
			return &fs.PathError{Op: "read", Path: string(sample.Key), Err: err}
		}
		if k == 0 {
			return s.changed(sample, fmt.Sprintf("ended after %d bytes of %d", n, len(buf)))
		}
		n += k
	}
	return s.same(f, sample)
}

// changed makes the error, and the next Open scan: directories do not tell when a file in them is written.
func (s *Snapshot) changed(sample *Sample, what string) error {
	s.forget.Do(s.cache.remove)
	return &ChangedError{Path: string(sample.Key), What: what, Listed: s.listed}
}
