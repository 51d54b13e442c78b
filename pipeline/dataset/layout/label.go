package layout

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/feedwater-io/feedwater/pipeline/dataset/manifest"
)

// Choice says what is listed of each sample besides its picture.
type Choice struct {
	// Label says where labels are: of tar files the ending of a member, or json:KEY for a member of the JSON object in .json; of lists a column.
	// Empty: as each layout has it, and there may be none.
	Label string
	// Values are what else is listed of each sample: of tar files the members of these endings, of lists these columns.
	Values []string
}

// find finds the columns of labels and of values in the head of a list. Where no label is named it is one of those
// that are called one of these names; -1: there is none. Errors name the columns if they may be shown.
func (c Choice) find(list string, head, called []string, shown bool) (label int, values []int, err error) {
	if c.Label != "" {
		called = []string{c.Label}
	}
	if label = column(head, called); label < 0 && c.Label != "" {
		return -1, nil, noColumn(list, c.Label, head, shown)
	}
	for _, name := range c.Values {
		at := column(head, []string{name})
		if at < 0 {
			return -1, nil, noColumn(list, name, head, shown)
		}
		values = append(values, at)
	}
	return label, values, nil
}

// formOfHeld is the form of members of objects whose values, where there are some, the manifest holds.
func (c Choice) formOfHeld() manifest.Form {
	form := manifest.Members | manifest.Labelled
	if len(c.Values) > 0 {
		form |= manifest.Held
	}
	return form.WithValues(len(c.Values))
}

// nameValues tells a manifest what the values are called.
func (c Choice) nameValues(to *manifest.Builder) {
	for _, name := range c.Values {
		to.Value(name)
	}
}

// maxLabelBytes is how long the text of a label may be, and maxJSONBytes that of a JSON object with one.
const (
	maxLabelBytes = 64
	maxJSONBytes  = 1 << 20
)

// defaultLabel is the ending of the member that has a sample's label.
const defaultLabel = "cls"

// labelRule says which member of a sample has its label.
type labelRule struct {
	ending string
	key    string // of a JSON object; "": the member is the label itself
	asked  bool   // by the user: then all samples have one
}

func (c Choice) labelRule() labelRule {
	if key, ok := strings.CutPrefix(c.Label, "json:"); ok {
		return labelRule{"json", key, true}
	}
	if c.Label == "" {
		return labelRule{ending: defaultLabel}
	}
	return labelRule{ending: strings.ToLower(c.Label), asked: true}
}

// String says which member that is.
func (r labelRule) String() string {
	if r.key != "" {
		return fmt.Sprintf("%q in a member .json", r.key)
	}
	return "a member ." + r.ending
}

// limit is how large the member may be.
func (r labelRule) limit() int64 {
	if r.key != "" {
		return maxJSONBytes
	}
	return maxLabelBytes
}

var errNoNumber = errors.New("labels of tar files are whole numbers; texts come as fields=")

// parse reads the label in a member's text.
func (r labelRule) parse(text []byte) (int64, error) {
	if r.key == "" {
		return parseLabel(string(text))
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(text, &object); err != nil {
		return 0, fmt.Errorf("no JSON object%s", placeIn(err))
	}
	value, there := object[r.key]
	if !there {
		return 0, fmt.Errorf("no member %q", r.key)
	}
	if len(value) > maxLabelBytes {
		return 0, fmt.Errorf("it has %d bytes: %w", len(value), errNoNumber)
	}
	if strings.ContainsAny(string(value[:1]), "[{ntf") {
		return 0, fmt.Errorf("it is neither a number nor a text: %w", errNoNumber)
	}
	var quoted string
	if json.Unmarshal(value, &quoted) == nil {
		return parseLabel(quoted)
	}
	return parseLabel(string(value))
}

func parseLabel(text string) (int64, error) {
	text = strings.TrimSpace(text)
	label, err := strconv.ParseInt(text, 10, 64)
	switch {
	case text == "":
		return 0, fmt.Errorf("it is empty: %w", errNoNumber)
	case err != nil:
		return 0, fmt.Errorf("it is %s: %w", kindOf(text), errNoNumber)
	}
	return label, nil
}

// checkValue refuses a value that is too large.
func checkValue(where, name string, bytes int64) error {
	if bytes > manifest.MaxValueBytes {
		return wrong("%s: %q has %d bytes, and a field takes %d at most", where, name, bytes, manifest.MaxValueBytes)
	}
	return nil
}
