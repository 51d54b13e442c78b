package layout

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/feedwater-io/feedwater/pipeline/dataset/manifest"
	"github.com/feedwater-io/feedwater/pipeline/dataset/store"
)

// maxObjects is how many objects a pattern may name, and maxNames how many bytes the names that its braces stand for may have, all together.
const (
	maxObjects = 1 << 20
	maxNames   = 64 << 20
)

// signs are what makes a path a pattern. In brackets each stands for itself: "[{]".
const signs = "{*?["

// IsPattern reports whether a path is not that of one thing: it has braces or wildcards.
func IsPattern(name string) bool { return strings.ContainsAny(name, signs) }

// Escape is the pattern of one name, whatever is in it.
func Escape(name string) string {
	var b strings.Builder
	for i := range len(name) {
		if strings.IndexByte(signs, name[i]) >= 0 {
			b.WriteString("[" + name[i:i+1] + "]")
			continue
		}
		b.WriteByte(name[i])
	}
	return b.String()
}

// Literal is the only name that a pattern stands for, as Escape writes it or without signs; false: it stands for others too.
func Literal(pattern string) (string, bool) {
	var b strings.Builder
	for i := 0; i < len(pattern); i++ {
		switch {
		case isEscaped(pattern, i):
			b.WriteByte(pattern[i+1])
			i += 2
		case strings.IndexByte(signs, pattern[i]) >= 0:
			return "", false
		default:
			b.WriteByte(pattern[i])
		}
	}
	return b.String(), true
}

// isEscaped reports whether a sign in brackets begins at a byte.
func isEscaped(pattern string, at int) bool {
	return at+2 < len(pattern) && pattern[at] == '[' && strings.IndexByte(signs, pattern[at+1]) >= 0 && pattern[at+2] == ']'
}

// cutBrace is strings.Cut before the next brace that does not stand for itself.
func cutBrace(pattern string) (before, behind string, found bool) {
	for i := 0; i < len(pattern); i++ {
		switch {
		case isEscaped(pattern, i):
			i += 2
		case pattern[i] == '{':
			return pattern[:i], pattern[i+1:], true
		}
	}
	return pattern, "", false
}

// match lists the objects that a pattern names, a path below the folder with slashes: braces in the order in which
// they are written, "{000..146}" and "{a,b}"; what wildcards stand for, "*", "?" and "[a-z]", in byte order. Each
// name comes once. Where there are wildcards the manifest watches what they stand for.
func match(ctx context.Context, from store.Store, pattern string, to *manifest.Builder) ([]string, error) {
	names, err := matching(ctx, from, pattern)
	if err == nil && strings.ContainsAny(pattern, "*?[") {
		to.Watch(listingSign+pattern, listingOf(names))
	}
	return names, err
}

// listingSign begins what is watched where that is not a file or a directory, but which names a pattern stands for.
const listingSign = "\x00"

// listingOf stands for names.
func listingOf(names []string) store.Attributes {
	h := fnv.New64a()
	for _, name := range names {
		h.Write(append([]byte(name), 0))
	}
	return store.Attributes{Inode: h.Sum64()}
}

// FolderOfWatched is a folder whose storage is asked about what a manifest watches.
func FolderOfWatched(watched string) string {
	if strings.HasPrefix(watched, listingSign) {
		return ""
	}
	return watched
}

// Stat tells what a thing is now that a manifest watches.
func Stat(ctx context.Context, from store.Store, watched string) (store.Attributes, error) {
	pattern, isListing := strings.CutPrefix(watched, listingSign)
	if !isListing {
		return from.Stat(ctx, watched)
	}
	names, err := matching(ctx, from, pattern)
	return listingOf(names), err
}

