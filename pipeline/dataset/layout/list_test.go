package layout

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/feedwater-io/feedwater/pipeline/dataset/manifest"
)

// listed is the manifest of a list in a folder with some files.
func listed(t testing.TB, name, text string) (string, *manifest.Manifest, error) {
	t.Helper()
	root := grow(t, t.TempDir(), "a/1.jpg", "a/2.jpg", "b/3.jpg", "é.png", "a,b.jpg")
	must(t, os.WriteFile(root+"/"+name, []byte(text), 0o600))
	m, err := scanned(t.Context(), List{Name: name, Root: root}, folderOf(t, root))
	return root, m, err
}

func TestLists(t *testing.T) {
	for name, c := range map[string]struct{ list, text, want, classes string }{
		"header":       {"l.csv", "label,path\n7,a/2.jpg\n-1,a/1.jpg\n", "a/2.jpg 7, a/1.jpg -1", ""},
		"filepath":     {"l.csv", "filepath,label\na/2.jpg,7\n", "a/2.jpg 7", ""},
		"image_path":   {"l.csv", "label,Image_Path\n7,a/2.jpg\n", "a/2.jpg 7", ""},
		"a mark, {}":   {"l.jsonl", "\ufeff" + `{"img_path": "a/1.jpg", "label": 3}`, "a/1.jpg 3", ""},
		"no header":    {"l.csv", "a/2.jpg,7\r\n\r\nb/3.jpg,8", "a/2.jpg 7, b/3.jpg 8", ""},
		"quoted":       {"l.csv", "\"a,b.jpg\",1\né.png,2\n", "a,b.jpg 1, é.png 2", ""},
		"a mark":       {"l.csv", "\ufefffile_name,class\na/1.jpg,x\n", "a/1.jpg 0", "x:1"},
		"classes":      {"l.csv", "file_name,text,label\na/2.jpg,t,dog\na/1.jpg,t,cat\nb/3.jpg,t,dog\n", "a/2.jpg 1, a/1.jpg 0, b/3.jpg 1", "cat:1 dog:2"},
		"spaces":       {"l.csv", "path, label\na/1.jpg, 0\na/2.jpg ,\u00a010\nb/3.jpg, \"2 \"\n", "a/1.jpg 0, a/2.jpg 10, b/3.jpg 2", ""},
		"more spaces":  {"l.tsv", "a/1.jpg\t0 \na/2.jpg\t 10\n b/3.jpg\t2\n", "a/1.jpg 0, a/2.jpg 10, b/3.jpg 2", ""},
		"{} of spaces": {"l.jsonl", `{"class_name": "x "}` + "\n" + `{"path": " a/1.jpg", "label": "x"}` + "\n" + `{"path": "a/2.jpg", "label": " x"}`, "a/1.jpg 0, a/2.jpg 0", "x:2"},
		"signs":        {"l.csv", "a/1.jpg,+1\na/2.jpg,010\nb/3.jpg,-0\n", "a/1.jpg 1, a/2.jpg 10, b/3.jpg 0", ""},
		"like others":  {"l.csv", "a/1.jpg,2nd\na/2.jpg,1-2\nb/3.jpg,v1.5\n", "a/1.jpg 1, a/2.jpg 0, b/3.jpg 2", "1-2:1 2nd:1 v1.5:1"},
		"strings":      {"l.jsonl", `{"path": "a/1.jpg", "label": "10"}` + "\n" + `{"path": "a/2.jpg", "label": 2}`, "a/1.jpg 10, a/2.jpg 2", ""},
		"no labels":    {"l.csv", "path\na/1.jpg\nb/3.jpg\n", "a/1.jpg none, b/3.jpg none", ""},
		"tabs":         {"l.tsv", "a/1.jpg\t3\na,b.jpg\t4\n", "a/1.jpg 3, a,b.jpg 4", ""},
		"other paths":  {"l.csv", "./a/../a/1.jpg,1\nROOT/b/3.jpg,2\n", "a/1.jpg 1, b/3.jpg 2", ""},
		"objects":      {"l.jsonl", `{"image": "a/1.jpg", "label": 3}` + "\n\n" + `{"label": -4, "image": "\u00e9.png"}`, "a/1.jpg 3, é.png -4", ""},
		"names":        {"l.JSONL", `{"path": "a/1.jpg", "label": "x"}`, "a/1.jpg 0", "x:1"},
		"named":        {"l.jsonl", `{"class_name": "1"}` + "\n" + `{"class_name": "0"}` + "\n" + `{"path": "a/1.jpg", "label": 0}` + "\n" + `{"path": "a/2.jpg", "label": "0"}`, "a/1.jpg 0, a/2.jpg 1", "1:1 0:1"},
		"unused":       {"l.jsonl", `{"class_name": "x"}` + "\n" + `{"class_name": "y"}` + "\n" + `{"path": "a/1.jpg", "label": 1}`, "a/1.jpg 1", "x:0 y:1"},
		"null":         {"l.jsonl", `{"path": "a/1.jpg", "label": null}`, "a/1.jpg none", ""},
	} {
		t.Run(name, func(t *testing.T) {
			root := grow(t, t.TempDir(), "a/1.jpg", "a/2.jpg", "b/3.jpg", "é.png", "a,b.jpg")
			must(t, os.WriteFile(root+"/"+c.list, []byte(strings.ReplaceAll(c.text, "ROOT", root)), 0o600))
			m, err := scanned(t.Context(), List{Name: c.list, Root: root}, folderOf(t, root))
			must(t, err)
			var got, classes []string
			for _, s := range shown(t, root, m) {
				got = append(got, s[:strings.LastIndexByte(s, ' ')])
			}
			for _, x := range m.Classes() {
				classes = append(classes, x.Name+":"+string(rune('0'+x.Samples)))
			}
			if strings.Join(got, ", ") != c.want || strings.Join(classes, " ") != c.classes {
				t.Errorf("%q, classes %q, want %q, %q", got, classes, c.want, c.classes)
			}
			if path, _ := m.Watched(0); path != c.list {
				t.Errorf("watched: %q", path)
			}
		})
	}
}

