package layout

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"github.com/feedwater-io/feedwater/pipeline/dataset/manifest"
)

// parquetFolder has copies of files of parquet/testdata: pairs "name in the folder" and "name there".
func parquetFolder(t testing.TB, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for to, from := range files {
		data, err := os.ReadFile("../parquet/testdata/" + from + ".parquet")
		must(t, err)
		must(t, os.WriteFile(root+"/"+to, data, 0o600))
	}
	return root
}

// rowsOf are the samples that the rows of a file of testdata are.
func rowsOf(name string, labels ...string) (all []string) {
	for row, n := range []int{0, 1, 7, 3, 4, 7, 6, 2, 7, 9} {
		label := labels[row%len(labels)]
		all = append(all, fmt.Sprintf("%s/%d %s picture %d %s", name, row, label, n, strings.Repeat(string(rune('a'+n)), 30)))
	}
	return all
}

func sameLines(t *testing.T, what string, got, want []string) {
	t.Helper()
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%s:\n%s\nwant\n%s", what, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestParquet: files of all ways to write them without compression give the same samples, with the names of classes.
func TestParquet(t *testing.T) {
	for name, classes := range map[string]string{
		"plain": "cat dog owl", "v2": "cat dog owl", "small_pages": "cat dog owl", "dictionary": "cat dog owl", "texts": "cat dog owl",
		"datasets": "cat dog owl", "required": "", "duckdb": "",
	} {
		root := parquetFolder(t, map[string]string{"x.parquet": name})
		m, err := scanned(t.Context(), Parquet{Pattern: "x.parquet"}, folderOf(t, root))
		must(t, err)
		sameLines(t, name, shown(t, root, m), rowsOf("x.parquet", "0", "1", "2"))
		var names []string
		for _, c := range m.Classes() {
			names = append(names, c.Name)
		}
		if got := strings.Join(names, " "); got != classes {
			t.Errorf("%s: classes %q", name, got)
		}
		if len(names) > 0 && m.Classes()[0].Samples != 4 {
			t.Errorf("%s: %d cats", name, m.Classes()[0].Samples)
		}
	}
}

func TestParquetWithoutLabels(t *testing.T) {
	for _, name := range []string{"unlabelled", "no_labels"} {
		root := parquetFolder(t, map[string]string{"x.parquet": name})
		m, err := scanned(t.Context(), Parquet{Pattern: "x.parquet"}, folderOf(t, root))
		must(t, err)
		sameLines(t, name, shown(t, root, m), rowsOf("x.parquet", "none"))
	}
}

// TestParquetValues: further columns are values, as the manifest holds them: texts, numbers as they are written, and bytes.
func TestParquetValues(t *testing.T) {
	root := parquetFolder(t, map[string]string{"x.parquet": "texts", "y.parquet": "texts"})
	l := Parquet{Pattern: "*.parquet", Image: "jpg", Choice: Choice{Values: []string{"target", "id", "jpg"}}}
	m, err := scanned(t.Context(), l, folderOf(t, root))
	must(t, err)
	if m.Samples() != 20 || !m.Form().HoldsValues() || len(m.Values()) != 3 || m.Values()[1] != (manifest.Value{Name: "id", Most: 1}) {
		t.Fatalf("%d samples with %+v", m.Samples(), m.Values())
	}
	for i := range m.Samples() {
		s, err := m.At(i, nil)
		must(t, err)
		if class := m.Classes()[s.Label].Name; string(s.Values[0].Data) != class {
			t.Errorf("sample %d of class %s has the value %q", i, class, s.Values[0].Data)
		}
		picture := fmt.Sprintf("picture %d ", []int{0, 1, 7, 3, 4, 7, 6, 2, 7, 9}[i%10])
		if id := strconv.Itoa(i % 10); string(s.Values[1].Data) != id || !strings.HasPrefix(string(s.Values[2].Data), picture) || s.Values[2].Size != s.Size {
			t.Errorf("sample %d has %q and %q", i, s.Values[1].Data, s.Values[2].Data)
		}
	}
}

// TestParquetColumns: columns can be named.
func TestParquetColumns(t *testing.T) {
	root := parquetFolder(t, map[string]string{"x.parquet": "two", "y.parquet": "texts"})
	m, err := scanned(t.Context(), Parquet{Pattern: "x.parquet", Image: "right"}, folderOf(t, root))
	must(t, err)
	sameLines(t, "right", shown(t, root, m), rowsOf("x.parquet", "none"))
	m, err = scanned(t.Context(), Parquet{Pattern: "y.parquet", Image: "jpg", Choice: Choice{Label: "id"}}, folderOf(t, root))
	must(t, err)
	sameLines(t, "id", shown(t, root, m), rowsOf("y.parquet", "0", "1", "2", "3", "4", "5", "6", "7", "8", "9"))
}

// renameColumn calls a column otherwise.
func renameColumn(t *testing.T, path, old, now string) {
	t.Helper()
	editFooter(t, path, func(m *format.FileMetaData) {
		for i := range m.Schema {
			if m.Schema[i].Name == old {
				m.Schema[i].Name = now
			}
		}
		for i := range m.RowGroups {
			for k := range m.RowGroups[i].Columns {
				path := m.RowGroups[i].Columns[k].MetaData.PathInSchema
				for p := range path {
					path[p] = strings.Replace(path[p], old, now, 1)
				}
			}
		}
	})
}

// TestParquetColumnsOfSeveralFiles: all files of a pattern have pictures and labels in columns of one name, which the first with rows decides.
func TestParquetColumnsOfSeveralFiles(t *testing.T) {
	root := parquetFolder(t, map[string]string{"a.parquet": "texts", "b.parquet": "texts", "c.parquet": "texts", "d.parquet": "plain", "e.parquet": "plain", "empty.parquet": "empty"})
	renameColumn(t, root+"/b.parquet", "target", "label")
	renameColumn(t, root+"/c.parquet", "jpg", "img")
	for pattern, says := range map[string]string{
		"{a,b}.parquet": "a.parquet and b.parquet: the one has labels in the column target, and the other in label: name one by label=",
		"{b,a}.parquet": "b.parquet and a.parquet: the one has labels in the column label, and the other in target: name one by label=",
	} {
		_, err := scanned(t.Context(), Parquet{Pattern: pattern, Image: "jpg"}, folderOf(t, root))
		if !errors.Is(err, ErrLayout) || !matches(says, fmt.Sprint(err)) {
			t.Errorf("%s: %v, want %s", pattern, err, says)
		}
	}
	_, err := scanned(t.Context(), Parquet{Pattern: "{a,c}.parquet"}, folderOf(t, root))
	if says := "a.parquet and c.parquet: the one has pictures in the column jpg, and the other in img: name one by image="; !errors.Is(err, ErrLayout) || !matches(says, fmt.Sprint(err)) {
		t.Errorf("%v, want %s", err, says)
	}
	editFooter(t, root+"/e.parquet", func(m *format.FileMetaData) {
		m.KeyValueMetadata[0].Value = strings.Replace(m.KeyValueMetadata[0].Value, "owl", "fox", 1)
	})
	_, err = scanned(t.Context(), Parquet{Pattern: "{d,e}.parquet"}, folderOf(t, root))
	if says := "d.parquet and e.parquet: the one has 3 classes, and the other 3, or they are called otherwise"; !errors.Is(err, ErrLayout) || !matches(says, fmt.Sprint(err)) {
		t.Errorf("%v, want %s", err, says)
	}
	editFooter(t, root+"/empty.parquet", func(m *format.FileMetaData) { m.KeyValueMetadata = nil })
	if m, err := scanned(t.Context(), Parquet{Pattern: "{empty,d}.parquet"}, folderOf(t, root)); err != nil || m.Samples() != 10 {
		t.Errorf("behind a file without rows: %v", err)
	}
}

// TestParquetClassNamesAreBounded: names of classes that the metadata has are refused beyond 16 MiB of them.
func TestParquetClassNamesAreBounded(t *testing.T) {
	root := parquetFolder(t, map[string]string{"a.parquet": "plain"})
	editFooter(t, root+"/a.parquet", func(m *format.FileMetaData) {
		m.KeyValueMetadata[0].Value = strings.Replace(m.KeyValueMetadata[0].Value, "owl", strings.Repeat("owl", maxClassBytes/3+1), 1)
	})
	_, err := scanned(t.Context(), Parquet{Pattern: "a.parquet"}, folderOf(t, root))
	if says := "a.parquet: more than 1048576 classes, or more than 16777216 bytes of their names"; !errors.Is(err, ErrLayout) || !matches(says, fmt.Sprint(err)) {
		t.Errorf("%.300v", err)
	}
}

// TestParquetFolder: a folder of shards is all of them in the order of their names, but not those of several splits.
func TestParquetFolder(t *testing.T) {
	files := map[string]string{"train-00001-of-00002.parquet": "v2", "train-00000-of-00002.parquet": "plain", "README.md": "empty"}
	root := parquetFolder(t, files)
	must(t, os.Mkdir(root+"/.cache", 0o700))
	from := folderOf(t, root)
	if !HoldsParquet(t.Context(), from) {
		t.Fatal("it is not taken for one")
	}
	m, err := scanned(t.Context(), Parquet{}, from)
	must(t, err)
	want := append(rowsOf("train-00000-of-00002.parquet", "0", "1", "2"), rowsOf("train-00001-of-00002.parquet", "0", "1", "2")...)
	sameLines(t, "folder", shown(t, root, m), want)
	path, then := m.Watched(0)
	now, err := Stat(t.Context(), from, path)
	must(t, err)
	if !now.IsStill(then) {
		t.Error("it is not as it was, and is")
	}
	must(t, os.Rename(root+"/train-00001-of-00002.parquet", root+"/test-00000-of-00001.parquet"))
	now, err = Stat(t.Context(), from, path)
	must(t, err)
	if now.IsStill(then) {
		t.Error("it is another list of files, and is not told")
	}
	if _, err := scanned(t.Context(), Parquet{}, from); !errors.Is(err, ErrLayout) || !strings.Contains(err.Error(), "two splits") {
		t.Error(err)
	}
	must(t, os.Mkdir(root+"/cats", 0o700))
	if HoldsParquet(t.Context(), from) {
		t.Error("class folders are taken for Parquet files")
	}
}

// TestParquetThatIsNoData: what cannot be placed is an error that names file and row, or column.
func TestParquetThatIsNoData(t *testing.T) {
	for says, l := range map[string]Parquet{
		"snappy.parquet: .* SNAPPY has compressed: .* write_table":                                        {Pattern: "snappy.parquet"},
		"null_image.parquet: row 3 has no picture .* by a list":                                           {Pattern: "null_image.parquet"},
		"null_images.parquet: row 0 has no picture .* by a list":                                          {Pattern: "null_images.parquet"},
		"delta.parquet: .* DELTA_LENGTH_BYTE_ARRAY, .* write_table":                                       {Pattern: "delta.parquet"},
		"null_label.parquet: row 5 has no label in kind":                                                  {Pattern: "null_label.parquet"},
		"label_of_no_class.parquet: row 9: its label is 3, and there are":                                 {Pattern: "label_of_no_class.parquet"},
		"several.parquet: no column has pictures: .*image.list":                                           {Pattern: "several.parquet"},
		"two.parquet: several columns may have .* image=, .*left, right":                                  {Pattern: "two.parquet"},
		"paths.parquet: no column has pictures":                                                           {Pattern: "paths.parquet"},
		"paths.parquet: the column image has texts, .* by a list":                                         {Pattern: "paths.parquet", Image: "image"},
		"plain.parquet: there is no column photo; there are picture.bytes":                                {Pattern: "plain.parquet", Image: "photo"},
		"plain.parquet: there is no column kinds":                                                         {Pattern: "plain.parquet", Choice: Choice{Label: "kinds"}},
		"int96.parquet: the column label has neither whole numbers nor texts, one in each row, but INT96": {Pattern: "int96.parquet", Choice: Choice{Label: "label"}},
		"int96.parquet: the column label has no bytes":                                                    {Pattern: "int96.parquet", Image: "label"},
		"plain.parquet: there is no column text; there are picture.bytes":                                 {Pattern: "plain.parquet", Choice: Choice{Values: []string{"text"}}},
		"int96.parquet: the column label has neither texts, bytes nor":                                    {Pattern: "int96.parquet", Choice: Choice{Values: []string{"label"}}},
		"datasets.parquet: row 0 has nothing in image.path":                                               {Pattern: "datasets.parquet", Choice: Choice{Values: []string{"image.path"}}},
		"empty.parquet: 1 Parquet files and no row":                                                       {Pattern: "empty.parquet"},
		"cut.parquet: no Parquet file, or a cut one":                                                      {Pattern: "cut.parquet"},
		"plain.parquet and unlabelled.parquet: rows of one have labels":                                   {Pattern: "{plain,unlabelled}.parquet"},
	} {
		files := map[string]string{"cut.parquet": "plain"}
		for _, name := range []string{
			"snappy", "null_image", "null_label", "label_of_no_class", "several", "two", "paths", "plain", "int96", "empty", "unlabelled", "required", "datasets", "null_images", "delta",
		} {
			files[name+".parquet"] = name
		}
		root := parquetFolder(t, files)
		must(t, os.Truncate(root+"/cut.parquet", 1000))
		_, err := scanned(t.Context(), l, folderOf(t, root))
		if !errors.Is(err, ErrLayout) || !matches(says, fmt.Sprint(err)) {
			t.Errorf("%v\nwant %s", err, says)
		}
	}
}

// TestParquetColumnsOfOtherLength: pictures, labels and values of which a group has more or fewer than rows are an error,
// whatever is behind it: each would go to the picture of another row.
func TestParquetColumnsOfOtherLength(t *testing.T) {
	for name, l := range map[string]Parquet{
		"jpg": {Image: "jpg"}, "target": {Image: "jpg", Choice: Choice{Label: "target"}},
		"id": {Image: "jpg", Choice: Choice{Label: "target", Values: []string{"id"}}},
	} {
		for _, more := range []int64{-1, 1} {
			root := parquetFolder(t, map[string]string{"x.parquet": "texts"})
			editFooter(t, root+"/x.parquet", func(m *format.FileMetaData) {
				for i := range m.RowGroups[1].Columns {
					if c := &m.RowGroups[1].Columns[i].MetaData; c.PathInSchema[0] == name {
						c.NumValues += more
					}
				}
			})
			l.Pattern = "x.parquet"
			_, err := scanned(t.Context(), l, folderOf(t, root))
			says := fmt.Sprintf("x.parquet: group 1 has 4 rows, and %d values in the column %s", 4+more, name)
			if !errors.Is(err, ErrLayout) || !matches(says, fmt.Sprint(err)) {
				t.Errorf("%v, want %s", err, says)
			}
		}
	}
}

// TestParquetPagesOfOtherLength: so are pages that have more or fewer values than rows are left.
func TestParquetPagesOfOtherLength(t *testing.T) {
	for _, name := range []string{"jpg", "target", "id"} {
		root := parquetFolder(t, map[string]string{"x.parquet": "texts"})
		editFooter(t, root+"/x.parquet", func(m *format.FileMetaData) {
			for i := range m.RowGroups[1].Columns { // the pages of another group, of two rows
				if c := &m.RowGroups[1].Columns[i].MetaData; c.PathInSchema[0] == name {
					other := m.RowGroups[2].Columns[i].MetaData
					c.DataPageOffset, c.TotalCompressedSize = other.DataPageOffset, other.TotalCompressedSize
				}
			}
		})
		l := Parquet{Pattern: "x.parquet", Image: "jpg", Choice: Choice{Label: "target", Values: []string{"id"}}}
		_, err := scanned(t.Context(), l, folderOf(t, root))
		if !errors.Is(err, ErrLayout) || !matches("x.parquet: the page of the column "+name, fmt.Sprint(err)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestParquetLabelsThatBeginLate: a file whose first row has no label has none, or is an error.
func TestParquetLabelsThatBeginLate(t *testing.T) {
	root := parquetFolder(t, map[string]string{"x.parquet": "plain"})
	var end int64 // of the labels of the first group, whose four rows are written one behind the other
	editFooter(t, root+"/x.parquet", func(m *format.FileMetaData) {
		for _, c := range m.RowGroups[0].Columns {
			if c.MetaData.PathInSchema[0] == "kind" {
				end = c.MetaData.DataPageOffset + c.MetaData.TotalCompressedSize
			}
		}
	})
	data, err := os.ReadFile(root + "/x.parquet")
	must(t, err)
	for i := range int64(8) {
		data[end-32+i] = 0xff // -1: none
	}
	must(t, os.WriteFile(root+"/x.parquet", data, 0o600))
	_, err = scanned(t.Context(), Parquet{Pattern: "x.parquet"}, folderOf(t, root))
	if says := "x.parquet: row 0 has no label in kind, and row 1 has one"; !errors.Is(err, ErrLayout) || !matches(says, fmt.Sprint(err)) {
		t.Errorf("%v, want %s", err, says)
	}
}

// TestSplits: the splits that names tell of, as the Hub writes them and otherwise.
func TestSplits(t *testing.T) {
	for name, want := range map[string]string{
		"train-00000-of-00042.parquet": "train", "test-a-00000-of-00001.parquet": "test-a", "x.parquet": "", "a-b.parquet": "", "x-of-y.parquet": "",
	} {
		if split, ok := cutSplit(name); ok != (want != "") || ok && split != want {
			t.Errorf("%s is of %q, %v", name, split, ok)
		}
	}
}

// editFooter changes what a file says of itself.
func editFooter(t *testing.T, path string, edit func(*format.FileMetaData)) {
	t.Helper()
	data, err := os.ReadFile(path)
	must(t, err)
	end := len(data) - 8
	begin := end - int(binary.LittleEndian.Uint32(data[end:]))
	var m format.FileMetaData
	must(t, thrift.Unmarshal(new(thrift.CompactProtocol), data[begin:end], &m))
	edit(&m)
	footer, err := thrift.Marshal(new(thrift.CompactProtocol), &m)
	must(t, err)
	data = append(data[:begin], footer...)
	data = append(binary.LittleEndian.AppendUint32(data, uint32(len(footer))), "PAR1"...)
	must(t, os.WriteFile(path, data, 0o600))
}

// matches reports whether a text has parts in this order.
func matches(parts, text string) bool {
	for part := range strings.SplitSeq(parts, ".*") {
		_, rest, found := strings.Cut(text, strings.TrimSpace(part))
		if !found {
			return false
		}
		text = rest
	}
	return true
}

// TestParquetForm: what is written without compression is a range of its file.
func TestParquetForm(t *testing.T) {
	root := parquetFolder(t, map[string]string{"x.parquet": "dictionary"})
	m, err := scanned(t.Context(), Parquet{Pattern: "*.parquet"}, folderOf(t, root))
	must(t, err)
	if m.Form()&manifest.Packed != 0 || m.Objects() != 1 || m.Object(0).Part != "" {
		t.Errorf("form %v, %d objects", m.Form(), m.Objects())
	}
}
