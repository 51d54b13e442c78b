package store

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// AccessError says that a server does not let this process read something. It is an fs.ErrPermission.
type AccessError struct {
	// Status as HTTP has it, and the server's own word for it, where there is one.
	Status int
	Code   string
	// Hint says what to do.
	Hint string
}

// Error tells what the server says.
func (e *AccessError) Error() string {
	text := fmt.Sprintf("access denied (%d", e.Status)
	if e.Code != "" {
		text += " " + e.Code
	}
	return text + "): " + e.Hint
}

// Is makes it an fs.ErrPermission.
func (e *AccessError) Is(target error) bool { return target == fs.ErrPermission }

// ErrUnreadable is wrapped by errors that say that a place on a server cannot be read as it is: trying again would not
// help.
var ErrUnreadable = errors.New("the place cannot be read")

// unreadableError is an ErrUnreadable that says itself why.
type unreadableError struct{ text string }

func (e *unreadableError) Error() string { return e.text }

// Is makes it an ErrUnreadable.
func (e *unreadableError) Is(target error) bool { return target == ErrUnreadable }

func unreadable(format string, args ...any) error {
	return &unreadableError{fmt.Sprintf(format, args...)}
}

// absentError is an fs.ErrNotExist that says itself what is not there.
type absentError struct{ text string }

func (e *absentError) Error() string { return e.text }

// Is makes it an fs.ErrNotExist.
func (e *absentError) Is(target error) bool { return target == fs.ErrNotExist }

// TroubleError says that a question was given up: what may pass did not within RemoteOptions.Within.
type TroubleError struct {
	cause error // of the last try that was answered, or failed before the time was over
	tries int
}

// Error says what the last try failed of.
func (e *TroubleError) Error() string { return fmt.Sprintf("%v (tried %d times)", e.cause, e.tries) }

// Unwrap returns what the last try failed of.
func (e *TroubleError) Unwrap() error { return e.cause }

// textOf is the beginning of an answer's body.
func textOf(a *http.Response) string {
	const most = 8 << 10
	text, _ := io.ReadAll(io.LimitReader(a.Body, most)) // what came of it
	return string(text)
}

// refusalOf is the error of a status that means the same for all servers; nil for others.
func refusalOf(a *http.Response) error {
	switch a.StatusCode {
	case http.StatusNotFound, http.StatusGone:
		return fs.ErrNotExist
	case http.StatusPreconditionFailed, http.StatusRequestedRangeNotSatisfiable:
		return errPrecondition
	case http.StatusTooManyRequests, http.StatusRequestTimeout:
		return &passingError{cause: fmt.Errorf("the server answers %s", a.Status), after: retryAfter(a)}
	}
	if a.StatusCode >= http.StatusInternalServerError {
		return &passingError{cause: fmt.Errorf("the server answers %s", a.Status), after: retryAfter(a)}
	}
	return nil
}

// retryAfter is how long a server asks to be left alone.
func retryAfter(a *http.Response) time.Duration {
	seconds, err := strconv.Atoi(strings.TrimSpace(a.Header.Get("Retry-After")))
	if err != nil || seconds < 0 {
		return 0
	}
	return time.Duration(min(seconds, int(longestPause/time.Second))) * time.Second
}

// isCertificate reports whether an error is about the server's certificate, which does not pass.
func isCertificate(err error) bool {
	return errors.As(err, new(*tls.CertificateVerificationError)) || errors.As(err, new(x509.UnknownAuthorityError)) ||
		errors.As(err, new(x509.HostnameError))
}
