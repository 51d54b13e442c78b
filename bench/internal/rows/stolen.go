package rows

import (
	"os"
	"strconv"
	"strings"
)

// watch begins to watch the machine; what it returns tells the share of its cores that its host has given to others since.
func watch() func() float64 {
	before, stolen := cores()
	return func() float64 {
		now, s := cores()
		if now <= before {
			return 0
		}
		return (s - stolen) / (now - before)
	}
}

// stealColumn is that of stolen time in the first line of /proc/stat (proc_stat(5)); those behind it are part of others.
const stealColumn = 8

// cores is the time of all cores and that of it which others had, since the machine began, in ticks; 0 where that is not told.
func cores() (all, stolen float64) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, 0
	}
	return parse(string(text))
}

func parse(text string) (all, stolen float64) {
	line, _, _ := strings.Cut(text, "\n")
	columns := strings.Fields(line)
	if len(columns) <= stealColumn {
		return 0, 0
	}
	for _, c := range columns[1 : stealColumn+1] {
		ticks, _ := strconv.ParseFloat(c, 64)
		all += ticks
		stolen = ticks
	}
	return all, stolen
}
