"""Lists of files that the program has give the batches of the folder that they were made of, here and from nodes."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest

import feedwater
from feedwater import Loader, Table
from feedwater._dataset import columns
from feedwater.errors import DataError

pytestmark = pytest.mark.usefixtures("real")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Pictures in class folders."""
    rng = np.random.default_rng(1)
    root = tmp_path / "data"
    for at in range(30):
        path = root / ("cat" if at < 12 else "dog") / f"{at:03}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        PIL.Image.fromarray(rng.integers(0, 256, (12, 12, 3), dtype=np.uint8)).save(path)
    return root


def paths_of(data: Path) -> list[str]:
    return sorted(str(path.relative_to(data)) for path in data.rglob("*.png"))


def names_of(data: Path) -> list[str]:
    return [path.split("/")[0] for path in paths_of(data)]


def loader_of(source: Any, **options: Any) -> Loader[Any]:
    return Loader(source, feedwater.transforms.RandomCrop(8), batch_size=7, seed=3, shuffle=True, **options)


def told(batch: Any) -> bytes:
    return np.asarray(batch[0]).tobytes() + np.asarray(batch[1]).astype("<i8").tobytes()


def digest(source: Any, **options: Any) -> str:
    """Two epochs of it."""
    total = hashlib.sha256()
    with loader_of(source, **options) as loader:
        for _ in range(2):
            for batch in loader:
                total.update(told(batch))
    return total.hexdigest()


class Frame:
    """What is asked of a DataFrame of pandas."""

    iloc = None

    def __init__(self, **columns: Any) -> None:
        self.columns, self._columns = list(columns), columns

    def __getitem__(self, name: str) -> Any:
        return self._columns[name]


def test_lists_have_the_names_here_that_nodes_know() -> None:
    layout = Path(__file__).resolve().parents[2] / "pipeline" / "dataset" / "layout"
    told = "".join((layout / name).read_text() for name in ("table.go", "ranges.go"))
    found = {
        name: re.findall(r'"(\w+)"', value) for name, value in re.findall(r"(\w+) += (\[\]string\{.*\}|\".*\")\n", told)
    }
    assert found["pathColumns"] == list(columns.PATH_COLUMNS)
    assert found["labelColumns"] == list(columns.LABEL_COLUMNS)
    assert [found["classNameMember"], found["rangeMember"]] == [[columns.CLASS_NAME], [columns.RANGE]]


def test_a_table_gives_the_batches_of_its_folder(data: Path) -> None:
    want, paths, names = digest(data), paths_of(data), names_of(data)
    numbers = [int(name == "dog") for name in names]
    here = [data / path for path in paths]
    (data / "list.csv").write_text("path,label\n" + "".join(map("{},{}\n".format, paths, names)))
    (data / "list.tsv").write_text("".join(map("{}\t{}\n".format, paths, numbers)))
    (data / "list.jsonl").write_text("".join(map('{{"image": "{}", "class": {}}}\n'.format, paths, numbers)))
    for table in (
        Table(here, names),
        Table(paths, np.array(numbers), root=data),
        Table(list(zip(here, numbers))),
        Table([os.fsencode(path) for path in here], numbers, classes=("a", "b")),
        Table([f"./cat/../{path}" for path in paths], names, root=str(data)),
        Table(Frame(label=np.array(numbers), text=names, file_name=np.array(paths)), root=data),
        Table(data / "list.csv"),
        Table(str(data / "list.tsv")),
        Table(data / "list.jsonl"),
    ):
        assert len(table) == 30
        assert digest(table) == want, table
        assert digest(pickle.loads(pickle.dumps(table))) == want


