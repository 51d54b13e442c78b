// Command entropy writes the assembly of package jpeg that reads Huffman-coded blocks: of one lane, of two in turns,
// and past them, and of a scan of a progressive file. It does what lane.readScalar, lane.skipScalar and coder.readBand
// do. Run it through `go generate` in package jpeg.
package main

import (
	. "github.com/mmcloughlin/avo/build"
)

// What it knows of package jpeg, where a test compares it.
const (
	acBits, dcBits = 11, 9

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

	pairLength  = 22
	pairShift   = 64 - acBits - 3
	tripleShift = 64 - acBits - 2

	lookUps  = 2  // of pairs, which a refill has bits for
	refilled = 56 // bits that a refill brings

	placesBytes = 64 + 16
)

func main() {
	ConstraintExpr("!purego")
	read()
	readTwo()
	skip()
	pairs()
	triples()
	firstBands()
	refineBands()
	Generate()
}
