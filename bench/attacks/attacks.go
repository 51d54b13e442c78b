//go:build linux

package main

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"regexp"
	"strings"
	"time"

	"golang.org/x/net/http2"
	"google.golang.org/protobuf/proto"

	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
	"github.com/feedwater-io/feedwater/server/servertest"
)

// attack is one way to hurt a node.
type attack struct {
	name, unit string
	// answers that are right; being hung up on always is, and has to happen where it is named here. "taken" is what was sent before that, or lies
	// in the kernel until it is paid for.
	answers string
	// strike does it some times, and tells how often and what the node said.
	strike func(*worker) (units int, answers []string)
}

func attacks() []attack {
	return []attack{
		{"connections that are closed", "connection", "taken", func(w *worker) (int, []string) { return w.knock(0) }},
		{"connections that say nothing", "connection", "taken", func(w *worker) (int, []string) { return w.knock(100) }},
		{"handshakes left in the middle", "connection", "answered", halfHandshakes()},
		{"noise in place of TLS", "connection", "", noise(false)},
		{"expired certificate", "connection", "TLS: .*certificate.*", func(w *worker) (int, []string) { return w.show(&w.target.Papers.Expired) }},
		{"foreign certificate", "connection", "TLS: .*certificate.*", func(w *worker) (int, []string) { return w.show(&w.target.Papers.Foreigner) }},
		{"certificate swapped all the time", "swap", "taken", swaps()},
		{"noise behind TLS", "connection", "", noise(true)},
		{"no token", "call", "Unauthenticated", calls(50, nil, nothing)},
		{"wrong token", "call", "Unauthenticated", calls(50, bearer("wrong-0123456789abcdef"), nothing)},
		{"rapid reset, no token", "call", "reset", resets(nil)},
		{"rapid reset, with a token", "call", "reset", resets(bearer(insiderToken))},
		{"calls with a token", "call", "InvalidArgument|ResourceExhausted", calls(50, bearer(insiderToken), said(&pb.OpenRequest{Protocol: pb.Protocol, Plan: "{"}))},
		{"calls that say nothing, with a token", "call", "held", loris},
		{"oversize headers", "call", "ResourceExhausted|Internal|REFUSED_STREAM|PROTOCOL_ERROR|FRAME_SIZE_ERROR", calls(1, []string{"x-huge", strings.Repeat("x", 1<<20)}, nothing)},
		{"headers without an end", "frame", "taken|" + hungUp, endless},
		{"settings", "frame", "taken", frames(func(x *wire) error { return x.WriteSettings() })},
		{"pings", "frame", "taken|" + hungUp, frames(func(x *wire) error { return x.WritePing(false, [8]byte{}) })},
		{"frames of no use", "frame", "taken", frames(func(x *wire) error { return x.WriteWindowUpdate(0, 1) })},
		{"path tricks, with a token", "call", "InvalidArgument|NotFound|FailedPrecondition|ResourceExhausted", tricks()},
		{"plan of 100 MB, with a token", "call", "ResourceExhausted", calls(1, bearer(insiderToken), func(x *wire, id uint32) error { return x.message(id, false, 100<<20, make([]byte, 32<<10)) })},
		{"plan of 3 MB, with a token", "call", "InvalidArgument|ResourceExhausted", open(`{"source": {"root": "` + strings.Repeat("x", 3<<20) + `"}}`)},
		{"plan of 10,000 ops, with a token", "call", "InvalidArgument|ResourceExhausted", open(`{"source": {"root": "photos"}, "transforms": [` + strings.Repeat(`{"op": "RandomHorizontalFlip"},`, 9_999) + `{"op": "RandomHorizontalFlip"}]}`)},
		{"compressed bomb, with a token", "call", "Unimplemented", bombs()},
		{"a million wants, with a token", "want", "made|busy|ResourceExhausted", wants},
	}
}

// find is the attack of a name.
func find(name string) *attack {
	for _, a := range attacks() {
		if a.name == name {
			return &a
		}
	}
	return nil
}

// ends reports whether the node has to hang up on it.
func (a *attack) ends() bool { return strings.Contains(a.answers, hungUp) }

// right reports whether an answer is.
func (a *attack) right(answer string) bool {
	return answer == hungUp || regexp.MustCompile("^("+a.answers+")$").MatchString(answer)
}

