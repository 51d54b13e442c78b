// Command jpegfolder writes an image folder of generated JPEG files that are as varied and as large as photographs.
package main

import (
	"flag"
	"fmt"
	"log"
	"os"

	"github.com/feedwater-io/feedwater/pipeline/codec/jpeg/jpegtest"
)

const usage = `Usage: jpegfolder [flags] DIR

Writes DIR/class_000/img_0000.jpg and so on: generated pictures that compress like photographs, some 100 KB each, with the mix
of samplings, grey pictures and restart markers of photographs from the web. The same flags give the same bytes on
every machine. Existing files of these names are overwritten.
`

func main() {
	log.SetFlags(0)
	flag.Usage = func() {
		log.New(flag.CommandLine.Output(), "", 0).Print(usage)
		flag.PrintDefaults()
	}
	classes := flag.Int("classes", 10, "number of classes")
	images := flag.Int("images", 100, "images per class")
	seed := flag.Uint64("seed", 1, "another seed gives other pictures")
	flag.Parse()
	if flag.NArg() != 1 || *classes < 1 || *images < 1 {
		flag.Usage()
		os.Exit(2)
	}
	if err := jpegtest.Folder(flag.Arg(0), *classes, *images, *seed); err != nil {
		log.Fatal("jpegfolder: ", err)
	}
	fmt.Printf("%d images of %d classes in %s\n", *classes**images, *classes, flag.Arg(0))
}
