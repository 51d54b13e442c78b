package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/feedwater-io/feedwater/pipeline/codec"
	"github.com/feedwater-io/feedwater/pipeline/order"
)

// cropAndFlip are the transforms whose draws are told to others.
const cropAndFlip = `[{"op": "RandomResizedCrop", "size": [224, 224]}, {"op": "RandomHorizontalFlip"}]`

// writeCrops writes a line for each picture of each epoch: top, left, height, width, 1 where it is flipped, and the file.
func (u *unit) writeCrops(path string, epochs int) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	out := bufio.NewWriter(f)
	for epoch := range uint32(epochs) {
		for i := range u.files {
			line, err := u.crop(i, epoch)
			if err != nil {
				return err
			}
			fmt.Fprintln(out, line)
		}
	}
	return out.Flush()
}

// crop is the line of one picture.
func (u *unit) crop(i int, epoch uint32) (string, error) {
	w := u.workers[0]
	s, err := u.snapshot.At(i, nil)
	if err != nil {
		return "", err
	}
	width, height, err := w.codec.Parse(u.files[i], codec.DefaultLimits())
	if err != nil {
		return "", fmt.Errorf("%s: %w", s.Key, err)
	}
	draws, err := w.runner.Draws(width, height, order.Sample{Epoch: epoch, Index: uint32(i)})
	if err != nil {
		return "", err
	}
	var c struct{ Top, Left, Height, Width, Flip int }
	if err := json.Unmarshal(draws[0].Parameters, &c); err != nil {
		return "", err
	}
	if draws[1].Applied {
		c.Flip = 1
	}
	return fmt.Sprintf("%d %d %d %d %d %s", c.Top, c.Left, c.Height, c.Width, c.Flip, s.Key), nil
}
