package layout

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
)

// mdsOf writes shards as MDSWriter does, with columns in sorted order: a row is its columns' bytes.
func mdsOf(t testing.TB, root string, columns []string, encodings []string, sizes []any, shards ...[][]string) {
	t.Helper()
	var all []map[string]any
	for number, rows := range shards {
		data := shardBytes(sizes, rows)
		name := "shard.0000" + string(rune('0'+number)) + ".mds"
		must(t, os.WriteFile(root+"/"+name, data, 0o600))
		all = append(all, map[string]any{
			"format": "mds", "version": 2, "compression": nil, "hashes": []string{}, "samples": len(rows), "zip_data": nil, "size_limit": 1 << 24,
			"column_names": columns, "column_encodings": encodings, "column_sizes": sizes,
			"raw_data": map[string]any{"basename": name, "bytes": len(data), "hashes": map[string]string{}},
		})
	}
	text, err := json.Marshal(map[string]any{"version": 2, "shards": all})
	must(t, err)
	must(t, os.WriteFile(root+"/index.json", text, 0o600))
}

// shardBytes is a shard: count, offsets, the configuration, samples.
func shardBytes(sizes []any, rows [][]string) []byte {
	const configuration = `{"columns": {}}`
	at := 4*(len(rows)+2) + len(configuration)
	head, body := binary.LittleEndian.AppendUint32(nil, uint32(len(rows))), []byte(nil)
	head = binary.LittleEndian.AppendUint32(head, uint32(at))
	for _, row := range rows {
		for i, size := range sizes {
			if size == nil {
				body = binary.LittleEndian.AppendUint32(body, uint32(len(row[i])))
			}
		}
		body = append(body, strings.Join(row, "")...)
		head = binary.LittleEndian.AppendUint32(head, uint32(at+len(body)))
	}
	return append(append(head, configuration...), body...)
}

func number(n int64, bytes int) string {
	return string(binary.LittleEndian.AppendUint64(nil, uint64(n))[:bytes])
}

// TestMDS: pictures, labels of all types and further columns are where an index says, in several shards.
func TestMDS(t *testing.T) {
	root := t.TempDir()
	mdsOf(t, root, []string{"caption", "image", "label"}, []string{"str", "jpeg", "int"}, []any{nil, nil, 8},
		[][]string{{"one", "A", number(7, 8)}, {"", "BB", number(-3, 8)}}, [][]string{}, [][]string{{"three", "CCC", number(1<<40, 8)}})
	l := MDS{Choice: Choice{Values: []string{"caption"}}}
	want := "shard.00000.mds/0000000 7 A one\nshard.00000.mds/0000001 -3 BB \nshard.00002.mds/0000000 1099511627776 CCC three"
	if got := strings.Join(valuesOf(t, l, root), "\n"); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	if !HoldsMDS(t.Context(), folderOf(t, root)) || HoldsMDS(t.Context(), folderOf(t, t.TempDir())) {
		t.Error("MDS is not told from other folders")
	}
	for encoding, text := range map[string]string{"int8": "\xfe", "int16": "\xfe\xff", "int32": number(-2, 4), "int64": number(-2, 8), "str_int": "-2"} {
		size := any(len(text))
		if encoding == "str_int" {
			size = nil
		}
		mdsOf(t, root, []string{"fine", "pic"}, []string{encoding, "bytes"}, []any{size, nil}, [][]string{{text, "A"}})
		if got := strings.Join(valuesOf(t, MDS{Image: "pic", Choice: Choice{Label: "fine"}}, root), "\n"); got != "shard.00000.mds/0000000 -2 A" {
			t.Errorf("%s: %s", encoding, got)
		}
	}
	mdsOf(t, root, []string{"cls", "png"}, []string{"uint8", "png"}, []any{1, nil}, [][]string{{"\xfe", "A"}})
	if got := strings.Join(valuesOf(t, MDS{}, root), "\n"); got != "shard.00000.mds/0000000 254 A" {
		t.Error(got)
	}
	mdsOf(t, root, []string{"image"}, []string{"bytes"}, []any{nil}, [][]string{{"A"}})
	if got := strings.Join(valuesOf(t, MDS{}, root), "\n"); got != "shard.00000.mds/0000000 none A" {
		t.Error(got)
	}
}

