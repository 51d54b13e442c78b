package server

import (
	"container/list"

	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
)

// shelf keeps batches that were made, within a limit of bytes; those that nobody took for longest go first. The caller guards it.
type shelf struct {
	limit, used int64
	all         map[flightKey]*list.Element
	order       list.List // of *kept, the latest used first
}

// kept is a batch on the shelf. Nobody writes it.
type kept struct {
	key    flightKey
	header *pb.Header
	data   []byte
}

// take finds a batch; nil if it is not there.
func (s *shelf) take(key flightKey) *kept {
	e := s.all[key]
	if e == nil {
		return nil
	}
	s.order.MoveToFront(e)
	k, _ := e.Value.(*kept)
	return k
}

// put adds a batch that is no larger than the limit, unless it is there.
func (s *shelf) put(k *kept) {
	if s.take(k.key) != nil {
		return
	}
	for s.used+int64(len(k.data)) > s.limit {
		last, _ := s.order.Remove(s.order.Back()).(*kept)
		s.used -= int64(len(last.data))
		delete(s.all, last.key)
	}
	s.used += int64(len(k.data))
	s.all[k.key] = s.order.PushFront(k)
}
