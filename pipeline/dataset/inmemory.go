package dataset

import (
	"slices"
	"sync"
)

// lists are kept in this process, where no folder takes them: all that open a data set share them, and a list may stay in use when it is dropped.
type lists struct {
	limit int // bytes of all of them; the last one may be larger

	mu  sync.Mutex
	all []keptList // used last comes last
}

type keptList struct {
	name string
	data []byte
}

// inMemory are the lists of this process.
var inMemory = lists{limit: 256 << 20}

// get returns a list, nil if there is none. Nobody may change it.
func (l *lists) get(name string) []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.IndexFunc(l.all, func(k keptList) bool { return k.name == name })
	if i < 0 {
		return nil
	}
	k := l.all[i]
	l.all = append(slices.Delete(l.all, i, i+1), k)
	return k.data
}

// put keeps a list, in the place of the one of that name.
func (l *lists) put(name string, data []byte) {
	l.drop(name)
	l.mu.Lock()
	defer l.mu.Unlock()
	total := len(data)
	for _, k := range l.all {
		total += len(k.data)
	}
	for len(l.all) > 0 && total > l.limit {
		total -= len(l.all[0].data)
		l.all = slices.Delete(l.all, 0, 1)
	}
	l.all = append(l.all, keptList{name, data})
}

func (l *lists) drop(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = slices.DeleteFunc(l.all, func(k keptList) bool { return k.name == name })
}
