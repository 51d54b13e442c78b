package layout

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/feedwater-io/feedwater/filename"
	"github.com/feedwater-io/feedwater/pipeline/dataset/store"
)

// pathColumns and labelColumns are what the columns of a list may be called. The first one that there is counts.
var (
	pathColumns  = []string{"path", "file_name", "filename", "file", "image", "filepath", "file_path", "image_path", "img_path", "img"}
	labelColumns = []string{"label", "class", "target"}
)

// classNameMember is the member of a JSON object that names a class, in place of a file.
const classNameMember = "class_name"

// maxLine is how long a line of a list may be, in bytes.
const maxLine = 64 << 10

var errLongLine = errors.New("a line of more than 65,536 bytes")

// lineLimit ends reading where a line is too long.
type lineLimit struct {
	from io.Reader
	line int // bytes of the line so far
}

func (l *lineLimit) Read(p []byte) (int, error) {
	n, err := l.from.Read(p)
	if at := bytes.LastIndexByte(p[:n], '\n'); at >= 0 {
		l.line = n - at - 1
	} else {
		l.line += n
	}
	if l.line > maxLine {
		return 0, errLongLine
	}
	return n, err
}

// tableReader reads a table with commas or tabs.
type tableReader struct {
	list        List
	csv         *csv.Reader
	path, label int // columns; label -1: none
	values      []int
	head        []string // names of the columns; nil: it has none
	first       *row
	last        int // line that was read
}

// readText begins to read a list, behind its mark of UTF-8 if it has one. It refuses what is written otherwise than in lines of UTF-8.
func readText(name string, from io.Reader) (*bufio.Reader, error) {
	text := bufio.NewReader(&lineLimit{from: from})
	begin, _ := text.Peek(4096) // an error is told where the list is read
	switch {
	case bytes.HasPrefix(begin, []byte("\ufeff")):
		_, _ = text.Discard(3) // they were peeked at
	case bytes.HasPrefix(begin, []byte("\xff\xfe")), bytes.HasPrefix(begin, []byte("\xfe\xff")):
		return nil, wrong("%s is written in UTF-16: save it as UTF-8", name)
	case bytes.IndexByte(begin, 0) >= 0:
		return nil, wrong("%s is no text, and so no list: it has bytes that are zero", name)
	}
	if at := bytes.IndexAny(begin, "\r\n"); at >= 0 && at < len(begin)-1 && begin[at] == '\r' && begin[at+1] != '\n' {
		return nil, wrong("%s: its lines end in CR alone, as of old Macs: save it with LF, or CR LF", name)
	}
	return text, nil
}

func newTableReader(list List, text io.Reader, comma rune) (*tableReader, error) {
	t := &tableReader{list: list, csv: csv.NewReader(text), label: -1}
	t.csv.Comma, t.csv.ReuseRecord = comma, true
	t.csv.LazyQuotes, t.csv.TrimLeadingSpace = comma == '\t', comma != '\t' // tabs are spaces too
	head, err := t.csv.Read()
	if errors.Is(err, io.EOF) {
		return t, nil
	}
	if err != nil {
		return nil, t.broken(err)
	}
	if t.path = column(head, pathColumns); t.path >= 0 {
		t.head = slices.Clone(head)
		t.label, t.values, err = list.find(list.Name, head, labelColumns, list.isShown())
		return t, err
	}
	if list.Label != "" || len(list.Values) > 0 {
		asked := strings.Trim(strings.Join(append(list.Values[:len(list.Values):len(list.Values)], list.Label), ", "), ", ")
		return nil, wrong("%s: line 1 names no column of paths, and %s is asked for: begin with a line like path,label,caption", list.Name, asked)
	}
	if len(head) > 2 {
		return nil, wrong("%s: line 1 names no column called %s, and without such a line a list has a path and a label in each line; it has %s",
			list.Name, strings.Join(pathColumns, ", "), namesOf(head, list.isShown()))
	}
	t.path, t.label = 0, len(head)-2
	if t.label >= 0 {
		t.label = 1
	}
	first := t.row(head)
	if heading := headingOf(head, comma); heading != "" {
		first.heading = fmt.Sprintf("%s: line %d %s", list.Name, first.line, heading)
	}
	t.first = &first
	return t, nil
}

