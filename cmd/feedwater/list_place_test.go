package main

import (
	"bytes"
	"errors"
	"log/slog"
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
	if o := p.datasetOptions(slog.New(slog.DiscardHandler)); err != nil || o.CacheDir != "/fast" || o.CacheBytes != 2<<20 {
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
	o := p.datasetOptions(slog.New(slog.NewTextHandler(&log, nil)))
	for range 3 {
		o.Trouble(errors.New("no folder"))
	}
	if text := log.String(); strings.Count(text, "no folder") != 1 || !strings.Contains(text, "FEEDWATER_CACHE_DIR") {
		t.Errorf("logged %q", text)
	}
}
