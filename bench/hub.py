"""Data sets of Hugging Face's datasets give the pictures and labels of their rows, however they were loaded.

    python bench/hub.py FOLDER

FOLDER has photographs in class folders. Each way is held against the rows as datasets itself gives them, and against
where they should be read: from files, from ranges of Arrow files, or by processes. The Python has datasets.
"""

from __future__ import annotations

import argparse
import hashlib
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import datasets
import feedwater
import numpy as np
import PIL.ExifTags
import PIL.Image
from datasets import ClassLabel, Dataset, Features, Image, Value
from feedwater import Loader

from sources import rows_of, running_nodes

SIZE = 96


def loaded(source: Any, **options: Any) -> tuple[list[bytes], list[int], str]:
    """Pixels and labels of a source in its order, and how it is read."""
    pixels: list[bytes] = []
    labels: list[int] = []
    with Loader(source, feedwater.transforms.CenterCrop(SIZE), batch_size=16, **options) as loader:
        read = loader._engine.config.source
        for images, numbers in loader:
            pixels += [np.ascontiguousarray(image).tobytes() for image in np.asarray(images)]
            labels += np.asarray(numbers).tolist()
    ranges = read.table is not None and b'"range": [' in read.table.read()[:100_000]
    kind = "processes" if read.program is not None else "ranges" if ranges else "files"
    return pixels, labels, kind


def encoded(row: Any) -> bytes:
    """The file of a row's picture."""
    if isinstance(row, bytes):
        return row
    data: bytes = row["bytes"] if row["bytes"] is not None else Path(row["path"]).read_bytes()
    return data


def digests_of(source: Any, image: str, label: str) -> list[tuple[str, int]]:
    """Digest of the file, and label, of each row as datasets gives them."""
    plain = source.with_format(None)
    if isinstance(plain.features[image], Image):
        plain = plain.cast_column(image, Image(decode=False))
    return [(hashlib.sha256(encoded(row[image])).hexdigest(), row[label]) for row in plain]


def ways_of(
    folder: Path, files: list[tuple[Path, int]], made: Path
) -> dict[str, tuple[Callable[[], Any], str, dict[str, str]]]:
    """Data sets by how they were made, how they should be read, and the columns to name."""
    classes = sorted(path.name for path in folder.iterdir() if path.is_dir())
    features = Features({"image": Image(), "label": ClassLabel(names=classes), "text": Value("string")})

    def in_memory() -> Any:
        rows = {
            "image": [{"bytes": path.read_bytes(), "path": path.name} for path, _ in files],
            "label": [label for _, label in files],
            "text": [path.name for path, _ in files],
        }
        return Dataset.from_dict(rows, features=features)

    in_memory().to_parquet(made / "all.parquet")
    in_memory().save_to_disk(made / "saved", num_shards=3)
    parquet = datasets.load_dataset("parquet", data_files=str(made / "all.parquet"), split="train", cache_dir=str(made))
    saved = datasets.load_from_disk(str(made / "saved"))
    binary = Dataset.from_dict(
        {"jpg": [path.read_bytes() for path, _ in files], "cls": [label for _, label in files]},
    )
    binary.save_to_disk(made / "binary")

    def image_folder() -> Any:
        names = {"train": f"{folder}/**"}  # else a picture that is called train is the split of that name
        return datasets.load_dataset("imagefolder", data_files=names, split="train", cache_dir=str(made))

    renamed = {"image": "photo", "label": "kind"}

    def doubled() -> Any:
        column = parquet.add_column("fine", [at % 7 for at in range(len(parquet))])
        return column.cast_column("fine", ClassLabel(num_classes=7))

    return {
        "load_dataset of Parquet": (lambda: parquet, "ranges", {}),
        "load_from_disk, three files": (lambda: saved, "ranges", {}),
        "load_dataset of a folder": (image_folder, "files", {}),
        "shuffle, select": (lambda: parquet.shuffle(seed=3).select(range(40)), "ranges", {}),
        "a slice": (lambda: saved.select(range(10, 60)), "ranges", {}),
        "select a row again": (lambda: saved.select([5, 5, 1, 450, 5]), "ranges", {}),
        "filter": (lambda: saved.filter(lambda row: row["label"] != 0, keep_in_memory=True), "ranges", {}),
        "concatenate": (lambda: datasets.concatenate_datasets([parquet, saved]), "ranges", {}),
        "rename": (lambda: parquet.rename_columns(renamed), "ranges", renamed),
        "numpy's format": (lambda: parquet.with_format("numpy"), "ranges", {}),
        "two columns of classes": (doubled, "ranges", {"label": "label"}),
        "binary": (lambda: datasets.load_from_disk(str(made / "binary")), "ranges", {"image": "jpg", "label": "cls"}),
        "in memory": (in_memory, "processes", {}),
    }  # fmt: skip