// longNames are lines with names of 17 MiB, of which no two are alike.
func longNames(form string) string {
	var text strings.Builder
	for at := range 290 {
		fmt.Fprintf(&text, form+"\n", fmt.Sprintf("%03d", at), strings.Repeat("n", 61_440))
	}
	return text.String()
}

// TestListsThatAreNoData: what is wrong is named with its line.
func TestListsThatAreNoData(t *testing.T) {
	for name, c := range map[string]struct{ list, text, says string }{
		"empty":            {"l.csv", "", "names no file"},
		"a header alone":   {"l.csv", "path,label\n", "names no file"},
		"no such file":     {"l.csv", "a/1.jpg,1\na/9.jpg,2\n", "line 2: there is no file a/9.jpg"},
		"a folder":         {"l.csv", "a,1\n", "line 1: a is not a regular file"},
		"a label missing":  {"l.csv", "a/1.jpg,1\na/2.jpg,\n", "line 2: a label is missing"},
		"a field missing":  {"l.csv", "a/1.jpg,1\na/2.jpg\n", "line 2 has 1 of 2 fields"},
		"twice":            {"l.csv", "a/1.jpg,1\nb/3.jpg,2\na/./1.jpg,3\n", `line 3: "a/./1.jpg" is in the list twice`},
		"climbs out":       {"l.csv", "../x.jpg,1\n", "line 1: \"../x.jpg\" leads out"},
		"absolute":         {"l.csv", "/etc/hostname,1\n", "leads out"},
		"no path":          {"l.csv", "path,label\n,1\n", "line 2 has no path"},
		"a long line":      {"l.csv", "a/1.jpg,1\n" + strings.Repeat("x", 1<<20) + ",1\n", "a line of more than"},
		"a long line, {}":  {"l.jsonl", `{"path": "` + strings.Repeat("x", 1<<20), "line 1: a line of more than"},
		"an open quote":    {"l.csv", "a/1.jpg,1\n\"a/2.jpg,1\n", "line"},
		"unknown columns":  {"l.csv", "x,y,z\na/1.jpg,1,2\n", "line 1 names no column called path, file_name, .* it has x, y, z"},
		"no JSON":          {"l.jsonl", "{\"path\": \"a/1.jpg\"}\n{", "line 2"},
		"no object":        {"l.jsonl", "[1]", "line 1"},
		"a path of 3":      {"l.jsonl", `{"path": 3}`, `line 1: "path" is no string`},
		"a label of parts": {"l.jsonl", `{"path": "a/1.jpg", "label": [1]}`, `line 1: "label" is neither`},
		"a class too late": {"l.jsonl", `{"path": "a/1.jpg", "label": 0}` + "\n" + `{"class_name": "x"}`, "line 2: the name of a class stands behind"},
		"a class twice":    {"l.jsonl", `{"class_name": "x"}` + "\n" + `{"class_name": "x"}`, "two classes are called"},
		"a nameless class": {"l.jsonl", `{"class_name": ""}`, "line 1: \"class_name\" is no string, or an empty one"},
		"no such class":    {"l.jsonl", `{"class_name": "x"}` + "\n" + `{"path": "a/1.jpg", "label": 1}`, "line 2: label 1 is none of the list's 1 classes"},
		"no class so":      {"l.jsonl", `{"class_name": "x"}` + "\n" + `{"path": "a/1.jpg", "label": "y"}`, "line 2: label y is none of"},
		"a word":           {"l.csv", "a/1.jpg,7\na/2.jpg,x\n", "line 2: the label is a name, and those before are not"},
		"a number":         {"l.tsv", "a/1.jpg\tx\na/2.jpg\t7\n", "line 2: the label is a whole number, and those before are not"},
		"a point":          {"l.csv", "a/1.jpg,0.0\na/2.jpg,10.0\n", "line 1: the label is a number with a point"},
		"an exponent":      {"l.csv", "a/1.jpg,1\na/2.jpg,1e3\n", "line 2: the label is a number with a point"},
		"another script":   {"l.csv", "a/1.jpg,٣\n", "line 1: the label is a number with a point"},
		"nan":              {"l.csv", "a/1.jpg,x\na/2.jpg, NaN\n", "line 2: the label is nan"},
		"beyond int64":     {"l.csv", "path,label\na/1.jpg,9223372036854775808\n", "line 2: the label is a whole number beyond int64"},
		"beyond in {}":     {"l.jsonl", `{"path": "a/1.jpg", "label": 9223372036854775808}`, "line 1: the label is a whole number beyond int64"},
		"spaces alone":     {"l.csv", "a/1.jpg,1\na/2.jpg, \n", "line 2: a label is missing"},
		"names of 17 MiB":  {"l.jsonl", longNames(`{"class_name": "%s%s"}`), "line 274: more than 1048576 classes, or more than 16777216 bytes"},
		"labels of 17 MiB": {"l.csv", longNames("%[1]s.jpg,%[1]s%[2]s"), "line 274: more than"},
		"other labels":     {"l.jsonl", `{"path": "a/1.jpg", "label": 1}` + "\n" + `{"path": "a/2.jpg", "target": 2}`, `line 2: its label is in "target", and that of line 1 in "label"`},
		"other paths":      {"l.jsonl", `{"path": "a/1.jpg"}` + "\n" + `{"file": "a/2.jpg"}`, `line 2: its path is in "file", and that of line 1 in "path"`},
		"UTF-16":           {"l.csv", "\xff\xfep\x00a\x00", "l.csv is written in UTF-16: save it as UTF-8"},
		"UTF-16, {}":       {"l.jsonl", "\xfe\xff\x00{", "l.jsonl is written in UTF-16"},
		"CR alone":         {"l.csv", "path,label\ra/1.jpg,1\ra/2.jpg,2\r", "its lines end in CR alone"},
		"semicolons":       {"l.csv", "path;label\na/1.jpg;1\n", "l.csv: line 1 has no ',', and is one field: if ';' separates fields, save the list with ','. If it is a file: l.csv: line 1: there is no file path;label"},
		"semicolons alone": {"l.csv", "a/1.jpg;1\na/2.jpg;2\n", "if ';' separates fields"},
		"commas in .tsv":   {"l.tsv", "path,label\na/1.jpg,1\n", "if ',' separates fields, save the list with '\\t'"},
		"another heading":  {"l.csv", "photo,label\na/1.jpg,1\n", "l.csv: line 1 names no column called path, .*: if it is a heading, call the columns path and label. If it is a file: .* line 2: the label is a whole number, and those before are not"},
		"a heading alike":  {"l.csv", "photo,kind\na/1.jpg,cat\n", "line 1 names no column called path, .* line 1: there is no file photo"},
		"no heading":       {"l.csv", "a/9.jpg,1\n", "line 1: there is no file a/9.jpg"},
		"no text":          {"l.csv", "a/1.jpg,1\x00\n", "l.csv is no text"},
		"backslashes":      {"l.csv", "path,label\na\\1.jpg,1\n", `line 2: there is no file a\1.jpg: paths are written with /`},
		"Latin 1":          {"l.csv", "path,label\n\xe9.png,1\n", "line 2: there is no file \xe9.png: its name is no UTF-8"},
		"an array":         {"l.jsonl", `[{"path": "a/1.jpg"}]`, "line 1 is no JSON object: each line has one"},
		"an URL":           {"l.jsonl", `{"url": "a/1.jpg"}`, "line 1 has no path: none of path, file_name"},
		"a comma too many": {"l.csv", "path,label\na,b.jpg,1\n", "line 2 has 3 of 2 fields; one with ',' in it stands in quotes"},
		"a label of 1.5":   {"l.jsonl", `{"path": "a/1.jpg", "label": 1.5}`, `line 1: "label" is neither`},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := listed(t, c.list, c.text)
			if !errors.Is(err, ErrLayout) || !matches(c.says, err.Error()) || !strings.Contains(err.Error(), c.list) {
				t.Errorf("%v, want %q", err, c.says)
			}
		})
	}
}

