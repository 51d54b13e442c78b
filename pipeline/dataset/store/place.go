package store

import (
	"maps"
	"net/netip"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/feedwater-io/feedwater/pipeline/spelling"
)

// optionsBegin is where the options of an URL begin, whatever they are called: a pattern of tar files may have question
// marks too.
var optionsBegin = regexp.MustCompile(`\?[A-Za-z0-9_%][A-Za-z0-9_%.\[\]-]*=`)

// isURL matches what begins like an URL.
var isURL = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9+.-]*://`)

// IsURL reports whether a place lies on a server, and not in a folder.
func IsURL(place string) bool { return isURL.MatchString(place) }

// CutURL cuts an URL into what it names and its options, which begin with "?" where there are some.
func CutURL(place string) (name, options string) {
	if at := optionsBegin.FindStringIndex(place); at != nil {
		return place[:at[0]], place[at[0]:]
	}
	return place, ""
}

// JoinURL is a place below an URL.
func JoinURL(place, below string) string {
	name, options := CutURL(place)
	if below = path.Clean("/" + below); below == "/" {
		return strings.TrimRight(name, "/") + options
	}
	return strings.TrimRight(name, "/") + below + options
}

// Below is the path from an URL to another one below it; false where that is not below it.
func Below(place, other string) (string, bool) {
	if !IsURL(place) || !IsURL(other) {
		return "", false
	}
	base, options := CutURL(place)
	name, others := CutURL(other)
	base, name = strings.TrimRight(base, "/")+"/", strings.TrimRight(name, "/")+"/"
	if options != others || !strings.HasPrefix(name, base) {
		return "", false
	}
	return strings.TrimSuffix(name[len(base):], "/"), true
}

// location is an URL that was understood.
type location struct {
	scheme, host, path string // host of s3: the bucket
	options            url.Values
	text               string // for messages: it has no secrets
}

// place is the bucket or the host, without a path.
func (l *location) place() string { return l.scheme + "://" + l.host }

// ways are what to write in place of what is not read.
var ways = map[string]string{
	"gs":  "write s3://bucket/prefix?endpoint=https://storage.googleapis.com, with HMAC keys in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
	"az":  "copy it to a bucket that speaks S3, or mount it",
	"hf":  "download it first, or mount it",
	"ftp": "serve it by HTTP", "file": "write the folder's path",
}

// known are the options of each scheme.
var known = map[string][]string{"s3": {"endpoint", "region", "style", "anonymous"}, "http": nil, "https": nil, "python": {"socket"}}

// CheckURL returns what is wrong with an URL, before anything is asked.
func CheckURL(place string) error {
	_, err := parse(place)
	return err
}

// parse takes an URL apart.
func parse(place string) (location, error) {
	name, options := CutURL(place)
	scheme, rest, _ := strings.Cut(name, "://")
	place = WithoutSecrets(place) // for messages
	l := location{scheme: strings.ToLower(scheme), text: place}
	allowed, reads := known[l.scheme]
	if !reads {
		return l, unreadable("%s:// is not read: %s", l.scheme, orElse(ways[l.scheme], "write s3://bucket/prefix or https://host/path"))
	}
	if _, known := cutUser(rest); known {
		return location{text: place}, unreadable("an URL must not hold a name or a password: give credentials by the environment")
	}
	l.host, l.path, _ = strings.Cut(rest, "/")
	l.path = strings.Trim(l.path, "/")
	if l.host == "" {
		return l, unreadable("%s names no host or bucket", place)
	}
	if strings.ContainsAny(name, "#\x00") {
		return l, unreadable("%s: a # or a zero byte cannot be part of it", place)
	}
	var err error
	if l.options, err = url.ParseQuery(strings.TrimPrefix(options, "?")); err != nil {
		return l, unreadable("%s: its options are not KEY=VALUE&KEY=VALUE", place)
	}
	for _, key := range slices.Sorted(maps.Keys(l.options)) {
		if !slices.Contains(allowed, key) {
			return l, unreadable("%s: there is no option %.99q%s", place, key, l.advice(key, allowed))
		}
	}
	return l, l.checkPath()
}