def test_classes_and_order_are_those_of_the_table(data: Path) -> None:
    paths, names = paths_of(data)[::-1], names_of(data)[::-1]
    with Loader(Table(paths, names, root=data), batch_size=30, fields=("label", "key")) as loader:
        assert (len(loader.dataset), loader.classes) == (30, ["cat", "dog"])
        labels, keys = next(iter(loader))
    assert (list(keys), list(np.asarray(labels))) == (paths, [1] * 18 + [0] * 12)
    with Loader(Table(paths, names, root=data, classes=["dog", "fox", "cat"]), batch_size=30) as loader:
        assert list(np.asarray(next(iter(loader))[1])) == [0] * 18 + [2] * 12
        assert loader.classes == ["dog", "fox", "cat"]
    with Loader(Table(paths, [1 << 40] * 30, root=data), batch_size=30) as loader:
        assert loader.classes == []
        assert set(np.asarray(next(iter(loader))[1])) == {1 << 40}


@pytest.mark.parametrize(
    ("name", "text", "want"),
    [
        ("x.csv", "path, label\ncat/000.png, 0\ncat/001.png ,10\ndog/020.png,\u00a02\n", [0, 10, 2]),
        ("x.tsv", "cat/000.png\t0 \ncat/001.png\t 10\ndog/020.png\t2\n", [0, 10, 2]),
        ("x.csv", "cat/0;0.png\n", "there is no file cat/0;0.png"),
        ("x.csv", "filepath,label\ncat/000.png,3\n", [3]),
        ("x.jsonl", '\ufeff{"img_path": "cat/000.png", "label": 3}\n', [3]),
        ("x.csv", "cat/000.png,+1\ncat/001.png,010\ndog/020.png,-0\n", [1, 10, 0]),
        ("x.csv", "cat/000.png,-9223372036854775808\ncat/001.png,0000000000000000000000001\n", [-(1 << 63), 1]),
        ("x.csv", "cat/000.png, b\ncat/001.png,a\ndog/020.png, b \n", [1, 0, 1]),
        ("x.csv", "cat/000.png,1_0\ncat/001.png,1-0\n", [1, 0]),
        (
            "x.jsonl",
            '{"path": " cat/000.png", "label": "10 "}\n{"path": "cat/001.png", "label": 2}\n',
            [10, 2],
        ),
        (
            "x.jsonl",
            '{"class_name": "1"}\n{"class_name": "0"}\n{"path": "cat/000.png", "label": 0}\n'
            '{"path": "cat/001.png", "label": "0"}\n',
            [0, 1],
        ),
        ("x.jsonl", '{"class_name": "1"}\n{"path": "cat/000.png", "label": 1}\n', "line 2: label 1 is none of"),
        ("x.jsonl", '{"class_name": "1"}\n{"path": "cat/000.png", "label": "x"}\n', "line 2: label x is none of"),
        ("x.jsonl", '{"class_name": "1"}\n{"class_name": " 1"}\n', "two classes are called"),
        ("x.jsonl", '{"class_name": ""}\n', "line 1: .class_name. is no string, or an empty one"),
        (
            "x.jsonl",
            '{"path": "cat/000.png", "label": 0}\n{"class_name": "1"}\n',
            "line 2: the name of a class stands behind",
        ),
        (
            "x.jsonl",
            '{"path": "cat/000.png", "label": 0}\n{"path": "cat/001.png", "target": 1}\n',
            "line 2: its label is in .target., and that of line 1 in .label.",
        ),
        (
            "x.jsonl",
            '{"path": "cat/000.png", "label": 0}\n{"file": "cat/001.png", "label": 1}\n',
            "line 2: its path is in .file., and that of line 1 in .path.",
        ),
        ("x.csv", "path,label\ncat/000.png,0.0\ncat/001.png,10.0\n", "line 2: the label is a number with a point"),
        ("x.csv", "path,label\ncat/000.png,0\ncat/001.png,x\n", "line 3: the label is a name, and"),
        ("x.csv", "cat/000.png,x\ncat/001.png,nan\n", "line 2: the label is nan"),
        ("x.csv", "cat/000.png,9223372036854775808\n", "line 1: the label is a whole number beyond int64"),
        ("x.csv", "cat/000.png,\u0663\n", "line 1: the label is a number with a point"),
        ("x.csv", "cat/000.png,1\ncat/001.png, \n", "line 2: a label is missing"),
        ("x.jsonl", '{"path": "cat/000.png", "label": 3.0}\n', "line 1: .*label.* is neither a whole number nor"),
        ("x.jsonl", '{"path": "cat/000.png", "label": true}\n', "line 1: .*label.* is neither a whole number nor"),
    ],
)
def test_labels_are_the_same_from_a_list_and_from_its_table(data: Path, name: str, text: str, want: Any) -> None:
    (data / name).write_text(text)
    for make in (lambda: data / name, lambda: Table(data / name)):
        if isinstance(want, str):
            with pytest.raises(DataError, match=want):
                next(iter(Loader(make(), batch_size=1)))
            continue
        with Loader(make(), batch_size=len(want)) as loader:
            assert np.asarray(next(iter(loader))[1]).tolist() == want