// TestFilesThatAreNoListsAreNotShown: what a file holds that is called otherwise than a list is told to nobody who names it as one.
func TestFilesThatAreNoListsAreNotShown(t *testing.T) {
	texts := []string{
		"KEY=SECRET\n", "SECRET,1\n", "path,SECRET\na/9.jpg,1\n", "SECRET,b,c\n", "path,label\nSECRET,1\n", "path,label\n../SECRET,1\n", "path,label\na\x00SECRET,1\n",
		"path,label\n" + strings.Repeat("SECRET", 60) + ",1\n", "path,label\na/1.jpg,1\na/2.jpg,SECRET\n", "a/1.jpg,1\n\"SECRET,1\n", "a/1.jpg,S\"ECRET\n", "a;SECRET\n", "a,1\n",
		`{"path": "SECRET"}`, `{"SECRET": 1}`, `{"path": 3, "SECRET": 1}`, `{"path": "a/1.jpg", "label": 1.5, "x": SECRET}`, `SECRET`, `"SECRET"`, `{"path": "a/1.jpg", "label": ["SECRET"]}`,
		`{"class_name": "SECRET"}` + "\n" + `{"class_name": "SECRET"}`, `{"class_name": "b"}` + "\n" + `{"path": "a/1.jpg", "label": "SECRET"}`, `{"path": "a/1.jpg"}` + "\n" + `{"path": "./a/1.jpg"}`,
	}
	root := grow(t, t.TempDir(), "a/1.jpg", "a/2.jpg")
	for _, text := range texts {
		must(t, os.WriteFile(root+"/.env", []byte(text), 0o600))
		for _, format := range ListFormats {
			for _, choice := range []Choice{{}, {Label: "KEY"}, {Values: []string{"KEY"}}} {
				_, err := scanned(t.Context(), List{Name: ".env", Format: format, Root: root, Choice: choice}, folderOf(t, root))
				for _, hidden := range []string{"SECRET", "'S'", "S\"", "a/1", "a/9", "a;"} {
					if err == nil || strings.Contains(err.Error(), hidden) {
						t.Errorf("%.40q as %s: %v", text, format, err)
					}
				}
			}
		}
	}
}

