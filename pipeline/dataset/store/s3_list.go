package store

import (
	"context"
	"encoding/xml"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// listing is a page of what a bucket has.
type listing struct {
	IsTruncated           bool
	NextContinuationToken string
	EncodingType          string
	Contents              []struct {
		Key, ETag string
		Size      int64
	}
	CommonPrefixes []struct{ Prefix string }
}

// pageKeys is how many keys a page has at most; maxPageBytes how long one may be.
const (
	pageKeys     = 1000
	maxPageBytes = 32 << 20
)

// list reads a page of what lies directly in a folder. Where that takes long it is asked for once more.
func (b *bucket) list(ctx context.Context, folder, token string, keys int) (*listing, error) {
	return hedge(ctx, b.server, &b.server.lists, func(ctx context.Context) (*listing, error) {
		return b.readPage(ctx, folder, token, keys)
	})
}

// readPage is list, once.
func (b *bucket) readPage(ctx context.Context, folder, token string, keys int) (*listing, error) {
	query := url.Values{"list-type": {"2"}, "delimiter": {"/"}, "encoding-type": {"url"}, "max-keys": {strconv.Itoa(keys)}}
	if prefix := b.key(folder); prefix != "" {
		query.Set("prefix", prefix+"/")
	}
	if token != "" {
		query.Set("continuation-token", token)
	}
	page := &listing{}
	x := &question{method: http.MethodGet, name: folder, query: query, bytes: 1 << 20}
	x.take = func(a *http.Response) error {
		text, err := io.ReadAll(io.LimitReader(a.Body, maxPageBytes+1))
		if err == nil && len(text) > maxPageBytes {
			return b.named(x, unreadable("a page of more than %d bytes", maxPageBytes))
		}
		*page = listing{}
		if err == nil {
			err = xml.Unmarshal(text, page)
		}
		if err != nil {
			return b.named(x, &passingError{cause: fmt.Errorf("its list cannot be read: %w", err)})
		}
		return nil
	}
	if err := b.ask(ctx, x); err != nil {
		return nil, err
	}
	return page, nil
}

// OpenDirectory implements Store. Only a folder that holds something is there.
func (b *bucket) OpenDirectory(ctx context.Context, name string, _ []byte) (Directory, error) {
	d := &bucketDirectory{ctx: ctx, bucket: b, folder: name}
	if err := d.readPage(""); err != nil {
		return nil, err
	}
	if p := d.page; name != "" && len(p.Contents)+len(p.CommonPrefixes) == 0 {
		return nil, fs.ErrNotExist
	}
	return d, nil
}

// bucketDirectory lists what lies directly in a folder of a bucket.
type bucketDirectory struct {
	ctx    context.Context //nolint:containedctx // of the scan that opened it
	bucket *bucket
	folder string
	page   *listing
	prefix string
	at     int // of the next entry in page: first folders, then objects
	known  Attributes
}

// readPage reads a page.
func (d *bucketDirectory) readPage(token string) (err error) {
	d.at = 0
	if d.prefix = d.bucket.key(d.folder); d.prefix != "" {
		d.prefix += "/"
	}
	d.page, err = d.bucket.list(d.ctx, d.folder, token, pageKeys)
	return err
}

// Close implements Directory.
func (d *bucketDirectory) Close() {}

// Attributes implements Directory.
func (d *bucketDirectory) Attributes() (Attributes, error) {
	return folderAttributes(d.bucket.key(d.folder)), nil
}

// Known implements Directory.
func (d *bucketDirectory) Known() (Attributes, bool) { return d.known, true }

// Stat implements Directory.
func (d *bucketDirectory) Stat(name []byte) (Attributes, error) {
	if d.folder == "" {
		return d.bucket.Stat(d.ctx, string(name))
	}
	return d.bucket.Stat(d.ctx, d.folder+"/"+string(name))
}

// Rewind implements Directory.
func (d *bucketDirectory) Rewind() error { return d.readPage("") }

// Next implements Directory. Folders of a page come before its objects.
func (d *bucketDirectory) Next() ([]byte, Kind, error) {
	for {
		p := d.page
		if n := d.at - len(p.CommonPrefixes); n >= len(p.Contents) {
			if err := d.turnOn(); err != nil {
				return nil, KindUnknown, err
			}
			continue
		}
		name, err := d.entry()
		if err != nil || name != "" {
			return []byte(name), d.known.Kind, err
		}
	}
}

// turnOn reads the next page; io.EOF behind the last.
func (d *bucketDirectory) turnOn() error {
	p := d.page
	switch {
	case !p.IsTruncated:
		return io.EOF
	case p.NextContinuationToken == "":
		return unreadable("%s: the server lists %s no further, and does not say how to go on", d.bucket.server.place, d.prefix)
	}
	if err := d.readPage(p.NextContinuationToken); err != nil {
		return err
	}
	if d.page.IsTruncated && d.page.NextContinuationToken == p.NextContinuationToken {
		return unreadable("%s: the server lists %s over and over", d.bucket.server.place, d.prefix)
	}
	return nil
}

// entry takes the next entry; "" is none: objects that only mark a folder.
func (d *bucketDirectory) entry() (string, error) {
	p, n := d.page, d.at-len(d.page.CommonPrefixes)
	d.at++
	var text string
	if n < 0 {
		text = p.CommonPrefixes[d.at-1].Prefix
		d.known = Attributes{Kind: KindFolder}
	} else {
		o := &p.Contents[n]
		text, d.known = o.Key, objectAttributes(o.Size, strings.Trim(o.ETag, `"`))
	}
	key, err := text, error(nil)
	if p.EncodingType == "url" {
		if key, err = url.QueryUnescape(text); err != nil {
			return "", unreadable("%s: a key that cannot be read: %.99q", d.bucket.server.place, text)
		}
	}
	name, below := strings.CutPrefix(key, d.prefix)
	if n < 0 {
		name = strings.TrimSuffix(name, "/")
	}
	switch {
	case !below:
		return "", unreadable("%s: the server lists %.99q, which is not below %s", d.bucket.server.place, key, d.prefix)
	case name == "" && n >= 0:
		return "", nil
	case name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00"):
		return "", d.odd(key)
	case n >= 0 && (d.known.Version == "" || len(d.known.Version) > maxVersionBytes):
		return "", unreadable("%s: the server lists %.99q without its ETag, so that a change would not be found", d.bucket.server.place, key)
	}
	return name, nil
}

// odd is the error of a key that is no path.
func (d *bucketDirectory) odd(key string) error {
	return unreadable("%s: the key %.200q is no path: a part of it is empty, or a dot or two", d.bucket.server.place, key)
}
