package store

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// RemoteOptions of a Store whose objects lie on a server. The zero value works.
type RemoteOptions struct {
	// Within is how long a question may take, all its tries together. Default 30 s.
	Within time.Duration
	// Alive, if set, is called by any goroutine whenever the server has answered.
	Alive func()
	// OnRead, if set, is called by any goroutine whenever a read of an object has ended well.
	OnRead func()
}

// remoteReads is how many reads at once a server answers with profit: at 30 ms each 2,000 a second.
const remoteReads = 64

// maxVersionBytes is how long the name of a version may be.
const maxVersionBytes = 1024

// OpenURL opens what a server has below an URL: "s3://bucket/prefix" or "https://host/path". Nothing is asked yet.
func OpenURL(place string, o RemoteOptions) (Store, error) {
	l, err := parse(place)
	if err != nil {
		return nil, err
	}
	if o.Alive == nil {
		o.Alive = func() {}
	}
	if o.OnRead == nil {
		o.OnRead = func() {}
	}
	if l.scheme == "python" {
		return newProgram(&l, o.Alive), nil
	}
	r := remote{server: useServer(&l), within: o.Within, alive: o.Alive, onRead: o.OnRead, prefix: l.path}
	if r.within <= 0 {
		r.within = 30 * time.Second
	}
	if l.scheme != "s3" {
		return newSite(r, &l), nil
	}
	b, err := newBucket(r, &l)
	if err != nil {
		r.server.release()
		return nil, err
	}
	return b, nil
}

// remote is what buckets and sites have in common.
type remote struct {
	server *server
	within time.Duration
	alive  func()
	onRead func()
	prefix string // of all names; without a slash at its end
	// asker makes requests, and understands refusals.
	asker
}

// asker is how one kind of server is spoken to.
type asker interface {
	// request asks for a name, or with a query for what that asks for.
	request(ctx context.Context, method, name string, query url.Values) (*http.Request, error)
	// sign makes it a request that the server knows the sender of.
	sign(q *http.Request) (*http.Request, error)
	// refusal is the error of an answer that is none, a *passingError where the request is worth another try. first
	// says that it was not repeated yet.
	refusal(a *http.Response, first bool) error
}

// passingError is trouble that may pass.
type passingError struct {
	cause    error
	after    time.Duration // that the server asks for
	advanced bool          // a part of what was asked for came: the next try asks for the rest
}

func (e *passingError) Error() string { return e.cause.Error() }
func (e *passingError) Unwrap() error { return e.cause }

// Close implements Store.
func (r *remote) Close() error {
	r.server.release()
	return nil
}

// Reads implements Store.
func (r *remote) Reads() int { return remoteReads }

// key of a name below the place.
func (r *remote) key(name string) string {
	switch {
	case r.prefix == "":
		return name
	case name == "":
		return r.prefix
	}
	return r.prefix + "/" + name
}

// question is one that is asked until it is answered.
type question struct {
	method, name string
	query        url.Values
	header       map[string]string
	bytes        int // that are expected, or sent
	body         *body
	take         func(*http.Response) error
}

// The time between two tries, at first and at most.
const (
	firstPause   = 50 * time.Millisecond
	longestPause = 5 * time.Second
)

// longestPause of a Store. A question whose next pause would last past its end is given up before that: by a tenth of its time at most, so that who waits
// for it by a clock of his own that ends at four fifths is always the first to give up (pipeline.OpenFolder).
func (r *remote) longestPause() time.Duration { return min(longestPause, r.within/10) }

// ask asks until there is an answer, for as long as a question may take. Of trouble that did not pass it is the last.
func (r *remote) ask(parent context.Context, x *question) error {
	ctx, cancel := context.WithTimeout(parent, r.within)
	defer cancel()
	t := &r.server.troubles
	t.begin(r, x)
	var trouble error
	longest := r.longestPause()
	shortest := min(firstPause, longest)
	pause := shortest
	for tries := 1; ; tries++ {
		err := r.try(ctx, x, tries)
		var passing *passingError
		switch {
		case parent.Err() != nil && err != nil:
			t.leave(x)
			if errors.As(err, &passing) {
				return parent.Err()
			}
			return err
		case isDenial(err) && !errors.As(err, &passing):
			t.end(x, err)
			return err
		case !errors.As(err, &passing):
			t.end(x, nil)
			return err
		}
		if trouble == nil || ctx.Err() == nil { // a try that the end of the time cut short tells of nothing but that
			trouble = passing.cause
			t.retry(x, tries, trouble)
		}
		if passing.advanced {
			pause = shortest
		}
		d := max(min(passing.after, longest), pause/2+rand.N(pause/2+1))
		if deadline, _ := ctx.Deadline(); time.Until(deadline) < d || wait(ctx, d) != nil {
			if parent.Err() != nil {
				t.leave(x)
				return parent.Err()
			}
			r.server.failed.Add(1)
			err := &TroubleError{trouble, tries}
			t.end(x, err)
			return err
		}
		r.server.retries.Add(1)
		pause = min(2*pause, longest)
	}
}

