package transform

import "github.com/feedwater-io/feedwater/pipeline/raster"

type randomChannelPermutation struct{ sameSize }

func newRandomChannelPermutation(*arguments) op { return randomChannelPermutation{} }

func (randomChannelPermutation) draw(d rng, p *program, rec *Draw) error {
	x := d.Block(0)
	permutation := shuffled3(x[0], x[1])
	if rec != nil {
		rec.Parameters = canonical(map[string][3]int{"permutation": permutation})
	}
	return p.apply(raster.PermuteChannels(permutation), p.size())
}