// isSecret matches what options are called that people give credentials by.
var isSecret = regexp.MustCompile(`(?i)secret|password|passwd|token|access_?-?key|credential`)

// advice ends the error of an option that there is not.
func (l *location) advice(key string, allowed []string) string {
	switch {
	case isSecret.MatchString(key) && l.scheme == "s3":
		return ": give credentials by the environment, as AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
	case len(allowed) == 0:
		return "; there are none: a signed URL is not read, and no query is sent"
	}
	for _, name := range allowed { // endpoint_url, aws_region
		if strings.Contains(strings.ToLower(key), name) {
			return "; did you mean " + name + "?"
		}
	}
	return spelling.Suggest(key, allowed)
}

// cutUser cuts a name or a password off what follows the scheme of an URL; false: it has none. A password may have a
// slash.
func cutUser(rest string) (string, bool) {
	host, _, _ := strings.Cut(rest, "/")
	if at := strings.LastIndex(host, "@"); at >= 0 {
		return rest[at+1:], true
	}
	_, port, has := strings.Cut(host, ":")
	at := strings.LastIndex(rest, "@")
	if at < 0 || !has || strings.HasPrefix(host, "[") || strings.Trim(port, "0123456789") == "" && port != "" {
		return rest, false
	}
	return rest[at+1:], true
}

// WithoutSecrets is a place for messages: of an URL without names, passwords, and values of options that there are not.
func WithoutSecrets(place string) string {
	if !IsURL(place) {
		return place
	}
	name, options := CutURL(place)
	scheme, rest, _ := strings.Cut(name, "://")
	if below, has := cutUser(rest); has {
		rest = "…@" + below
	}
	allowed := known[strings.ToLower(scheme)]
	pairs := strings.Split(strings.TrimPrefix(options, "?"), "&")
	for i, pair := range pairs {
		key, value, has := strings.Cut(pair, "=")
		switch {
		case key == "endpoint" && slices.Contains(allowed, key):
			pairs[i] = key + "=" + endpointWithoutUser(value)
		case has && !slices.Contains(allowed, key):
			pairs[i] = key + "=…"
		case !has && pair != "": // what follows a & may be the rest of a value
			pairs[i] = "…"
		}
	}
	text := scheme + "://" + rest
	if options != "" {
		text += "?" + strings.Join(pairs, "&")
	}
	return text
}

// endpointWithoutUser is the value of an endpoint without name, password and query.
func endpointWithoutUser(value string) string {
	if plain, err := url.QueryUnescape(value); err == nil && strings.Contains(plain, "@") && !strings.Contains(value, "@") {
		value = plain
	}
	scheme, rest, has := strings.Cut(value, "://")
	if !has {
		scheme, rest = "", value
	} else {
		scheme += "://"
	}
	rest, query, _ := strings.Cut(rest, "?")
	if at := strings.LastIndex(rest, "@"); at >= 0 {
		rest = "…@" + rest[at+1:]
	}
	if query != "" {
		rest += "?…"
	}
	return scheme + rest
}

// checkPath refuses a path that names no key.
func (l *location) checkPath() error {
	for part := range strings.SplitSeq(l.path, "/") {
		if l.path != "" && (part == "" || part == "." || part == "..") {
			return unreadable("%s: its path has an empty part, a dot or two", l.text)
		}
	}
	return nil
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// isMetadata reports whether an address is one that clouds tell their machines' credentials at.
func isMetadata(address string) bool {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return false
	}
	ip := ap.Addr().Unmap()
	return ip.IsLinkLocalUnicast() || ip == netip.MustParseAddr("fd00:ec2::254") || ip == netip.MustParseAddr("100.100.100.200")
}
