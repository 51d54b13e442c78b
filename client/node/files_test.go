package node

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A file on storage that does not answer keeps nobody longer than it may, and is read again when the storage is back;
// what hung may hang for ever.
func TestReadOfAFileThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		never := make(chan struct{})
		defer close(never)
		var hangs atomic.Bool
		var reads atomic.Int32
		f := &fileReads{read: func(string) ([]byte, error) {
			if reads.Add(1); hangs.Load() {
				<-never
			}
			return []byte("token"), nil
		}}
		began := time.Now()
		expect := func(when string, ctx context.Context, trouble string, after time.Duration, wantReads int32) {
			t.Helper()
			text, err := f.readFile(ctx, "file")
			if trouble == "" && (err != nil || string(text) != "token") || trouble != "" && (err == nil || !strings.Contains(err.Error(), trouble)) {
				t.Errorf("%s: %q, %v", when, text, err)
			}
			if took := time.Since(began); took != after || reads.Load() != wantReads {
				t.Errorf("%s: after %s, %d reads, want %s and %d", when, took, reads.Load(), after, wantReads)
			}
		}
		expect("well", t.Context(), "", 0, 1)
		hangs.Store(true)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		expect("with a deadline", ctx, "deadline exceeded", time.Second, 2)
		expect("without", t.Context(), "file, for 10s", 11*time.Second, 2)
		hangs.Store(false)
		expect("back", t.Context(), "", 11*time.Second, 3)
	})
}
