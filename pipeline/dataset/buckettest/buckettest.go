// Package buckettest is a server of objects for tests: a bucket as S3 has it, signatures and pages included, and the
// same objects by plain HTTP below /plain/. It lies in memory, or reads a folder.
package buckettest

import (
	"bytes"
	"crypto/hmac"
	"crypto/md5" //nolint:gosec // what an ETag is
	"crypto/sha256"
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/minio/minio-go/v7/pkg/s3utils"
)

// The bucket, and who may read it.
const (
	Bucket = "data"
	Access = "the-access-key"
	Secret = "the-secret-key"
)

// Server has objects. Its methods may be called while it serves.
type Server struct {
	*httptest.Server
	// PageKeys is how many entries a page of a list has at most; Region the bucket's.
	PageKeys int
	Region   string
	// HeedsNothing has conditions ignored, as some servers do.
	HeedsNothing bool

	mu       sync.Mutex
	objects  map[string][]byte
	tags     map[string]string // of objects
	fault    func(http.ResponseWriter, *http.Request) bool
	requests []string
	sent     atomic.Int64
}

// New starts a server without objects. Close ends it.
func New() *Server {
	s := unstarted()
	s.Start()
	return s
}

// NewTLS is New of a server that is asked by TLS. Certificate is what clients have to trust.
func NewTLS() *Server {
	s := unstarted()
	s.StartTLS()
	return s
}

func unstarted() *Server {
	s := &Server{PageKeys: 1000, Region: "us-east-1", objects: map[string][]byte{}, tags: map[string]string{}}
	s.Server = httptest.NewUnstartedServer(s)
	for !fresh(s.Listener.Addr()) {
		_ = s.Listener.Close()
		s.Server = httptest.NewUnstartedServer(s)
	}
	return s
}

// had are the addresses of servers of this process so far.
var had sync.Map

// fresh reports whether no server had an address before. Whoever reads from a server keeps what it knows of its
// address, as a client of credentials does, and another server at the same port would inherit it.
func fresh(a net.Addr) bool {
	_, before := had.LoadOrStore(a.String(), true)
	return !before
}

// Put makes an object, or replaces it; Delete removes one.
func (s *Server) Put(key string, data []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.objects[key], s.tags[key] = data, ETag(data)
}

// Delete removes an object.
func (s *Server) Delete(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.objects, key)
}

// Fail has f see each request first; where it returns true the request is answered.
func (s *Server) Fail(f func(http.ResponseWriter, *http.Request) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = f
}

// Requests are those that came so far: method, path, and range or "".
func (s *Server) Requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// SentBytes are those of all answers' bodies so far.
func (s *Server) SentBytes() int64 { return s.sent.Load() }

// counted is an answer whose bytes are counted.
type counted struct {
	http.ResponseWriter
	bytes *atomic.Int64
}

// Write implements http.ResponseWriter.
func (c counted) Write(p []byte) (int, error) {
	n, err := c.ResponseWriter.Write(p)
	c.bytes.Add(int64(n))
	return n, err
}

// Unwrap is for http.ResponseController.
func (c counted) Unwrap() http.ResponseWriter { return c.ResponseWriter }

// Place is what a prefix of the bucket is called.
func (s *Server) Place(prefix string) string {
	return "s3://" + Bucket + "/" + prefix + "?endpoint=" + s.URL
}

// Plain is the URL of what lies below a prefix, by plain HTTP.
func (s *Server) Plain(prefix string) string { return s.URL + "/plain/" + prefix }

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w = counted{w, &s.sent}
	s.mu.Lock()
	s.requests = append(s.requests, strings.TrimSpace(r.Method+" "+r.URL.Path+" "+r.Header.Get("Range")))
	fault := s.fault
	s.mu.Unlock()
	if fault != nil && fault(w, r) {
		return
	}
	if key, plain := strings.CutPrefix(r.URL.Path, "/plain/"); plain {
		s.object(w, r, key)
		return
	}
	if code, status := s.check(r); code != "" {
		w.Header().Set("X-Amz-Bucket-Region", s.Region)
		Refuse(w, status, code)
		return
	}
	key, ours := strings.CutPrefix(r.URL.Path, "/"+Bucket+"/")
	switch {
	case !ours:
		Refuse(w, http.StatusNotFound, "NoSuchBucket")
	case r.URL.Query().Get("list-type") == "2":
		s.list(w, r.URL.Query())
	case r.Method == http.MethodPut:
		s.put(w, r, key)
	default:
		s.object(w, r, key)
	}
}

// put makes an object of what is sent, if it is what was signed.
func (s *Server) put(w http.ResponseWriter, r *http.Request, key string) {
	data, err := io.ReadAll(r.Body)
	if sum := sha256.Sum256(data); err != nil || hex.EncodeToString(sum[:]) != r.Header.Get("X-Amz-Content-Sha256") {
		Refuse(w, http.StatusBadRequest, "XAmzContentSHA256Mismatch")
		return
	}
	s.Put(key, data)
	w.Header().Set("ETag", ETag(data))
}

