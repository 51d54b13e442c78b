package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// answering is a server in the same process.
type answering func(*http.Request) (*http.Response, error)

func (f answering) RoundTrip(q *http.Request) (*http.Response, error) { return f(q) }

// answer has a status and a body.
func answer(status int, body io.Reader, header http.Header) *http.Response {
	return &http.Response{
		StatusCode: status, Status: fmt.Sprint(status, " ", http.StatusText(status)), Body: io.NopCloser(body), Header: header,
		ContentLength: -1,
	}
}

// readOf reads 100 bytes of a server within 30 s.
func readOf(ctx context.Context, t *testing.T, s answering) error {
	t.Helper()
	return readFrom(ctx, t, &server{place: "http://host", client: &http.Client{Transport: s}})
}

func readFrom(ctx context.Context, t *testing.T, s *server) error {
	t.Helper()
	return readWithin(ctx, s, 30*time.Second)
}

// readWithin reads 100 bytes of a server.
func readWithin(ctx context.Context, s *server, within time.Duration) error {
	at := &remote{server: s, within: within, alive: func() {}, onRead: func() {}}
	from := newSite(*at, &location{scheme: "http", host: "host"})
	return from.ReadAt(ctx, &Object{Name: []byte("x"), Size: 100, Version: []byte("1")}, make([]byte, 100), 0)
}

// silence is no answer before the request is given up.
func silence(q *http.Request) (*http.Response, error) {
	<-q.Context().Done()
	return nil, q.Context().Err()
}

// silentBody is a part of a body, and nothing after that until the request is given up.
type silentBody struct {
	q    *http.Request
	part io.Reader
}

func (b *silentBody) Read(p []byte) (int, error) {
	if n, _ := b.part.Read(p); n > 0 {
		return n, nil
	}
	<-b.q.Context().Done()
	return 0, b.q.Context().Err()
}

