// Command bucket serves a folder for checks: as a bucket of S3 that only a key of buckettest's may read, and below /plain/ by HTTP. It says where, and ends
// with its input. It is a stand-in, which holds all in memory: no figure of it is that of a server.
package main

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/feedwater-io/feedwater/pipeline/dataset/buckettest"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "bucket takes a folder")
		os.Exit(2)
	}
	if err := serve(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// serve serves a folder until the input ends.
func serve(root string) error {
	s := buckettest.New()
	defer s.Close()
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		key, err := filepath.Rel(root, path)
		s.Put(filepath.ToSlash(key), data)
		return err
	})
	if err != nil {
		return err
	}
	fmt.Println(s.URL)
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}
