package main

import (
	"crypto/tls"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
)

// onHangup calls reload at each SIGHUP, which other servers take as a word to read their files again; stop ends that, and waits.
func onHangup(log *slog.Logger, reload func()) (stop func()) {
	signals, ended := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(signals, syscall.SIGHUP)
	go func() {
		defer close(ended)
		for range signals {
			log.Info("SIGHUP: certificates, keys, CAs and tokens are looked at again, as they are for each call; options and identities need a restart")
			reload()
		}
	}()
	return func() {
		signal.Stop(signals)
		close(signals)
		<-ended
	}
}

// reloadChanged reads files again that have changed.
func (s *security) reloadChanged() {
	if s.tls != nil {
		_, _ = s.tls.GetConfigForClient(&tls.ClientHelloInfo{}) // has no errors of its own
	}
	if s.access.Tokens != nil {
		s.access.Tokens.Refresh()
	}
}
