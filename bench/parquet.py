"""Parquet files of pictures and labels, written as they need be for a check: plain pages, compressed or not."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path

__all__ = ["write_parquet"]

INT32, INT64, BINARY, LIST, STRUCT = 5, 6, 8, 9, 12
"""Types of Thrift's compact protocol."""
LONG, BYTES = 2, 6
"""Types of Parquet's columns."""
PLAIN, GZIP = 0, 2
"""Codecs of pages."""
ROWS = 100
"""Of a group."""

Field = tuple[int, int, object]


def _varint(n: int) -> bytes:
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    return bytes([*out, n])


def _value(kind: int, value: object) -> bytes:
    if kind in (INT32, INT64):
        assert isinstance(value, int)
        return _varint(2 * value)
    if kind == BINARY:
        assert isinstance(value, bytes)
        return _varint(len(value)) + value
    assert isinstance(value, list)
    if kind == STRUCT:
        return _struct(value)
    of, items = value
    head = bytes([len(items) << 4 | of]) if len(items) < 15 else bytes([0xF0 | of]) + _varint(len(items))
    return head + b"".join(_value(of, item) for item in items)


def _struct(fields: list[Field]) -> bytes:
    out, last = b"", 0
    for number, kind, value in fields:
        out += bytes([(number - last) << 4 | kind]) + _value(kind, value)
        last = number
    return out + b"\0"


def _page(body: bytes, values: int, packed: bytes) -> bytes:
    """A page of values, which are packed so in the file."""
    head: list[Field] = [(1, INT32, values), (2, INT32, 0), (3, INT32, 3), (4, INT32, 3)]
    sizes: list[Field] = [(1, INT32, 0), (2, INT32, len(body)), (3, INT32, len(packed)), (5, STRUCT, head)]
    return _struct(sizes) + packed


def _column(name: bytes, kind: int, at: int, sizes: tuple[int, int], values: int, codec: int) -> list[Field]:
    meta: list[Field] = [
        (1, INT32, kind),
        (2, LIST, [INT32, [0]]),
        (3, LIST, [BINARY, [name]]),
        (4, INT32, codec),
        (5, INT64, values),
        (6, INT64, sizes[0]),
        (7, INT64, sizes[1]),
        (9, INT64, at),
    ]
    return [(2, INT64, at), (3, STRUCT, meta)]


def write_parquet(name: Path, rows: list[tuple[bytes, int]], *, compress: bool = False) -> None:
    """A file of the columns image and label, in pages that gzip has compressed or not."""
    out, groups = bytearray(b"PAR1"), []
    for first in range(0, len(rows), ROWS):
        part = rows[first : first + ROWS]
        images = b"".join(struct.pack("<I", len(picture)) + picture for picture, _ in part)
        columns, begin = [], len(out)
        for column, kind, body in (
            (b"image", BYTES, images),
            (b"label", LONG, b"".join(struct.pack("<q", label) for _, label in part)),
        ):
            page = _page(body, len(part), gzip.compress(body, 1) if compress else body)
            sizes = len(page) + len(body), len(page)
            columns.append(_column(column, kind, len(out), sizes, len(part), GZIP if compress else PLAIN))
            out += page
        groups.append([(1, LIST, [STRUCT, columns]), (2, INT64, len(out) - begin), (3, INT64, len(part))])
    schema = [
        [(4, BINARY, b"schema"), (5, INT32, 2)],
        [(1, INT32, BYTES), (3, INT32, 0), (4, BINARY, b"image")],
        [(1, INT32, LONG), (3, INT32, 0), (4, BINARY, b"label")],
    ]
    foot = _struct([(1, INT32, 2), (2, LIST, [STRUCT, schema]), (3, INT64, len(rows)), (4, LIST, [STRUCT, groups])])
    name.write_bytes(bytes(out) + foot + struct.pack("<I", len(foot)) + b"PAR1")
