// Command coredns is CoreDNS with what a cluster's names take, and nothing else, for the tests of deploy/cluster.
package main

import (
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"
	_ "github.com/coredns/coredns/plugin/bind"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/kubernetes"
)

func main() {
	dnsserver.Directives = []string{"bind", "errors", "kubernetes"}
	coremain.Run()
}
