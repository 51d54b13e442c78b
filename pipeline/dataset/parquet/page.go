package parquet

import (
	"errors"
	"hash/crc32"
	"io"

	"github.com/parquet-go/parquet-go/format"
)

// maxPageBytes is how many bytes a page may have that is taken into memory, packed or unpacked.
const maxPageBytes = 256 << 20

// plainDictionary is how older writers call numbers of a dictionary.
const plainDictionary format.Encoding = 2

// The first bytes of a page that are read to find its head, and the most.
const (
	firstHeadBytes = 256
	maxHeadBytes   = 1 << 20
)

// chunk is the part of a file that has one column of one group of rows.
type chunk struct {
	file   *File
	column *Column
	meta   *format.ColumnMetaData
	at     int64 // of the next page
	end    int64
	rows   int64 // that are left
}

// page is one, behind whose head f.from stands.
type page struct {
	begin, body    int64 // of the head and of what follows it, in the file
	packed, plain  int64 // bytes of the body, as it is and unpacked
	codec          format.CompressionCodec
	encoding       format.Encoding
	values         int64
	dictionary     bool
	levels         int64 // bytes of levels in front of the values; -1: the page says so there
	unpackedLevels bool  // they are not compressed
	sum            uint32
	summed         bool
}

// chunk opens one.
func (f *File) chunk(group int, c *Column) (*chunk, error) {
	g := &f.meta.RowGroups[group]
	cc := &g.Columns[c.index]
	m := &cc.MetaData
	switch {
	case cc.CryptoMetadata.Value != nil || len(cc.EncryptedColumnMetadata) > 0:
		return nil, errEncrypted
	case cc.FilePath != "":
		return nil, wrong("group %d lies in another file, %.99q", group, cc.FilePath)
	case c.Repeated:
		return nil, wrong("the column %s has several values in a row", c)
	case m.NumValues != g.NumRows:
		return nil, wrong("group %d has %d rows, and %d values in the column %s", group, g.NumRows, m.NumValues, c)
	}
	if g.NumRows == 0 {
		return &chunk{file: f, column: c, meta: m}, nil
	}
	begin := m.DataPageOffset
	if m.DictionaryPageOffset > 0 {
		begin = min(begin, m.DictionaryPageOffset)
	}
	if begin < int64(len(magic)) || m.TotalCompressedSize < 0 || begin > f.size || m.TotalCompressedSize > f.size-begin {
		return nil, wrong("the column %s of group %d does not lie in the file: %d bytes from %d on", c, group, m.TotalCompressedSize, begin)
	}
	return &chunk{file: f, column: c, meta: m, at: begin, end: begin + m.TotalCompressedSize, rows: g.NumRows}, nil
}

// next finds the next page that has values; io.EOF when the group's rows have all been seen.
func (c *chunk) next() (*page, error) {
	for c.rows > 0 {
		var h format.PageHeader
		head, err := readHead(c.file.from, c.at, c.end, &h)
		if err != nil {
			return nil, c.failed(err)
		}
		p, err := pageOf(&h, c.meta.Codec, c.column.depth)
		if err != nil {
			return nil, c.failed(err)
		}
		if p == nil {
			c.at += head + int64(h.CompressedPageSize)
			continue
		}
		p.begin, p.body = c.at, c.at+head
		if p.packed > c.end-p.body {
			return nil, c.failed(wrong("it says that it has %d bytes, and %d are left", p.packed, c.end-p.body))
		}
		c.at = p.body + p.packed
		if !p.dictionary {
			if p.values > c.rows {
				return nil, c.failed(wrong("it says that it has %d values, and %d are left", p.values, c.rows))
			}
			c.rows -= p.values
		}
		return p, nil
	}
	return nil, io.EOF
}

// eachPage tells of the chunks of a column, and of each chunk's pages that have values.
func (f *File) eachPage(c *Column, begin func(group int, c *chunk) error, take func(*page) error) error {
	for group := range f.meta.RowGroups {
		chunk, err := f.chunk(group, c)
		if err == nil {
			err = begin(group, chunk)
		}
		if err != nil {
			return err
		}
		for {
			p, err := chunk.next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err == nil {
				err = take(p)
			}
			if err != nil {
				return chunk.failed(err)
			}
		}
	}
	return nil
}

// failed says which page an error is about.
func (c *chunk) failed(err error) error {
	if e, ok := errors.AsType[*FormatError](err); ok {
		return wrong("the page of the column %s at byte %d: %s", c.column, c.at, e.text)
	}
	return err
}

