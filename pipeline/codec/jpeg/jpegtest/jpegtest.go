// Package jpegtest makes JPEG files for tests, benchmarks and demonstrations: pictures that compress like photographs, a
// writer for every kind of sequential or progressive file, and whole image folders. The same arguments give the same bytes on every
// machine and with every version of Go: all arithmetic is on integers. Only Folder starts goroutines, and waits for them.
package jpegtest

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
)

// Folder writes an image folder: dir/class_000/img_0000.jpg and so on. The classes differ in colours and shapes. The
// files are as varied as photographs from the web, mean size near 100 KB: of a hundred of one class 76 are not
// subsampled, 20 are 4:2:0, one each is 4:2:2, grey, 1x2 and 4:1:1; some have restart markers. The first eight of a class show
// each kind once. Existing files of these names are overwritten.
func Folder(dir string, classes, perClass int, seed uint64) error {
	for c := range classes {
		if err := os.MkdirAll(filepath.Join(dir, className(c)), 0o755); err != nil {
			return err
		}
	}
	var (
		next   atomic.Int64
		wg     sync.WaitGroup
		failed = make([]error, runtime.GOMAXPROCS(0))
	)
	for worker := range failed {
		wg.Go(func() {
			for failed[worker] == nil {
				i := int(next.Add(1)) - 1
				if i >= classes*perClass {
					return
				}
				class, index := i/perClass, i%perClass
				name := filepath.Join(dir, className(class), fmt.Sprintf("img_%04d.jpg", index))
				failed[worker] = os.WriteFile(name, File(class, index, seed), 0o644)
			}
		})
	}
	wg.Wait()
	for _, err := range failed {
		if err != nil {
			return err
		}
	}
	return nil
}

func className(c int) string { return fmt.Sprintf("class_%03d", c) }

// File is the file that Folder writes for an image of a class.
func File(class, index int, seed uint64) []byte {
	r := newRandom(seed, 1, uint64(class), uint64(index))
	w, h := 500, r.between(333, 400)
	if r.below(2) == 0 {
		w, h = r.between(300, 700), r.between(300, 500)
	}
	if r.below(4) == 0 {
		w, h = h, w
	}
	m := Photograph(newRandom(seed, 2, uint64(class), uint64(index)).next(), class, w, h)
	o := kind(index)
	o.Quality = r.between(92, 98)
	if r.below(4) == 0 {
		o.Quality = r.between(70, 92)
	}
	if r.below(3) == 0 {
		o.Header = HeaderNone
	}
	return Encode(m, o)
}

// kind is the sampling and the restart interval of the index-th image of a class.
func kind(index int) Options {
	first := [8]Options{
		{Sampling: S444}, {Sampling: S420}, {Sampling: Grey}, {Sampling: S422},
		{Sampling: S444, Restart: 17}, {Sampling: S420, Restart: 5}, {Sampling: S440}, {Sampling: S411},
	}
	i := index % 100
	switch {
	case i < len(first):
		return first[i]
	case i < 26:
		return Options{Sampling: S420}
	case i%10 == 9:
		return Options{Sampling: S444, Restart: 1 + i}
	default:
		return Options{Sampling: S444}
	}
}
