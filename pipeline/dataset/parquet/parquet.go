// Package parquet finds where values lie in Parquet files. Of a file it reads the footer, and of one column the heads of
// its pages; where pages are as they were written, without compression, a value is a range of the file, and nothing
// else is read of it. What a file says of itself is believed only as far as its bytes go: none, however damaged, makes
// it take more memory than a small multiple of what it reads. The package starts no goroutines.
package parquet

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"

	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// FormatError says what is wrong with a file, in words that follow its name. All other errors are of who reads it.
type FormatError struct{ text string }

// Error is in words.
func (e *FormatError) Error() string { return e.text }

// Rewrite is how a file is written that is read at little cost, whatever it was before.
const Rewrite = "write the file again: pyarrow.parquet.write_table(table, file, compression='none', use_dictionary=False)"

func wrong(text string, args ...any) error { return &FormatError{fmt.Sprintf(text, args...)} }

const (
	magic          = "PAR1"
	encryptedMagic = "PARE"
	tailBytes      = 8 // bytes of the footer u32, and the magic
	// maxFooterBytes is how long a footer may be: of a file with 100,000 groups of ten columns it has some 100 MiB.
	maxFooterBytes = 128 << 20
	// lastBytes of a file are read at once: most footers are shorter, so that nothing else need be asked for.
	lastBytes = 16 << 10
)

// File is a Parquet file whose footer was read. Its methods may be called by one goroutine at a time.
type File struct {
	from    io.ReadSeeker
	size    int64
	meta    format.FileMetaData
	columns []Column
}

// Column is a leaf of a file's schema.
type Column struct {
	// Path has the names from the top down, one for each level.
	Path []string
	// Kind of its values.
	Kind Kind
	// Type is what the file calls the type of its values.
	Type string
	// Repeated says that a row may have several.
	Repeated bool

	depth    int  // definition level of a value that is there
	index    int  // among the leaves
	unsigned bool // of an Int: it has no sign
}

// Kind is what values are.
type Kind uint8

// The kinds of columns.
const (
	Other  Kind = iota // what is neither of these
	Bytes              // bytes of any length
	String             // the same, which are text
	Int                // 32 or 64 bits, with a sign or without; what is no int64 is an error
)

// Open reads the footer of a file of so many bytes.
func Open(from io.ReadSeeker, size int64) (*File, error) {
	f := &File{from: from, size: size}
	if size < int64(2*len(magic)+tailBytes-len(magic)) {
		return nil, wrong("no Parquet file: it has %d bytes", size)
	}
	footer, err := f.readFooter()
	if err != nil {
		return nil, err
	}
	n, err := structBytes(footer)
	if err == nil {
		err = unmarshal(footer[:n], &f.meta)
	}
	if err != nil {
		return nil, wrong("its footer is damaged: %v", err)
	}
	return f, f.check()
}

// readFooter reads the footer, without its length and the magic.
func (f *File) readFooter() ([]byte, error) {
	last := min(f.size, lastBytes)
	b, err := readRange(f.from, f.size-last, last)
	if err != nil {
		return nil, err
	}
	b, tail := b[:last-tailBytes], b[last-tailBytes:]
	switch string(tail[4:]) {
	case magic:
	case encryptedMagic:
		return nil, errEncrypted
	default:
		return nil, wrong("no Parquet file, or a cut one: it does not end in %s", magic)
	}
	n := int64(binary.LittleEndian.Uint32(tail))
	if n > f.size-tailBytes-int64(len(magic)) || n > maxFooterBytes {
		return nil, wrong("its footer says that it has %d bytes, and the file has %d", n, f.size)
	}
	more := n - int64(len(b))
	if more <= 0 {
		return b[-more:], nil
	}
	front, err := readRange(f.from, f.size-tailBytes-n, more)
	return append(front, b...), err
}

var errEncrypted = wrong("it is encrypted: write it without encryption")

// readRange reads a part of a file, which was checked to lie in it.
func readRange(from io.ReadSeeker, at, n int64) ([]byte, error) {
	if _, err := from.Seek(at, io.SeekStart); err != nil {
		return nil, err
	}
	b := make([]byte, n)
	_, err := io.ReadFull(from, b)
	return b, err
}

// unmarshal reads a struct of Thrift that structBytes has looked through.
func unmarshal(b []byte, to any) error {
	return thrift.Unmarshal(new(thrift.CompactProtocol), b, to)
}

