//go:build amd64 && !purego && unix

package kernel

import (
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"testing"
)

// The fast levels really run the assembly: a fault in the middle of a kernel is in a function of the generated file.
func TestAssemblyRuns(t *testing.T) {
	wild, err := syscall.Mmap(-1, 0, os.Getpagesize(), syscall.PROT_NONE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Munmap(wild) }()
	ok := make([]byte, 1000)
	cases := map[string]map[string]func(*JPEG){
		AVX2: {
			"idctPairs":  func(k *JPEG) { k.IDCT(wild[:7*16+16], 16, make([]Block, 2), new([64]uint16)) },
			"colorRow":   func(k *JPEG) { k.Color(ok, wild[:100], ok, ok) },
			"greyRow":    func(k *JPEG) { k.Grey(ok, wild[:100]) },
			"h2v1Row":    func(k *JPEG) { k.H2V1(ok, wild[:102]) },
			"h2v2Row":    func(k *JPEG) { k.H2V2(ok, wild[:102], ok) },
			"h1v2Row":    func(k *JPEG) { k.H1V2(ok, wild[:100], ok, 1) },
			"unstuffRun": func(k *JPEG) { k.Unstuff(ok, wild[:100]) },
		},
		AVX512: {
			"idctFours":    func(k *JPEG) { k.IDCT(wild[:7*32+32], 32, make([]Block, 4), new([64]uint16)) },
			"idctPairs":    func(k *JPEG) { k.IDCT(wild[:7*16+16], 16, make([]Block, 2), new([64]uint16)) },
			"colorRowWide": func(k *JPEG) { k.Color(ok, wild[:100], ok, ok) },
			"colorRow":     func(k *JPEG) { k.Color(ok, wild[:63], ok, ok) },
		},
	}
	for _, level := range Levels() {
		for name, f := range cases[level] {
			t.Run(level+"/"+name, func(t *testing.T) {
				if got := faultIn(func() { f(JPEGFor(level)) }); !strings.HasSuffix(got, "."+name) {
					t.Errorf("fault in %q", got)
				}
			})
		}
	}
}

// faultIn runs f and names the function in which it faulted.
func faultIn(f func()) (name string) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if recover() == nil {
			name = "no fault"
			return
		}
		var pcs [32]uintptr
		frames := runtime.CallersFrames(pcs[:runtime.Callers(0, pcs[:])])
		for seen := false; ; {
			fr, more := frames.Next()
			if seen {
				name = fr.Function
				return
			}
			seen = fr.Function == "runtime.sigpanic"
			if !more {
				return
			}
		}
	}()
	f()
	return ""
}