// TestLastTroubleIsNamed: where a question is given up the error is what the server said last, also where the time ends
// within a request that has no answer yet, or no more of its body.
func TestLastTroubleIsNamed(t *testing.T) {
	const tries = 5 // that are answered within a second
	refuse := func(*http.Request) (*http.Response, error) { return answer(503, strings.NewReader(""), nil), nil }
	hang := func(q *http.Request) (*http.Response, error) {
		return answer(200, &silentBody{q, strings.NewReader("abc")}, http.Header{"Etag": {"1"}}), nil
	}
	for name, c := range map[string]struct {
		first, then answering
		want        string
	}{
		"refused":              {refuse, refuse, "503"},
		"refused, then silent": {refuse, silence, "no answer in time"}, // a try has a third of the time, and that is over first
		"silent":               {silence, silence, "no answer in time"},
		"cut":                  {hang, hang, "ended after"},
	} {
		synctest.Test(t, func(t *testing.T) {
			asked := 0
			err := readOf(t.Context(), t, func(q *http.Request) (*http.Response, error) {
				if asked++; asked <= tries {
					return c.first(q)
				}
				return c.then(q)
			})
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "/x") {
				t.Errorf("%s: %v, want %q in it", name, err, c.want)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		err := readOf(t.Context(), t, func(q *http.Request) (*http.Response, error) {
			if time.Since(begun) < 25*time.Second {
				return refuse(q)
			}
			return silence(q)
		})
		if took := time.Since(begun); err == nil || !strings.Contains(err.Error(), "503") || took != 30*time.Second {
			t.Errorf("the time ends within a request: %v after %s, want what was said before", err, took)
		}
	})
}

// However short the time of a question is, and whatever pause the server asks for, it is asked for four fifths of it at least: who waits for it so long
// hears of a server that does not answer, and not of the last try.
func TestAskedToTheEnd(t *testing.T) {
	for _, within := range []time.Duration{time.Microsecond, 10 * time.Millisecond, 250 * time.Millisecond, 2 * time.Second, 37500 * time.Millisecond} {
		for _, header := range []http.Header{nil, {"Retry-After": {"60"}}} {
			synctest.Test(t, func(t *testing.T) {
				for range 100 {
					begun := time.Now()
					s := &server{place: "http://host", client: &http.Client{Transport: answering(func(*http.Request) (*http.Response, error) {
						return answer(503, strings.NewReader(""), header), nil
					})}}
					err := readWithin(t.Context(), s, within)
					if took := time.Since(begun); !strings.Contains(fmt.Sprint(err), "503") || took < within*4/5 || took > within {
						t.Fatalf("within %s, %v: given up after %s: %v", within, header, took, err)
					}
				}
			})
		}
	}
}

// longAsked is how long a question waits before these tests hear of it.
const longAsked = 2 * time.Second

// TestTrouble: what a question fails of that takes long is told, with the object and for how long, until there is an answer; and so is what it failed
// of in the end, for a minute.
func TestTrouble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun, s := time.Now(), &server{place: "http://host"}
		lasts := 10 * time.Second
		s.client = &http.Client{Transport: answering(func(*http.Request) (*http.Response, error) {
			trouble := fmt.Sprint(s.troubles.tell("", false, longAsked))
			if took := time.Since(begun); took >= longAsked && lasts < time.Minute {
				for _, want := range []string{"http://host/x", "503", "tried", took.Round(time.Second).String()} {
					if !strings.Contains(trouble, want) {
						t.Errorf("after %s the trouble is %q, without %q", took, trouble, want)
					}
				}
			}
			if time.Since(begun) < lasts {
				return answer(503, strings.NewReader(""), nil), nil
			}
			return answer(404, strings.NewReader(""), nil), nil
		})}
		if err := readFrom(t.Context(), t, s); err == nil || s.troubles.tell("", false, longAsked) != nil {
			t.Errorf("%v, and trouble is %v", err, s.troubles.tell("", false, longAsked))
		}
		lasts = time.Hour
		if err := readFrom(t.Context(), t, s); err == nil || s.troubles.tell("", false, longAsked) != err { //nolint:errorlint // that error
			t.Errorf("%v, and trouble is %v", err, s.troubles.tell("", false, longAsked))
		}
		time.Sleep(troubleLasts)
		if trouble := s.troubles.tell("", false, longAsked); trouble != nil {
			t.Errorf("a minute later the trouble is %v", trouble)
		}
	})
}

// TestTroubleOfSilence: a server that says nothing is told of while it is asked, and not when nobody asks any more.
func TestTroubleOfSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
		defer cancel()
		s := &server{place: "http://host"}
		s.client = &http.Client{Transport: answering(func(q *http.Request) (*http.Response, error) {
			if trouble := s.troubles.tell("", false, longAsked); trouble != nil {
				t.Errorf("at once the trouble is %v", trouble)
			}
			time.Sleep(3 * time.Second)
			if trouble := fmt.Sprint(s.troubles.tell("", false, longAsked)); trouble != "http://host/x: no answer for 3s" {
				t.Errorf("the trouble is %q", trouble)
			}
			return silence(q)
		})}
		if err := readFrom(ctx, t, s); !errors.Is(err, context.DeadlineExceeded) || s.troubles.tell("", false, longAsked) != nil || len(s.troubles.waiting) > 0 {
			t.Errorf("%v, and trouble is %v", err, s.troubles.tell("", false, longAsked))
		}
	})
}

// TestTroubleOfABodyThatFlows: of an answer that has begun nobody says that there is none.
func TestTroubleOfABodyThatFlows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, tries := &server{place: "http://host"}, 0
		s.client = &http.Client{Transport: answering(func(q *http.Request) (*http.Response, error) {
			if tries++; tries > 1 {
				return answer(404, strings.NewReader(""), nil), nil
			}
			return answer(200, &silentBody{q, strings.NewReader("abc")}, http.Header{"Etag": {"1"}}), nil
		})}
		ended := make(chan error, 1)
		go func() { ended <- readFrom(t.Context(), t, s) }()
		time.Sleep(3 * time.Second)
		if trouble := fmt.Sprint(s.troubles.tell("", false, longAsked)); trouble != "http://host/x: under way for 3s" {
			t.Errorf("the trouble is %q", trouble)
		}
		if err := <-ended; err == nil {
			t.Error("a body without an end was read")
		}
	})
}

