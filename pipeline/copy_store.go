package pipeline

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/feedwater-io/feedwater/pipeline/imageindex"
)

// copyStore keeps copies, which are found by the digests of their files, whichever data set these are of. Files can be made
// that have the digest of another one. So that nobody's file has a copy of a file that somebody made for it, each copy ends
// in a seal of its file's bytes: GMAC by a key that lies in the folder, which only its owner may read.
type copyStore struct {
	*imageindex.Cache
	dir string
	mac atomic.Pointer[cipher.AEAD] // nil: there is no key, and so no copy
}

const (
	keyName   = "key"
	keyBytes  = 16
	sealBytes = 16
)

// sealNonce is the same for all seals: nobody sees them who does not have the key.
var sealNonce = make([]byte, 12)

// Find copies the copy of a file with this digest over buf if there is one that was made of its bytes. Else it is empty,
// and wanted says whether Put is worth while.
func (c *copyStore) Find(file []byte, digest uint64, buf []byte) (data []byte, wanted bool) {
	data, wanted = c.Cache.Find(0, digest, buf)
	if len(data) == 0 {
		return data, wanted
	}
	n := len(data) - sealBytes
	mac := c.macNow()
	if n <= 0 || mac == nil {
		return data[:0], c.IsOpen()
	}
	data = mac.Seal(data, sealNonce, nil, file)
	if subtle.ConstantTimeCompare(data[n:n+sealBytes], data[n+sealBytes:]) == 0 {
		return data[:0], c.IsOpen()
	}
	return data[:n], false
}

// Lost is how many copies were made and could not be written, and their bytes, without seals.
func (c *copyStore) Lost() (copies int, bytes int64) {
	copies, bytes = c.Cache.Lost()
	return copies, bytes - int64(copies)*sealBytes
}

// sealCopy appends the seal of a file to its copy; nil: there is no key.
func (c *copyStore) sealCopy(data, file []byte) []byte {
	mac := c.macNow()
	if mac == nil {
		return nil
	}
	return mac.Seal(data, sealNonce, nil, file)
}

// macNow makes seals; nil: there is no key. One that came to be since the store was opened is read.
func (c *copyStore) macNow() cipher.AEAD {
	if c.mac.Load() == nil && c.readKey(false) != nil {
		return nil
	}
	return *c.mac.Load()
}

// readKey reads the folder's key. With create one is made where there is none, or is no whole one.
func (c *copyStore) readKey(create bool) error {
	path := filepath.Join(c.dir, keyName)
	key, err := os.ReadFile(path)
	if create && (errors.Is(err, fs.ErrNotExist) || err == nil && len(key) != keyBytes) {
		key, err = makeKey(path)
	}
	if err == nil && len(key) != keyBytes {
		err = fmt.Errorf("%s has %d bytes, not %d", path, len(key), keyBytes)
	}
	if err != nil {
		return err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return err
	}
	mac, err := cipher.NewGCM(block)
	if err == nil {
		c.mac.Store(&mac)
	}
	return err
}

// makeKey makes the key of a folder. Where several do at once they all return that of the first.
func makeKey(path string) ([]byte, error) {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	f, err := os.CreateTemp(dir, keyName+"-*")
	if err != nil {
		return nil, err
	}
	defer os.Remove(f.Name()) //nolint:errcheck // what is left of it does no harm
	_, err = f.Write(randomKey())
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	if info, err := os.Stat(path); err == nil && info.Size() != keyBytes {
		_ = os.Remove(path) // if it is still there Link says so
	}
	if err := os.Link(f.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	return os.ReadFile(path)
}

func randomKey() []byte {
	key := make([]byte, keyBytes)
	_, _ = rand.Read(key) // it never fails
	return key
}
