// Package order says which sample stands at which position of an epoch, which positions a rank takes in a step, and
// which random numbers a sample gets. It is arithmetic only: no clock, no goroutine, no input or output, nothing of
// ours imported. The same arguments give the same answers on every machine, for ever: testdata/vectors.json pins them,
// and every change to that file breaks resumed runs. What the numbers are used for is decided elsewhere.
package order
