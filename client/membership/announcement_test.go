package membership

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// announceAs announces a node as another host's, renewed some time ago.
func announceAs(t *testing.T, folder, host, addr string, age time.Duration) string {
	t.Helper()
	a, err := Announce(folder, addr)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(folder, host+".1")
	rename(t, a.Path(), path)
	at := time.Now().Add(-age)
	if err := os.Chtimes(path, at, at); err != nil {
		t.Fatal(err)
	}
	return path
}

// Trainers of other users read what a node announces, however tight its umask is: systemd's unit has 077.
func TestAnnouncementsAreReadable(t *testing.T) {
	before := unix.Umask(0o077)
	defer unix.Umask(before)
	a, err := Announce(t.TempDir(), "cpu-1:7070")
	if err != nil {
		t.Fatal(err)
	}
	check := func() {
		t.Helper()
		if info, err := os.Stat(a.Path()); err != nil || info.Mode().Perm() != 0o644 {
			t.Errorf("%v, %v", info.Mode(), err)
		}
	}
	check()
	if err := errors.Join(os.Remove(a.Path()), a.Renew()); err != nil {
		t.Fatal(err)
	}
	check()
}

// A node that announces itself is listed, is still when its file was removed by somebody, and no more when it goes.
func TestAnnounce(t *testing.T) {
	dir := t.TempDir()
	answers := watch(t, &file{"file:" + dir, dir})
	next(t, answers, "")
	a, err := Announce(dir, "cpu-1:7070")
	if err != nil {
		t.Fatal(err)
	}
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	if want := filepath.Join(dir, fmt.Sprintf("%s.%d.", host, os.Getpid())); !strings.HasPrefix(a.Path(), want) {
		t.Errorf("announced in %s, want %s…", a.Path(), want)
	}
	until(t, answers, "cpu-1:7070")
	if err := os.Remove(a.Path()); err != nil {
		t.Fatal(err)
	}
	until(t, answers, "")
	if err := a.Renew(); err != nil {
		t.Fatal(err)
	}
	until(t, answers, "cpu-1:7070")
	for range 2 {
		if err := a.Remove(); err != nil {
			t.Error(err)
		}
	}
	until(t, answers, "")
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}

// Renewing makes a file young.
func TestRenew(t *testing.T) {
	dir := t.TempDir()
	a, err := Announce(dir, "cpu-1:7070")
	if err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(a.Path(), old, old); err != nil {
		t.Fatal(err)
	}
	if err := a.Renew(); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(a.Path()); err != nil || !info.ModTime().After(old.Add(time.Minute)) {
		t.Errorf("%v, %v", info.ModTime(), err)
	}
}

// A folder that is not there or takes no files, and what is no address, are told before anybody relies on the file;
// nothing is left behind.
func TestAnnounceRefuses(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "file"), "")
	for folder, want := range map[string]string{filepath.Join(dir, "none"): "no such file", filepath.Join(dir, "file"): "not a directory"} {
		if _, err := Announce(folder, "cpu-1:7070"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", folder, err)
		}
	}
	if _, err := Announce(dir, "cpu-1"); err == nil {
		t.Error("no address is announced")
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}

// What a host that died has announced is left out where others are younger. Files that people write stay, however old,
// and so does all that is announced where nothing is young.
func TestStaleAnnouncements(t *testing.T) {
	dir := t.TempDir()
	f := &file{"file:" + dir, dir}
	old := announceAs(t, dir, "dead", "cpu-1:7070", 3*time.Hour)
	announceAs(t, dir, "dead-too", "cpu-2:7070", 3*time.Hour)
	if a := f.readAddresses(); a.Err != nil || len(a.Nodes) != 2 {
		t.Errorf("all are old: %s", text(a))
	}
	announceAs(t, dir, "late", "cpu-3:7070", 9*time.Minute)
	announceAs(t, dir, "alive", "cpu-4:7070", 0)
	byHand := filepath.Join(dir, "by-hand")
	write(t, byHand, "cpu-5:7070\n")
	year := time.Now().AddDate(-1, 0, 0)
	if err := os.Chtimes(byHand, year, year); err != nil {
		t.Fatal(err)
	}
	a := f.readAddresses()
	if got := strings.Join(a.Nodes, " "); got != "cpu-4:7070 cpu-5:7070 cpu-3:7070" {
		t.Errorf("listed are %s", got)
	}
	if a.Err == nil || !strings.Contains(a.Err.Error(), old+" was not renewed") || strings.Count(a.Err.Error(), "\n") != 1 {
		t.Errorf("%v", a.Err)
	}
	if one := (&file{"file:" + old, old}).readAddresses(); text(one) != "cpu-1:7070" {
		t.Errorf("a file that is named itself: %s", text(one))
	}
}

// Whoever has the file open reads it whole: it is never written in place.
func TestAnnouncementIsWhole(t *testing.T) {
	dir := t.TempDir()
	a, err := Announce(dir, "cpu-1:7070")
	if err != nil {
		t.Fatal(err)
	}
	reader := filepath.Join(t.TempDir(), "reader") // the same file, as one who has opened it has
	if err := os.Link(a.Path(), reader); err != nil {
		t.Fatal(err)
	}
	a.text = strings.Replace(a.text, "cpu-1", "cpu-2", 1)
	if err := a.write(); err != nil {
		t.Fatal(err)
	}
	if was, is := readListing(reader), readListing(a.Path()); text(Answer{Nodes: was.nodes}) != "cpu-1:7070" || text(Answer{Nodes: is.nodes}) != "cpu-2:7070" {
		t.Errorf("%q and %q", was.nodes, is.nodes)
	}
}

// Nodes of two containers may have one host name and one number: each has a file of its own, and the end of one leaves the other's.
func TestNodesOfOneHostAndNumber(t *testing.T) {
	dir := t.TempDir()
	one, other := announced(t, dir, "cpu-1:7070"), announced(t, dir, "cpu-1:7071")
	if one.Path() == other.Path() {
		t.Fatalf("both announce %s", one.Path())
	}
	if err := one.Remove(); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(other.Path()); err != nil || !strings.Contains(string(text), "cpu-1:7071") {
		t.Errorf("%q, %v", text, err)
	}
}

// What a process left behind that was killed goes when its address is announced anew; other files stay.
func TestAnnounceRemovesWhatWasLeftBehind(t *testing.T) {
	dir := t.TempDir()
	left, other := announced(t, dir, "cpu-1:7070"), announced(t, dir, "cpu-2:7070")
	byHand := filepath.Join(dir, "list")
	if err := os.WriteFile(byHand, []byte("cpu-1:7070\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	anew := announced(t, dir, "cpu-1:7070")
	for path, want := range map[string]bool{left.Path(): false, other.Path(): true, byHand: true, anew.Path(): true} {
		if _, err := os.Stat(path); (err == nil) != want {
			t.Errorf("%s is there: %v, want %v", path, err == nil, want)
		}
	}
}

func announced(t *testing.T, dir, addr string) *Announcement {
	t.Helper()
	a, err := Announce(dir, addr)
	if err != nil {
		t.Fatal(err)
	}
	return a
}