def check_turned(folder: Path) -> None:
    """Pictures of a column of Image are turned as their EXIF data says, those of a column of bytes are not.

    No other mode than RGB is taken for one.
    """
    noise = np.random.default_rng(1).integers(0, 256, (SIZE, 2 * SIZE, 3), dtype=np.uint8)
    picture, exif = PIL.Image.fromarray(noise), PIL.Image.Exif()
    exif[PIL.ExifTags.Base.Orientation] = 6
    picture.save(folder / "turned.png", exif=exif)
    data = (folder / "turned.png").read_bytes()
    rows = {"image": [{"bytes": data, "path": None}], "label": [0]}
    made = Dataset.from_dict(rows, features=Features({"image": Image(), "label": Value("int64")}))
    made.save_to_disk(folder / "turned")
    saved = datasets.load_from_disk(str(folder / "turned"))
    bare = Dataset.from_dict({"image": [data], "label": [0]})
    box = (0, SIZE // 2, SIZE, SIZE // 2 + SIZE)
    for name, source in {"of Arrow files": saved, "in memory": made}.items():
        want = np.asarray(source[0]["image"].convert("RGB").crop(box))
        assert loaded(source)[0] == [np.ascontiguousarray(want).tobytes()], f"{name}: not turned as the data set has it"
    box = (SIZE // 2, 0, SIZE // 2 + SIZE, SIZE)
    assert loaded(bare)[0] == [picture.crop(box).tobytes()], "a column of bytes is turned"
    said = ""
    try:
        loaded(saved.cast_column("image", Image(mode="L")))
    except feedwater.DataError as error:
        said = str(error)
    assert "Image(mode='L')" in said, f"a column of grey pictures: {said}"
    print("| turned as EXIF says, and modes     | ok |")


def main() -> None:
    """Checks and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="photographs in class folders")
    folder = parser.parse_args().folder.resolve()
    datasets.disable_progress_bars()
    files = rows_of(folder)
    reference = loaded(folder)[0]
    digests = [hashlib.sha256(path.read_bytes()).hexdigest() for path, _ in files]
    pixels = dict(zip(digests, reference, strict=True))
    with tempfile.TemporaryDirectory() as made:
        print(f"datasets {datasets.__version__}\n| {'made by':28} | {'rows':>4} | {'read from':9} | seconds |")
        for name, (make, wanted, columns) in ways_of(folder, files, Path(made)).items():
            source = make()
            began = time.perf_counter()
            got, labels, kind = loaded(source, **columns)
            took = time.perf_counter() - began
            rows = digests_of(source, columns.get("image", "image"), columns.get("label", "label"))
            print(f"| {name:28} | {len(rows):4} | {kind:9} | {took:7.2f} |")
            assert got == [pixels[digest] for digest, _ in rows], "other pictures"
            assert labels == [label for _, label in rows], "other labels"
            assert kind == wanted, f"read from {kind}, not {wanted}"
        check_turned(Path(made))
        with running_nodes(f"hub={made}/saved") as nodes:
            saved = datasets.load_from_disk(f"{made}/saved").shuffle(seed=1)
            here, there = loaded(saved), loaded(saved, nodes=list(nodes))
            assert here == there, "a node gives others"
            print(f"| {'of a node':28} | {len(saved):4} | {there[2]:9} |")


if __name__ == "__main__":
    main()
