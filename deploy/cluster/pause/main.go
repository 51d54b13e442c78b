// Command pause holds a pod's namespaces, for the tests of deploy/cluster, where there is no registry to take an image of it from.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, os.Interrupt, syscall.SIGTERM)
	<-ended
}
