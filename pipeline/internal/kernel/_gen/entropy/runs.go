package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"

	"github.com/feedwater-io/feedwater/pipeline/internal/kernel/_gen/asm"
)

func read() {
	TEXT(wide("readRun"), NOSPLIT, "func(data *byte, bits *uint64, end int, units *byte, count int, cells *int16, m, last int) (stop int)")
	Pragma("noescape")
	Doc(wide("readRun") + " decodes MCUs m to last-1 of a run, of count units each, by look-ups of so many bits. " +
		"It returns the number of the first that begins behind the end of the data.")
	l := newLane("", true)
	turns([]*lane{l}, func(left Mem) {
		ac := l.block("", left, true)
		l.look(ac)
		l.rest("rest", ac, "unit")
	})
}

func readTwo() {
	TEXT("readTwoRuns", NOSPLIT, "func(data *byte, bits *uint64, end int, units *byte, cells *int16, "+
		"data2 *byte, bits2 *uint64, end2 int, units2 *byte, cells2 *int16, count, m, last int) (stop int)")
	Pragma("noescape")
	Doc("readTwoRuns is readRun11 for two lanes with the same tables, symbols in turns until a block ends.")
	a, b := newLane("", true), newLane("2", true)
	for _, l := range []*lane{a, b} {
		l.p, l.place = nil, AllocLocal(8)
	}
	b.last = a.last
	turns([]*lane{a, b}, func(left Mem) {
		a.block("first", left, false)
		ac := b.block("second", left, true)
		a.look(ac)
		b.look(ac)
		Label("both")
		a.refill()
		b.refill()
		for range lookUps {
			a.lookUp("first", ac)
			b.lookUp("second", ac)
		}
		JMP(LabelRef("both"))
		a.end("first", ac, "both", "secondRest")
		b.rest("secondRest", ac, "unit")
		b.end("second", ac, "both", "firstRest")
		a.rest("firstRest", ac, "unit")
	})
}

func skip() {
	TEXT(wide("skipRun"), NOSPLIT, "func(data *byte, bits *uint64, end int, units *byte, count, m, last int) (stop int)")
	Pragma("noescape")
	Doc(wide("skipRun") + " is " + wide("readRun") + " without a place for the blocks.")
	l := newLane("", false)
	turns([]*lane{l}, func(left Mem) { l.passOver(l.block("", left, true), "unit") })
}

// turns loops over MCUs m to last-1 and their units. decode gets every lane at the same unit of the same MCU and goes
// to label unit.
func turns(lanes []*lane, decode func(left Mem)) {
	left, t := AllocLocal(8), GP64()
	for _, l := range lanes {
		l.load()
		l.refill()
		l.begin()
	}
	JMP(LabelRef("mcus"))
	Label("mcu")
	for _, l := range lanes {
		l.check("done")
	}
	MOVQ(asm.Param("count"), t)
	MOVQ(t, left)
	Label("block")
	decode(left)
	Label("unit")
	DECQ(left)
	JNZ(LabelRef("block"))
	INCQ(asm.Param("m"))
	Label("mcus")
	MOVQ(asm.Param("m"), t)
	CMPQ(t, asm.Param("last"))
	JLT(LabelRef("mcu"))
	Label("done")
	for _, l := range lanes {
		l.save()
	}
	MOVQ(asm.Param("m"), t)
	Store(t, ReturnIndex(0))
	RET()
}
