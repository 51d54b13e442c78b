package parquet

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
)

// numbers are those of the pictures that testdata/make.py writes.
var numbers = [...]int{0, 1, 7, 3, 4, 7, 6, 2, 7, 9}

func picture(row int) string {
	n := numbers[row]
	return fmt.Sprintf("picture %d ", n) + strings.Repeat(string(rune('a'+n)), 30)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func load(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name + ".parquet")
	must(t, err)
	return data
}

// column is the first one of a kind.
func column(f *File, kinds ...Kind) *Column {
	for i := range f.Columns() {
		for _, k := range kinds {
			if f.Columns()[i].Kind == k {
				return &f.Columns()[i]
			}
		}
	}
	return nil
}

// pictures are those of the first column of bytes, cut out of the file as a reader would.
func pictures(data []byte) (all []string, packed int, err error) {
	f, err := Open(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, 0, err
	}
	c := column(f, Bytes)
	if c == nil {
		return nil, 0, errors.New("no bytes")
	}
	parts := map[*Part]*Packed{}
	l := Locator{File: f, Column: c}
	l.Unpacked = func(p *Part, _ *Packed) error {
		again, ok := ParsePart(p.String())
		if !ok || again != *p {
			return fmt.Errorf("%v is read as %v", p, &again)
		}
		parts[p], err = again.Unpack(data[p.Offset : p.Offset+p.Length])
		return err
	}
	l.Tell = func(row int64, v Found) error {
		if int(row) != len(all) {
			return fmt.Errorf("row %d is the %dth", row, len(all))
		}
		from := data
		if v.Part != nil {
			from = parts[v.Part].Values
			packed++
		}
		all = append(all, string(from[v.Offset:v.Offset+v.Size]))
		return nil
	}
	return all, packed, l.Locate()
}

// TestPictures: of each way to write them, those that lie in the file as they are are found there, and others when a page is unpacked.
func TestPictures(t *testing.T) {
	packed := map[string]int{
		"plain": 0, "v2": 0, "small_pages": 0, "dictionary": 0, "texts": 0, "required": 0, "datasets": 0, "no_labels": 0,
		"snappy": 10, "gzip": 10, "zstd": 10, "brotli": 10, "lz4": 10, "snappy_v2": 10, "checksum": 10, "texts_dictionary": 10,
	}
	for name, want := range packed {
		all, n, err := pictures(load(t, name))
		must(t, err)
		if n != want || len(all) != len(numbers) {
			t.Errorf("%s: %d pictures, %d of them packed; want %d", name, len(all), n, want)
		}
		for row, got := range all {
			if got != picture(row) {
				t.Errorf("%s: row %d is %.60q", name, row, got)
			}
		}
	}
}

