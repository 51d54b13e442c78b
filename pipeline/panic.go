package pipeline

import (
	"runtime/debug"

	"github.com/feedwater-io/feedwater/batch"
	"github.com/feedwater-io/feedwater/pipeline/dataset"
)

// catchPanic makes a sample with d. A panic is a *PanicError, where tell, which is Options.OnPanic, wants it; then d is
// as new, for nobody knows what it was left as. A fault on memory that is not there, which assembly could cause, ends
// the process all the same: by then more may be damaged.
func (d *decoder) catchPanic(tell func(*PanicError), ref batch.Ref, s *dataset.Sample, do func() error) (err error) {
	if tell == nil {
		return do()
	}
	defer func() {
		if v := recover(); v != nil {
			*d = *newDecoder(d.level)
			e := &PanicError{Index: ref.Index, Key: string(s.Key), Value: v, Stack: debug.Stack()}
			tell(e)
			err = e
		}
	}()
	return do()
}
