package main

import (
	"github.com/spf13/pflag"

	"github.com/feedwater-io/feedwater/client"
)

// reachOptions are the flags of a command that calls nodes.
type reachOptions struct {
	tls, insecure bool
	files         client.TLSFiles
	tokenFile     string
}

func (o *reachOptions) addTo(f *pflag.FlagSet) {
	f.BoolVar(&o.tls, "tls", false, "nodes are reached by TLS, checked by the system's CAs")
	f.StringVar(&o.files.CA, "tls-ca", "", "`file` of the CA that signs nodes' certificates; means --tls")
	f.StringVar(&o.files.Cert, "tls-cert", "", "`file` of a client certificate, for nodes that ask for one; means --tls")
	f.StringVar(&o.files.Key, "tls-key", "", "`file` of its key")
	f.StringVar(&o.files.ServerName, "tls-server-name", "", "`name` that nodes' certificates are made out to (default: each node's host)")
	f.StringVar(&o.tokenFile, "token-file", "", "`file` with the token that nodes ask for")
	f.BoolVar(&o.insecure, "insecure", false, "reach other machines unencrypted too: the network is yours")
}

// ownReach are those that mean a node's own files to serve, and the file of its options.
var ownReach = []string{"tls-cert", "tls-key", "token-file", "config"}

func (o *reachOptions) dial() client.DialOptions {
	d := client.DialOptions{TokenFile: o.tokenFile, Insecure: o.insecure}
	if o.tls || o.files != (client.TLSFiles{}) {
		d.Files = &o.files
	}
	return d
}
