package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/feedwater-io/feedwater/pipeline/bulkhead"
	"github.com/feedwater-io/feedwater/pipeline/dataset"
)

// folders is a flag of folders by the names that trainers know them by: NAME=FOLDER, or several with commas between them.
type folders map[string]string

// Set implements pflag.Value. A comma parts two folders only where a NAME= follows: folders may have commas in their names.
func (f folders) Set(s string) error {
	var pairs []string
	for _, part := range strings.Split(s, ",") {
		name, _, ok := strings.Cut(part, "=")
		if last := len(pairs) - 1; last >= 0 && (!ok || strings.Contains(name, "/")) {
			pairs[last] += "," + part
			continue
		}
		pairs = append(pairs, strings.TrimSpace(part))
	}
	for _, pair := range pairs {
		if err := f.addPair(pair); err != nil {
			return err
		}
	}
	return nil
}

func (f folders) addPair(pair string) error {
	name, folder, ok := strings.Cut(pair, "=")
	_, twice := f[name]
	switch {
	case !ok || name == "" || folder == "":
		return fmt.Errorf("%q is not NAME=FOLDER", pair)
	case strings.Contains(name, "/"):
		return fmt.Errorf("the name %q has a slash: it is one word", name)
	case !utf8.ValidString(name):
		return fmt.Errorf("the name %q is not UTF-8: trainers and metrics have it as text; the folder's may be anything", name)
	case twice:
		return fmt.Errorf("the name %q is there twice", name)
	}
	f[name] = folder
	return nil
}

// String implements pflag.Value.
func (f folders) String() string {
	pairs := make([]string, 0, len(f))
	for _, name := range f.sortedNames() {
		pairs = append(pairs, name+"="+f[name])
	}
	return strings.Join(pairs, ",")
}

// Type implements pflag.Value.
func (f folders) Type() string { return "NAME=FOLDER" }

func (f folders) isRepeatable() {}

func (f folders) sortedNames() []string { return slices.Sorted(maps.Keys(f)) }

// folderWithin is how long a folder is waited for at the start.
const folderWithin = 5 * time.Second

// checkExist looks whether the folders are there, may be read, and have something in them. One whose storage does not
// answer may come back: the log says so, and the others are served meanwhile.
func (f folders) checkExist(log *slog.Logger) error {
	roots := bulkhead.New(bulkhead.Options{Deadline: folderWithin})
	defer roots.Close()
	for _, name := range f.sortedNames() {
		if dataset.IsProgram(f[name]) {
			return fmt.Errorf("--data %s: python:// is for Loaders of this machine: feedwater.Bytes(dataset, version=…)", name)
		}
		if dataset.IsURL(f[name]) {
			err := dataset.CheckServer(context.Background(), f[name], folderWithin)
			if err := f.checkAnswer(name, err, new(*dataset.UnansweredError), log); err != nil {
				return err
			}
			continue
		}
		look := func(func()) (struct{}, error) { return struct{}{}, checkFolder(f[name]) }
		_, err := bulkhead.Do(context.Background(), roots.Of(f[name]), "look at the folder", look, nil)
		if err := f.checkAnswer(name, err, new(*bulkhead.HungError), log); err != nil {
			return err
		}
	}
	return nil
}

// checkAnswer is the error of a look at a folder. One that unanswered is set to by errors.As is none: the log tells it.
func (f folders) checkAnswer(name string, err error, unanswered any, log *slog.Logger) error {
	switch {
	case err == nil:
		return nil
	case errors.As(err, unanswered):
		log.Warn("no answer from where the data lies: it is served when there is one", "data", name, "err", err)
		return nil
	}
	return fmt.Errorf("--data %s: %w", name, err)
}

// checkFolder looks whether a path is that of a folder that has something in it.
func checkFolder(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is no folder", path)
	}
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	defer dir.Close()
	if _, err = dir.ReadDir(1); errors.Is(err, io.EOF) {
		return fmt.Errorf("%s is empty: is the disk mounted that should be there?", path)
	}
	return err
}