def test_strings_that_are_numbers(data: Path) -> None:
    paths = paths_of(data)[:3]
    for labels in (["0", "10", "2"], [" 0", "+10 ", "02"]):
        with Loader(Table(Frame(path=paths, label=labels), root=data), batch_size=3) as loader:
            assert np.asarray(next(iter(loader))[1]).tolist() == [0, 10, 2]
    table = Table(paths, ["10", " x", "nan"], root=data, classes=["x", "nan", "10"])
    with Loader(table, batch_size=3) as loader:
        assert np.asarray(next(iter(loader))[1]).tolist() == [2, 0, 1]


def test_names_of_files_that_are_no_text(data: Path) -> None:
    name = os.fsdecode(b'\xff \n".png')
    os.rename(data / "cat" / "000.png", data / name)
    with Loader(Table([name], ["\udcfe"], root=data), batch_size=1, fields=("key",)) as loader:
        assert next(iter(loader))[0][0] == name
        assert loader.classes == ["\udcfe"]


def test_a_subset_of_a_table(data: Path) -> None:
    from torch.utils.data import Subset

    table = Table(paths_of(data), names_of(data), root=data)
    with Loader(Subset(table, [-1, 3]), batch_size=2, fields=("key",)) as loader:  # type: ignore[type-var]
        assert list(next(iter(loader))[0]) == [paths_of(data)[-1], paths_of(data)[3]]


def food(tmp_path: Path, transform: Any = None) -> Any:
    """torchvision's Food101 of a few pictures, whose order is that of a file and not of folders."""
    from torchvision import datasets

    root, rng = tmp_path / "sets", np.random.default_rng(2)
    meta = {"tart": ["tart/9", "tart/1"], "apple": ["apple/3", "apple/2", "apple/1"]}
    for name in itertools.chain(*meta.values()):
        path = root / "food-101" / "images" / f"{name}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():  # a file that is written again is another one
            PIL.Image.fromarray(rng.integers(0, 256, (12, 12, 3), dtype=np.uint8)).save(path)
    (root / "food-101" / "meta").mkdir(exist_ok=True)
    (root / "food-101" / "meta" / "train.json").write_text(json.dumps(meta))
    return datasets.Food101(root, transform=transform)


def pets(data: Path, tmp_path: Path, **options: Any) -> Any:
    """torchvision's OxfordIIITPet of two pictures."""
    from torchvision import datasets

    root = tmp_path / "pets" / "oxford-iiit-pet"
    for part in ("images", "annotations"):
        (root / part).mkdir(parents=True, exist_ok=True)
    for name, path in (("big_cat_1", "cat/001.png"), ("dog_2", "dog/020.png")):
        PIL.Image.open(data / path).save(root / "images" / f"{name}.jpg")
    (root / "annotations" / "trainval.txt").write_text("dog_2 2 2 1\nbig_cat_1 1 1 1\n")
    return datasets.OxfordIIITPet(root.parent, **options)


def check_as_torch(source: Any, classes: list[str]) -> None:
    """A Loader gives the pictures and labels of a data set, in its order."""
    with Loader(source, batch_size=len(source)) as loader:
        images, labels = next(iter(loader))
        assert loader.classes == classes
    assert np.asarray(labels).tolist() == [source[at][1] for at in range(len(source))]
    for at, image in enumerate(images):
        assert np.array_equal(np.asarray(image), np.asarray(source[at][0]).transpose(2, 0, 1)), at


