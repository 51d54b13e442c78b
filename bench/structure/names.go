package main

import (
	"strings"
	"unicode"
)

// splitWords splits a name where camelCase or an underscore begins a word, in lower case. Digits belong to the word
// before them, and capitals in a row are one word: readHTTP2Frame is read, http2, frame.
func splitWords(name string) []string {
	var words []string
	runes := []rune(name)
	begin := 0
	end := func(i int) {
		if i > begin {
			words = append(words, strings.ToLower(string(runes[begin:i])))
		}
	}
	for i, r := range runes {
		switch {
		case r == '_':
			end(i)
			begin = i + 1
		case i > begin && unicode.IsUpper(r) && beginsWord(runes, i):
			end(i)
			begin = i
		}
	}
	end(len(runes))
	return words
}

func beginsWord(runes []rune, i int) bool {
	return !unicode.IsUpper(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1])
}

// mainClause is what stands before the first punctuation mark that a space or the end follows.
func mainClause(doc string) string {
	text := strings.Join(strings.Fields(doc), " ") + " "
	end := len(text) - 1
	for _, mark := range []string{". ", ", ", ": ", "; "} {
		if at := strings.Index(text, mark); at >= 0 {
			end = min(end, at)
		}
	}
	return text[:end]
}

func hasWord(sentence, word string) bool {
	for _, w := range strings.FieldsFunc(sentence, func(r rune) bool { return !unicode.IsLetter(r) }) {
		if strings.EqualFold(w, word) {
			return true
		}
	}
	return false
}
