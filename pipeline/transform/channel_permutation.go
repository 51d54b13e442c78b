package transform

import "github.com/feedwater-io/feedwater/pipeline/raster"

type randomChannelPermutation struct{ sameSize }

func newRandomChannelPermutation(*arguments) op { return randomChannelPermutation{} }

func (randomChannelPermutation) drawParameters(d rng, p *program, rec *Draw) error {
	x := d.Block(0)
	permutation := drawPermutation3(x[0], x[1])
	if rec != nil {
		rec.Parameters = marshalCanonical(map[string][3]int{"permutation": permutation})
	}
	return p.addEffect(raster.PermuteChannels(permutation), p.currentSize())
}
