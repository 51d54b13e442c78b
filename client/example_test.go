package client_test

import (
	"context"
	"fmt"
	"net"
	"os"

	"google.golang.org/grpc"

	"github.com/feedwater-io/feedwater/client"
	"github.com/feedwater-io/feedwater/client/loader"
	"github.com/feedwater-io/feedwater/server"
	"github.com/feedwater-io/feedwater/server/servertest"
)

// A trainer in Go: two epochs of batches, in order, from whatever nodes there are.
func ExampleLoader() {
	addr, stop := startNode()
	defer stop()

	loader, err := loader.New(loader.Options{
		Options: client.Options{Plan: `{"source": {"root": "photos"}, "seed": 17}`, Nodes: []string{addr}},
		Batch:   256, Epochs: 2,
	})
	if err != nil {
		panic(err)
	}
	defer loader.Close()
	for epoch := range 2 {
		samples := 0
		for batch, err := range loader.Batches(context.Background()) {
			if err != nil {
				panic(err)
			}
			samples += train(batch.Images(), batch.Labels())
			batch.Release()
		}
		fmt.Println("epoch", epoch, "samples", samples)
	}
	// Output:
	// epoch 0 samples 1000
	// epoch 1 samples 1000
}

func train(_ []byte, labels []int64) int { return len(labels) }

// startNode runs a node in this process; elsewhere it would be `feedwater serve --data photos=…`.
func startNode() (addr string, stop func()) {
	root, err := os.MkdirTemp("", "photos")
	if err != nil {
		panic(err)
	}
	engine := &servertest.Engine{}
	node := server.New(server.Options{Engine: engine, Roots: map[string]string{"photos": root}})
	g := grpc.NewServer(node.GRPCOptions()...)
	node.Register(g)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	served := make(chan error, 1)
	go func() { served <- g.Serve(l) }()
	return l.Addr().String(), func() {
		g.Stop()
		<-served
		node.Close()
		engine.Close()
		_ = os.Remove(root)
	}
}