// readHead reads the head of a page that begins at an offset and lies before end, and returns its length.
func readHead(from io.ReadSeeker, at, end int64, h *format.PageHeader) (int64, error) {
	for n := int64(firstHeadBytes); ; n *= 8 {
		last := n >= min(end-at, maxHeadBytes)
		b, err := readRange(from, at, max(0, min(n, end-at, maxHeadBytes)))
		if err != nil {
			return 0, err
		}
		length, err := structBytes(b)
		if errors.Is(err, io.ErrUnexpectedEOF) && !last {
			continue
		}
		if err == nil {
			err = unmarshal(b[:length], h)
		}
		if err != nil {
			return 0, wrong("its head is damaged: %v", err)
		}
		return int64(length), nil
	}
}

// pageOf understands a head; nil: a page without values.
func pageOf(h *format.PageHeader, codec format.CompressionCodec, depth int) (*page, error) {
	p := &page{packed: int64(h.CompressedPageSize), plain: int64(h.UncompressedPageSize), codec: codec}
	p.sum, p.summed = uint32(h.CRC), h.CRC != 0
	if p.packed < 0 || p.plain < 0 {
		return nil, wrong("it says that it has %d bytes, and %d unpacked", p.packed, p.plain)
	}
	switch h.Type {
	case format.DataPage:
		d := &h.DataPageHeader.V
		p.values, p.encoding = int64(d.NumValues), d.Encoding
		if depth > 0 {
			if p.levels = -1; d.DefinitionLevelEncoding != format.RLE {
				return nil, wrong("its levels are written as %v: write the file again", d.DefinitionLevelEncoding)
			}
		}
	case format.DataPageV2:
		d := &h.DataPageHeaderV2.V
		p.values, p.encoding, p.unpackedLevels = int64(d.NumValues), d.Encoding, true
		p.levels = int64(d.DefinitionLevelsByteLength)
		if d.IsCompressed.Valid && !d.IsCompressed.V {
			p.codec = format.Uncompressed
		}
		if d.RepetitionLevelsByteLength != 0 || p.levels < 0 || p.levels > p.packed || p.levels > p.plain {
			return nil, wrong("it says that its levels have %d bytes", p.levels)
		}
	case format.DictionaryPage:
		p.dictionary, p.values, p.encoding = true, int64(h.DictionaryPageHeader.V.NumValues), format.Plain
	default:
		return nil, nil //nolint:nilnil // it has no values
	}
	if p.values < 0 {
		return nil, wrong("it says that it has %d values", p.values)
	}
	if p.codec == format.Uncompressed && p.plain != p.packed {
		return nil, wrong("it is not compressed, and says that it has %d bytes and %d", p.packed, p.plain)
	}
	return p, nil
}

// isPlain reports whether values lie in the file as they are.
func (p *page) isPlain() bool { return p.codec == format.Uncompressed && p.encoding == format.Plain }

// indexes reports whether its values are numbers of those of the dictionary.
func (p *page) indexes() bool {
	return p.encoding == format.RLEDictionary || p.encoding == plainDictionary && !p.dictionary
}

// load reads a page, and unpacks it: its levels, and its values as they are encoded.
func (p *page) load(from io.ReadSeeker) (levels, values []byte, err error) {
	if max(p.packed, p.plain) > maxPageBytes {
		return nil, nil, wrong("it has %d bytes, unpacked %d, and more than %d are not taken into memory: write smaller pages", p.packed, p.plain, maxPageBytes)
	}
	body, err := readRange(from, p.body, p.packed)
	if err != nil {
		return nil, nil, err
	}
	if p.summed && crc32.ChecksumIEEE(body) != p.sum {
		return nil, nil, wrong("its checksum differs")
	}
	if p.unpackedLevels {
		levels, body = body[:p.levels], body[p.levels:]
		values, err = decompress(p.codec, body, int(p.plain-p.levels))
		return levels, values, err
	}
	if values, err = decompress(p.codec, body, int(p.plain)); err != nil || p.levels == 0 {
		return nil, values, err
	}
	if levels, values, err = cutLevels(values); err != nil {
		return nil, nil, err
	}
	return levels, values, nil
}

// cutLevels cuts off levels that follow their length.
func cutLevels(b []byte) (levels, rest []byte, err error) {
	n, rest, ok := cutLength(b)
	if !ok || n > len(rest) {
		return nil, nil, wrong("its levels are cut")
	}
	return rest[:n], rest[n:], nil
}
