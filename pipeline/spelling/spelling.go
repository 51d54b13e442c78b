// Package spelling tells how far a wrong name is from a right one, for errors that suggest it.
package spelling

import "strings"

// Edits is the Levenshtein distance, in bytes. Names are short; what is beyond 64 bytes counts as edits.
func Edits(a, b string) int {
	extra := max(len(a)-64, 0)
	a = a[:len(a)-extra]
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)] + extra
}

// Nearest is the name that a wrong one is nearest to; empty: it is near to none.
func Nearest(wrong string, names []string) string {
	best, least := "", 1+max(2, len(wrong)/3)
	for _, name := range names {
		if d := Edits(wrong, name); d < least {
			best, least = name, d
		}
	}
	return best
}

// Suggest ends an error about a wrong name: with the one that it is nearest to, or else with all that there are.
func Suggest(wrong string, names []string) string {
	if best := Nearest(wrong, names); best != "" {
		return "; did you mean " + best + "?"
	}
	return "; there are " + strings.Join(names, ", ")
}