// knock connects, and keeps so many connections open.
func (w *worker) knock(keep int) (int, []string) {
	c, err := w.dial()
	if err != nil {
		w.hangUp()
		return 1, []string{ending(err)}
	}
	defer w.drop(keep)
	if keep == 0 {
		return 1, []string{"taken"}
	}
	_ = c.SetReadDeadline(time.Now().Add(time.Millisecond))
	if _, err = c.Read(make([]byte, 1)); err != nil && ending(err) == "nothing" {
		return 1, []string{"taken"}
	}
	return 1, []string{hungUp}
}

// show shakes hands with a certificate and waits for what the node says of it.
func (w *worker) show(pair *servertest.Pair) (int, []string) {
	c, err := w.secure(pair)
	defer w.hangUp()
	if err == nil {
		_, err = c.Read(make([]byte, 1))
	}
	if err == nil {
		return 1, []string{"taken"}
	}
	return 1, []string{ending(err)}
}

// halfHandshakes says hello, with the same words each time, and leaves when the node has answered: next to nothing for whoever does it.
func halfHandshakes() func(*worker) (int, []string) {
	var words bytes.Buffer
	hello(&words)
	return func(w *worker) (int, []string) {
		defer w.hangUp()
		raw, err := w.dial()
		if err == nil {
			_, err = raw.Write(words.Bytes())
		}
		if err == nil {
			_, err = raw.Read(make([]byte, 1))
		}
		if err != nil {
			return 1, []string{ending(err)}
		}
		return 1, []string{"answered"}
	}
}

// noise sends bytes by chance, behind a handshake or instead of it.
func noise(behind bool) func(*worker) (int, []string) {
	bytes := make([]byte, 1000)
	for i := range bytes {
		bytes[i] = byte(rand.Uint32())
	}
	return func(w *worker) (int, []string) {
		defer w.hangUp()
		var c io.ReadWriter
		var err error
		if behind {
			c, err = w.secure(nil)
		} else {
			c, err = w.dial()
		}
		if err == nil {
			_, err = io.WriteString(c, http2.ClientPreface)
		}
		if err == nil {
			_, err = c.Write(bytes)
		}
		for err == nil {
			_, err = c.Read(make([]byte, 100))
		}
		return 1, []string{hungUp}
	}
}

// swaps replace the node's certificate and key, as whoever runs it does, by links, of which the disk knows nothing; and shake hands.
func swaps() func(*worker) (int, []string) {
	return func(w *worker) (int, []string) {
		p := w.target.Papers
		pair := []servertest.Pair{p.Next, p.Good}[w.turn%2]
		w.turn++
		for from, to := range map[string]string{pair.Cert: p.Node.Cert, pair.Key: p.Node.Key} {
			next := fmt.Sprintf("%s.%p", to, w)
			if err := errors.Join(os.Symlink(from, next), os.Rename(next, to)); err != nil {
				return 0, []string{err.Error()}
			}
		}
		_, err := w.secure(&p.Good)
		w.hangUp()
		if err != nil {
			return 1, []string{ending(err)}
		}
		return 1, []string{"taken"}
	}
}

func bearer(token string) []string { return []string{"authorization", "Bearer " + token} }

// nothing is the body of a call without one.
func nothing(x *wire, id uint32) error { return x.message(id, false, 0, nil) }

// said is the body of a call with this request.
func said(m proto.Message) func(*wire, uint32) error {
	b, _ := proto.Marshal(m)
	return func(x *wire, id uint32) error { return x.message(id, false, len(b), b) }
}

// calls makes some at once and waits for all answers.
func calls(some int, headers []string, body func(*wire, uint32) error) func(*worker) (int, []string) {
	return func(w *worker) (int, []string) {
		x, err := w.connected()
		if err != nil {
			return 0, w.lost(err)
		}
		for range some {
			id, err := x.begin("Open", headers...)
			if err == nil {
				err = body(x, id)
			}
			if err != nil {
				return 0, w.lost(err)
			}
		}
		answers, err := x.answers(some)
		if err != nil {
			return some, append(answers, w.lost(err)...)
		}
		return some, answers
	}
}

// open calls Open with a plan of any size.
func open(plan string) func(*worker) (int, []string) {
	return func(w *worker) (int, []string) { return w.open(&pb.OpenRequest{Protocol: pb.Protocol, Plan: plan}) }
}

