package parquet

import (
	"bytes"
	"compress/gzip"
	"io"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go/format"
	"github.com/pierrec/lz4/v4"
)

// decompress unpacks what has so many bytes then, and takes memory for no more.
func decompress(codec format.CompressionCodec, b []byte, size int) ([]byte, error) {
	if size == 0 {
		return nil, nil
	}
	out, err := decompressInto(codec, b, size)
	switch {
	case err != nil && codec != format.Uncompressed:
		return nil, wrong("what %v packed in it is damaged: %v", codec, err)
	case err != nil:
		return nil, err
	case len(out) != size:
		return nil, wrong("it unpacks to %d bytes, and says %d", len(out), size)
	}
	return out, nil
}

func decompressInto(codec format.CompressionCodec, b []byte, size int) ([]byte, error) {
	switch codec {
	case format.Uncompressed:
		return b, nil
	case format.Snappy:
		if n, err := snappy.DecodedLen(b); err != nil || n != size {
			return nil, wrong("it says %d bytes, and the page %d", n, size)
		}
		return snappy.Decode(nil, b)
	case format.Gzip:
		r, err := gzip.NewReader(bytes.NewReader(b))
		if err != nil {
			return nil, err
		}
		return readUpTo(r, size)
	case format.Brotli:
		return readUpTo(brotli.NewReader(bytes.NewReader(b)), size)
	case format.Zstd:
		var h zstd.Header
		if err := h.Decode(b); err == nil && h.HasFCS && h.FrameContentSize > uint64(size) {
			return nil, wrong("it says %d bytes, and the page %d", h.FrameContentSize, size)
		}
		r, err := zstd.NewReader(bytes.NewReader(b), zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxPageBytes))
		if err != nil {
			return nil, err
		}
		defer r.Close()
		return readUpTo(r, size)
	case format.Lz4Raw:
		out := make([]byte, size)
		n, err := lz4.UncompressBlock(b, out)
		return out[:max(n, 0)], err
	}
	return nil, wrong("%v is not unpacked: write it with zstd, or better without compression", codec)
}

// readUpTo reads so many bytes and one more, if there is one. Memory grows with what there is.
func readUpTo(r io.Reader, size int) ([]byte, error) {
	var out bytes.Buffer
	_, err := out.ReadFrom(io.LimitReader(r, int64(size)+1))
	return out.Bytes(), err
}