// headingOf is what to say of the first line of a table without names of columns, if the table cannot be read; empty: nothing.
func headingOf(head []string, comma rune) string {
	for _, other := range []rune{';', '\t', ',', '|'} {
		if len(head) == 1 && other != comma && strings.ContainsRune(head[0], other) {
			return fmt.Sprintf("has no %q, and is one field: if %q separates fields, save the list with %q", comma, other, comma)
		}
	}
	if isPicture([]byte(strings.TrimSpace(head[0]))) {
		return ""
	}
	return fmt.Sprintf("names no column called %s: if it is a heading, call the columns path and label", strings.Join(pathColumns, ", "))
}

func noColumn(list, name string, head []string, shown bool) error {
	return wrong("%s: no column is called %.99q; it has %s", list, name, namesOf(head, shown))
}

// namesOf are names of columns for messages; of a file that may be no list only how many there are.
func namesOf(head []string, shown bool) string {
	if !shown {
		return fmt.Sprintf("%d columns", len(head))
	}
	return fmt.Sprintf("%.999s", strings.Join(head, ", "))
}

// column is where a column of one of these names is; -1: nowhere.
func column(head, names []string) int {
	for _, name := range names {
		if at := slices.IndexFunc(head, func(h string) bool { return strings.EqualFold(strings.TrimSpace(h), name) }); at >= 0 {
			return at
		}
	}
	return -1
}

func (t *tableReader) row(fields []string) row {
	t.last, _ = t.csv.FieldPos(0)
	r := row{line: t.last, path: strings.Clone(strings.TrimSpace(fields[t.path]))}
	if t.label >= 0 {
		r.label = strings.Clone(strings.TrimSpace(fields[t.label]))
		r.labelled = r.label != ""
	}
	for _, at := range t.values {
		r.values = append(r.values, strings.Clone(fields[at]))
	}
	return r
}

// broken says where a table cannot be read.
func (t *tableReader) broken(err error) error {
	var parse *csv.ParseError
	switch {
	case errors.As(err, new(*store.ChangedError)):
		return err
	case errors.As(err, &parse):
		return wrong("%s: line %d: %v", t.list.Name, parse.Line, parse.Err)
	case errors.Is(err, errLongLine):
		return wrong("%s: behind line %d: %v", t.list.Name, t.last, err)
	}
	return err
}

func (t *tableReader) next() (row, error) {
	if first := t.first; first != nil {
		t.first = nil
		return *first, nil
	}
	fields, err := t.csv.Read()
	if errors.Is(err, io.EOF) {
		return row{}, io.EOF
	}
	if errors.Is(err, csv.ErrFieldCount) {
		line, _ := t.csv.FieldPos(0)
		return row{}, wrong("%s: line %d has %d of %d fields; one with %q in it stands in quotes", t.list.Name, line, len(fields), t.csv.FieldsPerRecord, t.csv.Comma)
	}
	if err != nil {
		return row{}, t.broken(err)
	}
	return t.row(fields), nil
}

// jsonReader reads a JSON object in each line.
type jsonReader struct {
	list  List
	lines *bufio.Scanner
	line  int
	rows  int // files before this line
	// path and label are the members that had them first: the others have them there too.
	path, label chosenMember
	// asWritten keeps spaces at the ends of paths, labels and names of classes.
	asWritten bool
}

func newJSONReader(list List, from io.Reader) *jsonReader {
	r := &jsonReader{list: list, lines: bufio.NewScanner(from)}
	r.lines.Buffer(nil, maxLine)
	return r
}

func (j *jsonReader) next() (row, error) {
	for j.lines.Scan() {
		j.line++
		text := bytes.TrimSpace(j.lines.Bytes())
		if len(text) == 0 {
			continue
		}
		return j.row(text)
	}
	switch err := j.lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return row{}, wrong("%s: line %d: %v", j.list.Name, j.line+1, errLongLine)
	case err != nil:
		return row{}, err
	}
	return row{}, io.EOF
}

func (j *jsonReader) row(text []byte) (row, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(text, &fields); err != nil {
		return row{}, wrong("%s is no JSON object%s: each line has one, as {\"path\": \"cats/1.jpg\", \"label\": 0}", j.at(), placeIn(err))
	}
	r := row{line: j.line}
	if value, there := fields[classNameMember]; there && len(fields) == 1 {
		err := json.Unmarshal(value, (*filename.Name)(&r.className))
		if r.className = j.trim(r.className); err != nil || r.className == "" {
			return row{}, wrong("%s: %q is no string, or an empty one", j.at(), classNameMember)
		}
		return r, nil
	}
	for _, set := range []func(*row, map[string]json.RawMessage) error{j.setPath, j.setRange, j.setLabel, j.setValues} {
		if err := set(&r, fields); err != nil {
			return row{}, err
		}
	}
	j.rows++
	return r, nil
}

