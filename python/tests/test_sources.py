"""Lists of files and tar files give the batches of the folder that they were made of."""

from __future__ import annotations

import hashlib
import io
import json
import re
import shutil
import struct
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest

import feedwater
from feedwater import Loader
from feedwater.errors import DataError, PlanError

pytestmark = pytest.mark.usefixtures("real")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """The same pictures in class folders, in two lists and in two tar files."""
    rng = np.random.default_rng(1)
    rows = [(f"{'cat' if at < 12 else 'dog'}/{at:03}.png", int(at >= 12)) for at in range(30)]
    for path, _ in rows:
        (tmp_path / path).parent.mkdir(exist_ok=True)
        PIL.Image.fromarray(rng.integers(0, 256, (12, 12, 3), dtype=np.uint8)).save(tmp_path / path)
    (tmp_path / "numbers.csv").write_text("path,label\n" + "".join(f"{path},{label}\n" for path, label in rows))
    names = (json.dumps({"path": path, "label": path.split("/")[0]}) + "\n" for path, _ in rows)
    (tmp_path / "names.jsonl").write_text("".join(names))
    for shard in range(2):
        with tarfile.open(tmp_path / f"s-{shard:02}.tar", "w") as tar:
            for path, label in rows[15 * shard : 15 * shard + 15]:
                stem = Path(path).stem
                tar.add(tmp_path / path, f"{stem}.png")
                add_member(tar, f"{stem}.cls", str(label).encode())
    return tmp_path


def add_member(tar: tarfile.TarFile, name: str, data: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(data)
    tar.addfile(member, io.BytesIO(data))


def digest(source: Any, **options: Any) -> str:
    """Two epochs of it."""
    total = hashlib.sha256()
    with Loader(source, feedwater.transforms.RandomCrop(8), batch_size=7, seed=3, **options) as loader:
        for _ in range(2):
            for images, labels in loader:
                total.update(np.asarray(images).tobytes() + np.asarray(labels).astype("<i8").tobytes())
    return total.hexdigest()


def test_the_same_pictures_give_the_same_batches(data: Path) -> None:
    want = digest(data)
    for source in ("numbers.csv", "names.jsonl", "s-{00..01}.tar", "s-*.tar"):
        assert digest(data / source) == want, source


PARQUET = Path(__file__).parent / "data" / "pictures.parquet"
"""What datasets 5.2.0 wrote of 20 pictures: make_pictures_parquet.py beside it."""


def test_parquet_gives_the_batches_of_its_pictures(tmp_path: Path, nodes: Any) -> None:
    """Here and on a node, as a file, a pattern and a folder, and on from a state."""
    pictures = re.findall(rb"\x89PNG.*?IEND.{4}", PARQUET.read_bytes(), re.DOTALL)[:20]  # then statistics
    names = ["cat", "dog", "owl"]
    rows = []
    for at, picture in enumerate(pictures):
        rows.append((f"{at:02}.png", at % 3))
        (tmp_path / rows[-1][0]).write_bytes(picture)
    table = feedwater.Table([path for path, _ in rows], [label for _, label in rows], root=tmp_path, classes=names)
    (tmp_path / "shards").mkdir()
    shutil.copy(PARQUET, tmp_path / "shards" / "train-00000-of-00001.parquet")
    node = nodes.start(tmp_path)
    want = digest(table)
    for source in ("shards", "shards/train-*.parquet", "shards/train-{00000..00000}-of-00001.parquet"):
        assert digest(tmp_path / source) == want, source
        assert digest(f"photos/{source}", nodes=[node]) == want, source
    assert digest(tmp_path / "shards", image="image", label="label") == want
    with Loader(tmp_path / "shards", feedwater.transforms.CenterCrop(8), batch_size=7) as loader:
        assert loader.classes == names
    with pytest.raises(DataError, match=r"there is no column photo; there are image.bytes, image.path, label"):
        digest(tmp_path / "shards", image="photo")
    with pytest.raises(DataError, match="is for Parquet files"):
        digest(tmp_path, image="photo")


def test_classes_are_those_of_names(data: Path) -> None:
    with Loader(data / "names.jsonl", feedwater.transforms.CenterCrop(8), batch_size=7) as loader:
        assert loader.classes == ["cat", "dog"]


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("x.csv", "path,label\ncat/000.png,1\ncat/999.png,1\n", "line 3: there is no file cat/999.png"),
        ("x.csv", "path,label\n../x.png,1\n", "line 2: .* leads out"),
        ("x.tar", "no tar file", "no tar file"),
        ("x.tar.gz", "", "is compressed"),
        ("x.parquet", "PAR1", "x.parquet: no Parquet file"),
    ],
)
def test_what_is_wrong_is_named(data: Path, name: str, text: str, says: str) -> None:
    (data / name).write_text(text)
    with pytest.raises(DataError, match=says):
        digest(data / name)


