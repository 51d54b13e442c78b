package client

// Checked tells tests whether released batches are checked.
const Checked = checked

// Spare is how many batches' memory a Loader holds that no batch is in.
func (l *Loader) Spare() int {
	l.slots.mu.Lock()
	defer l.slots.mu.Unlock()
	return len(l.slots.free)
}

// CheckProtocol is what a fleet asks of a node's answer.
var CheckProtocol = checkProtocol

// SetID is what a stream does on Send, for tests that have one of their own.
func (a *Attempt) SetID(id uint64) { a.id = id }
