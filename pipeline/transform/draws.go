package transform

import (
	"encoding/json"
	"fmt"

	"github.com/feedwater-io/feedwater/pipeline/order"
	"github.com/feedwater-io/feedwater/pipeline/raster"
)

// Draw tells what an op drew for a sample.
type Draw struct {
	// Op is the op's class.
	Op string `json:"op"`
	// Applied is false where a random op left the picture as it was.
	Applied bool `json:"applied"`
	// Parameters is a JSON object with the names that the class's make_params uses.
	Parameters json.RawMessage `json:"parameters"`
}

// MostDraws is how many draws a sample has at most, those of transforms inside others too.
func (c Chain) MostDraws() int { return c.countOps() }

// Flat has the parameters beside op and applied.
func (d *Draw) Flat() json.RawMessage {
	head := fmt.Sprintf(`{"op":%q,"applied":%t`, d.Op, d.Applied)
	if len(d.Parameters) > len("{}") {
		head += ","
	}
	return append([]byte(head), d.Parameters[1:]...)
}

// rng has the random words of one op for one sample.
type rng struct {
	raster.RNG
	inside []keyring // of the ops inside it
}

// A keyring has an op's key, and the keyrings of the ops inside it.
type keyring struct {
	order.Key
	inside []keyring
}

// shuffleIndices makes s a permutation of 0…len(s)−1: Fisher and Yates, forwards, step i from word i mod 4 of block i
// div 4.
func (d rng) shuffleIndices(s []uint8) {
	for i := range s {
		s[i] = uint8(i)
	}
	var x [4]uint32
	for i := range len(s) - 1 {
		if i%4 == 0 {
			x = d.Block(uint32(i / 4))
		}
		j := i + int(order.Below(x[i%4], uint32(len(s)-i)))
		s[i], s[j] = s[j], s[i]
	}
}

// drawApplied draws whether a random op is applied, as torch compares: in float32.
func drawApplied(d rng, p float64, rec *Draw) bool {
	applied := order.Unit(d.Block(0)[0]) < float32(p)
	if rec != nil {
		rec.Applied = applied
	}
	return applied
}

// drawUniform draws a float32 from a range.
func drawUniform(x uint32, ends [2]float64) float64 {
	return float64(order.Uniform(x, float32(ends[0]), float32(ends[1])))
}

// drawPermutation4 is a permutation of 0…3: Fisher and Yates, forwards, one word a step.
func drawPermutation4(x [4]uint32) [4]int {
	s := [4]int{0, 1, 2, 3}
	for i := range 3 {
		j := i + int(order.Below(x[i], uint32(4-i)))
		s[i], s[j] = s[j], s[i]
	}
	return s
}

// drawPermutation3 is a permutation of 0…2: Fisher and Yates, forwards, one word a step.
func drawPermutation3(x, y uint32) [3]int {
	s := [3]int{0, 1, 2}
	i, j := order.Below(x, 3), 1+order.Below(y, 2)
	s[0], s[i] = s[i], s[0]
	s[1], s[j] = s[j], s[1]
	return s
}