// TestMDSThatIsNoData: what an index or a shard says and is not so is named, with shard, sample or column.
func TestMDSThatIsNoData(t *testing.T) {
	plain := func(t *testing.T, root string) {
		mdsOf(t, root, []string{"image", "label"}, []string{"bytes", "int"}, []any{nil, 8}, [][]string{{"A", number(1, 8)}, {"B", number(2, 8)}})
	}
	index := func(old, now string) func(*testing.T, string) {
		return func(t *testing.T, root string) {
			plain(t, root)
			text, err := os.ReadFile(root + "/index.json")
			must(t, err)
			if !strings.Contains(string(text), old) {
				t.Fatalf("%s has no %s", text, old)
			}
			must(t, os.WriteFile(root+"/index.json", []byte(strings.ReplaceAll(string(text), old, now)), 0o600))
		}
	}
	word := func(at int, n uint32) func(*testing.T, string) {
		return func(t *testing.T, root string) {
			plain(t, root)
			data, err := os.ReadFile(root + "/shard.00000.mds")
			must(t, err)
			binary.LittleEndian.PutUint32(data[at:], n)
			must(t, os.WriteFile(root+"/shard.00000.mds", data, 0o600))
		}
	}
	for says, c := range map[string]struct {
		spoil  func(*testing.T, string)
		layout MDS
	}{
		"shard.00000.mds is compressed by zstd: no picture in it can be read alone; write it by MDSWriter(compression=None)": {spoil: index(`"compression":null`, `"compression":"zstd:7"`)},
		"shard.00000.mds is compressed: no picture in it":                                                                    {spoil: index(`"compression":null`, `"compression":"secret"`)},
		`has another format than mds, which alone is read`:                                                                   {spoil: index(`"format":"mds"`, `"format":"json"`)},
		`the shard "../shard.00000.mds" leads out`:                                                                           {spoil: index(`"shard.`, `"../shard.`)},
		`the shard "/shard.00000.mds" leads out`:                                                                             {spoil: index(`"shard.`, `"/shard.`)},
		"the columns of shard.00000.mds make no sense":                                                                       {spoil: index(`["image","label"]`, `["image"]`)},
		"shard.00000.mds has 3000000 samples in":                                                                             {spoil: index(`"samples":2`, `"samples":3000000`)},
		"shard.00000.mds has 2 samples, and index.json says 1":                                                               {spoil: index(`"samples":2`, `"samples":1`)},
		"a column of 8000000 bytes in a shard of":                                                                            {spoil: index(`[null,8]`, `[null,8000000]`)},
		"a column of -8 bytes":                                                                                               {spoil: index(`[null,8]`, `[null,-8]`)},
		"a label of type int has 4 bytes":                                                                                    {spoil: index(`[null,8]`, `[null,4]`)},
		`the pictures in "image" are of type "pil"`:                                                                          {spoil: index(`"bytes","int"`, `"pil","int"`)},
		`the labels in "label" are of type "str", and have to be whole numbers`:                                              {spoil: index(`"bytes","int"`, `"bytes","str"`)},
		"index.json is no index of shards":                                                                                   {spoil: index(`{`, `[`)},
		"shard.00000.mds: no column is called image, img, jpg, jpeg, png, picture; it has x, label":                          {spoil: index(`"image"`, `"x"`)},
		`no column is called "fine"; it has image, label`:                                                                    {spoil: plain, layout: MDS{Choice: Choice{Label: "fine"}}},
		`no column is called "txt"; it has image, label`:                                                                     {spoil: plain, layout: MDS{Choice: Choice{Values: []string{"txt"}}}},
		"sample 0 begins at byte 3":                                                                                          {spoil: word(4, 3)},
		"sample 1 begins at byte 20":                                                                                         {spoil: word(8, 20)},
		"sample 2 begins at byte 4000000000":                                                                                 {spoil: word(12, 4_000_000_000)},
		"the columns of sample 0 are longer than it is":                                                                      {spoil: word(31, 4_000_000_000)},
		"shard.00000.mds has 40 bytes, and index.json says":                                                                  {spoil: func(t *testing.T, root string) { plain(t, root); must(t, os.Truncate(root+"/shard.00000.mds", 40)) }},
		"index.json: 1 shards and no sample in them":                                                                         {spoil: func(t *testing.T, root string) { mdsOf(t, root, []string{"image"}, []string{"bytes"}, []any{nil}, nil) }},
	} {
		t.Run(says, func(t *testing.T) {
			root := t.TempDir()
			c.spoil(t, root)
			if _, err := scanned(t.Context(), c.layout, folderOf(t, root)); !errors.Is(err, ErrLayout) || !strings.Contains(err.Error(), says) {
				t.Errorf("%v, want %q", err, says)
			}
		})
	}
}

