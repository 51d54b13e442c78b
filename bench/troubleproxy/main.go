// Command troubleproxy stands before a server of objects and has the trouble of such servers, request by request: answers
// that come late, refusals, bodies that are cut. It says its address, and ends with its input.
package main

import (
	"flag"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strconv"
	"sync"
	"time"
)

// trouble is what becomes of requests.
type trouble struct {
	latency, jitter time.Duration // of each answer: latency, give or take jitter
	late            float64       // the share of answers that take lateFor
	lateFor         time.Duration
	fault           string
	share           float64 // of requests with the fault
	after, times    int     // reads of objects before the first fault, and how often it comes; 0 times: without end

	mu    sync.Mutex
	rng   *rand.Rand
	reads int // of objects
	had   int // faults
	to    http.Handler
}

func main() {
	t := &trouble{rng: rand.New(rand.NewPCG(1, 2))} //nolint:gosec // not for secrets
	flag.DurationVar(&t.latency, "latency", 0, "time before each answer")
	flag.DurationVar(&t.jitter, "jitter", 0, "the most that it differs by")
	flag.Float64Var(&t.late, "late", 0, "share of answers that take -late-for")
	flag.DurationVar(&t.lateFor, "late-for", time.Second, "time before such an answer")
	flag.StringVar(&t.fault, "fault", "", "a status, as 503; or reset, cut, long, hang, expired")
	flag.Float64Var(&t.share, "share", 0.1, "share of requests with the fault")
	flag.IntVar(&t.after, "after", 0, "reads of objects before the first fault")
	flag.IntVar(&t.times, "times", 0, "how often the fault comes; 0: without end")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "troubleproxy takes the address of a server")
		os.Exit(1)
	}
	server := &url.URL{Scheme: "http", Host: flag.Arg(0)}
	t.to = &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(server)
			r.Out.Host = r.In.Host // it is signed
		},
		Transport: &http.Transport{MaxIdleConnsPerHost: 256, DisableCompression: true},
		ErrorLog:  log.New(io.Discard, "", 0), // who asks may go
	}
	s := httptest.NewServer(t)
	defer s.Close()
	fmt.Println(s.Listener.Addr())
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// ServeHTTP implements http.Handler.
func (t *trouble) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	wait, faulty := t.draw(r.Method == http.MethodGet && r.URL.RawQuery == "")
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.Context().Done():
		return
	}
	if !faulty {
		t.to.ServeHTTP(w, r)
		return
	}
	t.fail(w, r)
}

// draw is how long an answer takes, and whether it has the fault.
func (t *trouble) draw(read bool) (wait time.Duration, faulty bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	wait = t.latency + time.Duration((2*t.rng.Float64()-1)*float64(t.jitter))
	if t.rng.Float64() < t.late {
		wait = t.lateFor
	}
	if read {
		t.reads++
	}
	faulty = t.fault != "" && t.reads > t.after && (t.times == 0 || t.had < t.times) && t.rng.Float64() < t.share
	if faulty {
		t.had++
	}
	return wait, faulty
}

// fail answers with the fault.
func (t *trouble) fail(w http.ResponseWriter, r *http.Request) {
	switch t.fault {
	case "reset":
		c, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		_ = c.(*net.TCPConn).SetLinger(0) // a reset in place of an end
		_ = c.Close()
	case "cut", "long":
		t.to.ServeHTTP(&spoiler{ResponseWriter: w, long: t.fault == "long"}, r)
	case "hang":
		<-r.Context().Done()
	case "expired":
		refuse(w, http.StatusForbidden, "ExpiredToken")
	default:
		status, err := strconv.Atoi(t.fault)
		if err != nil {
			status = http.StatusServiceUnavailable
		}
		refuse(w, status, "SlowDown")
	}
}

// refuse answers as S3 does.
func refuse(w http.ResponseWriter, status int, code string) {
	w.WriteHeader(status)
	_, _ = io.WriteString(w, "<Error><Code>"+code+"</Code></Error>") // who asks may go
}

// spoiler has an answer end in the middle of its body, or say that it is longer than it is.
type spoiler struct {
	http.ResponseWriter
	long bool
	left int
}

func (s *spoiler) WriteHeader(status int) {
	n, _ := strconv.Atoi(s.Header().Get("Content-Length")) // 0: not said
	s.left = n / 2
	if s.long {
		s.Header().Set("Content-Length", strconv.Itoa(n+1))
	}
	s.ResponseWriter.WriteHeader(status)
}

func (s *spoiler) Write(p []byte) (int, error) {
	if s.long || len(p) <= s.left {
		s.left -= len(p)
		return s.ResponseWriter.Write(p)
	}
	_, _ = s.ResponseWriter.Write(p[:max(s.left, 0)])
	_ = http.NewResponseController(s.ResponseWriter).Flush()
	panic(http.ErrAbortHandler)
}