// check looks at what the footer says.
func (f *File) check() error {
	if f.meta.EncryptionAlgorithm.Value != nil {
		return errEncrypted
	}
	if err := f.readSchema(); err != nil {
		return err
	}
	rows := int64(0)
	for i := range f.meta.RowGroups {
		g := &f.meta.RowGroups[i]
		if g.NumRows < 0 || g.NumRows > math.MaxInt32 || g.NumRows > f.size-rows {
			return wrong("group %d has %d rows, and the file only %d bytes", i, g.NumRows, f.size)
		}
		rows += g.NumRows
		if len(g.Columns) != len(f.columns) {
			return wrong("group %d has %d columns of %d", i, len(g.Columns), len(f.columns))
		}
	}
	if rows != f.meta.NumRows {
		return wrong("its groups have %d rows, and its footer says %d", rows, f.meta.NumRows)
	}
	return nil
}

// maxLevels is how deep a schema may be.
const maxLevels = 32

// readSchema lists the leaves.
func (f *File) readSchema() error {
	if len(f.meta.Schema) == 0 {
		return wrong("it has no schema")
	}
	rest, err := f.readNodes(f.meta.Schema[1:], int(f.meta.Schema[0].NumChildren.V), Column{})
	if err == nil && len(rest) > 0 {
		err = wrong("its schema has %d columns too many", len(rest))
	}
	return err
}

// readNodes reads so many nodes below another one, and returns what follows.
func (f *File) readNodes(nodes []format.SchemaElement, count int, above Column) ([]format.SchemaElement, error) {
	if len(above.Path) > maxLevels {
		return nil, wrong("its schema has more than %d levels", maxLevels)
	}
	for ; count > 0; count-- {
		if len(nodes) == 0 {
			return nil, wrong("its schema ends too early")
		}
		n, c := &nodes[0], above
		nodes = nodes[1:]
		c.Path = append(append([]string(nil), above.Path...), n.Name)
		if n.RepetitionType.Valid && n.RepetitionType.V != format.Required {
			c.depth++
		}
		c.Repeated = c.Repeated || n.RepetitionType.Valid && n.RepetitionType.V == format.Repeated
		if n.Type.Valid {
			c.Kind, c.Type, c.index, c.unsigned = kindOf(n), typeOf(n), len(f.columns), isUnsigned(n)
			f.columns = append(f.columns, c)
			continue
		}
		var err error
		if nodes, err = f.readNodes(nodes, int(n.NumChildren.V), c); err != nil {
			return nil, err
		}
	}
	return nodes, nil
}

// typeOf is the name of a leaf's type, the most telling one.
func typeOf(n *format.SchemaElement) string {
	if logical, ok := n.LogicalType.Value.(fmt.Stringer); ok {
		return logical.String()
	}
	return n.Type.V.String()
}

// kindOf tells what a leaf's values are. Dates, times and decimals are no numbers: what is taken for a label has to be meant as one.
func kindOf(n *format.SchemaElement) Kind {
	switch n.Type.V {
	case format.Int32, format.Int64:
		if isInteger(n) {
			return Int
		}
	case format.ByteArray:
		switch n.LogicalType.Value.(type) {
		case *format.StringType, *format.EnumType, *format.JsonType:
			return String
		case nil:
			if n.ConvertedType.Valid {
				return String
			}
			return Bytes
		}
	}
	return Other
}

// isInteger reports whether a leaf of integers is meant as numbers. Older writers, and DuckDB, say so by the converted type alone.
func isInteger(n *format.SchemaElement) bool {
	switch n.LogicalType.Value.(type) {
	case *format.IntType:
		return true
	case nil:
		return !n.ConvertedType.Valid || n.ConvertedType.V >= deprecated.Uint8 && n.ConvertedType.V <= deprecated.Int64
	}
	return false
}

// isUnsigned reports whether a leaf's numbers have no sign.
func isUnsigned(n *format.SchemaElement) bool {
	if t, ok := n.LogicalType.Value.(*format.IntType); ok {
		return !t.IsSigned
	}
	return n.ConvertedType.Valid && n.ConvertedType.V >= deprecated.Uint8 && n.ConvertedType.V <= deprecated.Uint64
}

// Rows is how many there are.
func (f *File) Rows() int64 { return f.meta.NumRows }

// Columns are the leaves of the schema.
func (f *File) Columns() []Column { return f.columns }

// Metadata is what the file has under a key; empty: nothing.
func (f *File) Metadata(key string) string {
	for i := range f.meta.KeyValueMetadata {
		if f.meta.KeyValueMetadata[i].Key == key {
			return f.meta.KeyValueMetadata[i].Value
		}
	}
	return ""
}