// TestTroubleIsOfItsPlace: what is read at one place of a server, and what it fails of, is not told of another one; nor do answers to one forget what
// another one failed of.
func TestTroubleIsOfItsPlace(t *testing.T) {
	hold, held := make(chan struct{}), make(chan struct{}, 1)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		switch path.Base(q.URL.Path) {
		case "denied":
			w.WriteHeader(http.StatusForbidden)
			return
		case "slow":
			held <- struct{}{}
			<-hold
		}
		w.WriteHeader(http.StatusNotFound)
	}))
	defer web.Close()
	stat := func(place, name string) {
		from, err := OpenURL(web.URL+place, RemoteOptions{})
		if err != nil {
			t.Error(err)
			return
		}
		defer func() { _ = from.Close() }() // it was asked
		if _, err = from.Stat(t.Context(), name); err == nil {
			t.Errorf("%s/%s is there", place, name)
		}
	}
	check := func(what string, below bool, all map[string]string) {
		t.Helper()
		for place, want := range all {
			trouble := Trouble(web.URL+place, below, 0)
			if (trouble == nil) != (want == "") || want != "" && !strings.Contains(trouble.Error(), web.URL+want+": ") {
				t.Errorf("%s, below %v: the trouble of %q is %v, want that of %q", what, below, place, trouble, want)
			}
		}
	}
	const denied, slow = "/team/b/denied", "/team/b/slow"
	stat("/team/b", "denied")
	stat("/team/a", "absent")
	check("denied", false, map[string]string{"/team/b": denied, "/team/a": "", "/team/bc": "", "/team/b/c": "", "/team": "", "": ""})
	check("denied", true, map[string]string{"/team/b": denied, "/team": denied, "": denied, "/team/a": "", "/tea": "", "/team/b/c": ""})
	stat("/team/b", "absent")
	check("answered", true, map[string]string{"/team/b": "", "": ""})
	var asking sync.WaitGroup
	asking.Go(func() { stat("/team/b", "slow") })
	<-held
	check("waiting", false, map[string]string{"/team/b": slow, "/team/a": "", "/team": ""})
	check("waiting", true, map[string]string{"/team/b": slow, "/team": slow, slow: slow, "/team/a": ""})
	close(hold)
	asking.Wait()
}

// TestWhoGoesIsNotKept: a read ends when its context does.
func TestWhoGoesIsNotKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		asked := 0
		err := readOf(ctx, t, func(*http.Request) (*http.Response, error) {
			if asked++; asked == 3 {
				cancel()
			}
			return answer(503, strings.NewReader(""), nil), nil
		})
		if !errors.Is(err, context.Canceled) || asked != 3 {
			t.Errorf("%v after %d requests, want %v", err, asked, context.Canceled)
		}
	})
}

// TestPausesBeginAnewWithWhatComes: where each answer brings a part the next one is asked for soon.
func TestPausesBeginAnewWithWhatComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		err := readOf(t.Context(), t, func(q *http.Request) (*http.Response, error) {
			if q.Header.Get("Range") == "" {
				return answer(200, strings.NewReader("."), http.Header{"Etag": {"1"}}), nil
			}
			span := strings.TrimSuffix(strings.TrimPrefix(q.Header.Get("Range"), "bytes="), "-99")
			header := http.Header{"Etag": {"1"}, "Content-Range": {"bytes " + span + "-99/100"}}
			return answer(206, strings.NewReader("."), header), nil
		})
		if took := time.Since(begun); err != nil || took > 100*firstPause {
			t.Errorf("%v after %s", err, took)
		}
	})
}
