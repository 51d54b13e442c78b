package pipeline

import (
	"encoding/binary"
	"hash/crc32"

	"github.com/feedwater-io/feedwater/batch"
	"github.com/feedwater-io/feedwater/pipeline/transform"
)

// Where the pixels and numbers of each sample stand in a batch, or until all are there.

// placeOf is where the pixels of picture k of sample i go.
func (a *assembly) placeOf(d *decoder, k, i int, result size) ([]byte, error) {
	if a.want.job.pictures[k].isRagged() {
		return a.addRagged(k, i, result)
	}
	return a.fixedPlace(d, k, i), nil
}

// fixedPlace is the place of picture k of sample i where all samples are of one size: in the batch, or the decoder's
// own memory where the want takes each image.
func (a *assembly) fixedPlace(d *decoder, k, i int) []byte {
	w := a.want
	n := w.job.pictures[k].bytes
	if w.Image != nil && !w.job.pictures[k].mask {
		if cap(d.pixels) < n {
			d.pixels = make([]byte, n)
		}
		return d.pixels[:n]
	}
	o := a.pictures[k].at + i*n
	return w.Dst[o : o+n : o+n]
}

// addRagged makes a place for picture k of a sample of a batch that is put together when all sizes are known.
func (a *assembly) addRagged(k, i int, result size) ([]byte, error) {
	n := result.countBytes()
	taken := a.taken.Add(int64(n))
	if a.want.Charge != nil && !a.want.Charge(n) {
		return nil, &RoomError{a.bytes + int(taken)}
	}
	a.pictures[k].pixels[i], a.sizes[i] = make([]byte, n), result
	return a.pictures[k].pixels[i], nil
}

// finishPicture hands the pixels of picture k of sample i on, or notes their checksum.
func (a *assembly) finishPicture(k, i int, dst []byte) {
	switch {
	case a.want.Image != nil && !a.want.job.pictures[k].mask:
		a.want.Image(k, i, dst)
	case a.pictures[k].sums != nil:
		a.pictures[k].sums[i] = crc32.Checksum(dst, castagnoli)
	}
}

// clearSample fills the place of a sample that is left out: with zeros where all samples are of one size, else with
// nothing.
func (a *assembly) clearSample(i int) {
	pictures := a.want.job.pictures
	for k := range pictures {
		if pictures[k].isRagged() { // it may have been begun
			a.pictures[k].pixels[i], a.sizes[i] = nil, size{}
		} else {
			dst := a.fixedPlace(&decoder{}, k, i)
			clear(dst)
			a.finishPicture(k, i, dst)
		}
		a.setBoxes(k, i, make([]transform.Box, pictures[k].chain.Boxes()))
	}
	a.setNumber("label", i, 0)
	a.clearValues(i)
	a.clearDraws(i)
}

// setBoxes writes the rectangles of picture k of sample i.
func (a *assembly) setBoxes(k, i int, boxes []transform.Box) {
	for at, b := range boxes {
		for n, x := range b {
			a.setNumber(a.want.job.pictures[k].boxes, (i*len(boxes)+at)*len(b)+n, uint64(x))
		}
	}
}

// setNumber writes element i of a field of integers, if the batch has it.
func (a *assembly) setNumber(field string, i int, v uint64) {
	if o := batch.OffsetOf(a.fields, field); o >= 0 {
		binary.LittleEndian.PutUint64(a.want.Dst[o+8*i:], v)
	}
}
