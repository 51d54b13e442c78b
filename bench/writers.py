"""Parquet files give the same pictures and labels whoever wrote them, and what cannot be read is refused by name.

    python bench/writers.py FOLDER

FOLDER has photographs in class folders. Each file is held against these. Files of plain pages need no read cache; those
of compressed pages are refused without one, with the way out. The Python has datasets; polars and duckdb too, if their
files are to be looked at.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import importlib.util
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import datasets
import feedwater
import numpy as np
import pyarrow as pa
from datasets import Dataset, Features, Image, Value
from feedwater import Loader
from pyarrow import parquet
from pyarrow.parquet import encryption

from sources import rows_of

Rows = list[tuple[Path, int]]
PLAIN, PACKED = "as they lie", "by the read cache"
STRUCT = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
MOST = 110
"""Photographs, so that there are two groups of rows."""


def digest_of(source: Path, **options: Any) -> str:
    """Pixels and labels of an epoch."""
    total = hashlib.sha256()
    with Loader(source, feedwater.transforms.CenterCrop(96), batch_size=16, **options) as loader:
        for images, labels in loader:
            total.update(np.asarray(images).tobytes() + np.asarray(labels).astype("<i8").tobytes())
    return total.hexdigest()[:16]


def said_of(source: Path, **options: Any) -> str:
    """The error of an epoch; nothing where there is none."""
    try:
        digest_of(source, layout="parquet", **options)
    except feedwater.DataError as error:
        return str(error)
    return ""


def plain_table(rows: Rows) -> Any:
    """Pictures as bytes."""
    return pa.table({"image": [path.read_bytes() for path, _ in rows], "label": [label for _, label in rows]})


def struct_table(rows: Rows) -> Any:
    """Pictures as datasets has them."""
    pictures = [{"bytes": path.read_bytes(), "path": path.name} for path, _ in rows]
    return pa.table({"image": pa.array(pictures, STRUCT), "label": [label for _, label in rows]})


Write = Callable[[Path], Any]


def paths_alone() -> Any:
    """Pictures of which paths are there alone."""
    return pa.table({"image": pa.array([{"bytes": None, "path": "a.jpg"}], STRUCT), "label": [0]})


def writers_of(rows: Rows) -> dict[str, tuple[Write, str]]:
    """What writes a file, and how it should be read, by what is said of it."""
    table, struct, write = plain_table(rows), struct_table(rows), parquet.write_table
    features = Features({"image": Image(), "label": Value("int64")})
    found: dict[str, tuple[Write, str]] = {
        "datasets": (lambda to: Dataset(struct).cast(features).to_parquet(to), PLAIN),
        "pyarrow": (lambda to: write(table, to), PACKED),
        "pyarrow, 100 rows a group, snappy": (lambda to: write(struct, to, row_group_size=100), PACKED),
        "pyarrow, nothing compressed": (
            lambda to: write(table, to, compression="none", use_dictionary=False),
            PLAIN,
        ),
        "pyarrow, dictionary": (lambda to: write(table, to, compression="none"), PLAIN),
        "pyarrow, second version of pages": (
            lambda to: write(struct, to, compression="zstd", data_page_version="2.0"),
            PACKED,
        ),
    }
    for codec in ("lz4", "gzip"):
        found[f"pyarrow, {codec}"] = (lambda to, codec=codec: write(table, to, compression=codec), PACKED)
    if importlib.util.find_spec("polars"):
        import polars as pl

        frame = pl.from_arrow(table)
        assert isinstance(frame, pl.DataFrame)
        found["polars"] = (lambda to: frame.write_parquet(to), PACKED)
        found["polars, nothing compressed"] = (lambda to: frame.write_parquet(to, compression="uncompressed"), PLAIN)
    if importlib.util.find_spec("duckdb"):
        found["duckdb"] = (lambda to: write_by_duckdb(table, to, "snappy"), PACKED)
        found["duckdb, nothing compressed"] = (lambda to: write_by_duckdb(table, to, "uncompressed"), PLAIN)
    return found


def write_by_duckdb(table: Any, to: Path, codec: str) -> None:
    """Writes a file by SQL."""
    import duckdb

    connection = duckdb.connect()
    connection.register("pictures", table)
    connection.execute(f"copy pictures to '{to}' (format parquet, compression {codec})")


class Keys(encryption.KmsClient):  # type: ignore[misc]
    """Wraps no key, which is enough for a file that nobody reads."""

    def wrap_key(self, key_bytes: bytes, _: str) -> bytes:
        """The key itself."""
        return base64.b64encode(key_bytes)


def encrypt(table: Any, to: Path, *, footer: bool) -> None:
    """Writes a file with an encrypted column of pictures, and an encrypted footer or not."""
    how = encryption.EncryptionConfiguration("footer", column_keys={"column": ["image"]}, plaintext_footer=not footer)
    factory = encryption.CryptoFactory(lambda _: Keys())
    keys = factory.file_encryption_properties(encryption.KmsConnectionConfig(), how)
    with parquet.ParquetWriter(to, table.schema, encryption_properties=keys) as writer:
        writer.write_table(table)


def refusals_of(rows: Rows) -> dict[str, tuple[Write, dict[str, Any], str]]:
    """What writes a file, what is asked of it, and what the error has to say, by what is said of it."""
    table, write = plain_table(rows), parquet.write_table
    times = table.append_column("when", pa.array([0] * len(rows), pa.timestamp("ns")))
    nulls = [None if at == 7 else path.read_bytes() for at, (path, _) in enumerate(rows)]
    labels = table.column("label")

    def write_times(to: Path) -> None:
        write(times, to, compression="none", use_deprecated_int96_timestamps=True)

    def others(**columns: Any) -> Write:
        return lambda to: write(pa.table(columns), to, compression="none", use_dictionary=False)

    return {
        "encrypted, footer too": (lambda to: encrypt(table, to, footer=True), {}, "encrypted"),
        "encrypted column": (lambda to: encrypt(table, to, footer=False), {}, "encrypted"),
        "labels of INT96": (write_times, {"label": "when"}, "when"),
        "a field of INT96": (write_times, {"fields": ("image", "when")}, "when"),
        "a null picture": (others(image=nulls, label=labels), {}, "row 7"),
        "a null label": (others(image=nulls[:3], label=[0, None, 1]), {}, "row 1"),
        "fractions as labels": (others(image=nulls[:3], label=[0.5, 1.5, 2.5]), {"label": "label"}, "whole numbers"),
        "paths alone": (lambda to: write(paths_alone(), to), {}, "list"),
        "no pictures": (others(width=[1, 2], label=[0, 1]), {}, "width"),
        "no rows": (others(image=pa.array([], pa.binary()), label=pa.array([], "int64")), {}, "no row"),
        "no such column of pictures": (others(image=nulls[:3], label=[0, 1, 2]), {"image": "pic"}, "pic"),
        "no such column of labels": (others(image=nulls[:3], label=[0, 1, 2]), {"label": "lable"}, "label"),
        "no such field": (others(image=nulls[:3], label=[0, 1, 2]), {"fields": ("image", "capton")}, "capton"),
        "a file that was cut": (lambda to: to.write_bytes(b"PAR1" + bytes(100)), {}, "PAR1"),
        "no Parquet file": (lambda to: to.write_text("hello"), {}, "Parquet"),
    }  # fmt: skip


def check_writers(rows: Rows, made: Path) -> int:
    """Prints a line for each writer; how many are wrong."""
    bad = 0
    want = digest_of(made / "folder")
    for name, (write, kind) in writers_of(rows).items():
        file = made / "written.parquet"
        write(file)
        os.environ.pop("FEEDWATER_READ_CACHE", None)
        said = said_of(file)
        if said:
            os.environ["FEEDWATER_READ_CACHE"] = str(made / "cache")
        got = PACKED if "read-cache" in said or "FEEDWATER_READ_CACHE" in said else PLAIN
        good = got == kind and digest_of(file) == want
        bad += not good
        print(f"| {name:34} | {got:17} | {'the same' if good else f'WRONG, want {kind}: {said}'}", flush=True)
    os.environ.pop("FEEDWATER_READ_CACHE", None)
    return bad


def check_refusals(rows: Rows, made: Path) -> int:
    """Prints what is said of each file that is refused; how many are not, or not by name."""
    bad = 0
    for name, (write, options, word) in refusals_of(rows).items():
        file = made / "refused.parquet"
        write(file)
        said = said_of(file, **options).replace(str(made), "")
        good = word in said and file.name in said
        bad += not good
        print(f"{'' if good else 'WRONG: '}{name}: {said or 'nothing is said'}", flush=True)
    return bad


def main() -> int:
    """Prints the tables; 1 where something else came."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="photographs in class folders")
    rows = rows_of(parser.parse_args().folder.resolve())[:MOST]
    datasets.disable_progress_bars()
    with tempfile.TemporaryDirectory() as place:
        made = Path(place)
        for path, _ in rows:
            (made / "folder" / path.parent.name).mkdir(parents=True, exist_ok=True)
            shutil.copy(path, made / "folder" / path.parent.name / path.name)
        bad = check_writers(rows, made)
        bad += check_refusals(rows[:10], made)
    return 1 if bad else 0


if __name__ == "__main__":
    raise SystemExit(main())
