// Command image writes an OCI image of Feedwater's program, from nothing: no base image, no daemon, no registry.
//
//	go run ./image -out DIR -name NAME:TAG -version V -revision R -created SECONDS -doc FILE… linux/amd64=PROGRAM…
//	go run ./image -certificates FILE
//
// DIR becomes an OCI layout, and DIR.tar the same in one file, for tools that load one. With several platforms the image is an index of one
// image each. The same arguments and files make the same bytes, on any machine. FILE becomes the roots of certificates that are in the image.
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"time"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

// files is a flag that may be given more than once.
type files []string

func (f *files) String() string     { return strings.Join(*f, ",") }
func (f *files) Set(s string) error { *f = append(*f, s); return nil }

// run does what the command's arguments ask for, and prints the image's name, digest and size.
func run(args []string) error {
	var s spec
	var created int64
	var out, certificates string
	f := flag.NewFlagSet("image", flag.ContinueOnError)
	f.StringVar(&out, "out", "", "folder of the layout; it is made anew")
	f.StringVar(&s.name, "name", "", "name and tag that the image is loaded by")
	f.StringVar(&s.version, "version", "", "version of the program")
	f.StringVar(&s.revision, "revision", "", "commit that it was built from")
	f.Int64Var(&created, "created", 0, "when that commit was made, in seconds since 1970")
	f.StringVar(&certificates, "certificates", "", "file for the roots of certificates; nothing else is done")
	f.Var((*files)(&s.docs), "doc", "file for usr/share/doc/feedwater; more than once for more")
	if err := f.Parse(args); err != nil {
		return err
	}
	if certificates != "" {
		return os.WriteFile(certificates, rootCertificates(), 0o644)
	}
	s.created = time.Unix(created, 0).UTC()
	if out == "" || s.name == "" || f.NArg() == 0 {
		return fmt.Errorf("-out, -name and PLATFORM=PROGRAM are needed")
	}
	for _, arg := range f.Args() {
		p, err := parseProgram(arg)
		if err != nil {
			return err
		}
		s.programs = append(s.programs, p)
	}
	index, err := s.build()
	if err != nil {
		return err
	}
	if err := writeLayout(out, index); err != nil {
		return err
	}
	if err := writeArchive(out+".tar", out); err != nil {
		return err
	}
	return report(os.Stdout, s.name, index)
}
