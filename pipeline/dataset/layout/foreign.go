package layout

import (
	"context"
	"strings"

	"github.com/feedwater-io/feedwater/pipeline/dataset/store"
)

// Ways out for whoever has pictures in files that are not read.
const (
	unpack  = "no picture in it can be read alone: unpack it to a .tar, or to files"
	rewrite = "its pictures have to be written to files, in class folders or named by a list, or to .tar files of WebDataset's"
)

// foreign are the endings of files that hold pictures and are not read: what they are, and the way out. Longer endings come first.
var foreign = []struct{ ending, what, way string }{
	{".tar.gz", "compressed", unpack}, {".tar.zst", "compressed", unpack}, {".tar.bz2", "compressed", unpack},
	{".tar.xz", "compressed", unpack}, {".tar.lz4", "compressed", unpack}, {".tgz", "compressed", unpack},
	{".zip", "a ZIP archive", unpack}, {".7z", "an archive of 7-Zip", unpack}, {".rar", "a RAR archive", unpack},
	{".arrow", "an Arrow file", rewrite}, {".feather", "an Arrow file", rewrite},
	{".mds", "a shard of MosaicML's MDS", "name the folder that has its index.json"},
	{".mds.zstd", "a compressed shard of MosaicML's MDS", "write it by MDSWriter(compression=None)"},
	{".tfrecord", "a TFRecord file", rewrite}, {".tfrecords", "a TFRecord file", rewrite}, {".beton", "an FFCV file", rewrite},
	{".lmdb", "an LMDB database", rewrite}, {".mdb", "an LMDB database", rewrite}, {".rec", "a RecordIO file", rewrite},
	{".h5", "an HDF5 file", rewrite}, {".hdf5", "an HDF5 file", rewrite}, {".npy", "an array of numpy", rewrite},
	{".npz", "arrays of numpy", rewrite}, {".mat", "a file of MATLAB", rewrite},
}

// describeForeign says what a file is that is not read; "" for all others.
func describeForeign(name string) string {
	for _, f := range foreign {
		if strings.HasSuffix(strings.ToLower(name), f.ending) {
			return name + " is " + f.what + ", which is not read: " + f.way
		}
	}
	return ""
}

// findForeign looks in a folder without pictures for files that are not read, and describes the first; "" if there is none.
func findForeign(ctx context.Context, from store.Store) string {
	names, err := list(ctx, from, "")
	if err != nil {
		return "" // it was read a moment ago
	}
	if says := describeIndex(ctx, from); says != "" {
		return says
	}
	for _, name := range names {
		if says := describeForeign(name); says != "" {
			return says
		}
		if IsParquet(name) {
			return name + " is a Parquet file: name it, or all by a pattern, as *.parquet"
		}
		if IsShard(name) {
			return name + " is a tar file: name it, or all by a pattern, as {000..146}.tar or *.tar"
		}
		if IsList(name) {
			return name + " is a list: if it names the pictures, pass its own path"
		}
	}
	return ""
}
