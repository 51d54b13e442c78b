package dataset

import (
	"context"
	"os"
	"path/filepath"
)

// CallFolder makes a call on a folder of lists, which may hang, and returns what it returned, or an error when it does not come back in time or ctx
// ends. It is then left to itself, and what it returns goes to drop, if that is set. The call may be made more than once, at the same time too.
type CallFolder func(ctx context.Context, op string, call func() (any, error), drop func(any)) (any, error)

// CacheFolder is the folder that manifests are kept in if it can be written.
func (o *Options) CacheFolder() (string, error) {
	if o.CacheDir != "" {
		return o.CacheDir, nil
	}
	user, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(user, "feedwater", "snapshots"), nil
}

// onFolder makes a call on the cache's folder, by CallFolder if that is set; others, which are private and lie in memory, answer.
func onFolder[T any](ctx context.Context, c *cache, dir, op string, f func() (T, error), drop func(T)) (T, error) {
	if c.call == nil || dir != c.dir {
		return f()
	}
	left := func(v any) {
		if t, ok := v.(T); ok && drop != nil {
			drop(t)
		}
	}
	v, err := c.call(ctx, op, func() (any, error) { return f() }, left)
	t, _ := v.(T)
	return t, err
}

// briefly is a context for calls that nobody waits for long: they are made, and waited for as long as CallFolder lets calls of those who go.
func briefly() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}
