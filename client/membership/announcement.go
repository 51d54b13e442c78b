package membership

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// RenewEvery is how often a node renews its announcement.
	RenewEvery = 30 * time.Second
	// staleAfter is how much longer ago than any other an announcement was renewed whose node is taken for gone.
	staleAfter = 10 * time.Minute
	// announcementMark begins announcements, and tells them from files that people write and nobody renews.
	announcementMark = "# Announced by its node, which renews this file"
	// announcementMode lets trainers of other users read an announcement, whatever the node's umask.
	announcementMode = 0o644
)

// Announcement is a file with the address of one node, in a folder that trainers know as file:FOLDER. Its methods call
// the file system, which may take its time; they are not to be called at once.
type Announcement struct{ path, text string }

// Announce writes FOLDER/HOST.PID.RANDOM, of this host and process, whole or not at all: processes of two containers
// may have one host and one number. Files that earlier processes left behind which announced the same address are
// removed. The folder has to be there. Whoever announces a node calls Renew each RenewEvery, and Remove when it goes.
func Announce(folder, addr string) (*Announcement, error) {
	if err := CheckAddress(addr); err != nil {
		return nil, err
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	a := &Announcement{
		path: filepath.Join(folder, fmt.Sprintf("%s.%d.%08x", host, os.Getpid(), rand.Uint32())),
		text: fmt.Sprintf("%s each %s.\n%s\n", announcementMark, RenewEvery, addr),
	}
	if err := a.write(); err != nil {
		return a, err
	}
	a.removeEarlier()
	return a, nil
}

// removeEarlier removes what else announces the same address: the port is this node's now. A node elsewhere that has
// the same address, as in another network, writes its file again when it renews it.
func (a *Announcement) removeEarlier() {
	entries, err := os.ReadDir(filepath.Dir(a.path))
	if err != nil {
		return // it may be written, and not read
	}
	for _, e := range entries {
		path := filepath.Join(filepath.Dir(a.path), e.Name())
		info, err := e.Info()
		if err != nil || path == a.path || !info.Mode().IsRegular() || info.Size() != int64(len(a.text)) {
			continue
		}
		if text, err := os.ReadFile(path); err == nil && string(text) == a.text {
			_ = os.Remove(path)
		}
	}
}

// Path is the file's.
func (a *Announcement) Path() string { return a.path }

// write puts the file in place at once: nobody reads half of it. The name of what is being written does not count as a
// node's.
func (a *Announcement) write() error {
	place := filepath.Join(filepath.Dir(a.path), "."+filepath.Base(a.path)+".tmp")
	err := os.WriteFile(place, []byte(a.text), announcementMode)
	if err == nil {
		err = os.Chmod(place, announcementMode)
	}
	if err == nil {
		err = os.Rename(place, a.path)
	}
	if err != nil {
		_ = os.Remove(place)
	}
	return err
}

// Renew says that the node is still there, by the time of the file, which is that of the file server where it has one.
// A file that somebody has removed is written again.
func (a *Announcement) Renew() error {
	now := unix.Timespec{Nsec: unix.UTIME_NOW}
	err := unix.UtimesNanoAt(unix.AT_FDCWD, a.path, []unix.Timespec{now, now}, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return a.write()
	}
	if err != nil {
		return &fs.PathError{Op: "renew", Path: a.path, Err: err}
	}
	return nil
}

// Remove takes the file away. One that is not there is no error.
func (a *Announcement) Remove() error {
	if err := os.Remove(a.path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// listing is what one file of a folder says.
type listing struct {
	path      string
	nodes     []string
	err       error
	announced bool
	renewed   time.Time // of what is announced
}

// dropStale leaves out what was announced, and renewed long before another was: the times of one folder are compared
// with each other, for the clock of whoever reads may be another. Where all are old all stay. Each that is left out is
// an error.
func dropStale(all []listing) []listing {
	var last time.Time
	for _, l := range all {
		if l.announced && l.renewed.After(last) {
			last = l.renewed
		}
	}
	for i := range all {
		if l := &all[i]; l.announced && last.Sub(l.renewed) > staleAfter {
			l.nodes = nil
			l.err = fmt.Errorf("%s was not renewed for more than %s before others were: its node is taken for gone", l.path, staleAfter)
		}
	}
	return all
}

// isAnnouncement reports whether the first line of a file is an announcement's.
func isAnnouncement(line string) bool { return strings.HasPrefix(line, announcementMark) }
