package main

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/feedwater-io/feedwater/pipeline/dataset/buckettest"
)

// TestServeLooksAtBuckets: a bucket that is not there, and keys that may not read it, end the start and not the first job.
func TestServeLooksAtBuckets(t *testing.T) {
	server := buckettest.New()
	defer server.Close()
	t.Setenv("AWS_ACCESS_KEY_ID", buckettest.Access)
	for says, c := range map[string]struct{ place, secret string }{
		"--data x: s3://other/: there is no bucket other":                   {"s3://other?endpoint=" + server.URL, buckettest.Secret},
		"the secret key is not that of the access key":                      {server.Place("p") + "&region=us-east-1", "wrong"},
		"--data x: file does not exist: nothing lies below s3://data/empty": {server.Place("empty"), buckettest.Secret},
	} {
		t.Setenv("AWS_SECRET_ACCESS_KEY", c.secret)
		if code, _, errs := call("serve", "--listen", "127.0.0.1:0", "--data", "x="+c.place); code != exitUsage || !strings.Contains(errs, says) {
			t.Errorf("code %d: %s, want %q", code, errs, says)
		}
	}
}

// TestServeTellsOfSilence: a server that does not answer when a node starts is told, and the node serves.
func TestServeTellsOfSilence(t *testing.T) {
	address, err := buckettest.RefusingAddress()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("AWS_ACCESS_KEY_ID", buckettest.Access)
	t.Setenv("AWS_SECRET_ACCESS_KEY", buckettest.Secret)
	var said bytes.Buffer
	log := slog.New(slog.NewTextHandler(&said, nil))
	if err := (folders{"x": "s3://data/p?endpoint=http://" + address}).checkExist(log); err != nil {
		t.Fatal(err)
	}
	if text := said.String(); !strings.Contains(text, "no answer from where the data lies") || !strings.Contains(text, "connection refused") {
		t.Errorf("the log has %q", text)
	}
}
