package bulkhead

import (
	"bufio"
	"bytes"
	"os"
	"strings"
)

// mountTable lists what is mounted, a line each, on Linux. Reading it asks no file system. Tests have others.
const mountTable = "/proc/self/mountinfo"

// mountsOf are the lines of a mount table about what is mounted over some folders, at or below them: another one tells
// that something was mounted there, or unmounted. It is empty where there is no such table.
func mountsOf(table string, folders []string) string {
	text, err := os.ReadFile(table)
	if err != nil {
		return ""
	}
	var of strings.Builder
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		words := strings.Fields(lines.Text())
		const id, point = 0, 4 // and between: parent, device, root
		if len(words) > point && concerns(mountPoint.Replace(words[point]), folders) {
			of.WriteString(strings.Join(words[id:point+1], " ") + "\n")
		}
	}
	return of.String()
}

// mountPoint reads how the kernel writes a path here.
var mountPoint = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)

// concerns reports whether a folder lies in what is mounted at a point, or the point in a folder.
func concerns(point string, folders []string) bool {
	for _, f := range folders {
		if holds(point, f) || holds(f, point) {
			return true
		}
	}
	return false
}
