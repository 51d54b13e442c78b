package scaler_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// Over HTTP the number is the one that KEDA is told. While it is not known, at the start and where no node answers, the
// answer is 503 with the reason; 0 comes only where nobody wants nodes.
func TestWantedOverHTTP(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a *fakeNode
		w := newWorldOf(t, func(w *world) {
			a = w.node("a")
			a.set(nil, true)
		})
		check := func(code int, body string) {
			t.Helper()
			r := httptest.NewRecorder()
			w.scaler.ServeWanted(r, httptest.NewRequest(http.MethodGet, "/wanted", nil))
			if got := strings.TrimSpace(r.Body.String()); r.Code != code || !strings.HasPrefix(got, body) || r.Header().Get("Cache-Control") != "no-store" {
				t.Errorf("%d %s %v, want %d %s", r.Code, got, r.Header(), code, body)
			}
		}
		check(503, "no node answers: how many are wanted is not known")
		time.Sleep(30 * time.Second)
		check(503, "no node answers: how many are wanted is not known")
		a.set(map[string]uint32{"x": 7}, false)
		time.Sleep(time.Minute)
		check(200, `{"wanted":7}`)
		a.set(nil, false)
		time.Sleep(5 * time.Minute)
		check(200, `{"wanted":0}`)
	})
}
