// Command manifests writes the chart, rendered with its least values, for those who have no Helm:
//
//	go run ./manifests CHART FOLDER
//
// The folder has a file for each template. Of what was written there before, files that no template has any more are removed.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/feedwater-io/feedwater/deploy/tools/chart"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "manifests: go run ./manifests CHART FOLDER")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "manifests:", err)
		os.Exit(1)
	}
}

func run(dir, folder string) error {
	files, err := chart.Manifests(dir)
	if err != nil {
		return err
	}
	before, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil {
		return err
	}
	for _, file := range before {
		if err := os.Remove(file); err != nil {
			return err
		}
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}
