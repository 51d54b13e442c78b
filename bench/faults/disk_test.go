//go:build linux

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == watched {
		exit(runWatched(os.Args[2:]))
	}
	os.Exit(m.Run())
}

// A program that reads a file from a broken disk gets EIO from the kernel, and one that reads from a good one the file.
func TestDisk(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, bytes.Repeat([]byte("feedwater"), 30_000), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, broken := range []bool{false, true} {
		d := &disk{}
		d.broken.Store(broken)
		c := exec.Command("dd", "if="+path, "bs=300000", "status=none")
		c.Env = append(os.Environ(), "LC_ALL=C")
		var out, said strings.Builder
		c.Stdout, c.Stderr = &out, &said
		socket, err := d.watch(c)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		served := d.serve(c, socket)
		err = c.Wait()
		if served != nil {
			t.Fatalf("%v, %v: %s", served, err, said.String())
		}
		if (err != nil) != broken || broken != strings.Contains(said.String(), "Input/output error") || broken != (d.failed.Load() > 0) {
			t.Errorf("broken %v: %v, %d reads failed, it says %q", broken, err, d.failed.Load(), said.String())
		}
		if want := 270_000; !broken && out.Len() != want {
			t.Errorf("%d bytes, want %d", out.Len(), want)
		}
	}
}