def test_a_list_that_is_not_there(data: Path) -> None:
    with pytest.raises(DataError, match="no such"):
        digest(data / "missing.csv")


def test_samples_without_labels(data: Path, nodes: Any) -> None:
    """They are refused where labels are asked for, in words, and else give the pictures that labelled ones do."""
    with tarfile.open(data / "bare.tar", "w") as tar:
        for at in range(30):
            tar.add(data / ("cat" if at < 12 else "dog") / f"{at:03}.png", f"{at:03}.png")
    (data / "bare.csv").write_text("".join(f"{'cat' if at < 12 else 'dog'}/{at:03}.png\n" for at in range(30)))
    want = pictures(data, fields=("image",))
    table = feedwater.Table(data / "bare.csv", root=data)
    for source, why in (
        (data / "bare.tar", r" \(no sample has a member .cls\)"),
        (data / "bare.csv", r" \(each line has one field\)"),
        (table, ""),
    ):
        with pytest.raises(PlanError, match=f'the data has no labels{why}, .*fields=\\("image",\\)'):
            digest(source)
        assert pictures(source, fields=("image", "index")) == want
    assert pictures("photos/bare.tar", fields=("image",), nodes=[nodes.start(data)]) == want
    with Loader(table, batch_size=7, fields=("key",)) as loader:
        assert len(next(iter(loader))[0]) == 7


def pictures(source: Any, **options: Any) -> str:
    """Those of two epochs, the second one of a Loader that goes on where the first was."""
    total, state = hashlib.sha256(), {}
    for _ in range(2):
        with Loader(
            source, feedwater.transforms.RandomCrop(8), batch_size=7, seed=3, shuffle=True, **options
        ) as loader:
            loader.load_state_dict(state)
            for batch in loader:
                total.update(np.asarray(batch[0]).tobytes())
            state = loader.state_dict()
    return total.hexdigest()


def test_places_on_servers_are_named_by_who_reads_them() -> None:
    """Without nodes an URL is this machine's to read; with them it would be theirs, with their credentials."""
    from feedwater._dataset.sources import resolve_source

    url = "s3://bucket/imagenet?region=eu-1"
    assert resolve_source(url, ()).to_plan() == {"root": "", "path": url}
    table = feedwater.Table(["a.jpg"], [1], root=url)
    assert resolve_source(table, ()).to_plan() == {"root": "", "path": url, "table": table.text.sha256}
    with pytest.raises(DataError, match=r"--data\s+NAME=URL"):
        resolve_source(table, ("node:1",))
    with pytest.raises(DataError, match=r"--data\s+NAME=URL"):
        resolve_source(url, ("node:1",))


CAPTIONS = ["a cat", "", "two words, and a 日本"]


def write_captioned(data: Path) -> None:
    """The pictures again, with captions and labels in JSON, in tar files and lists."""
    rows = [(f"{'cat' if at < 12 else 'dog'}/{at:03}.png", int(at >= 12)) for at in range(30)]
    with tarfile.open(data / "captioned.tar", "w") as tar:
        for at, (path, label) in enumerate(rows):
            stem = Path(path).stem
            for ending, text in (("json", json.dumps({"label": label})), ("txt", CAPTIONS[at % 3])):
                add_member(tar, f"{stem}.{ending}", text.encode())
            tar.add(data / path, f"{stem}.png")
    lines = [
        json.dumps({"path": path, "coarse": label, "txt": CAPTIONS[at % 3], "label": 9})
        for at, (path, label) in enumerate(rows)
    ]
    (data / "captioned.jsonl").write_text("\n".join(lines))


def captions(source: Any, **options: Any) -> tuple[str, list[bytes]]:
    """The digest of pictures and labels of two epochs, as digest has it, and the captions by index."""
    total = hashlib.sha256()
    found: dict[int, bytes] = {}
    names = ("image", "label", "txt", "index")
    with Loader(source, feedwater.transforms.RandomCrop(8), batch_size=7, seed=3, fields=names, **options) as loader:
        for _ in range(2):
            for images, labels, texts, indices in loader:
                total.update(np.asarray(images).tobytes() + np.asarray(labels).astype("<i8").tobytes())
                found.update(zip(np.asarray(indices).tolist(), texts, strict=True))
    return total.hexdigest(), [found[at] for at in range(len(found))]


def test_captions_come_with_their_pictures(data: Path, nodes: Any) -> None:
    """Of tar files and lists, here and from nodes, beside the pictures and labels of the folder."""
    write_captioned(data)
    want = digest(data), [CAPTIONS[at % 3].encode() for at in range(30)]
    for name, label in (("captioned.tar", "json:label"), ("captioned.jsonl", "coarse")):
        assert captions(data / name, label=label) == want, name
        assert captions(f"photos/{name}", label=label, nodes=[nodes.start(data)]) == want, name