// matching is match without a manifest.
func matching(ctx context.Context, from store.Store, pattern string) ([]string, error) {
	expanded, err := expand(pattern)
	if err != nil {
		return nil, err
	}
	var all []string
	seen := map[string]bool{}
	for _, name := range expanded {
		if !isBelow(name) {
			return nil, wrong("%s: %.200q leads out of its folder", pattern, name)
		}
		found := []string{name}
		if IsPattern(name) {
			if found, err = glob(ctx, from, "", strings.Split(name, "/")); err != nil {
				return nil, err
			}
			slices.Sort(found)
		}
		for _, f := range found {
			if seen[f] {
				return nil, wrong("%s names %s twice", pattern, f)
			}
			seen[f] = true
		}
		if all = append(all, found...); len(all) > maxObjects {
			return nil, wrong("%s names more than %d objects", pattern, maxObjects)
		}
	}
	if len(all) == 0 && strings.Contains(pattern, "[") {
		return nil, wrong("nothing is called %s; a bracket itself is written [[]", pattern)
	}
	if len(all) == 0 {
		return nil, wrong("nothing is called %s", pattern)
	}
	return all, nil
}

// isBelow reports whether a path can only lead below its folder.
func isBelow(name string) bool {
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || part == "." || part == ".." {
			return false
		}
	}
	return true
}

// expand writes braces out.
func expand(pattern string) ([]string, error) {
	done, open := []string{""}, pattern
	for {
		before, behind, found := cutBrace(open)
		if !found {
			return appendEach(done, []string{open})
		}
		inside, rest, closed := strings.Cut(behind, "}")
		if !closed || strings.ContainsAny(inside, "{/") {
			return nil, wrong("%s: a brace is not closed, or has a brace or a slash in it", pattern)
		}
		choices, err := choicesOf(inside)
		if err != nil {
			return nil, wrong("%s: {%s}: %v", pattern, inside, err)
		}
		if done, err = appendEach(done, []string{before}); err == nil {
			done, err = appendEach(done, choices)
		}
		if err != nil {
			return nil, err
		}
		open = rest
	}
}

// appendEach appends each ending to each beginning.
func appendEach(begins, ends []string) ([]string, error) {
	if len(begins)*len(ends) > maxObjects {
		return nil, wrong("a pattern that names more than %d objects", maxObjects)
	}
	if bytes := bytesOf(begins)*len(ends) + bytesOf(ends)*len(begins); bytes > maxNames {
		return nil, wrong("a pattern whose names have %d bytes: at most %d", bytes, maxNames)
	}
	all := make([]string, 0, len(begins)*len(ends))
	for _, b := range begins {
		for _, e := range ends {
			all = append(all, b+e)
		}
	}
	return all, nil
}

// isPadded reports whether a number has a zero in front, as bash asks for to write the others as long.
func isPadded(digits string) bool { return len(digits) > 1 && digits[0] == '0' }

// bytesOf is how long texts are together.
func bytesOf(texts []string) (total int) {
	for _, text := range texts {
		total += len(text)
	}
	return total
}

// choicesOf are what the inside of a brace stands for.
func choicesOf(inside string) ([]string, error) {
	first, last, isRange := strings.Cut(inside, "..")
	if !isRange {
		if all := strings.Split(inside, ","); len(all) > 1 {
			return all, nil
		}
		return nil, errors.New("write {000..146} or {a,b}; a brace itself is written [{]")
	}
	a, err := strconv.ParseUint(first, 10, 63)
	b, err2 := strconv.ParseUint(last, 10, 63)
	if err != nil || err2 != nil || a > b || b-a >= maxObjects {
		return nil, errors.New("write {first..last}, whole numbers that grow")
	}
	width := 0
	if isPadded(first) || isPadded(last) {
		width = max(len(first), len(last))
	}
	var all []string
	for n := a; n <= b; n++ {
		digits := strconv.FormatUint(n, 10)
		all = append(all, strings.Repeat("0", max(0, width-len(digits)))+digits)
	}
	return all, nil
}

