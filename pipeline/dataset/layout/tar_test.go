package layout

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/feedwater-io/feedwater/pipeline/dataset/manifest"
	"github.com/feedwater-io/feedwater/pipeline/dataset/store"
)

// scanned is the manifest of what a layout finds below a folder.
func scanned(ctx context.Context, l Layout, from store.Store) (*manifest.Manifest, error) {
	var out bytes.Buffer
	to := manifest.NewBuilder(&out, l.Form(), "/root", 1)
	if err := l.Scan(ctx, from, optionsOf(), to); err != nil {
		return nil, err
	}
	if err := to.Finish(); err != nil {
		return nil, err
	}
	return manifest.Parse(out.Bytes())
}

// shown are the samples of a manifest in words, with the bytes that they lie at.
func shown(t testing.TB, root string, m *manifest.Manifest) (all []string) {
	t.Helper()
	for i := range m.Samples() {
		s, err := m.At(i, nil)
		must(t, err)
		path, offset := string(s.Key), int64(0)
		if m.Form()&manifest.Members != 0 {
			path, offset = string(m.Object(s.Object).Name), s.Offset
		}
		data, err := os.ReadFile(root + "/" + path)
		must(t, err)
		label := fmt.Sprint(s.Label)
		if m.Form()&manifest.Unlabelled != 0 {
			label = "none"
		}
		all = append(all, fmt.Sprintf("%s %s %s", s.Key, label, data[offset:offset+s.Size]))
	}
	return all
}

// shardOf is a tar file of "name content" members.
func shardOf(t testing.TB, format tar.Format, members ...string) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, m := range members {
		name, data, _ := strings.Cut(m, " ")
		h := &tar.Header{Name: name, Size: int64(len(data)), Mode: 0o600, Format: format}
		if strings.HasSuffix(name, "/") {
			h.Typeflag = tar.TypeDir
		}
		must(t, w.WriteHeader(h))
		_, err := w.Write([]byte(data))
		must(t, err)
	}
	must(t, w.Close())
	return out.Bytes()
}

// write writes shards and returns their folder.
func write(t testing.TB, shards ...[]byte) string {
	t.Helper()
	root := t.TempDir()
	for i, data := range shards {
		must(t, os.WriteFile(fmt.Sprintf("%s/%d.tar", root, i), data, 0o600))
	}
	return root
}