// TestMDSColumnsOfSeveralShards: all shards have pictures and labels in columns of one name.
func TestMDSColumnsOfSeveralShards(t *testing.T) {
	row := [][]string{{"A", number(1, 8)}}
	for says, spoil := range map[string][2]string{
		"shard.00000.mds and shard.00001.mds: the one has labels in the column label, and the other in target: name one by label=": {`"label"`, `"target"`},
		"shard.00000.mds and shard.00001.mds: the one has pictures in the column image, and the other in png: name one by image=":  {`"image"`, `"png"`},
	} {
		root := t.TempDir()
		mdsOf(t, root, []string{"image", "label"}, []string{"bytes", "int"}, []any{nil, 8}, row, row)
		text, err := os.ReadFile(root + "/index.json")
		must(t, err)
		at := strings.LastIndex(string(text), spoil[0])
		must(t, os.WriteFile(root+"/index.json", []byte(string(text[:at])+spoil[1]+string(text[at+len(spoil[0]):])), 0o600))
		if _, err := scanned(t.Context(), MDS{}, folderOf(t, root)); !errors.Is(err, ErrLayout) || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %q", err, says)
		}
	}
}

// TestIndexesOfOthers: folders of LitData and of wids are told by their index, with the way out.
func TestIndexesOfOthers(t *testing.T) {
	for text, says := range map[string]string{
		`{"chunks": [{"chunk_bytes": 1}], "config": {}}`:         "LitData's chunks, which are not read",
		`{"__kind__": "wids-shard-index-v1", "shardlist": [{}]}`: "an index of wids: name the tar files themselves",
	} {
		root := t.TempDir()
		must(t, os.WriteFile(root+"/index.json", []byte(text), 0o600))
		if _, err := scanned(t.Context(), Folder{}, folderOf(t, root)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %q", err, says)
		}
	}
}

// FuzzMDS: any shard and any index give samples that lie in the shard, or an error of the layout.
func FuzzMDS(f *testing.F) {
	root := f.TempDir()
	mdsOf(f, root, []string{"image", "label", "txt"}, []string{"bytes", "int", "str"}, []any{nil, 8, nil}, [][]string{{"A", number(1, 8), "words"}, {"B", number(2, 8), ""}})
	index, err := os.ReadFile(root + "/index.json")
	must(f, err)
	shard, err := os.ReadFile(root + "/shard.00000.mds")
	must(f, err)
	f.Add(index, shard)
	f.Add([]byte(strings.ReplaceAll(string(index), "null,8,null", "1,8,0")), shard)
	f.Fuzz(func(t *testing.T, index, shard []byte) {
		root := t.TempDir()
		must(t, os.WriteFile(root+"/index.json", index, 0o600))
		must(t, os.WriteFile(root+"/shard.00000.mds", shard, 0o600))
		l := MDS{Choice: Choice{Values: []string{"txt"}}}
		m, err := scanned(t.Context(), l, folderOf(t, root))
		if err != nil {
			if !errors.Is(err, ErrLayout) && !errors.Is(err, os.ErrNotExist) && !strings.Contains(err.Error(), "not a directory") && !strings.Contains(err.Error(), "name too long") {
				t.Fatalf("%v", err)
			}
			return
		}
		for i := range m.Samples() {
			s, err := m.At(i, nil)
			must(t, err)
			if s.Offset+s.Size > int64(len(shard)) || s.Values[0].Offset+s.Values[0].Size > int64(len(shard)) {
				t.Fatalf("sample %d lies behind the end of its shard: %+v", i, s)
			}
		}
	})
}
