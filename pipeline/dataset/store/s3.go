package store

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"

	"github.com/minio/minio-go/v7/pkg/s3utils"
	"github.com/minio/minio-go/v7/pkg/signer"
)

// bucket is the Store of what a bucket has below a prefix.
type bucket struct {
	remote
	name      string
	endpoint  *url.URL // nil: AWS's, of the bucket's region
	hosted    bool     // the bucket is part of the host's name
	anonymous bool
}

// newBucket understands the options of a place, and what the environment says in their stead.
func newBucket(r remote, l *location) (*bucket, error) {
	b := &bucket{remote: r, name: l.host, anonymous: l.options.Get("anonymous") == "true"}
	b.asker = b
	if err := s3utils.CheckValidBucketName(b.name); err != nil {
		return nil, unreadable("%s: %q is no name of a bucket", l.text, b.name)
	}
	endpoint := firstOf(l.options.Get("endpoint"), os.Getenv("AWS_ENDPOINT_URL_S3"), os.Getenv("AWS_ENDPOINT_URL"))
	if endpoint != "" {
		if !IsURL(endpoint) {
			endpoint = "https://" + endpoint
		}
		u, err := url.Parse(endpoint)
		if err != nil || u.Host == "" || u.User != nil || u.Scheme != "http" && u.Scheme != "https" {
			return nil, unreadable("%s: the endpoint has to be a host, or http:// and a host", l.text)
		}
		b.endpoint = &url.URL{Scheme: u.Scheme, Host: u.Host}
	}
	b.hosted = b.endpoint == nil && !strings.Contains(b.name, ".")
	switch style := l.options.Get("style"); style {
	case "":
	case "path", "host":
		b.hosted = style == "host"
	default:
		return nil, unreadable("%s: style is path or host", l.text)
	}
	if b.server.region.Load() == nil {
		region := firstOf(l.options.Get("region"), os.Getenv("AWS_REGION"), os.Getenv("AWS_DEFAULT_REGION"), "us-east-1")
		b.server.region.Store(&region)
	}
	servers.mu.Lock()
	defer servers.mu.Unlock()
	if b.server.keys == nil {
		b.server.keys = &keyring{}
	}
	return b, nil
}

func firstOf(all ...string) string {
	for _, s := range all {
		if s != "" {
			return s
		}
	}
	return ""
}

// Identity names what the bucket has below the prefix, for whoever keeps it: the same place, however it is written.
func (b *bucket) Identity() string { return b.Origin() + "/" + b.prefix }

// Origin names the bucket, whoever reads what of it.
func (b *bucket) Origin() string {
	host := "amazonaws.com"
	if b.endpoint != nil {
		host = hostOf(b.endpoint)
		if m := ofAWS.FindStringSubmatch(host); m != nil {
			host = m[1]
		}
	}
	return "s3://" + host + "/" + b.name
}

// ofAWS matches the names of AWS's endpoints, of whichever region and kind. The name of a bucket stands for one bucket in
// all of a partition, which is what is caught.
var ofAWS = regexp.MustCompile(`^s3(?:-accelerate|-fips|-[a-z]{2}(?:-[a-z]+)+-[0-9]+)?(?:\.dualstack)?(?:\.[a-z]{2}(?:-[a-z]+)+-[0-9]+)?\.(amazonaws\.com(?:\.cn)?)$`)

// hostOf is the host of a server and its port, the same however they are written. The port of the scheme is none.
func hostOf(u *url.URL) string {
	host, port := strings.TrimSuffix(strings.ToLower(u.Hostname()), "."), u.Port()
	if port == "" || u.Scheme == "http" && port == "80" || u.Scheme == "https" && port == "443" {
		return host
	}
	return net.JoinHostPort(host, port)
}

// Stat implements Store.
func (b *bucket) Stat(ctx context.Context, name string) (Attributes, error) {
	if name == "" {
		return folderAttributes(b.prefix), nil
	}
	a, err := b.look(ctx, name)
	if !errors.Is(err, fs.ErrNotExist) {
		return a, err
	}
	page, listErr := b.list(ctx, name, "", 1)
	switch {
	case listErr == nil && len(page.Contents)+len(page.CommonPrefixes) > 0:
		return folderAttributes(b.key(name)), nil
	case errors.As(listErr, new(*AccessError)): // which some servers say of lists alone
		return Attributes{}, listErr
	}
	return Attributes{}, errors.Join(err, listErr)
}

// request implements asker. With a query it is about the bucket.
func (b *bucket) request(ctx context.Context, method, name string, query url.Values) (*http.Request, error) {
	u := url.URL{Scheme: "https", Host: "s3." + *b.server.region.Load() + ".amazonaws.com", Path: "/"}
	if b.endpoint != nil {
		u.Scheme, u.Host = b.endpoint.Scheme, b.endpoint.Host
	}
	if b.hosted {
		u.Host = b.name + "." + u.Host
	} else {
		u.Path += b.name + "/"
	}
	if query == nil {
		u.Path += b.key(name)
	} else {
		u.RawQuery = query.Encode()
	}
	u.RawPath = s3utils.EncodePath(u.Path)
	q, err := http.NewRequestWithContext(ctx, method, "http://h", nil)
	if err != nil {
		return nil, err
	}
	q.URL, q.Host = &u, u.Host
	return q, nil
}

