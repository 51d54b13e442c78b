//go:build !amd64 || purego

package png

func unfilterVector(byte, []byte, []byte, []byte, int) { panic("png: built without assembly") }

func unfilterWave(*lines, filtered, int) { panic("png: built without assembly") }

func adlerSums(*byte, int) (uint32, uint32) { panic("png: built without assembly") }
