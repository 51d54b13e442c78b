package main

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestListsFromEnvironment(t *testing.T) {
	p, err := listsFromEnvironment()
	if err != nil || p.dir != "" || p.limit != 1<<30 {
		t.Errorf("%+v, %v", p, err)
	}
	t.Setenv("FEEDWATER_CACHE_DIR", "/fast")
	t.Setenv("FEEDWATER_CACHE_LIMIT", "2MiB")
	p, err = listsFromEnvironment()
	if err != nil {
		t.Fatal(err)
	}
	if o, err := p.datasetOptions(slog.New(slog.DiscardHandler)); err != nil || o.CacheDir != "/fast" || o.CacheBytes != 2<<20 {
		t.Errorf("%+v, %v", o, err)
	}
	t.Setenv("FEEDWATER_CACHE_LIMIT", "much")
	if _, err := listsFromEnvironment(); err == nil || !strings.Contains(err.Error(), "FEEDWATER_CACHE_LIMIT") {
		t.Errorf("%v does not name the variable", err)
	}
}

// TestListsElsewhereAreToldOnce: where lists are kept is told once, however often and of however many data sets.
func TestListsElsewhereAreToldOnce(t *testing.T) {
	var log bytes.Buffer
	p := listPlace{limit: 1}
	o, err := p.datasetOptions(slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		o.Trouble(errors.New("no folder"))
	}
	if text := log.String(); strings.Count(text, "no folder") != 1 || !strings.Contains(text, "FEEDWATER_CACHE_DIR") {
		t.Errorf("logged %q", text)
	}
}

// TestReadCachePlace: the read cache is a folder that can be written, or the start fails.
func TestReadCachePlace(t *testing.T) {
	t.Setenv("FEEDWATER_READ_CACHE", filepath.Join(t.TempDir(), "blocks"))
	t.Setenv("FEEDWATER_READ_CACHE_LIMIT", "3MiB")
	p, err := listsFromEnvironment()
	if err != nil {
		t.Fatal(err)
	}
	o, err := p.datasetOptions(slog.New(slog.DiscardHandler))
	if err != nil || o.ReadCache.Limit() != 3<<20 {
		t.Errorf("%d bytes, %v", o.ReadCache.Limit(), err)
	}
	if err := o.ReadCache.Close(); err != nil {
		t.Error(err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p.blocks = file
	if _, err := p.datasetOptions(slog.New(slog.DiscardHandler)); err == nil {
		t.Error("a file is taken for a folder")
	}
}
