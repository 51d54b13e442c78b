package store

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
)

// site is the Store of what a web server has below an URL. It cannot be listed.
type site struct {
	remote
	base url.URL
}

func newSite(r remote, l *location) *site {
	s := &site{remote: r, base: url.URL{Scheme: l.scheme, Host: l.host}}
	s.asker = s
	return s
}

// ErrNotListed is wrapped by errors about folders of servers that cannot be listed.
var ErrNotListed = unreadable("a web server does not tell what it has: name tar files by numbers, as train-{000..146}.tar, or a list of files")

// Identity names what the server has below the URL, for whoever keeps it.
func (s *site) Identity() string { return s.Origin() + "/" + s.prefix }

// Origin names the server.
func (s *site) Origin() string { return s.base.Scheme + "://" + hostOf(&s.base) }

// Stat implements Store.
func (s *site) Stat(ctx context.Context, name string) (Attributes, error) {
	if name == "" {
		return folderAttributes(s.prefix), nil
	}
	return s.look(ctx, name)
}

// OpenDirectory implements Store.
func (s *site) OpenDirectory(_ context.Context, name string, _ []byte) (Directory, error) {
	return nil, fmt.Errorf("%s/%s: %w", s.server.place, s.key(name), ErrNotListed)
}

func (s *site) request(ctx context.Context, method, name string, _ url.Values) (*http.Request, error) {
	u := s.base
	u.Path = "/" + s.key(name)
	return http.NewRequestWithContext(ctx, method, u.String(), nil)
}

func (s *site) sign(q *http.Request) (*http.Request, error) {
	q.Header.Set("Accept-Encoding", "identity")
	return q, nil
}

func (s *site) refusal(a *http.Response, _ bool) error {
	if err := refusalOf(a); err != nil {
		return err
	}
	switch {
	case a.StatusCode == http.StatusUnauthorized || a.StatusCode == http.StatusForbidden:
		return &AccessError{Status: a.StatusCode, Hint: "the server gives this to nobody without credentials, and none are sent"}
	case a.StatusCode/100 == 3:
		return unreadable("the server answers %s, and redirects are not followed: name the place that has it", a.Status)
	}
	return unreadable("the server answers %s", a.Status)
}
