package main

import (
	"strings"

	"github.com/feedwater-io/feedwater/client/node"
	"github.com/spf13/pflag"
)

// splitNodes are nodes as users give them, several with commas or as arguments of their own; docs/nodes.md.
func splitNodes(args []string) []string {
	var nodes []string
	for _, arg := range args {
		for name := range strings.SplitSeq(arg, ",") {
			if name = strings.TrimSpace(name); name != "" {
				nodes = append(nodes, name)
			}
		}
	}
	return nodes
}

// reachOptions are the flags of a command that calls nodes.
type reachOptions struct {
	tls, insecure bool
	files         node.TLSFiles
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

// flags are what package client's advice, which is worded for options in Python and Go, comes to on a command line.
var flags = strings.NewReplacer(
	" (in Go DialOptions.Files)", "",
	" (in Go DialOptions.Insecure)", "",
	`pass tls={"ca": FILE}`, "give --tls-ca FILE",
	`pass tls={"ca": ..., "cert": ..., "key": ...}`, "give --tls-cert FILE and --tls-key FILE",
	`pass tls={"ca": ..., "server_name": NAME}`, "give --tls-server-name NAME",
	"leave out tls=", "leave out --tls and --tls-ca",
	"pass tls=", "give --tls-ca",
	"insecure=True", "--insecure",
)

// inFlags is an error of package client in the words of a command that has these flags.
func inFlags(message string) string { return flags.Replace(message) }

func (o *reachOptions) dialOptions() node.DialOptions {
	d := node.DialOptions{TokenFile: o.tokenFile, Insecure: o.insecure}
	if o.tls || o.files != (node.TLSFiles{}) {
		d.Files = &o.files
	}
	return d
}
