package pipeline

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/feedwater-io/feedwater/batch"
	"github.com/feedwater-io/feedwater/pipeline/order"
)

// Shuffle is how many neighbours of the list stay together in an epoch's order: 0 none are permuted, 1 each sample is
// permuted by itself, more: blocks of so many are. In JSON these are false, true and "blocks:64".
type Shuffle uint64

// blocksPrefix begins what a Shuffle of blocks is in JSON.
const blocksPrefix = "blocks:"

// MarshalJSON implements json.Marshaler.
func (s Shuffle) MarshalJSON() ([]byte, error) {
	if s <= 1 {
		return strconv.AppendBool(nil, s == 1), nil
	}
	return json.Marshal(s.String())
}

// String is the Shuffle as people write it.
func (s Shuffle) String() string {
	if s <= 1 {
		return strconv.FormatBool(s == 1)
	}
	return blocksPrefix + strconv.FormatUint(uint64(s), 10)
}

// UnmarshalJSON implements json.Unmarshaler. Errors are *batch.PlanError.
func (s *Shuffle) UnmarshalJSON(text []byte) error {
	switch string(text) {
	case "null":
		return nil
	case "false":
		*s = 0
		return nil
	case "true":
		*s = 1
		return nil
	}
	var name string
	if err := json.Unmarshal(text, &name); err != nil {
		name = string(text)
	}
	digits, found := strings.CutPrefix(name, blocksPrefix)
	size, err := strconv.ParseUint(digits, 10, 64)
	if !found || err != nil || size < 2 || size > order.MaxSamples || digits != strconv.FormatUint(size, 10) {
		return &batch.PlanError{
			Field: "shuffle",
			Message: fmt.Sprintf(`%.50s is none of true, false and "blocks:N", which keeps N neighbours together, N from 2 to %d`,
				text, uint64(order.MaxSamples)),
		}
	}
	*s = Shuffle(size)
	return nil
}

// checkFor says what is wrong with s for a list of so many samples, if anything: blocks that nothing can be permuted of.
func (s Shuffle) checkFor(samples uint64) error {
	if s < 2 || uint64(s) < samples || samples < 2 {
		return nil
	}
	return &batch.PlanError{
		Field:   "shuffle",
		Message: fmt.Sprintf("%s leaves %d samples in their order, which is one block: name smaller blocks, or true", s, samples),
	}
}

// permutationOf returns the order of an epoch of so many samples.
func (s Shuffle) permutationOf(samples, seed uint64, epoch uint32) *order.Permutation {
	if s == 0 {
		return order.Identity(samples)
	}
	return order.NewBlockPermutation(samples, uint64(s), seed, epoch)
}