// Refuse answers as S3 refuses.
func Refuse(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, "<?xml version=\"1.0\"?><Error><Code>%s</Code><Message>no</Message></Error>", code)
}

// Object answers with one, or a range of it, whoever asks.
func (s *Server) Object(w http.ResponseWriter, r *http.Request) {
	key, plain := strings.CutPrefix(r.URL.Path, "/plain/")
	if !plain {
		key = strings.TrimPrefix(r.URL.Path, "/"+Bucket+"/")
	}
	s.object(w, r, key)
}

func (s *Server) object(w http.ResponseWriter, r *http.Request, key string) {
	s.mu.Lock()
	data, found := s.objects[key]
	tag := s.tags[key]
	s.mu.Unlock()
	if !found {
		Refuse(w, http.StatusNotFound, "NoSuchKey")
		return
	}
	w.Header().Set("ETag", tag)
	if s.HeedsNothing {
		r.Header.Del("If-Match")
	}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(data))
}

// ETag is an object's, in quotes.
func ETag(data []byte) string { return fmt.Sprintf("%q", fmt.Sprintf("%x", md5.Sum(data))) } //nolint:gosec // as above

type contents struct {
	Key, ETag string
	Size      int
}

type prefix struct{ Prefix string }

type page struct {
	XMLName               xml.Name `xml:"ListBucketResult"`
	EncodingType          string
	IsTruncated           bool
	NextContinuationToken string `xml:",omitempty"`
	Contents              []contents
	CommonPrefixes        []prefix
}

// list answers with a page.
func (s *Server) list(w http.ResponseWriter, query url.Values) {
	s.mu.Lock()
	defer s.mu.Unlock()
	most, _ := strconv.Atoi(query.Get("max-keys"))
	most = min(max(most, 1), s.PageKeys)
	p := page{EncodingType: "url"}
	last := query.Get("continuation-token")
	for _, e := range s.entries(query.Get("prefix"), query.Get("delimiter")) {
		if e <= last {
			continue
		}
		if len(p.Contents)+len(p.CommonPrefixes) == most {
			p.IsTruncated, p.NextContinuationToken = true, last
			break
		}
		last = e
		data, object := s.objects[e]
		if object && (e == query.Get("prefix") || !strings.HasSuffix(e, query.Get("delimiter"))) {
			p.Contents = append(p.Contents, contents{url.QueryEscape(e), s.tags[e], len(data)})
		} else {
			p.CommonPrefixes = append(p.CommonPrefixes, prefix{url.QueryEscape(e)})
		}
	}
	w.Header().Set("Content-Type", "application/xml")
	_ = xml.NewEncoder(w).Encode(p)
}

// entries are the keys and common prefixes below a prefix, in byte order.
func (s *Server) entries(below, delimiter string) []string {
	found := map[string]bool{}
	for key := range s.objects {
		rest, in := strings.CutPrefix(key, below)
		if !in {
			continue
		}
		if before, _, cut := strings.Cut(rest, delimiter); cut && delimiter != "" {
			key = below + before + delimiter
		}
		found[key] = true
	}
	all := make([]string, 0, len(found))
	for e := range found {
		all = append(all, e)
	}
	slices.Sort(all)
	return all
}

// check looks at a request's signature, and returns S3's code and status for a bad one.
func (s *Server) check(r *http.Request) (code string, status int) {
	fields := map[string]string{}
	for field := range strings.SplitSeq(strings.TrimPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 "), ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(field), "=")
		fields[name] = value
	}
	scope := strings.Split(fields["Credential"], "/")
	switch {
	case len(scope) != 5:
		return "AccessDenied", http.StatusForbidden
	case scope[0] != Access:
		return "InvalidAccessKeyId", http.StatusForbidden
	case scope[2] != s.Region:
		return "AuthorizationHeaderMalformed", http.StatusBadRequest
	}
	if fields["Signature"] != signature(r, fields["SignedHeaders"], scope) {
		return "SignatureDoesNotMatch", http.StatusForbidden
	}
	return "", 0
}

// signature is what a request's has to be.
func signature(r *http.Request, signed string, scope []string) string {
	var headers strings.Builder
	for name := range strings.SplitSeq(signed, ";") {
		value := r.Header.Get(name)
		if name == "host" {
			value = r.Host
		}
		headers.WriteString(name + ":" + value + "\n")
	}
	canonical := strings.Join([]string{
		r.Method, s3utils.EncodePath(r.URL.Path), strings.ReplaceAll(r.URL.Query().Encode(), "+", "%20"),
		headers.String(), signed, r.Header.Get("X-Amz-Content-Sha256"),
	}, "\n")
	sum := sha256.Sum256([]byte(canonical))
	text := strings.Join([]string{
		"AWS4-HMAC-SHA256", r.Header.Get("X-Amz-Date"), strings.Join(scope[1:], "/"), hex.EncodeToString(sum[:]),
	}, "\n")
	key := []byte("AWS4" + Secret)
	for _, part := range scope[1:] {
		key = mac(key, part)
	}
	return hex.EncodeToString(mac(key, text))
}

func mac(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}

// RefusingAddress is one of this machine that refuses connections.
func RefusingAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}
