package augment

import (
	"github.com/feedwater-io/feedwater/pipeline/pixel"
)

// permuteChannels makes channel k of what was channel p[k].
func permuteChannels(p [3]int) effect {
	return effect{inPlace: permute, numbers: [16]float64{float64(p[0]), float64(p[1]), float64(p[2])}}
}

func permute(e *effect, _ *workspace, m *pixel.Image) {
	a, b, c := int(e.numbers[0]), int(e.numbers[1]), int(e.numbers[2])
	for y := range m.H {
		row := rowOf(m, y)
		for i := 0; i < len(row); i += 3 {
			p := row[i : i+3 : i+3]
			p[0], p[1], p[2] = p[a], p[b], p[c]
		}
	}
}

type randomChannelPermutation struct{ sameSize }

func newRandomChannelPermutation(*arguments) op { return randomChannelPermutation{} }

func (randomChannelPermutation) draw(d dice, p *program, rec *Draw) error {
	x := d.block(0)
	permutation := shuffled3(x[0], x[1])
	if rec != nil {
		rec.Parameters = canonical(map[string][3]int{"permutation": permutation})
	}
	return p.apply(permuteChannels(permutation), p.size())
}
