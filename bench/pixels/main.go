// Command pixels makes pictures as a worker of a node makes them, out of files in memory: parse, find the index, draw, decode, transform. It
// measures what that alone costs. It draws the crops that bench/pixels/table.py has all others make too, then waits for orders, lines on
// its input, and answers each with a line of JSON. Everything ends with its input.
//
//	check EPOCH         {"crcs": […]}: CRC-32 of the pixels of each picture of an epoch
//	time EPOCH EPOCHS   {"cpu": s, "wall": s, "images": n}: what so many epochs took from that one on
//
// FEEDWATER_KERNELS chooses the kernels. One goroutine works for each of -threads, and is waited for.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
)

func main() {
	o := options{}
	o.flags(flag.CommandLine)
	flag.Parse()
	if err := o.run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "pixels:", err)
		os.Exit(1)
	}
}

type options struct {
	data, transforms, index, crops string
	first                          bool
	epochs, threads                int
}

func (o *options) flags(f *flag.FlagSet) {
	f.StringVar(&o.data, "data", "", "`folder` of pictures, classes in sub-folders")
	f.StringVar(&o.transforms, "transforms", cropAndFlip, "the plan's transforms, JSON (docs/plan.md)")
	f.StringVar(&o.index, "index", "", "`folder` of an index of the pictures; none: none is used")
	f.BoolVar(&o.first, "first", false, "keep an index and begin each measurement without one")
	f.IntVar(&o.threads, "threads", 1, "pictures to make at once")
	f.StringVar(&o.crops, "crops", "", "write what RandomResizedCrop and RandomHorizontalFlip draw to this `file`, and end")
	f.IntVar(&o.epochs, "epochs", 1, "epochs in the file of crops")
}

func (o *options) run(in io.Reader, out io.Writer) error {
	u, err := open(context.Background(), o)
	if err != nil {
		return err
	}
	defer u.close()
	if o.crops != "" {
		return u.writeCrops(o.crops, o.epochs)
	}
	return serve(u, in, out)
}

// serve answers orders until there are no more.
func serve(u *unit, in io.Reader, out io.Writer) error {
	orders, answers := bufio.NewScanner(in), json.NewEncoder(out)
	for orders.Scan() {
		var word string
		var epoch uint32
		epochs := 1
		_, _ = fmt.Sscan(orders.Text(), &word, &epoch, &epochs) // what is left out stays as it is
		answer, err := u.obey(word, epoch, epochs)
		if err != nil {
			return err
		}
		if err := answers.Encode(answer); err != nil {
			return err
		}
	}
	return orders.Err()
}

func (u *unit) obey(word string, epoch uint32, epochs int) (any, error) {
	switch word {
	case "check":
		crcs, err := u.check(epoch)
		return map[string]any{"crcs": crcs}, err
	case "time":
		return u.time(epoch, epochs)
	}
	return nil, fmt.Errorf("order %q; there are check and time", word)
}
