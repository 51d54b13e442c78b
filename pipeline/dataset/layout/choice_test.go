package layout

import (
	"archive/tar"
	"errors"
	"os"
	"strings"
	"testing"
)

// valuesOf are the values of each sample that a layout finds, with its label, in words.
func valuesOf(t testing.TB, l Layout, root string) (all []string) {
	t.Helper()
	m, err := scanned(t.Context(), l, folderOf(t, root))
	must(t, err)
	for i, line := range shown(t, root, m) {
		s, err := m.At(i, nil)
		must(t, err)
		for _, v := range s.Values {
			text := string(v.Data)
			if text == "" && v.Size > 0 {
				data, err := os.ReadFile(root + "/" + string(m.Object(s.Object).Name))
				must(t, err)
				text = string(data[v.Offset : v.Offset+v.Size])
			}
			line += " " + text
		}
		all = append(all, line)
	}
	return all
}

// TestTarValues: labels and values are those of the members that were asked for, whatever their order in the shard.
func TestTarValues(t *testing.T) {
	root := write(t,
		shardOf(t, tar.FormatPAX, "a.TXT words", "a.jpg A", `a.json {"label": 7, "w": 0.5}`, "b.json {\"label\": \" -3 \"}", "b.jpg B", "b.cls 1", "b.txt "),
		shardOf(t, tar.FormatGNU, "c.png C", "c.txt other", `c.json {"label": 9007199254740993}`, "c.cls 0"))
	l := Tar{Pattern: "{0..1}.tar", Choice: Choice{Label: "json:label", Values: []string{"txt", "json"}}}
	want := `0.tar/a.jpg 7 A words {"label": 7, "w": 0.5}
0.tar/b.jpg -3 B  {"label": " -3 "}
1.tar/c.png 9007199254740993 C other {"label": 9007199254740993}`
	if got := strings.Join(valuesOf(t, l, root), "\n"); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	m, err := scanned(t.Context(), l, folderOf(t, root))
	must(t, err)
	if v := m.Values(); len(v) != 2 || v[0].Name != "txt" || v[0].Most != 5 || v[1].Most != 27 {
		t.Errorf("%+v", v)
	}
}

// TestListValues: columns of a list are values, as text.
func TestListValues(t *testing.T) {
	root := grow(t, t.TempDir(), "a.jpg", "b.jpg")
	for name, text := range map[string]string{
		"x.csv":   "Caption,path,label,coarse\n\"two, words\",a.jpg,1,5\n,b.jpg,2,6\n",
		"x.tsv":   "caption\tcoarse\tpath\ntwo, words\t5\ta.jpg\n\t6\tb.jpg\n",
		"x.jsonl": `{"path": "a.jpg", "label": 1, "coarse": 5, "caption": "two, words"}` + "\n" + `{"caption": "", "path": "b.jpg", "coarse": 6}`,
	} {
		must(t, os.WriteFile(root+"/"+name, []byte(text), 0o600))
		l := List{Name: name, Root: root, Choice: Choice{Label: "coarse", Values: []string{"caption", "coarse"}}}
		if got := strings.Join(valuesOf(t, l, root), "\n"); got != "a.jpg 5 a.jpg two, words 5\nb.jpg 6 b.jpg  6" {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// TestChoicesThatAreNotThere: what was asked for and is not there is named, with sample or line.
func TestChoicesThatAreNotThere(t *testing.T) {
	txt := Choice{Values: []string{"txt"}}
	big := "b.txt " + strings.Repeat("x", 1<<20+1)
	for _, c := range []struct {
		choice  Choice
		members []string
		says    string
	}{
		{txt, []string{"a.jpg A", "a.txt words", "b.jpg B"}, `the sample "b" has no member .txt, which fields= asks for; it has .jpg`},
		{txt, []string{"a.jpg A", "a.txt words", "b.jpg B", big}, `"b.txt" has 1048577 bytes, and a field takes 1048576 at most`},
		{Choice{Label: "index"}, []string{"a.jpg A", "a.cls 1"}, `"a" has no label: label= names a member .index, and it has .jpg, .cls`},
		{Choice{Label: "json:l"}, []string{"a.jpg A"}, `"a" has no label: label= names "l" in a member .json`},
		{Choice{Label: "json:l"}, []string{"a.jpg A", `a.json {"m": 1}`}, `the label in "a.json": no member "l"`},
		{Choice{Label: "json:l"}, []string{"a.jpg A", `a.json {"l": "cat"}`}, `the label in "a.json": it is a name: labels of tar files are whole numbers`},
		{Choice{Label: "json:l"}, []string{"a.jpg A", `a.json {"l": 1.5}`}, `it is a number with a point, an exponent or digits of another script: labels of tar`},
		{Choice{Label: "json:l"}, []string{"a.jpg A", `a.json {"l": [1, 2]}`}, `it is neither a number nor a text: labels of tar files are whole numbers`},
		{Choice{Label: "json:l"}, []string{"a.jpg A", `a.json {"l": null}`}, `labels of tar files are whole numbers`},
		{Choice{Label: "json:l"}, []string{"a.jpg A", `a.json [1]`}, `no JSON object`},
		{Choice{Label: "json:l"}, []string{"a.jpg A", `a.json {"l": 1`}, `no JSON object, see its byte 7`},
	} {
		root := write(t, shardOf(t, tar.FormatPAX, c.members...))
		_, err := scanned(t.Context(), Tar{Pattern: "0.tar", Choice: c.choice}, folderOf(t, root))
		if !errors.Is(err, ErrLayout) || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), "0.tar") {
			t.Errorf("%v, want %q", err, c.says)
		}
	}
	root := grow(t, t.TempDir(), "a.jpg", "b.jpg")
	for _, c := range []struct {
		choice           Choice
		name, text, says string
	}{
		{txt, "x.csv", "path,label\na.jpg,1\n", `x.csv: no column is called "txt"; it has path, label`},
		{txt, "x.csv", "a.jpg,1\n", "x.csv: line 1 names no column of paths, and txt"},
		{txt, "x.jsonl", `{"path": "a.jpg", "txt": "a"}` + "\n" + `{"path": "b.jpg", "txt": null}`, `x.jsonl: line 2 has no "txt"`},
		{Choice{Label: "fine"}, "x.csv", "path,label\na.jpg,1\n", `no column is called "fine"`},
		{Choice{Label: "fine"}, "x.jsonl", `{"path": "a.jpg", "label": 1}`, `line 1 has no label "fine"`},
	} {
		must(t, os.WriteFile(root+"/"+c.name, []byte(c.text), 0o600))
		_, err := scanned(t.Context(), List{Name: c.name, Root: root, Choice: c.choice}, folderOf(t, root))
		if !errors.Is(err, ErrLayout) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", c.text, err, c.says)
		}
	}
}
