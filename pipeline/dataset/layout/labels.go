package layout

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/feedwater-io/feedwater/pipeline/dataset/manifest"
)

// labelKind is what the text of a label is, as messages say it.
type labelKind string

const (
	wholeNumber labelKind = "a whole number"
	plainName   labelKind = "a name"
	fraction    labelKind = "a number with a point, an exponent or digits of another script"
	notFinite   labelKind = "nan or infinity"
	tooLarge    labelKind = "a whole number beyond int64"
)

// waysOut says what to do about labels that are neither whole numbers nor names.
const waysOut = "labels are whole numbers, in pandas by .dropna() and .astype(int), or all are names. " +
	"Names that look like numbers go with the list of classes: lines {\"class_name\": …} of a .jsonl, or feedwater.Table(…, classes=…)"

// numberSyntax is that of numbers, python/feedwater/_dataset/labels.py has the same one.
var numberSyntax = regexp.MustCompile(`^[+-]?(\p{Nd}+\.?\p{Nd}*|\.\p{Nd}+)([eE][+-]?\p{Nd}+)?$`)

// kindOf is the kind of a label that has no spaces at its ends. Whole numbers are digits behind a sign or none, also with zeros in front.
func kindOf(text string) labelKind {
	if _, err := strconv.ParseInt(text, 10, 64); err == nil {
		return wholeNumber
	}
	switch strings.ToLower(strings.TrimLeft(text, "+-")) {
	case "nan", "inf", "infinity":
		return notFinite
	}
	switch {
	case !numberSyntax.MatchString(text):
		return plainName
	case strings.Trim(text, "+-0123456789") == "":
		return tooLarge
	}
	return fraction
}

// labels of a list. All are whole numbers of int64, or all are names of classes, or there are none. What looks like another
// number is refused, and so is a name beside numbers: as text they would be sorted, and each label be another one.
type labels struct {
	files    *namedFiles
	rows     int
	labelled bool
	numbers  bool // all are
	classes  map[string]*classCount
	names    []string
	bytes    int    // of all names
	counts   []int  // samples of each class that the list itself names; else nil
	heading  string // see row
}

type classCount struct{ label, samples int }

// maxClasses is how many names of classes a data set may have, and maxClassBytes how long they may be, all together. Trainers are told all of them in one answer.
const (
	maxClasses    = 1 << 20
	maxClassBytes = 16 << 20
)

var errClasses = fmt.Errorf("more than %d classes, or more than %d bytes of their names: are these labels?", maxClasses, maxClassBytes)

// name takes note of a class that the list itself names. These come first, in the order of their labels.
func (l *labels) name(list List, r row) error {
	switch {
	case l.rows > 0:
		return wrong("%s: the name of a class stands behind the first file", list.where(r))
	case l.classes[r.className] != nil:
		return wrong("%s: two classes are called %s", list.Name, list.show("%.200q", r.className))
	case !l.fits(r.className):
		return wrong("%s: %v", list.where(r), errClasses)
	}
	l.classes[r.className] = &classCount{label: len(l.names)}
	l.names, l.counts = append(l.names, r.className), append(l.counts, 0)
	return nil
}

// fits counts the name of a further class; false: there are too many.
func (l *labels) fits(name string) bool {
	l.bytes += len(name)
	return len(l.classes) < maxClasses && l.bytes <= maxClassBytes
}

// addNamed takes note of a row's label where the list itself names its classes.
func (l *labels) addNamed(list List, r row) error {
	if !r.labelled {
		return nil
	}
	label, _ := l.of(r)
	if label < 0 || label >= int64(len(l.names)) {
		return wrong("%s: label %s is none of the list's %d classes", list.where(r), list.show("%.200s", r.label), len(l.names))
	}
	l.counts[label]++
	return nil
}

// add takes note of a row's label.
func (l *labels) add(list List, r row) error {
	if l.rows++; l.rows > 1 && l.labelled != r.labelled {
		return wrong("%s: a label is missing, here or in the lines before", list.where(r))
	}
	if l.counts != nil {
		l.labelled = r.labelled
		return l.addNamed(list, r)
	}
	if l.labelled = r.labelled; !r.labelled {
		return nil
	}
	known := l.classes[r.label]
	if known != nil {
		known.samples++
		return nil
	}
	kind := kindOf(r.label)
	switch {
	case kind != wholeNumber && kind != plainName:
		return wrong("%s: the label is %s: %s", list.where(r), kind, waysOut)
	case l.rows == 1:
		l.numbers = kind == wholeNumber
	case l.numbers != (kind == wholeNumber):
		return wrong("%s: the label is %s, and those before are not: %s", list.where(r), kind, waysOut)
	}
	if l.numbers {
		return nil
	}
	if !l.fits(r.label) {
		return wrong("%s: %v", list.where(r), errClasses)
	}
	l.classes[strings.Clone(r.label)] = &classCount{samples: 1}
	return nil
}

// explainHeading puts in front of the error of a list what its first line may be.
func (l *labels) explainHeading(err error) error {
	if l.heading == "" || !errors.Is(err, ErrLayout) {
		return err
	}
	return wrong("%s. If it is a file: %v", l.heading, err)
}

// sort numbers the classes.
func (l *labels) sort() {
	if l.numbers || l.counts != nil {
		return
	}
	for name := range l.classes {
		l.names = append(l.names, name)
	}
	slices.SortFunc(l.names, compareNames[string])
	for i, name := range l.names {
		l.classes[name].label = i
	}
}

// of is the label of a row.
func (l *labels) of(r row) (int64, bool) {
	switch {
	case !r.labelled:
		return 0, !l.labelled
	case l.numbers && (l.counts == nil || !r.quoted):
		n, err := strconv.ParseInt(r.label, 10, 64)
		return n, err == nil
	}
	c := l.classes[r.label]
	if c == nil { // the list was exchanged, or names no such class
		return -1, false
	}
	return int64(c.label), true
}

// tell adds the classes to a manifest, or that there are no labels.
func (l *labels) tell(to *manifest.Builder) {
	if !l.labelled {
		to.Unlabel()
	}
	for i, name := range l.names {
		samples := l.classes[name].samples
		if l.counts != nil {
			samples = l.counts[i]
		}
		to.Class(name, samples, [32]byte{})
	}
}
