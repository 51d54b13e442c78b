package batch

import "slices"

// Field is one array of a batch.
type Field struct {
	Name string `json:"name"`
	// DType is numpy's name of the element type, or bfloat16.
	DType string `json:"dtype"`
	// Shape is that of one sample. A dimension of 0 differs from sample to sample.
	Shape []int `json:"shape"`
	// Offset is where the array begins in the batch; a multiple of Align. Set by Place only.
	Offset int `json:"offset"`
	// Bytes is the array's size. Set by Place only, and 0 where samples differ in size.
	Bytes int `json:"-"`
}

// Align is what the offsets of fields are multiples of.
const Align = 64

// AlignUp is the first multiple of Align that is not less than n.
func AlignUp[T int | uint64](n T) T { return (n + Align - 1) &^ (Align - 1) }

// ElementSize is how many bytes an element of a type takes; 0 for a type that no field has.
func ElementSize(dtype string) int {
	switch dtype {
	case "uint8", "bool":
		return 1
	case "float16", "bfloat16":
		return 2
	case "float32":
		return 4
	case "int64":
		return 8
	}
	return 0
}

// Size is how many bytes the field takes for count samples; 0 where they differ in size.
func (f *Field) Size(count int) int {
	n := count * ElementSize(f.DType)
	for _, d := range f.Shape {
		n *= d
	}
	return n
}

// Place lays fields out behind each other for a batch of count samples. A field whose samples differ in size lies
// behind all others and counts nothing.
func Place(fields []Field, count int) (placed []Field, bytes int) {
	placed = slices.Clone(fields)
	for i := range placed {
		f := &placed[i]
		f.Bytes = f.Size(count)
		if f.Bytes != 0 {
			f.Offset = bytes
			bytes = AlignUp(bytes + f.Bytes)
		}
	}
	for i := range placed {
		if placed[i].Bytes == 0 {
			placed[i].Offset = bytes
		}
	}
	return placed, bytes
}

// OffsetOf is where the named field lies, -1 if there is none.
func OffsetOf(fields []Field, name string) int {
	for _, f := range fields {
		if f.Name == name {
			return f.Offset
		}
	}
	return -1
}
