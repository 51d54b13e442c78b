package main

import (
	"fmt"
	"runtime/debug"
	"sync"
)

// commit is what git describe said where the program was linked; empty: the Go command's own note of the revision is used.
var commit string

// buildOf tells one build from another: the version, and the commit that it was built from, as far as that is known.
var buildOf = sync.OnceValue(func() string {
	if commit != "" {
		return fmt.Sprintf("%s (%s)", version, commit)
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return version
	}
	return nameBuild(version, info.Settings)
})

// nameBuild is buildOf for what the Go command noted.
func nameBuild(version string, settings []debug.BuildSetting) string {
	revision, modified := "", ""
	for _, s := range settings {
		switch {
		case s.Key == "vcs.revision":
			revision = s.Value[:min(len(s.Value), 12)]
		case s.Key == "vcs.modified" && s.Value == "true":
			modified = "-dirty"
		}
	}
	if revision == "" {
		return version
	}
	return fmt.Sprintf("%s (%s%s)", version, revision, modified)
}
