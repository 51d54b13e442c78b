// Command etcd is etcd's server, for the tests of deploy/cluster: its own module cannot be installed by its path, for it replaces others.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() { etcdmain.Main(os.Args) }
