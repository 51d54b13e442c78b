//go:build !linux || portable

package dataset

import (
	"io/fs"
	"os"
)

// tryLock has no locks: processes may scan the same data set at once.
func tryLock(string) (*os.File, bool) { return nil, false }

func writable(string) bool { return false }

func ownerOf(fs.FileInfo) (int, bool) { return 0, false }

func fileSystemBytes(string) int64 { return 0 }