func TestScalars(t *testing.T) {
	for name, want := range map[string]string{
		"plain": "0 1 2 0 1 2 0 1 2 0", "v2": "0 1 2 0 1 2 0 1 2 0", "zstd": "0 1 2 0 1 2 0 1 2 0", "datasets": "0 1 2 0 1 2 0 1 2 0",
		"required": "0 1 2 0 1 2 0 1 2 0", "null_label": "0 1 2 0 1 - 0 1 2 0", "unlabelled": "-1 -1 -1 -1 -1 -1 -1 -1 -1 -1",
		"unsigned": "4000000000 0 1 2 3 4 5 6 7 8", "unsigned_dictionary": "4000000000 0 1 2 3 4 5 6 7 8", "unsigned64": "4000000000 0 1 2 3 4 5 6 7 8",
	} {
		data := load(t, name)
		f, err := Open(bytes.NewReader(data), int64(len(data)))
		must(t, err)
		var got []string
		must(t, f.Scalars(column(f, Int), func(v Scalar) error {
			if got = append(got, fmt.Sprint(v.Int)); v.Null {
				got[len(got)-1] = "-"
			}
			return nil
		}))
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %s", name, got)
		}
	}
	data := load(t, "too_large")
	f, err := Open(bytes.NewReader(data), int64(len(data)))
	must(t, err)
	err = f.Scalars(column(f, Int), func(Scalar) error { return nil })
	if !errors.As(err, new(*FormatError)) || !strings.Contains(err.Error(), "9223372036854775813 in the column label is no int64") {
		t.Error(err)
	}
	for _, name := range []string{"texts", "texts_dictionary"} {
		data := load(t, name)
		f, err := Open(bytes.NewReader(data), int64(len(data)))
		must(t, err)
		var got []string
		must(t, f.Scalars(column(f, String), func(v Scalar) error {
			got = append(got, v.Text)
			return nil
		}))
		if strings.Join(got, " ") != "cat dog owl cat dog owl cat dog owl cat" {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// TestWhatIsNotRead: it is named, and is no error of who reads.
func TestWhatIsNotRead(t *testing.T) {
	good := load(t, "plain")
	end := func(last string) []byte { return append(bytes.Clone(good[:len(good)-len(last)]), last...) }
	for says, data := range map[string][]byte{
		"is encrypted":                         end("PARE"),
		"does not end in PAR1":                 good[:len(good)-1],
		"no Parquet file: it has 3 bytes":      []byte("PAR"),
		"its footer says that it has":          end("\xff\xff\xff\x7fPAR1"),
		"its footer is damaged":                end("\x10\x00\x00\x00PAR1"),
		"PLAIN or a dictionary":                load(t, "delta"),
		"has several values in a row":          load(t, "several"),
		"its checksum differs":                 damage(load(t, "checksum"), "picture 0"),
		"a value of 4294967295 bytes does not": lie(good, picture(4)),
	} {
		_, _, err := pictures(data)
		if !errors.As(err, new(*FormatError)) || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %q", err, says)
		}
	}
	var null *NullError
	if _, _, err := pictures(load(t, "null_image")); !errors.As(err, &null) || null.Row != 3 {
		t.Error(err)
	}
}

// damage changes a byte of a text in the data.
func damage(data []byte, text string) []byte {
	at := bytes.Index(data, []byte(text))
	data[at]++
	return data
}

// lie has the length before a value say that it is the longest.
func lie(data []byte, value string) []byte {
	data = bytes.Clone(data)
	at := bytes.Index(data, []byte(value))
	copy(data[at-4:], "\xff\xff\xff\xff")
	return data
}

// TestMemory: a footer whose list says that it has 2^31 elements, and pages that say that they unpack to 2 GiB, are refused before memory is taken.
func TestMemory(t *testing.T) {
	footer := append([]byte{0x15, 2, 0x19, 0xfc}, "\xff\xff\xff\xff\x07"...)
	file := append([]byte(magic), footer...)
	file = append(file, byte(len(footer)), 0, 0, 0)
	file = append(file, magic...)
	allocated := testing.AllocsPerRun(1, func() {
		if _, _, err := pictures(file); !errors.As(err, new(*FormatError)) {
			t.Error(err)
		}
	})
	if allocated > 1000 {
		t.Errorf("%v allocations", allocated)
	}
	for _, name := range []string{"snappy", "gzip", "zstd", "brotli", "lz4"} {
		out, err := decompressAs(t, name)
		if err == nil {
			t.Errorf("%s unpacked %d bytes of a page that says 4", name, len(out))
		}
	}
}

// decompressAs unpacks the first page of a file as if it said that it has four bytes.
func decompressAs(t *testing.T, name string) ([]byte, error) {
	data := load(t, name)
	f, err := Open(bytes.NewReader(data), int64(len(data)))
	must(t, err)
	c, err := f.chunk(0, column(f, Bytes))
	must(t, err)
	p, err := c.next()
	must(t, err)
	return decompress(p.codec, data[p.body:p.body+p.packed], 4)
}

// FuzzParquet: whatever a file has, no value lies outside of it, and what was found to be a part unpacks to the same.
func FuzzParquet(f *testing.F) {
	entries, err := os.ReadDir("testdata")
	must(f, err)
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), ".parquet"); ok {
			f.Add(load(f, name))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := Open(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			if !errors.As(err, new(*FormatError)) {
				t.Fatal(err)
			}
			return
		}
		for i := range file.Columns() {
			c := &file.Columns()[i]
			if c.Kind == Bytes || c.Kind == String {
				fuzzLocate(t, file, c, data)
			}
			if c.Kind == Int || c.Kind == String {
				checkError(t, file.Scalars(c, func(Scalar) error { return nil }))
			}
		}
	})
}

func checkError(t *testing.T, err error) {
	if err != nil && !errors.As(err, new(*FormatError)) && !errors.As(err, new(*NullError)) {
		t.Fatal(err)
	}
}

func fuzzLocate(t *testing.T, file *File, c *Column, data []byte) {
	var values map[*Part]int64
	l := Locator{File: file, Column: c}
	l.Unpacked = func(p *Part, v *Packed) error {
		again, ok := ParsePart(p.String())
		if !ok {
			t.Fatalf("%v is not read", p)
		}
		twice, err := again.Unpack(data[p.Offset : p.Offset+p.Length])
		if err != nil || !bytes.Equal(twice.Values, v.Values) {
			t.Fatalf("%v unpacks to other values: %v", p, err)
		}
		values = map[*Part]int64{p: int64(len(v.Values))}
		return nil
	}
	l.Tell = func(_ int64, v Found) error {
		end := int64(len(data))
		if v.Part != nil {
			if n, known := values[v.Part]; known {
				end = n
			}
		}
		if v.Offset < 0 || v.Size < 0 || v.Offset > end || v.Size > end-v.Offset {
			t.Fatalf("a value of %d bytes at %d of %d", v.Size, v.Offset, end)
		}
		return nil
	}
	checkError(t, l.Locate())
}
