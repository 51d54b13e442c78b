// Package spelling tells how far a wrong name is from a right one, for errors that suggest it.
package spelling

import (
	"slices"
	"strings"
	"unicode"
)

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

// NearestClass is the class that a wrong name is nearest to, by letters or by words: RandomCropResize is
// RandomResizedCrop, as it has its words, and Crop is CenterCrop. Cases do not count; empty: there are no names.
func NearestClass(wrong string, names []string) string {
	best, least := "", 0
	for _, name := range names {
		d := min(Edits(strings.ToLower(wrong), strings.ToLower(name)), editsOfWords(wrong, name))
		if best == "" || d < least {
			best, least = name, d
		}
	}
	return best
}

// editsOfWords is how far two names are from each other where the order of their words does not count: the edits of
// words that stand for each other, all letters of words that b has nothing for, and 1 for each further word of b.
func editsOfWords(a, b string) int {
	left, d := words(b), 0
	for _, word := range words(a) {
		nearest, least := -1, len(word)
		for i, other := range left {
			if e := Edits(word, other); e < least {
				nearest, least = i, e
			}
		}
		d += least
		if nearest >= 0 {
			left = slices.Delete(left, nearest, nearest+1)
		}
	}
	return d + len(left)
}

// words are those of a name like RandomResizedCrop or random_resized_crop, in small letters.
func words(name string) (all []string) {
	var word []rune
	var before rune
	for _, r := range name {
		if isSign := !unicode.IsLetter(r); isSign || unicode.IsUpper(r) && !unicode.IsUpper(before) {
			all, word = append(all, strings.ToLower(string(word))), nil
			if isSign {
				before = 0
				continue
			}
		}
		word, before = append(word, r), r
	}
	all = append(all, strings.ToLower(string(word)))
	return slices.DeleteFunc(all, func(s string) bool { return s == "" })
}

// Suggest ends an error about a wrong name: with the one that it is nearest to, or else with all that there are.
func Suggest(wrong string, names []string) string {
	if best := Nearest(wrong, names); best != "" {
		return "; did you mean " + best + "?"
	}
	return "; there are " + strings.Join(names, ", ")
}
