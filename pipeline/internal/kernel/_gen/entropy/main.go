// Command entropy writes the assembly of package jpeg that reads Huffman-coded blocks: of one lane, of two in turns,
// and past them, and of a scan of a progressive file. It does what lane.readScalar, lane.skipScalar and coder.readBand
// do. Run it through `go generate` in package jpeg.
package main

import (
	"strconv"

	. "github.com/mmcloughlin/avo/build"
)

// What it knows of package jpeg, where a test compares it.
const (
	acBits, dcBits = 11, 9
	fewBits        = 10

	dcLong = 4 << dcBits // in a dcTable

	acEntries = 8 << acBits // in an acTable
	acTriples = acEntries + 4<<acBits
	acPlace   = acTriples + 4<<acBits
	acLong    = acPlace + 256

	longLast, longOffset, longSymbols, longMissed = 0, 68, 136 + 16, 416 // in longCodes

	predictorDC, predictorAC, predictorLast = 0, 8, 16
	unitPredictor, unitCell, unitStep       = 0, 8, 16
	unitBytes                               = 64
	bitsAcc, bitsN, bitsAt                  = 0, 8, 16

	endOfBlock = 128

	pairLength = 22

	lookUps  = 2  // of pairs, which a refill has bits for
	refilled = 56 // bits that a refill brings

	placesBytes = 64 + 16
)

// width is how many bits the look-ups of AC codes take of what is being made.
var width = acBits

// Shifts that leave so many of 64, as the offset of a pair and of a triple.
func pairShift() int   { return 64 - width - 3 }
func tripleShift() int { return 64 - width - 2 }

// wide is the name of a function for the width.
func wide(name string) string { return name + strconv.Itoa(width) }

func main() {
	ConstraintExpr("!purego")
	readTwo()
	for _, width = range []int{acBits, fewBits} {
		read()
		skip()
		pairs()
		triples()
	}
	firstBands()
	refineBands()
	Generate()
}