// resets begins calls and takes them back at once.
func resets(headers []string) func(*worker) (int, []string) {
	const some = 100
	return func(w *worker) (int, []string) {
		x, err := w.reading()
		for k := 0; k < some && err == nil; k++ {
			var id uint32
			if id, err = x.begin("Fetch", headers...); err == nil {
				err = x.WriteRSTStream(id, http2.ErrCodeCancel)
			}
		}
		if err == nil {
			err = x.out.Flush()
		}
		if err != nil {
			return 0, w.lost(err)
		}
		return some, []string{"reset"}
	}
}

// reading is the worker's connection, of which whatever comes is thrown away.
func (w *worker) reading() (*wire, error) {
	fresh := w.wire == nil
	x, err := w.connected()
	if err == nil && fresh {
		go func() { _, _ = io.Copy(io.Discard, x.conn) }() // ends with the connection
	}
	return x, err
}

// loris begins as many calls as a connection may have, says one byte of a message in each, and waits.
func loris(w *worker) (int, []string) {
	const most = 200
	x, err := w.reading()
	for k := 0; k < most && err == nil; k++ {
		var id uint32
		if id, err = x.begin([]string{"Open", "Fetch", "Replay"}[k%3], bearer(insiderToken)...); err == nil {
			err = x.WriteData(id, false, []byte{0})
		}
	}
	if err == nil {
		err = x.out.Flush()
	}
	if err != nil {
		return 0, w.lost(err)
	}
	w.wire = nil // the connection stays
	w.drop(16)
	return most, []string{"held"}
}

// endless begins headers and goes on with them.
func endless(w *worker) (int, []string) {
	x, err := w.reading()
	if err == nil {
		err = x.WriteHeaders(http2.HeadersFrameParam{StreamID: x.next, BlockFragment: []byte{0x82}})
	}
	frames := 0
	for ; err == nil && frames < 1000; frames++ {
		if err = x.WriteContinuation(x.next, false, make([]byte, 1000)); err == nil {
			err = x.out.Flush()
		}
	}
	if err == nil {
		return frames, []string{"taken"}
	}
	return frames, w.lost(err)
}

// frames sends many of a kind, and reads what comes back.
func frames(write func(*wire) error) func(*worker) (int, []string) {
	const some = 5000
	return func(w *worker) (int, []string) {
		x, err := w.reading()
		for k := 0; k < some && err == nil; k++ {
			err = write(x)
		}
		if err == nil {
			err = x.out.Flush()
		}
		if err != nil {
			return 0, w.lost(err)
		}
		return some, []string{"taken"}
	}
}

// tricks are paths and names that lead elsewhere, in every string.
func tricks() func(*worker) (int, []string) {
	var requests []*pb.OpenRequest
	for _, t := range []string{"../../etc/passwd", "/etc/passwd", `..\\..\\windows`, "%2e%2e/", "file:///etc/passwd", "a\\u0000b", strings.Repeat("../", 1000), strings.Repeat("a/", 10_000)} {
		requests = append(requests,
			&pb.OpenRequest{Protocol: pb.Protocol, Plan: `{"source": {"root": "` + t + `"}}`},
			&pb.OpenRequest{Protocol: pb.Protocol, Plan: `{"source": {"root": "photos", "path": "` + t + `"}}`},
			&pb.OpenRequest{Protocol: pb.Protocol, Plan: `{"source": {"fingerprint": "` + t + `"}}`},
			&pb.OpenRequest{Protocol: pb.Protocol, Plan: `{"source": {"root": "photos"}, "` + t + `": 1}`},
			&pb.OpenRequest{Protocol: pb.Protocol, Plan: `{"source": {"root": "photos"}, "transforms": [{"op": "` + t + `"}]}`},
			&pb.OpenRequest{Protocol: pb.Protocol, Plan: jobPlan, Numerics: "n" + t},
			&pb.OpenRequest{Protocol: pb.Protocol, Plan: t},
		)
	}
	return func(w *worker) (int, []string) {
		w.turn++
		return w.open(requests[w.turn%len(requests)])
	}
}

// bombs are 16 MiB of zeros, compressed.
func bombs() func(*worker) (int, []string) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write(make([]byte, 16<<20))
	_ = z.Close()
	return calls(2, append(bearer(insiderToken), "grpc-encoding", "gzip"), func(x *wire, id uint32) error { return x.message(id, true, b.Len(), b.Bytes()) })
}