def test_data_sets_of_torchvision_that_list_files(data: Path, tmp_path: Path) -> None:
    from torch.utils.data import ConcatDataset, Subset
    from torchvision import datasets

    check_as_torch(food(tmp_path), ["apple", "tart"])
    check_as_torch(Subset(food(tmp_path), [3, 0, -1]), ["apple", "tart"])
    check_as_torch(pets(data, tmp_path), ["Big Cat", "Dog"])
    check_as_torch(pets(data, tmp_path, target_types="binary-category"), ["Cat", "Dog"])
    check_as_torch(datasets.DatasetFolder(str(data), datasets.folder.default_loader, (".png",)), ["cat", "dog"])
    folder = datasets.ImageFolder(str(data))
    check_as_torch(ConcatDataset([folder, Subset(food(tmp_path), [1, 2]), pets(data, tmp_path)]), [])
    twice = ConcatDataset([food(tmp_path), Subset(food(tmp_path), [1])])
    with pytest.raises(DataError, match=r"tart/1\.jpg is in this ConcatDataset twice"):
        Loader(twice, batch_size=1)
    del folder.samples[7]
    check_as_torch(ConcatDataset([folder]), ["cat", "dog"])


def test_data_sets_on_nodes(data: Path, tmp_path: Path, nodes: Any) -> None:
    source = food(tmp_path)
    address = nodes.start(tmp_path / "sets", name="sets")
    assert digest(source, nodes=[address]) == digest(source) == digest(Table(source, root="sets"), nodes=[address])


def test_data_sets_that_do_more_are_refused(data: Path, tmp_path: Path) -> None:
    from torch.utils.data import ConcatDataset
    from torchvision import datasets, transforms

    class Mine(datasets.Food101):
        def __getitem__(self, at: int) -> Any:
            return super().__getitem__(at)

    class Own:
        imgs = ((data / "cat" / "001.png", 0),)

        def __len__(self) -> int:
            return 1

    made, derived = food(tmp_path), food(tmp_path)
    derived.__class__ = Mine
    other = food(tmp_path, transforms.CenterCrop(8))
    made.target_transform = str
    for source, says in (
        (derived, "Mine is derived from Food101"),
        (made, "this Food101 has a target_transform"),
        (pets(data, tmp_path, target_types="segmentation"), "labels have to be one number"),
        (datasets.DatasetFolder(str(data), PIL.Image.open, (".png",)), "has a loader of its own"),
        (ConcatDataset([food(tmp_path), other]), "different transforms"),
        (ConcatDataset([Own()]), "code of its own"),  # type: ignore[list-item]
        (Own(), r"feedwater\.Table\(dataset\.imgs\)"),
    ):
        with pytest.raises(TypeError, match=says):
            Loader(source, batch_size=1)


def test_a_data_set_that_is_edited_later_is_told(tmp_path: Path) -> None:
    source = food(tmp_path)
    with Loader(source, batch_size=5) as loader:
        next(iter(loader))
        source._labels[0] = 0
        with pytest.raises(DataError, match=r"Food101's list of files.*was changed"):
            next(iter(loader))


def test_nodes_are_given_the_table(data: Path, nodes: Any) -> None:
    table = Table(paths_of(data), names_of(data), root="photos")
    addresses = [nodes.start(data), nodes.start(data.parent, name="above")]
    want = digest(data)
    assert digest(table, nodes=addresses[:1]) == want
    below = Table(paths_of(data), names_of(data), root="above/data")
    assert digest(below, nodes=addresses[1:]) == want
    here = Table([data / path for path in paths_of(data)], names_of(data))  # found by what is in it
    assert digest(here, nodes=addresses[:1]) == want
    assert digest(here, nodes=addresses[:1], local_workers=1) == want