// at names the line, of a table the row.
func (j *jsonReader) at() string {
	if j.asWritten {
		return fmt.Sprintf("%s: row %d", j.list.Name, j.rows)
	}
	return fmt.Sprintf("%s: line %d", j.list.Name, j.line)
}

// chosenMember is the one of several members that the first row has which has one.
type chosenMember struct {
	name string
	line int
}

// choose notes the member that a row has; an error if rows before had another.
func (c *chosenMember) choose(j *jsonReader, what, name string) error {
	if c.name == "" {
		c.name, c.line = name, j.line
	}
	if c.name != name {
		return wrong("%s: its %s is in %q, and that of line %d in %q: give all lines the same", j.at(), what, name, c.line, c.name)
	}
	return nil
}

// setPath finds the path of a row.
func (j *jsonReader) setPath(r *row, fields map[string]json.RawMessage) error {
	for _, name := range pathColumns {
		value, there := fields[name]
		if !there {
			continue
		}
		if value[0] != '"' || json.Unmarshal(value, (*filename.Name)(&r.path)) != nil {
			return wrong("%s: %q is no string", j.at(), name)
		}
		r.path = j.trim(r.path)
		return j.path.choose(j, "path", name)
	}
	return wrong("%s has no path: none of %s", j.at(), strings.Join(pathColumns, ", "))
}

// setRange finds the range of a table's row. In other lists a member of that name is one as any.
func (j *jsonReader) setRange(r *row, fields map[string]json.RawMessage) error {
	value, there := fields[rangeMember]
	if !there || !j.asWritten {
		return nil
	}
	var numbers []*int64
	if json.Unmarshal(value, &numbers) != nil || len(numbers) != 2 || numbers[0] == nil || numbers[1] == nil {
		return wrong("%s: %q is not two whole numbers, where the picture begins in its file and how many bytes it has", j.at(), rangeMember)
	}
	r.span = &byteRange{*numbers[0], *numbers[1]}
	return nil
}

// advice says how a row gets values.
func (j *jsonReader) advice() string {
	if j.asWritten {
		return ": feedwater.Table(…, columns=…) gives them"
	}
	return ""
}

// setValues finds the values of a row.
func (j *jsonReader) setValues(r *row, fields map[string]json.RawMessage) error {
	for _, name := range j.list.Values {
		value, there := fields[name]
		if !there || string(value) == "null" {
			return wrong("%s has no %q%s", j.at(), name, j.advice())
		}
		text := string(value)
		if value[0] == '"' && json.Unmarshal(value, (*filename.Name)(&text)) != nil {
			return wrong("%s: %q is no text", j.at(), name)
		}
		r.values = append(r.values, text)
	}
	return nil
}

// placeIn says where a text stops to be JSON.
func placeIn(err error) string {
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return fmt.Sprintf(", see its byte %d", syntax.Offset)
	}
	return ""
}

// trim is a text without spaces at its ends, unless it is to stay as it is written.
func (j *jsonReader) trim(text string) string {
	if j.asWritten {
		return text
	}
	return strings.TrimSpace(text)
}

// setLabel finds the label of a row.
func (j *jsonReader) setLabel(r *row, fields map[string]json.RawMessage) error {
	names := labelColumns
	if j.list.Label != "" {
		names = []string{j.list.Label}
	}
	for _, name := range names {
		value, there := fields[name]
		if !there || string(value) == "null" {
			continue
		}
		r.quoted = value[0] == '"' && json.Unmarshal(value, (*filename.Name)(&r.label)) == nil
		if !r.quoted {
			r.label = string(value)
			if strings.ContainsAny(r.label[:1], "[{tf") || strings.ContainsAny(r.label, ".eE") {
				return wrong("%s: %q is neither a whole number nor a string: %s", j.at(), name, waysOut)
			}
		}
		r.label = j.trim(r.label)
		r.labelled = r.label != ""
		if err := j.label.choose(j, "label", name); err != nil {
			return err
		}
		break
	}
	if j.list.Label != "" && !r.labelled {
		return wrong("%s has no label %q", j.at(), j.list.Label)
	}
	return nil
}
