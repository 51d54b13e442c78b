package store

import (
	"context"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/minio/minio-go/v7/pkg/credentials"
)

// keyring has the credentials of this process for buckets: of the environment, the shared file, a web identity or the
// machine's metadata, the first that there are. They are renewed before they expire, and are never shown.
type keyring struct {
	mu     sync.Mutex
	source *credentials.Credentials // that had some last
	looked time.Time                // when they were looked for anew after the server had refused them
}

// credentialsWithin is how long credentials are looked for: on a machine without a cloud's metadata nobody answers.
const credentialsWithin = 5 * time.Second

var errNoCredentials = &AccessError{
	Status: http.StatusUnauthorized, Code: "no credentials",
	Hint: "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY or AWS_PROFILE, or write ?anonymous=true behind a public bucket",
}

// get returns credentials.
func (k *keyring) get(ctx context.Context) (credentials.Value, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	limited, cancel := context.WithTimeout(ctx, credentialsWithin)
	defer cancel()
	asking := &credentials.CredContext{Client: http.DefaultClient, Context: limited}
	if k.source != nil {
		if v, err := k.source.GetWithContext(asking); err == nil && v.AccessKeyID != "" {
			return v, nil
		}
	}
	for _, provider := range providers() {
		source := credentials.New(provider)
		if v, err := source.GetWithContext(asking); err == nil && v.AccessKeyID != "" {
			k.source = source
			return v, nil
		}
		if err := ctx.Err(); err != nil {
			return credentials.Value{}, err
		}
	}
	return credentials.Value{}, errNoCredentials
}

// providers are where credentials are looked for, in this order.
func providers() []credentials.Provider {
	all := []credentials.Provider{&credentials.EnvAWS{}, &credentials.FileAWSCredentials{}}
	if os.Getenv("AWS_EC2_METADATA_DISABLED") == "true" && os.Getenv("AWS_WEB_IDENTITY_TOKEN_FILE") == "" {
		return all
	}
	return append(all, &credentials.IAM{})
}

// renewEvery is how often credentials are looked for anew that a server refuses: all reads in flight are refused at once, and each asks for that.
const renewEvery = 5 * time.Second

// renew has the next get look for credentials anew.
func (k *keyring) renew() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if now := time.Now(); k.looked.IsZero() || now.Sub(k.looked) >= renewEvery {
		k.source, k.looked = nil, now
	}
}
