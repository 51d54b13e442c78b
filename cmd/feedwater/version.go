package main

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/feedwater-io/feedwater/pipeline"
)

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version and the build, the kernels in use and this machine's numerics",
		Args:  noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			p, err := pipeline.Open(pipeline.Options{Workers: 1, Readers: 1})
			if err != nil {
				return err
			}
			defer p.Close()
			fmt.Fprintf(c.OutOrStdout(), "feedwater %s\nbuild     %s\ngo        %s %s/%s\nkernels   %s\nnumerics  %s\n",
				version, buildOf(), runtime.Version(), runtime.GOOS, runtime.GOARCH, p.Kernels(), p.Numerics())
			return nil
		},
	}
}