// glob lists what lies below a directory and has names like these, one for each level.
func glob(ctx context.Context, from store.Store, dir string, names []string) (found []string, err error) {
	if !IsPattern(names[0]) {
		below := path.Join(dir, names[0])
		if len(names) > 1 {
			return glob(ctx, from, below, names[1:])
		}
		if _, err := from.Stat(ctx, below); err != nil {
			return nil, err
		}
		return []string{below}, nil
	}
	entries, err := list(ctx, from, dir)
	if err != nil {
		return nil, err
	}
	for _, name := range entries {
		if ok, err := path.Match(negated(names[0]), name); err != nil {
			return nil, wrong("%s: %v", names[0], err)
		} else if !ok || strings.HasPrefix(name, ".") && !strings.HasPrefix(names[0], ".") {
			continue
		}
		below := []string{path.Join(dir, name)}
		if len(names) > 1 {
			if below, err = glob(ctx, from, below[0], names[1:]); store.LeadsNowhere(err) {
				continue // a file, or a folder without such files
			} else if err != nil {
				return nil, err
			}
		}
		if found = append(found, below...); len(found) > maxObjects {
			return nil, wrong("%s names more than %d objects", names[0], maxObjects)
		}
	}
	return found, nil
}

// negated writes "[!a]" of the shell as path.Match has it, "[^a]".
func negated(pattern string) string {
	text, inside := []byte(pattern), false
	for at := 0; at < len(text); at++ {
		switch c := text[at]; {
		case c == '\\':
			at++
		case c == '[' && !inside:
			if inside = true; at+1 < len(text) && text[at+1] == '!' {
				text[at+1] = '^'
			}
		case c == ']':
			inside = false
		}
	}
	return string(text)
}

// list is all names in a directory.
func list(ctx context.Context, from store.Store, dir string) (all []string, err error) {
	d, err := from.OpenDirectory(ctx, dir, make([]byte, 32<<10))
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path.Join(".", dir), Err: err}
	}
	defer d.Close()
	for {
		name, _, err := d.Next()
		if errors.Is(err, io.EOF) {
			return all, ctx.Err()
		}
		if err != nil {
			return nil, &fs.PathError{Op: "read", Path: path.Join(".", dir), Err: err}
		}
		all = append(all, string(name))
	}
}

// CheckNames asks whether there is what a list or a pattern names: what wildcards stand for, else the first and the last of the names.
func CheckNames(ctx context.Context, from store.Store, pattern string) error {
	if strings.ContainsAny(pattern, "*?[") {
		_, err := matching(ctx, from, pattern)
		return err
	}
	names, err := expand(pattern)
	if err != nil {
		return err
	}
	for _, name := range []string{names[0], names[len(names)-1]} {
		if !isBelow(name) {
			return wrong("%s: %.200q leads out of its folder", pattern, name)
		}
		if _, err := from.Stat(ctx, name); err != nil {
			return explainMissing(ctx, from, pattern, names, fmt.Errorf("%s: %w", name, err))
		}
	}
	return nil
}

// maxAsked is how many names of a pattern are asked for, from its begin and from its end each, to say which are missing.
const maxAsked = 32

// explainMissing says of a pattern with braces which of its names nothing has, where err is that nothing has one of
// them. Other errors stay as they are.
func explainMissing(ctx context.Context, from store.Store, pattern string, names []string, err error) error {
	if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(pattern, "{") || len(names) < 2 {
		return err
	}
	asked := names
	if len(names) > 2*maxAsked {
		asked = slices.Concat(names[:maxAsked], names[len(names)-maxAsked:])
	}
	var missing []string
	for _, name := range asked {
		if _, e := from.Stat(ctx, name); errors.Is(e, fs.ErrNotExist) {
			missing = append(missing, name)
		} else if e != nil {
			return err
		}
	}
	some := "at least "
	if len(asked) == len(names) {
		some = ""
	}
	switch {
	case len(missing) == 0: // it was not asked for again, or is there by now
		return err
	case len(missing) == len(asked) && some == "":
		return &rewordedError{fmt.Sprintf("%s: none of its %d files is there, %s to %s: %v", pattern, len(names), names[0], names[len(names)-1], err), err}
	case len(missing) == 1:
		return &rewordedError{fmt.Sprintf("%s: of its %d files %s1 is not there: %s", pattern, len(names), some, missing[0]), err}
	}
	return &rewordedError{fmt.Sprintf("%s: of its %d files %s%d are not there: %s to %s", pattern, len(names), some, len(missing), missing[0], missing[len(missing)-1]), err}
}