// emptySHA256 is that of no bytes: what a request sends.
const emptySHA256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

// sign implements asker.
func (b *bucket) sign(q *http.Request) (*http.Request, error) {
	q.Header.Set("Accept-Encoding", "identity")
	if b.anonymous {
		return q, nil
	}
	v, err := b.server.keys.get(q.Context())
	if err != nil {
		return nil, err
	}
	if q.Header.Get("X-Amz-Content-Sha256") == "" {
		q.Header.Set("X-Amz-Content-Sha256", emptySHA256)
	}
	return signer.SignV4(*q, v.AccessKeyID, v.SecretAccessKey, v.SessionToken, *b.server.region.Load()), nil
}

// s3Error is what S3 says of a refusal.
type s3Error struct {
	Code, Message, Region string
}

// codes of trouble that passes, whatever the status.
var passingCodes = map[string]bool{
	"SlowDown": true, "RequestTimeout": true, "InternalError": true, "ServiceUnavailable": true, "Throttling": true,
	"RequestLimitExceeded": true, "OperationAborted": true,
}

// renewedBy are codes that say that credentials are old.
var renewedBy = map[string]bool{"ExpiredToken": true, "InvalidToken": true, "TokenRefreshRequired": true}

// unknownKey are codes that say that there is no such access key; VersityGW answers so with 404.
var unknownKey = map[string]bool{"InvalidAccessKeyId": true, "XAdminUserNotFound": true}

// refusal implements asker.
func (b *bucket) refusal(a *http.Response, first bool) error {
	var said s3Error
	text := textOf(a)
	_ = xml.Unmarshal([]byte(text), &said) // an answer to HEAD has no body, and that of a proxy may be anything
	if b.move(a, &said) {
		return &passingError{cause: fmt.Errorf("the bucket lies in the region %s", *b.server.region.Load())}
	}
	switch {
	case passingCodes[said.Code]:
		return &passingError{cause: fmt.Errorf("the server answers %s %s", a.Status, said.Code), after: retryAfter(a)}
	case said.Code == "NoSuchBucket":
		return &absentError{"there is no bucket " + b.name + " on this server: look at its name, and at endpoint="}
	case a.StatusCode == http.StatusUnauthorized || a.StatusCode == http.StatusForbidden || renewedBy[said.Code] || unknownKey[said.Code]:
		return b.denied(a, &said, first)
	}
	if err := refusalOf(a); err != nil {
		return err
	}
	if strings.Contains(text, "HTTP request to an HTTPS server") || strings.Contains(text, "plain HTTP request was sent to HTTPS port") { // of Go's and nginx
		return unreadable("the server is asked by TLS alone: write endpoint=https://…")
	}
	if a.StatusCode/100 == 3 {
		return unreadable("the server answers %s %s, and redirects are not followed: name its endpoint and region", a.Status, said.Code)
	}
	return unreadable("the server answers %s %s", a.Status, said.Code)
}

// denied is the error of a request that may not be made. Credentials are looked for anew, once.
func (b *bucket) denied(a *http.Response, said *s3Error, first bool) error {
	if b.anonymous {
		return &AccessError{Status: a.StatusCode, Code: said.Code, Hint: "not everybody may read here: leave anonymous=true out, and set credentials"}
	}
	err := &AccessError{Status: a.StatusCode, Code: said.Code, Hint: "this node's credentials do not let it read here: " + said.hint()}
	if first {
		b.server.keys.renew()
		return &passingError{cause: err}
	}
	return err
}

// hint is what to do about a code.
func (e *s3Error) hint() string {
	switch e.Code {
	case "InvalidAccessKeyId", "XAdminUserNotFound":
		return "the server knows no such access key; look at AWS_ACCESS_KEY_ID or the shared file"
	case "SignatureDoesNotMatch":
		return "the secret key is not that of the access key; look at AWS_SECRET_ACCESS_KEY or the shared file"
	case "ExpiredToken", "InvalidToken", "TokenRefreshRequired":
		return "they have expired, and there are no newer ones"
	case "RequestTimeTooSkewed":
		return "this machine's clock differs from the server's"
	}
	return "they need s3:GetObject and s3:ListBucket"
}

// move takes note of the bucket's region, where the server says that it is another one than the one that was asked.
func (b *bucket) move(a *http.Response, said *s3Error) bool {
	wrong := a.StatusCode/100 == 3 || said.Code == "AuthorizationHeaderMalformed" || a.StatusCode == http.StatusBadRequest
	region := firstOf(a.Header.Get("X-Amz-Bucket-Region"), said.Region)
	if !wrong || region == "" || strings.ContainsAny(region, "./:@?#") {
		return false
	}
	old := b.server.region.Swap(&region)
	return *old != region
}
