package admission_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedwater-io/feedwater/server/admission"
)

// A flood of handshakes is no flood in the log.
func TestManyFailedHandshakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &bytes.Buffer{}
		failed := admission.FailedHandshakes(slog.New(slog.NewTextHandler(log, nil)))
		for range 100 {
			failed("host", errors.New("no certificate"))
		}
		time.Sleep(time.Second)
		failed("host", errors.New("no certificate"))
		if text := log.String(); strings.Count(text, "a handshake failed") != 21 || !strings.Contains(text, "unsaid=80") {
			t.Errorf("after 101 at once:\n%s", text)
		}
	})
}