def test_captions_of_states_holes_and_replay(data: Path) -> None:
    """They are of the same samples behind a state, in the place of a picture that does not decode, and in replay."""
    write_captioned(data)
    options: dict[str, Any] = {"batch_size": 7, "seed": 3, "shuffle": True, "label": "coarse"}
    options["fields"] = {"image": "x", "txt": "caption", "index": "at"}
    (data / "cat/004.png").write_bytes(b"no picture")
    with Loader(data / "captioned.jsonl", on_error="skip", max_errors=0.5, **options) as loader:
        batches = list(loader)
        rows = [pair for batch in batches for pair in zip(np.asarray(batch["at"]).tolist(), batch["caption"])]
        assert len(rows) == 29
        assert all(text == CAPTIONS[at % 3].encode() for at, text in rows)
        for at in (2, 4):
            sample = loader.replay(at)
            assert sample.values == {"txt": CAPTIONS[at % 3].encode()}
            assert (sample.error is None) == (at != 4)
    with Loader(data / "captioned.jsonl", on_error="substitute", max_errors=0.5, **options) as loader:
        part = iter(loader)
        before = [next(part)["caption"] for _ in range(2)]
        state = loader.state_dict()
        rest = [batch["caption"] for batch in part]
    with Loader(data / "captioned.jsonl", on_error="substitute", max_errors=0.5, **options) as loader:
        loader.load_state_dict(state)
        assert [batch["caption"] for batch in loader] == rest
        assert [len(texts) for texts in before + rest] == [7, 7, 7, 7, 2]
    options["fields"] = ("txt", "valid")
    with Loader(data / "captioned.jsonl", on_error="skip", max_errors=0.5, tail="valid", **options) as loader:
        last = list(loader)[-1]
        assert last[0][2:] == [b""] * 5
        assert np.asarray(last[1]).tolist() == [True] * 2 + [False] * 5


@pytest.mark.parametrize(
    ("source", "options", "error", "says"),
    [
        ("", {"fields": ("image", "txt")}, ValueError, "no field 'txt'"),
        ("captioned.tar", {"fields": ("image", "text")}, DataError, r"has no member \.text, which fields= asks for"),
        ("captioned.tar", {"label": "json:class"}, DataError, 'the label in "000.json": no member "class"'),
        ("captioned.tar", {"label": 3}, TypeError, "label=3: pass the ending of a member"),
        ("captioned.jsonl", {"fields": ("image", "words")}, DataError, 'line 1 has no "words"'),
        ("", {"label": "cls"}, DataError, "class folders have theirs"),
        ("captioned.tar", {"fields": ("image", "a/b")}, PlanError, "no name of a value"),
    ],
)
def test_fields_that_are_not_there(data: Path, source: str, options: Any, error: type, says: str) -> None:
    write_captioned(data)
    with pytest.raises(error, match=says), Loader(data / source, batch_size=7, **options) as loader:
        next(iter(loader))


class Frame:
    """As much of a DataFrame of pandas as is looked at."""

    iloc = None

    def __init__(self, **columns: list[Any]) -> None:
        self.columns, self._values = list(columns), columns

    def __getitem__(self, name: str) -> list[Any]:
        return self._values[name]


def test_columns_of_a_table(data: Path, nodes: Any) -> None:
    """What the program has besides, from values, a DataFrame's columns and a file's, comes as that of a list does."""
    write_captioned(data)
    rows = [json.loads(line) for line in (data / "captioned.jsonl").read_text().splitlines()]
    want = captions(data / "captioned.jsonl", label="coarse")
    paths, labels, texts = ([row[name] for row in rows] for name in ("path", "coarse", "txt"))
    frame = Frame(path=paths, label=labels, txt=texts)
    for table in (
        feedwater.Table(paths, labels, root=data, columns={"txt": texts}),
        feedwater.Table(paths, labels, root=data, columns={"txt": [text.encode() for text in texts]}),
        feedwater.Table(frame, root=data, columns=["txt"]),
    ):
        assert captions(table) == want
        assert captions(table, nodes=[nodes.start(data)]) == want
    with pytest.raises(TypeError, match="'txt' of row 1 is None"):
        feedwater.Table(data / "captioned.jsonl", columns={"txt": ["x", None]})
    with pytest.raises(DataError, match="no column is called words; it has path, coarse, txt, label"):
        feedwater.Table(data / "captioned.jsonl", columns=["words"])
    with pytest.raises(ValueError, match="'txt' has 1 values for 30 samples"):
        feedwater.Table(data / "captioned.jsonl", columns={"txt": ["x"]})
    with pytest.raises(ValueError, match="'label' is what paths, labels or ranges are called"):
        feedwater.Table(data / "captioned.jsonl", columns=["label"])
    with pytest.raises(DataError, match=r"row 0 of the table: it has .* bytes with its columns"):
        feedwater.Table(["a.jpg"], [0], root=data, columns={"txt": ["x" * 70_000]})


