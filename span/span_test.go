package span_test

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/trace"
	"go.uber.org/goleak"
	"google.golang.org/grpc/test/bufconn"

	"github.com/feedwater-io/feedwater/span"
	"github.com/feedwater-io/feedwater/span/spantest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const context1 = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

// Only what Format writes is read: all else that a peer may send is no span.
func TestParse(t *testing.T) {
	if c := span.Parse(context1); !c.IsValid() || !c.IsSampled() || !c.IsRemote() || span.Format(c) != context1 {
		t.Errorf("%v", c)
	}
	for _, flags := range []string{"00", "02", "fe"} {
		if c := span.Parse(context1[:53] + flags); !c.IsValid() || c.IsSampled() {
			t.Errorf("flags %s: %v", flags, c)
		}
	}
	for _, bad := range []string{
		"", "00", context1 + "-", context1[:54], strings.ToUpper(context1), "01" + context1[2:], "ff" + context1[2:],
		"00-" + strings.Repeat("0", 32) + context1[35:], context1[:36] + strings.Repeat("0", 16) + "-01", strings.Replace(context1, "-b7", "_b7", 1),
		context1[:52] + "_01", context1[:53] + "0x", context1[:53] + "+1", context1[:10] + "\x00" + context1[11:], context1[:10] + "\xff" + context1[11:],
		strings.Repeat("0", 1<<20),
	} {
		if c := span.Parse(bad); c.IsValid() {
			t.Errorf("%.80q is taken for %v", bad, c)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(context1)
	f.Fuzz(func(t *testing.T, text string) {
		if c := span.Parse(text); c.IsValid() && span.Format(c)[:53] != text[:53] {
			t.Errorf("%q is taken for %s", text, span.Format(c))
		}
	})
}

func TestText(t *testing.T) {
	if s := span.Text("a\xffb" + strings.Repeat("é", 1<<20)); len(s) > 1100 || !strings.HasPrefix(s, "a\uFFFDb") || strings.ToValidUTF8(s, "") != s {
		t.Errorf("%d bytes: %.20q", len(s), s)
	}
}

// asked are the variables that ask for spans.
func asked(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", spantest.Endpoint)
}

// Nothing runs and nothing is made where the environment does not ask for it.
func TestNobodyAsks(t *testing.T) {
	for name, environment := range map[string]map[string]string{
		"nothing": {}, "disabled": {"OTEL_SDK_DISABLED": "TRUE"}, "none": {"OTEL_TRACES_EXPORTER": "none"}, "protocol": {"OTEL_EXPORTER_OTLP_PROTOCOL": "pigeon"},
	} {
		t.Run(name, func(t *testing.T) {
			if name != "nothing" {
				asked(t)
			}
			for k, v := range environment {
				t.Setenv(k, v)
			}
			before := runtime.NumGoroutine()
			var log bytes.Buffer
			e := span.Open(span.Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
			if e != nil || e.Tracer() != nil || runtime.NumGoroutine() > before { // fewer: one of an earlier test ended
				t.Errorf("%v, %d goroutines more", e, runtime.NumGoroutine()-before)
			}
			if (name == "protocol") != strings.Contains(log.String(), "pigeon") {
				t.Errorf("the log: %s", &log)
			}
			e.Close()
		})
	}
}

// What spans come from is what the environment says, else the program.
func TestResource(t *testing.T) {
	for _, named := range []string{"", "mine"} {
		synctest.Test(t, func(t *testing.T) {
			asked(t)
			t.Setenv("OTEL_SERVICE_NAME", named)
			c := spantest.New()
			e := span.Open(span.Options{Service: "feedwater-node", Connect: c.Connect})
			_, s := e.Tracer().Start(span.Below(span.Parse(context1)), span.Batch)
			s.SetAttributes(span.File.String(span.Text("\xff.jpg")))
			s.End()
			e.Close()
			c.Close()
			all := c.Spans()
			if len(all) != 1 || all[0].Parent != context1[36:52] || all[0].Said["key"] != "\uFFFD.jpg" || (all[0].Service == "mine") != (named != "") {
				t.Errorf("%+v", all)
			}
		})
	}
}

// What the environment says of the way to the collector is heeded, by both protocols, or said to be wrong.
func TestSettings(t *testing.T) {
	for name, c := range map[string]struct {
		environment map[string]string
		wrong       string
	}{
		"http":        {map[string]string{"PROTOCOL": "http/protobuf"}, ""},
		"headers":     {map[string]string{"HEADERS": "nonsense"}, "HEADERS"},
		"certificate": {map[string]string{"ENDPOINT": "https://127.0.0.1:4317", "CERTIFICATE": os.DevNull}, os.DevNull},
		"pair":        {map[string]string{"ENDPOINT": "127.0.0.1:4317", "CLIENT_CERTIFICATE": "/none"}, "/none"},
	} {
		t.Run(name, func(t *testing.T) {
			var path, kind, key string
			arrived := make(chan struct{}, 10)
			collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				path, kind, key = r.URL.Path, r.Header.Get("Content-Type"), r.Header.Get("api-key")
				arrived <- struct{}{}
			}))
			defer collector.Close()
			t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
			t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "api-key=a%20b, other=c")
			t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "1")
			for k, v := range c.environment {
				t.Setenv("OTEL_EXPORTER_OTLP_"+k, v)
			}
			var log bytes.Buffer
			e := span.Open(span.Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
			defer e.Close()
			if c.wrong != "" {
				if e != nil || !strings.Contains(log.String(), c.wrong) {
					t.Errorf("%v; the log: %s", e, &log)
				}
				return
			}
			_, s := e.Tracer().Start(t.Context(), span.Batch)
			s.End()
			<-arrived
			if path != "/v1/traces" || kind != "application/x-protobuf" || key != "a b" {
				t.Errorf("%s %s %q", path, kind, key)
			}
		})
	}
}

// A collector that is not there, or says nothing, costs the end 0.4 s and one line of the log.
func TestDeadCollector(t *testing.T) {
	hole := func(ctx context.Context, _ string) (net.Conn, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	for name, connect := range map[string]func(context.Context, string) (net.Conn, error){"hole": hole, "mute": nil} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				asked(t)
				if connect == nil {
					l := bufconn.Listen(1 << 20)
					defer l.Close()
					connect = func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }
					go func() { // takes connections, and reads what comes
						for {
							conn, err := l.Accept()
							if err != nil {
								return
							}
							defer conn.Close()
						}
					}()
				}
				var log bytes.Buffer
				e := span.Open(span.Options{Connect: connect, Log: slog.New(slog.NewTextHandler(&log, nil))})
				began := time.Now()
				for range 10_000 { // far more than are kept
					_, s := e.Tracer().Start(context.Background(), span.Batch, trace.WithNewRoot())
					s.End()
				}
				if took := time.Since(began); took > 0 {
					t.Errorf("spans took %s", took)
				}
				time.Sleep(5 * time.Minute)
				_, s := e.Tracer().Start(context.Background(), span.Batch)
				s.End()
				began = time.Now()
				e.Close()
				if took := time.Since(began); took > 500*time.Millisecond {
					t.Errorf("the end took %s", took)
				}
				if n := strings.Count(log.String(), "\n"); n != 1 {
					t.Errorf("the log has %d lines:\n%s", n, &log)
				}
			})
		})
	}
}
