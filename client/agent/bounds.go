package agent

// A node may say anything. What it says of sizes is looked at here before anything is computed from it.

// arrayBytes is what an array of this type and shape takes; false if that is more than any batch has.
func arrayBytes(dtype string, shape []uint64) (int, bool) {
	const most = 1 << 40
	n := uint64(typeBytes(dtype))
	for _, d := range shape {
		if d != 0 && n > most/d {
			return 0, false
		}
		n *= d
	}
	return int(n), true
}
