package server_test

import (
	"io"
	"math/rand/v2"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/feedwater-io/feedwater/batch"
	"github.com/feedwater-io/feedwater/server"
	"github.com/feedwater-io/feedwater/server/servertest"
)

// BenchmarkBeside is what a well-behaved job gets beside attacks that go on all the time: batches of 5 ms each, one
// after the other. Attackers, node and job share the machine.
func BenchmarkBeside(b *testing.B) {
	for _, c := range []struct {
		name   string
		attack func(*guarded)
	}{
		{"nobody", func(*guarded) { time.Sleep(time.Millisecond) }},
		{"garbage", func(g *guarded) {
			if w, err := g.tryWire(); err == nil {
				noise := make([]byte, 1000)
				for i := range noise {
					noise[i] = byte(rand.Uint32())
				}
				_, _ = io.WriteString(w, http2.ClientPreface)
				_, _ = w.Write(noise)
				w.Close()
			}
		}},
		{"resets", func(g *guarded) {
			if w, err := g.tryWire(); err == nil {
				_, _ = io.WriteString(w, http2.ClientPreface)
				_ = w.WriteSettings()
				for i := range uint32(100) {
					_ = w.call(2*i+1, "Fetch")
					_ = w.WriteRSTStream(2*i+1, http2.ErrCodeCancel)
				}
				w.Close()
			}
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			g := unguarded(b, &servertest.Engine{Height: 64, Width: 64, Delay: func(*batch.Name) time.Duration { return 5 * time.Millisecond }}, server.Options{HostShare: unbounded})
			job := g.beside(shown{})
			stop, stopped := make(chan struct{}), make(chan struct{})
			go func() {
				defer close(stopped)
				for {
					select {
					case <-stop:
						return
					default:
						c.attack(g)
					}
				}
			}()
			for b.Loop() {
				job.batches(1)
			}
			close(stop)
			<-stopped
		})
	}
}

// BenchmarkTLS is what encryption costs: batches of 1 MB, as fast as one trainer takes them.
func BenchmarkTLS(b *testing.B) {
	e := func() *servertest.Engine { return &servertest.Engine{Height: 204, Width: 204} }
	for name, start := range map[string]func() (*guarded, shown){
		"plaintext": func() (*guarded, shown) { return unguarded(b, e(), server.Options{}), shown{} },
		"TLS":       func() (*guarded, shown) { return guard(b, e(), server.Options{}), shown{token: "Bearer " + secretA} },
	} {
		b.Run(name, func(b *testing.B) {
			g, s := start()
			job := g.beside(s)
			b.SetBytes(8 * 204 * 204 * 3)
			for b.Loop() {
				job.batches(1)
			}
		})
	}
}
