package layout

import (
	"sync"
	"time"
)

// pace finds out how many questions at once a storage answers with profit: it doubles their number for as long as that makes it answer more of
// them a second. A local file system gains nothing beyond the number of cores, one behind a network up to hundreds.
type pace struct {
	most int

	mu    sync.Mutex
	width int       // goroutines that may ask at once
	busy  int       // that do
	begun time.Time // of the measurement
	done  int       // questions answered since
	rate  float64   // of answers per second, to do better than
	rest  int       // measurements until more are tried again
}

const (
	leastWidth = 8
	// gain is what twice as many questions at once must bring to go on with.
	gain = 1.2
	// forget is what is left of an earlier rate when more are tried: storage may become slower.
	forget = 0.9
	// restFor is how many measurements pass before more are tried again.
	restFor = 8
	// rounds is how many times each goroutine takes entries in a measurement, shortest how long it lasts at least.
	rounds   = 2
	shortest = time.Millisecond
)

func newPace(most int) pace { return pace{most: most, width: min(leastWidth, most)} }

// enter counts a goroutine that asks, until leave: the first of a part whatever the width, others through join.
func (p *pace) enter() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.busy == 0 { // nobody has asked for a while
		p.begun, p.done = time.Now(), 0
	}
	p.busy++
}

// join counts one more goroutine if it would be of use, and reports whether it did.
func (p *pace) join() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.busy >= p.width {
		return false
	}
	p.busy++
	return true
}

func (p *pace) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.busy--
}

// note counts answers, and decides when there are enough to judge by.
func (p *pace) note(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done += n
	if p.done < rounds*p.width*lookAtOnce {
		return
	}
	now := time.Now()
	took := now.Sub(p.begun)
	if took < shortest {
		return
	}
	rate := float64(p.done) / took.Seconds()
	p.begun, p.done = now, 0
	switch {
	case p.rest > 0:
		if p.rest--; p.rest == 0 {
			p.grow(rate)
		}
	case rate > gain*p.rate:
		p.grow(rate)
	default:
		p.width, p.rest = max(p.width/2, min(leastWidth, p.most)), restFor
	}
}

// grow doubles the width, which is worth it if more than rate comes of it, or than before if that was a slow moment.
func (p *pace) grow(rate float64) {
	p.rate = max(rate, forget*p.rate)
	if p.width == p.most {
		p.rest = restFor
		return
	}
	p.width = min(2*p.width, p.most)
}
