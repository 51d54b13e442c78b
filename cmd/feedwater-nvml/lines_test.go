package main

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// takes returns an answer after a time, or never if stop is closed first.
func takes(d time.Duration, stop chan struct{}) func() int {
	return func() int {
		select {
		case <-time.After(d):
		case <-stop:
		}
		return 42
	}
}

func TestAwait(t *testing.T) {
	for name, c := range map[string]struct {
		takes, limit, cancel time.Duration
		want                 error
	}{
		"in time":           {time.Second, 2 * time.Second, time.Hour, nil},
		"late":              {3 * time.Second, 2 * time.Second, time.Hour, errHangs},
		"never":             {1000 * time.Hour, 2 * time.Second, time.Hour, errHangs},
		"no limit":          {30 * time.Minute, 0, time.Hour, nil},
		"ended by a signal": {1000 * time.Hour, 0, time.Minute, context.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				stop := make(chan struct{})
				defer close(stop)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				defer time.AfterFunc(c.cancel, cancel).Stop()
				v, err := await(ctx, c.limit, takes(c.takes, stop))
				if !errors.Is(err, c.want) || (err == nil) != (v == 42) {
					t.Errorf("%d, %v; want %v", v, err, c.want)
				}
			})
		})
	}
}
