// Command tool runs things, and others.
package main

import (
	"example.com/tree/client"
	"example.com/tree/server"
)

func main() { client.Send(server.Judge(0.5)) }
