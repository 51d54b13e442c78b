// Command bucket serves a folder for checks: as a bucket of S3 that only a key of buckettest's may read, and below /plain/ by HTTP. It says where, and ends
// with its input. For each line of its input it says how many bytes it has sent. It is a stand-in, which holds all in memory: no figure of it is that of a
// server.
package main

import (
	"bufio"
	"encoding/pem"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/feedwater-io/feedwater/pipeline/dataset/buckettest"
)

func main() {
	latency := flag.Duration("latency", 0, "time before each answer")
	certificate := flag.String("certificate", "", "file for a certificate: with it the bucket is asked by TLS")
	flag.Parse()
	err := errors.New("bucket takes a folder")
	if flag.NArg() == 1 {
		err = serve(flag.Arg(0), *latency, *certificate)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// serve serves a folder until the input ends.
func serve(root string, latency time.Duration, certificate string) error {
	s, err := start(certificate)
	if err != nil {
		return err
	}
	defer s.Close()
	if latency > 0 {
		s.Fail(func(http.ResponseWriter, *http.Request) bool {
			time.Sleep(latency)
			return false
		})
	}
	if err := putAll(s, root); err != nil {
		return err
	}
	fmt.Println(s.URL)
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		fmt.Println(s.SentBytes())
	}
	return nil
}

// start starts a server; with the name of a file one by TLS, whose certificate the file is given.
func start(certificate string) (*buckettest.Server, error) {
	if certificate == "" {
		return buckettest.New(), nil
	}
	s := buckettest.NewTLS()
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	return s, os.WriteFile(certificate, block, 0o600)
}

// putAll has all files below a folder served.
func putAll(s *buckettest.Server, root string) error {
	return filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
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
}