// try sends a request once. It gets a third of the time of all tries, and as much as the bytes take at 64 KiB a second.
func (r *remote) try(parent context.Context, x *question, tries int) error {
	most := r.within/3 + time.Duration(x.bytes)*time.Second>>16
	ctx, cancel := context.WithTimeout(parent, most)
	defer cancel()
	q, err := r.request(ctx, x.method, x.name, x.query)
	if err != nil {
		return err
	}
	for name, value := range x.header {
		q.Header.Set(name, value)
	}
	x.body.attach(q)
	if q, err = r.sign(q); err != nil {
		return r.named(x, err)
	}
	begun := time.Now()
	a, err := r.server.send(q)
	defer func() { r.server.nanoseconds.Add(int64(time.Since(begun))) }()
	if err != nil {
		return r.lost(x, err)
	}
	r.alive()
	defer func() { _ = a.Body.Close() }() // what was needed of it was read
	if a.StatusCode != http.StatusOK && a.StatusCode != http.StatusPartialContent {
		return r.named(x, r.refusal(a, tries == 1))
	}
	r.server.troubles.answers(x)
	return x.take(a)
}

// named says which object an error is about.
func (r *remote) named(x *question, err error) error {
	if err == nil {
		return nil
	}
	var passing *passingError
	if errors.As(err, &passing) {
		return &passingError{r.named(x, passing.cause), passing.after, passing.advanced}
	}
	return fmt.Errorf("%s: %w", r.server.place+"/"+strings.TrimPrefix(r.key(x.name), "/"), err)
}

// lost is the error of a request that got no answer, without what net/http says of the URL.
func (r *remote) lost(x *question, err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err
	}
	switch {
	case errors.Is(err, errMetadata) || isCertificate(err):
		return r.named(x, unreadable("%v", err))
	case errors.Is(err, http.ErrSchemeMismatch):
		return r.named(x, unreadable("the server does not speak TLS: write http:// in front of its name, as endpoint=http://host:port of a bucket"))
	case errors.Is(err, context.DeadlineExceeded):
		err = errors.New("no answer in time")
	}
	return r.named(x, &passingError{cause: err})
}

// describe is what an answer says of an object.
func (r *remote) describe(a *http.Response, name string) (Attributes, error) {
	v := versionOf(a.Header)
	switch {
	case v == "" || len(v) > maxVersionBytes:
		return Attributes{}, unreadable("%s/%s: the server says neither its ETag nor when it was changed, so that a change would not be found", r.server.place, name)
	case a.ContentLength < 0:
		return Attributes{}, unreadable("%s/%s: the server does not say how long it is", r.server.place, name)
	}
	return objectAttributes(a.ContentLength, v), nil
}

// objectAttributes are those of an object. Its inode stands for its version.
func objectAttributes(size int64, version string) Attributes {
	return Attributes{Kind: KindFile, Size: size, Inode: digest(version), Version: version}
}

// folderAttributes are those of a folder on a server, of which nobody knows whether it is as it was.
func folderAttributes(key string) Attributes {
	return Attributes{Kind: KindFolder, Changed: math.MaxInt64, Inode: digest(key)}
}

func digest(s string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(s))
	return h.Sum64()
}

// versionOf is the version that an answer's body is of: its ETag, or where it has none the time of its last change.
func versionOf(h http.Header) string {
	if tag := h.Get("ETag"); tag != "" {
		return strings.Trim(tag, `"`)
	}
	return h.Get("Last-Modified")
}

// look asks for an object's attributes, once more where that takes long.
func (r *remote) look(ctx context.Context, name string) (Attributes, error) {
	return hedge(ctx, r.server, &r.server.looks, func(ctx context.Context) (Attributes, error) { return r.lookOnce(ctx, name) })
}

func (r *remote) lookOnce(ctx context.Context, name string) (a Attributes, err error) {
	err = r.ask(ctx, &question{method: http.MethodHead, name: name, take: func(answer *http.Response) (err error) {
		a, err = r.describe(answer, r.key(name))
		return err
	}})
	return a, err
}