def test_a_node_that_has_lost_the_table_is_given_it_again(data: Path, nodes: Any, tmp_path: Path) -> None:
    """The only node comes back, in the middle of a job, with nothing that it was given."""
    table, total = Table(paths_of(data), names_of(data), root="photos"), hashlib.sha256()
    address = nodes.start(data, "--cache-dir", str(tmp_path / "first"))
    with loader_of(table, nodes=[address]) as loader:
        for epoch in range(2):
            for step, batch in enumerate(loader):
                total.update(told(batch))
                if (epoch, step) == (0, 1):
                    nodes.stop()
                    nodes.running.clear()
                    assert nodes.start(data, "--cache-dir", str(tmp_path / "second")) == address
        state = loader.state_dict()
    assert total.hexdigest() == digest(data)
    assert len(list((tmp_path / "second" / "tables").glob("*/*.jsonl"))) == 1
    with loader_of(data) as folder, pytest.raises(feedwater.StateMismatchError):  # what is listed is the same, not how
        folder.load_state_dict(state)
    with loader_of(Table(paths_of(data), names_of(data), root=data)) as again:  # where it lies does not count
        again.load_state_dict(state)
        next(iter(again))


def test_a_table_that_is_too_large_for_a_node(data: Path, nodes: Any, tmp_path: Path) -> None:
    address = nodes.start(data, "--table-limit", "1KiB", "--cache-dir", str(tmp_path / "lists"))
    with pytest.raises(feedwater.PlanError, match=r"source\.table.*a table of [0-9]+ bytes.*1024 \(--table-limit\)"):
        digest(Table(paths_of(data), names_of(data), root="photos"), nodes=[address])


def test_a_file_that_changed_is_told(data: Path) -> None:
    """A list that is kept does not look at each file again, and no byte of another file is taken for the one listed."""
    table = Table(paths_of(data), names_of(data), root=data)
    digest(table)
    with open(data / "dog" / "020.png", "ab") as file:
        file.write(b"more")
    with pytest.raises(DataError, match=r"changed"):
        digest(table)


