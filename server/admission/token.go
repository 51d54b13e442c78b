package admission

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"log/slog"
	"strings"
)

// Tokens are the bearer tokens that a node takes, by what they stand for. They come from a file that is looked at again
// for each call.
type Tokens struct{ current *reloadedFiles[[]tokenDigest] }

// tokenDigest keeps a digest, so that all comparisons are of one length, and no copy of the secret.
type tokenDigest struct {
	identity string
	sum      [sha256.Size]byte
}

// minTokenBytes keeps out what can be guessed.
const minTokenBytes = 16

// ReadTokens reads a file of lines "IDENTITY TOKEN"; empty lines and those that begin with # count nothing. An identity
// may have several tokens, so that one can be replaced without a gap.
func ReadTokens(path string, log *slog.Logger) (*Tokens, error) {
	current, err := openReloaded(log, func() ([]tokenDigest, error) {
		text, err := readSecret(path)
		if err != nil {
			return nil, err
		}
		return parseTokens(path, text)
	}, path)
	if err != nil {
		return nil, err
	}
	return &Tokens{current}, nil
}

// Refresh reads the file again if it has changed, as Identity does.
func (t *Tokens) Refresh() { t.current.currentValue() }

// parseTokens reads a file's lines. Its errors never hold a token.
func parseTokens(path string, text []byte) ([]tokenDigest, error) {
	var all []tokenDigest
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, maxSecretBytes)
	for n := 1; lines.Scan(); n++ {
		words := strings.Fields(lines.Text())
		switch {
		case len(words) == 0 || strings.HasPrefix(words[0], "#"):
			continue
		case len(words) != 2:
			return nil, fmt.Errorf("%s: line %d is not IDENTITY TOKEN", path, n)
		case len(words[1]) < minTokenBytes:
			return nil, fmt.Errorf("%s: line %d: the token has %d characters; it needs %d or more, like those of `openssl rand -hex 32`", path, n, len(words[1]), minTokenBytes)
		}
		t := tokenDigest{words[0], sha256.Sum256([]byte(words[1]))}
		for _, other := range all {
			if other.sum == t.sum && other.identity != t.identity {
				return nil, fmt.Errorf("%s: line %d: %s and %s have the same token", path, n, other.identity, t.identity)
			}
		}
		all = append(all, t)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s holds no token; write lines of IDENTITY TOKEN", path)
	}
	return all, nil
}

// Identity is who a token stands for. How long it takes does not depend on how much of a token is right, nor on which
// one it is.
func (t *Tokens) Identity(secret string) (identity string, ok bool) {
	sum := sha256.Sum256([]byte(secret))
	for _, known := range t.current.currentValue() {
		if subtle.ConstantTimeCompare(sum[:], known.sum[:]) == 1 {
			identity, ok = known.identity, true
		}
	}
	return identity, ok
}
