package agent

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/feedwater-io/feedwater/batch"
	"github.com/feedwater-io/feedwater/client/agent/lasthop"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
)

// layout is where the arrays of a batch of up to samples samples lie in a slot.
type layout struct {
	samples int
	fields  []batch.Field
	bytes   int
}

// newLayout lays fields out for that many samples. Those of differing sizes come last, and have all that is left of the
// slot.
func newLayout(fields []batch.Field, samples int) layout {
	placed, bytes := batch.Place(fields, samples)
	slices.SortStableFunc(placed, func(a, b batch.Field) int { return cmp.Compare(a.Offset, b.Offset) })
	return layout{samples, placed, bytes}
}

// offsetOf of the named field, -1 if there is none.
func (l *layout) offsetOf(name string) int { return batch.OffsetOf(l.fields, name) }

// slots is the trainer's memory, cut into equal slots. It is unmapped when the Loader has let go of it and no want
// holds a slot of it.
type slots struct {
	layout
	count, stride int
	pictures      []lasthop.Picture
	// arriving are the fields as they come.
	arriving []batch.Field

	spares spareBuffers

	mu     sync.Mutex
	memory []byte
	users  int // the Loader, and wants
}

// maxSlotBytes bounds what a trainer can make the agent map.
const maxSlotBytes = 1 << 46

// mapSlots maps the trainer's file. It takes the file over. fields are those of nodes.
func mapSlots(file *os.File, count, stride, samples int, fields []*pb.Field, hops lasthop.Hops) (*slots, error) {
	defer file.Close()
	l := newLayout(lasthop.FinalFields(fields, hops), samples)
	pictures, err := lasthop.NewPictures(fields, l.offsetOf, hops)
	if err != nil {
		return nil, err
	}
	if count < 1 || count > 1<<16 || stride < 1 || stride > maxSlotBytes/count || stride%batch.Align != 0 {
		return nil, fmt.Errorf("%d slots of %d bytes", count, stride)
	}
	if l.bytes > stride {
		return nil, &roomError{l.bytes}
	}
	size := count * stride
	if info, err := file.Stat(); err != nil {
		return nil, err
	} else if info.Size() < int64(size) {
		return nil, fmt.Errorf("a file of %d bytes for %d slots of %d", info.Size(), count, stride)
	}
	memory, err := unix.Mmap(int(file.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map %d bytes of slots: %w", size, err)
	}
	// Where the host allows huge pages for shared memory on request, they make the first batches cheaper; elsewhere
	// this does nothing.
	_ = unix.Madvise(memory, unix.MADV_HUGEPAGE)
	return &slots{layout: l, count: count, stride: stride, memory: memory, users: 1, pictures: pictures, arriving: lasthop.FinalFields(fields, nil)}, nil
}

// lendSlot gives slot i to a want; every lend needs a drop.
func (s *slots) lendSlot(i uint32) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if int64(i) >= int64(s.count) {
		return nil, fmt.Errorf("slot %d of %d", i, s.count)
	}
	s.users++
	o := int(i) * s.stride
	return s.memory[o : o+s.stride : o+s.stride], nil
}

// endUse ends one use; the last one unmaps.
func (s *slots) endUse() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.users--; s.users == 0 {
		_ = unix.Munmap(s.memory)
		s.memory = nil
	}
}

// discardMemory gives the memory back to the system at once, whoever else maps it: forked children of a dead trainer
// would keep it else. What is read there afterwards is zeros.
func (s *slots) discardMemory() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.memory != nil {
		_ = unix.Madvise(s.memory, unix.MADV_REMOVE)
	}
}

// hasConversions reports whether any image is converted.
func (s *slots) hasConversions() bool {
	return slices.ContainsFunc(s.pictures, func(p lasthop.Picture) bool { return p.IsConverted() })
}

// isPicture reports whether a field holds images.
func (s *slots) isPicture(field string) bool {
	return slices.ContainsFunc(s.pictures, func(p lasthop.Picture) bool { return p.Name == field })
}