// TestTables: a list that lies elsewhere names files below the folder, and has rows in place of lines.
func TestTables(t *testing.T) {
	root := grow(t, t.TempDir(), "a/1.jpg", "a/2.jpg", "\xff.jpg")
	table := filepath.Join(t.TempDir(), "1.jsonl")
	list := List{Name: "the table", Root: root, Table: table}
	must(t, os.WriteFile(table, []byte(`{"class_name": "x"}`+"\n"+`{"path": "\udcff.jpg", "label": 0}`+"\n"+`{"path": "a/1.jpg", "label": 0}`), 0o600))
	m, err := scanned(t.Context(), list, folderOf(t, root))
	must(t, err)
	if first, err := m.At(0, nil); err != nil || string(first.Key) != "\xff.jpg" || m.Watches() != 0 || m.Classes()[0].Samples != 2 {
		t.Errorf("%q, %v, %d watched, %v", first.Key, err, m.Watches(), m.Classes())
	}
	for text, says := range map[string]string{
		`{"class_name": "x"}` + "\n" + `{"path": "a/1.jpg", "label": 0}` + "\n" + `{"path": "a/7.jpg", "label": 0}`: "the table: row 1: there is no file a/7.jpg",
		`{"path": "../x"}`: "the table: row 0: \"../x\" leads out",
		"":                 "the table names no file",
	} {
		must(t, os.WriteFile(table, []byte(text), 0o600))
		if _, err := scanned(t.Context(), list, folderOf(t, root)); !errors.Is(err, ErrLayout) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", text, err, says)
		}
	}
}

func FuzzList(f *testing.F) {
	f.Add("path,label\na/1.jpg,1\n")
	f.Add(`{"path": "a/1.jpg", "label": "x"}`)
	f.Add("a/1.jpg\tx\nb/3.jpg\ty\n")
	f.Fuzz(func(t *testing.T, text string) {
		for _, name := range []string{"l.csv", "l.tsv", "l.jsonl"} {
			root, m, err := listed(t, name, text)
			if err != nil {
				if !errors.Is(err, ErrLayout) || !strings.Contains(err.Error(), name) {
					t.Fatalf("%v does not say which list", err)
				}
				continue
			}
			shown(t, root, m)
		}
	})
}