// TestTar: in all dialects, with long names, samples come in order with the picture that WebDataset's users mean and its label.
func TestTar(t *testing.T) {
	long := strings.Repeat("日long/", 40)
	for _, format := range []tar.Format{tar.FormatUSTAR, tar.FormatPAX, tar.FormatGNU} {
		members := []string{
			"dir/", "./dir/b.jpg B", "./dir/b.cls 7\n", "dir/a.seg.png mask", "dir/a.cls -3", "dir/a.PNG A", "dir/a.txt words", "README read",
			"__meta__.json {}", ".hidden.jpg no", "c.webp webp", "c.jpg jpg", "c.cls 0",
		}
		want := []string{"0.tar/dir/b.jpg 7 B", "0.tar/dir/a.PNG -3 A", "0.tar/c.jpg 0 jpg"}
		if format != tar.FormatUSTAR {
			members = append(members, long+"x.jpg X", long+"x.cls 1")
			want = append(want, "0.tar/"+long+"x.jpg 1 X")
		}
		want = append(want, "1.tar/dir/b.jpg 9 second")
		root := write(t, shardOf(t, format, members...), shardOf(t, format, "dir/b.jpg second", "dir/b.cls 9"), shardOf(t, format))
		m, err := scanned(t.Context(), Tar{Pattern: "{0..2}.tar"}, folderOf(t, root))
		must(t, err)
		if got := shown(t, root, m); strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("%v:\n%s\nwant\n%s", format, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		if m.Objects() != 3 || m.Watches() != 3 || len(m.Classes()) != 0 {
			t.Errorf("%d objects, %d watched, %d classes", m.Objects(), m.Watches(), len(m.Classes()))
		}
	}
}

func TestTarWithoutLabels(t *testing.T) {
	root := write(t, shardOf(t, tar.FormatPAX, "a.jpg A", "a.txt words", "b.png B"))
	m, err := scanned(t.Context(), Tar{Pattern: "0.tar"}, folderOf(t, root))
	must(t, err)
	if got := strings.Join(shown(t, root, m), "\n"); got != "0.tar/a.jpg none A\n0.tar/b.png none B" {
		t.Error(got)
	}
}

// TestTarsThatAreNoData: what cannot be placed is an error that names shard and member.
func TestTarsThatAreNoData(t *testing.T) {
	good := shardOf(t, tar.FormatPAX, "a.jpg A", "a.cls 1", "b.jpg "+strings.Repeat("B", 3000), "b.cls 2")
	of := func(members ...string) []byte { return shardOf(t, tar.FormatPAX, members...) }
	special := func(h tar.Header) []byte {
		var out bytes.Buffer
		w := tar.NewWriter(&out)
		must(t, w.WriteHeader(&h))
		must(t, w.Close())
		return out.Bytes()
	}
	sparse := special(tar.Header{Name: "a.jpg", Format: tar.FormatGNU})
	sparse[156] = tar.TypeGNUSparse
	huge := special(tar.Header{Name: strings.Repeat("n", 300), Format: tar.FormatGNU})
	copy(huge[124:], "77777777777") // 8 GiB of name
	for _, b := range [][]byte{sparse, huge} {
		sum := 8 * 32
		for i, c := range b[:512] {
			if i < 148 || i >= 156 {
				sum += int(c)
			}
		}
		copy(b[148:], fmt.Sprintf("%06o\x00 ", sum))
	}
	unknown := special(tar.Header{Name: "a.jpg", Format: tar.FormatPAX, PAXRecords: map[string]string{"GNU.sparsX.major": "9"}})
	unknown = bytes.Replace(unknown, []byte("sparsX"), []byte("sparse"), 1) // which package tar writes none of
	for name, c := range map[string]struct {
		shards [][]byte
		says   string
	}{
		"a sparse file of PAX": {[][]byte{unknown}, `"a.jpg" is a sparse file: write it without --sparse`},
		"a long name":          {[][]byte{of(strings.Repeat("n/", manifest.MaxKeyBytes/2) + "a.jpg A")}, "bytes is too long"},
		"no tar":               {[][]byte{bytes.Repeat([]byte("no tar file "), 100)}, "0.tar: no tar file"},
		"cut in a member":      {[][]byte{good[:3000]}, `ends within "b.jpg"`},
		"cut behind a member":  {[][]byte{good[:endOf(good)], good}, "0.tar: the shard is cut"},
		"an empty file":        {[][]byte{nil, good}, "0.tar: the shard is cut: it ends at byte 0"},
		"two files joined":     {[][]byte{append(slices.Clone(good), good...)}, "behind the end of the tar file, as where files are joined by cat"},
		"a tail of zeros":      {[][]byte{append(good[:endOf(good):endOf(good)], make([]byte, 2<<20)...)}, "as where a copy broke off"},
		"cut in a header":      {[][]byte{good[:700+512]}, "0.tar: no tar file, or a damaged one"},
		"no picture":           {[][]byte{of("a.txt A")}, `"a" has no picture, only .txt`},
		"two of one ending":    {[][]byte{of("a.jpg A", "a.jpg B")}, `"a" has two members .jpg`},
		"not neighbours":       {[][]byte{of("a.jpg A", "b.jpg B", "a.cls 1")}, "neighbours"},
		"split over shards":    {[][]byte{of("a.jpg A", "a.cls 1", "b.jpg B", "b.cls 2"), of("b.txt words")}, `1.tar: the sample "b" has no picture`},
		"climbs out":           {[][]byte{of("../a.jpg A")}, `"../a.jpg" leads out`},
		"climbs out inside":    {[][]byte{of("x/../../a.jpg A")}, "leads out"},
		"absolute":             {[][]byte{of("/a.jpg A")}, "leads out"},
		"hard link":            {[][]byte{special(tar.Header{Name: "a.jpg", Typeflag: tar.TypeLink, Linkname: "b.jpg"})}, `"a.jpg" is no plain file`},
		"symbolic link":        {[][]byte{special(tar.Header{Name: "a.jpg", Typeflag: tar.TypeSymlink, Linkname: "b"})}, `"a.jpg" is no plain file`},
		"sparse":               {[][]byte{sparse}, "a.jpg"},
		"a name of 8 GiB":      {[][]byte{huge}, "0.tar: no tar file"},
		"a label of words":     {[][]byte{of("a.jpg A", "a.cls cat")}, `"a.cls": it is a name: labels of tar files are whole numbers`},
		"a long label":         {[][]byte{of("a.jpg A", "a.cls "+strings.Repeat("1", 100))}, `"a.cls" has 100 bytes`},
		"a label is missing":   {[][]byte{of("a.jpg A", "a.cls 1", "b.jpg B")}, `"b"`},
		"a shard without":      {[][]byte{of("a.jpg A", "a.cls 1"), of("b.jpg B")}, "0.tar and 1.tar"},
		"nothing":              {[][]byte{of(), of("dir/", "README x")}, "2 shards and no sample"},
		"missing":              {nil, "0.tar"},
	} {
		t.Run(name, func(t *testing.T) {
			pattern := fmt.Sprintf("{0..%d}.tar", max(0, len(c.shards)-1))
			_, err := scanned(t.Context(), Tar{Pattern: pattern}, folderOf(t, write(t, c.shards...)))
			if err == nil || !strings.Contains(err.Error(), c.says) || !errors.Is(err, ErrLayout) && !errors.Is(err, os.ErrNotExist) {
				t.Errorf("%v, want %q", err, c.says)
			}
		})
	}
	for _, name := range []string{"x.tar.gz", "x.tgz", "x.tar.zst", "x.TAR.XZ"} {
		root := t.TempDir()
		must(t, os.WriteFile(root+"/"+name, good, 0o600))
		if _, err := scanned(t.Context(), Tar{Pattern: name}, folderOf(t, root)); !errors.Is(err, ErrLayout) || !strings.Contains(err.Error(), "is compressed") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// endOf is where the end of a tar file of package tar begins.
func endOf(file []byte) int { return len(file) - 2*blockBytes }

// TestEndOfTar: one block of zeros ends a shard too, a record may be filled up, and an empty shard beside others is one.
func TestEndOfTar(t *testing.T) {
	good := shardOf(t, tar.FormatPAX, "a.jpg A", "b.jpg "+strings.Repeat("\x00", 1024))
	for name, file := range map[string][]byte{
		"as written": good, "one block": good[:endOf(good)+blockBytes], "a record": append(slices.Clone(good), make([]byte, 10240)...),
	} {
		root := write(t, file, make([]byte, 10240))
		m, err := scanned(t.Context(), Tar{Pattern: "{0..1}.tar"}, folderOf(t, root))
		if err != nil || m.Samples() != 2 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestForeignFiles: what holds pictures and is not read is named, with the way out, alone, by a pattern and in its folder.
func TestForeignFiles(t *testing.T) {
	for name, says := range map[string]string{
		"a.arrow": "a.arrow is an Arrow file", "shard.00000.mds": "MosaicML's MDS", "x.tfrecord": "TFRecord", "x.beton": "FFCV",
		"data.mdb": "LMDB", "x.zip": "x.zip is a ZIP archive, which is not read: no picture in it can be read alone",
	} {
		root := t.TempDir()
		must(t, os.WriteFile(root+"/"+name, []byte("x"), 0o600))
		for _, l := range []Layout{Tar{Pattern: name}, Tar{Pattern: "*"}, Folder{}} {
			if _, err := scanned(t.Context(), l, folderOf(t, root)); !errors.Is(err, ErrLayout) || !strings.Contains(err.Error(), says) {
				t.Errorf("%s as %T: %v, want %q", name, l, err, says)
			}
		}
		if !IsShard(name) {
			t.Errorf("the path of %s is taken for a folder's", name)
		}
	}
	for name, says := range map[string]string{"x.tar": "x.tar is a tar file: name it", "x.csv": "x.csv is a list"} {
		root := t.TempDir()
		must(t, os.WriteFile(root+"/"+name, []byte("x"), 0o600))
		if _, err := scanned(t.Context(), Folder{}, folderOf(t, root)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("a folder of %s: %v, want %q", name, err, says)
		}
	}
}

// TestTarWrittenWhileScanned: a shard that changes between two reads is no shard of either version.
func TestTarWrittenWhileScanned(t *testing.T) {
	root := write(t, shardOf(t, tar.FormatPAX, "a.jpg "+strings.Repeat("A", 9000), "b.jpg B"))
	o, _, err := openObject(t.Context(), folderOf(t, root), "0.tar")
	must(t, err)
	must(t, os.Truncate(root+"/0.tar", 100))
	if _, err := o.Read(make([]byte, 10)); !errors.As(err, new(*store.ChangedError)) {
		t.Errorf("%v, want a ChangedError", err)
	}
}

func TestTarCancelled(t *testing.T) {
	shards := make([][]byte, 100)
	for i := range shards {
		shards[i] = shardOf(t, tar.FormatPAX, "a.jpg A")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := scanned(ctx, Tar{Pattern: "{0..99}.tar"}, folderOf(t, write(t, shards...))); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want %v", err, context.Canceled)
	}
}

func FuzzTar(f *testing.F) {
	f.Add(shardOf(f, tar.FormatPAX, "a.jpg A", "a.cls 1", "b.jpg B", "b.cls 2"))
	f.Add(shardOf(f, tar.FormatGNU, strings.Repeat("long", 40)+".jpg A"))
	f.Add(shardOf(f, tar.FormatUSTAR, "dir/", "dir/a.png A"))
	f.Add(shardOf(f, tar.FormatPAX, "a.jpg A", `a.json {"label": 1}`, "a.txt words", "b.txt more", "b.png B", `b.json {"label": "7"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		root := write(t, data)
		m, err := scanned(t.Context(), Tar{Pattern: "0.tar"}, folderOf(t, root))
		if err != nil {
			if !errors.Is(err, ErrLayout) || !strings.Contains(err.Error(), "0.tar") {
				t.Fatalf("%v does not say which shard", err)
			}
			return
		}
		shown(t, root, m) // all lies in the shard
		asked := Choice{Label: "json:label", Values: []string{"txt"}}
		if m, err = scanned(t.Context(), Tar{Pattern: "0.tar", Choice: asked}, folderOf(t, root)); err == nil {
			for i := range m.Samples() {
				_, err := m.At(i, nil)
				must(t, err)
			}
		} else if !errors.Is(err, ErrLayout) {
			t.Fatal(err)
		}
	})
}
