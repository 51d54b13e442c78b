//go:build !linux || portable

package imageindex

import "os"

// mapFile reads the file: mapping is an economy, not a need.
func mapFile(f *os.File, size int) (*memory, error) {
	data := make([]byte, size)
	_, err := f.ReadAt(data, 0)
	return &memory{data: data}, err
}

func unmap([]byte) {}