def test_a_folder_of_mds(data: Path, nodes: Any) -> None:
    """MosaicML's shards, here and from nodes, with a column as a field; one that is compressed is refused."""
    rows = [(f"{'cat' if at < 12 else 'dog'}/{at:03}.png", int(at >= 12)) for at in range(30)]
    want = digest(data), [CAPTIONS[at % 3].encode() for at in range(30)]
    index: dict[str, Any] = {"version": 2, "shards": []}
    (data / "mds").mkdir()
    for shard in range(2):
        body, ends = b"", [0]
        for at, (path, label) in list(enumerate(rows))[15 * shard : 15 * shard + 15]:
            picture, text = (data / path).read_bytes(), CAPTIONS[at % 3].encode()
            body += struct.pack("<II", len(picture), len(text)) + picture + struct.pack("<q", label) + text
            ends.append(len(body))
        head = 4 * (len(ends) + 1)
        content = struct.pack(f"<I{len(ends)}I", len(ends) - 1, *(head + end for end in ends)) + body
        (data / "mds" / f"shard.{shard:05}.mds").write_bytes(content)
        index["shards"].append(
            {
                "format": "mds",
                "compression": None,
                "samples": len(ends) - 1,
                "column_names": ["image", "label", "txt"],
                "column_encodings": ["bytes", "int", "str"],
                "column_sizes": [None, 8, None],
                "raw_data": {"basename": f"shard.{shard:05}.mds", "bytes": len(content), "hashes": {}},
                "zip_data": None,
            }
        )
    (data / "mds" / "index.json").write_text(json.dumps(index))
    assert digest(data / "mds") == want[0]
    assert captions(data / "mds") == want
    assert captions("photos/mds", nodes=[nodes.start(data)]) == want
    index["shards"][1]["compression"] = "zstd"
    (data / "mds" / "index.json").write_text(json.dumps(index))
    with pytest.raises(DataError, match=r"shard\.00001\.mds is compressed by zstd: .*compression=None"):
        digest(data / "mds")


def test_layout_says_what_a_name_does_not(tmp_path: Path) -> None:
    shard = tmp_path / "0001"
    write_shard(shard)
    with pytest.raises(DataError, match=r"not a folder .* layout= does"):
        Loader(shard, batch_size=1)
    with Loader(shard, batch_size=2, layout="tar", fields=("key", "label")) as loader:
        keys, labels = next(iter(loader))
    assert (list(keys), np.asarray(labels).tolist()) == (["0001/a.png", "0001/b.png"], [3, 4])
    with pytest.raises(ValueError, match=r"layout='zip': must be one of 'folder'"):
        Loader(shard, batch_size=1, layout="zip")
    with pytest.raises(TypeError, match=r"layout='tar' is for paths: a Table says itself"):
        Loader(feedwater.Table([str(shard)], [0]), batch_size=1, layout="tar")


def write_shard(name: Path) -> None:
    """A tar file of two samples."""
    with tarfile.open(name, "w") as tar:
        for key, label in (("a", b"3"), ("b", b"4")):
            picture = io.BytesIO()
            PIL.Image.new("RGB", (8, 8)).save(picture, "PNG")
            for ending, data in (("png", picture.getvalue()), ("cls", label)):
                add_member(tar, f"{key}.{ending}", data)


@pytest.mark.parametrize(
    "url",
    [
        "s3://data/k?endpoint=http://u:TOPSECRET@h",
        "s3://u:TOP/SECRET@data/k",
        "https://h/x.tar?X-Amz-Signature=TOPSECRET&b=TOP",
        "s3://data/k?region=eu&secret_key=TOPSECRET",
    ],
)
def test_no_error_tells_what_a_url_hides(url: str) -> None:
    loader = Loader(url, batch_size=2)
    with pytest.raises(DataError) as here:
        next(iter(loader))
    with pytest.raises(DataError) as elsewhere:
        Loader(url, batch_size=2, nodes="127.0.0.1:1")
    for text in (str(here.value), str(elsewhere.value), repr(loader)):
        assert "TOP" not in text
        assert "SECRET" not in text.replace("AWS_SECRET_ACCESS_KEY", "")
    same = "s3://data/a@b.tar?endpoint=http://h:1&region=eu"
    assert same in repr(Loader(same, batch_size=2))