@pytest.mark.parametrize(
    ("error", "says", "arguments"),
    [
        (DataError, "the table is empty", {"paths": []}),
        (DataError, "row 1 of the table: ../x.png leads out of root", {"paths": ["a.png", "../x.png"], "root": "."}),
        (DataError, "row 0 of the table: /etc/x is not below root", {"paths": ["/etc/x"], "root": "/tmp"}),
        (DataError, "row 1 of the table: '' is no path", {"paths": ["a.png", ""], "root": "."}),
        (TypeError, "row 0 of the table: 3 is no path", {"paths": [3], "root": "."}),
        (DataError, "row 1 of the table: a path is missing", {"paths": ["a", float("nan")], "root": "."}),
        (TypeError, "paths=int: pass a sequence", {"paths": 3}),
        (ValueError, "2 paths and 1 labels", {"paths": ["a", "b"], "labels": [1]}),
        (ValueError, "row 1 of the table: a label is missing", {"paths": ["a", "b"], "labels": [1, None]}),
        (ValueError, "row 1 of the table: a label is missing", {"paths": ["a", "b"], "labels": [1, float("nan")]}),
        (ValueError, "row 1 of the table: a label is missing", {"paths": ["a", "b"], "labels": ["x", ""]}),
        (ValueError, "row 1 of the table: a label is missing", {"paths": ["a", "b"], "labels": [1.0, float("nan")]}),
        (ValueError, "row 1 of the table: a label is missing", {"paths": ["a", "b"], "labels": ["x", None]}),
        (TypeError, "row 0 of the table: the label 1.5 is a float.*astype", {"paths": ["a"], "labels": [1.5]}),
        (DataError, "row 1 of the table: the label is a name, and", {"paths": ["a", "b"], "labels": ["1", "x"]}),
        (DataError, "row 0 of the table: the label is a number with a", {"paths": ["a"], "labels": ["0.0"]}),
        (DataError, "row 1 of the table: the label is nan", {"paths": ["a", "b"], "labels": ["x", "nan"]}),
        (TypeError, "row 0 of the table: the label True is no", {"paths": ["a"], "labels": [True]}),
        (TypeError, "row 1 of the table: the label 'x' is no", {"paths": ["a", "b"], "labels": [1, "x"]}),
        (ValueError, "is no int64", {"paths": ["a"], "labels": [1 << 63]}),
        (
            ValueError,
            "row 0 of the table: label 2 is none of the 2 cl",
            {"paths": ["a"], "labels": [2], "classes": "ab"},
        ),
        (ValueError, "'x' is none of classes", {"paths": ["a"], "labels": ["x"], "classes": "ab"}),
        (ValueError, "classes has 'a' twice", {"paths": ["a"], "labels": [0], "classes": "aa"}),
        (
            ValueError,
            "300 classes, whose names have 18,000,300",
            {"paths": ["a"] * 300, "labels": [f"{at:060000}n" for at in range(300)]},
        ),
        (DataError, "ends in .csv, .tsv or .jsonl", {"paths": "pictures"}),
        (ValueError, "'range' is what paths, labels or ranges", {"paths": ["a"], "columns": {"range": ["[0, 5]"]}}),
        (FileNotFoundError, "missing.csv", {"paths": "missing.csv"}),
    ],
)
def test_what_is_wrong_is_named_with_its_row(error: type[Exception], says: str, arguments: dict[str, Any]) -> None:
    with pytest.raises(error, match=says):
        Table(**{"labels": None, **arguments})


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("x.csv", "a,b,c\n1,2,3\n", "no column is called path.*it has a, b, c"),
        ("x.csv", "path,label\na.png,1\nb.png\n", "line 3 has 1 fields"),
        ("x.csv", "path,label\na.png,1\nb.png,\n", "line 3: a label is missing"),
        ("x.csv", 'path,label\n"a.png,1\n', "line"),
        ("x.csv", "path;label\na.png;1\n", "line 1 has no ',', and is one field: if ';' separates fields"),
        ("x.tsv", "path,label\na.png,1\n", "line 1 has no .*, and is one field: if ',' separates fields"),
        ("x.csv", "photo,label\na.png,1\n", "line 1 names no column called path, .*: call the columns path and label"),
        ("x.csv", b"\xff\xfep\0a\0", "x.csv is written in UTF-16"),
        ("x.jsonl", b"\xfe\xff\0{", "x.jsonl is written in UTF-16"),
        ("x.jsonl", "{\n", "line 1"),
        ("x.jsonl", "[1]\n", "line 1 is no JSON object"),
        ("x.jsonl", '{"label": 1}\n', "line 1 has no path"),
    ],
)
def test_files_that_are_no_tables(tmp_path: Path, name: str, text: str | bytes, says: str) -> None:
    (tmp_path / name).write_bytes(text.encode() if isinstance(text, str) else text)
    with pytest.raises(DataError, match=says):
        Table(tmp_path / name)


@pytest.mark.parametrize(
    ("paths", "says"),
    [
        (["cat/000.png", "cat/none.png"], "the table: row 1: there is no file cat/none.png"),
        (["cat/000.png", "cat/./000.png"], r'the table: row 1: "cat/000.png" is in the list twice'),
        (["cat"], "the table: row 0: cat is not a regular file"),
    ],
)
def test_files_that_are_not_there(data: Path, paths: list[str], says: str) -> None:
    with pytest.raises(DataError, match=says):
        digest(Table(paths, [0] * len(paths), root=data))


def test_a_preview_shows_the_table(data: Path) -> None:
    with Loader(Table(["dog/020.png"], [0], root=data), batch_size=1) as loader:
        assert loader.preview(samples=1, epochs=1, width=32).png.startswith(b"\x89PNG")
    loader = Loader(Table(["dog/none.png"], [0], root=data), batch_size=1)
    with loader, pytest.raises(feedwater.Error, match=r"the table: row 0: there is no file dog/none\.png"):
        loader.preview(samples=1, epochs=1, width=32)
