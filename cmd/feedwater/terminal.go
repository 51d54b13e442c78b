package main

import (
	"io"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// windowOf is the size of the terminal that out is; nil: it is none.
func windowOf(out io.Writer) *unix.Winsize {
	f, ok := out.(*os.File)
	if !ok {
		return nil
	}
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return nil
	}
	return size
}

// terminalWidth is how many characters a line of out holds: the terminal's, else COLUMNS, else 160.
func terminalWidth(out io.Writer) int {
	if size := windowOf(out); size != nil && size.Col > 0 {
		return int(size.Col)
	}
	if n, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && n > 0 {
		return n
	}
	return 160
}
