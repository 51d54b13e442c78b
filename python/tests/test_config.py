"""Arguments: what is refused, and with which reason."""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import feedwater
from feedwater import Loader

torch = pytest.importorskip("torch")
datasets = pytest.importorskip("torchvision.datasets")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An image folder; nobody decodes these files."""
    for name in ("a/1.jpg", "a/2.jpg", "b/3.jpg"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"?")
    return tmp_path


def test_the_signature_is_the_designed_one() -> None:
    parameters = inspect.signature(Loader).parameters.values()
    assert [(p.name, p.default) for p in parameters if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)] == [
        ("source", None),
        ("transform", None),
        *{
            "batch_size": None,
            "shuffle": False,
            "sampler": None,
            "batch_sampler": None,
            "weights": None,
            "tail": "short",
            "drop_last": False,
            "seed": 0,
            "steps_per_epoch": None,
            "rank": None,
            "num_replicas": None,
            "mesh": None,
            "fields": None,
            "layout": None,
            "image": None,
            "label": None,
            "relabel": None,
            "targets": None,
            "masks": None,
            "python": None,
            "python_workers": "auto",
            "batch_transform": None,
            "device": None,
            "pin_memory": False,
            "dtype": None,
            "memory_format": None,
            "memory": "auto",
            "apply_exif": False,
            "on_error": "raise",
            "max_errors": 0.001,
            "timeout": 120,
            "start_timeout": 900,
            "fallback": None,
            "nodes": None,
            "local_workers": "auto",
            "job": None,
            "tls": None,
            "token_file": None,
            "insecure": None,
        }.items(),
    ]


MEANINGLESS = {
    "num_workers": 8,
    "prefetch_factor": 2,
    "persistent_workers": True,
    "collate_fn": list,
    "worker_init_fn": print,
    "generator": torch.Generator(),
    "multiprocessing_context": "spawn",
    "pin_memory_device": "cuda",
    "in_order": False,
}


@pytest.mark.parametrize("name", MEANINGLESS)
def test_arguments_of_dataloader_without_meaning_are_refused_with_the_reason(folder: Path, name: str) -> None:
    with pytest.raises(TypeError, match=f"no argument {name}: .{{14,}}"):
        Loader(folder, batch_size=1, **{name: MEANINGLESS[name]})


def test_what_is_refused_is_refused_at_once(folder: Path) -> None:
    with pytest.raises(TypeError) as caught:
        Loader(folder, batch_size=1, bath_size=1, **MEANINGLESS)
    lines = str(caught.value).splitlines()
    assert lines[0] == "Loader got an unexpected argument 'bath_size': is batch_size= meant?"
    assert [line.split(":")[0] for line in lines[1:]] == [f"Loader has no argument {name}" for name in MEANINGLESS]


def test_values_of_dataloader_that_say_what_happens_anyway_are_taken(folder: Path) -> None:
    parameters = inspect.signature(torch.utils.data.DataLoader).parameters
    defaults = {name: parameters[name].default for name in MEANINGLESS}
    Loader(folder, batch_size=1, shuffle=None, **defaults)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("bath_size", "batch_size"),
        ("bs", "batch_size"),
        ("world_size", "num_replicas"),
        ("transforms", "transform"),
        ("workers", "local_workers"),
        ("dataset", "source"),
        ("root", "source"),
        ("suffle", "shuffle"),
        ("drop_remainder", "drop_last"),
        ("channels_last", "memory_format"),
    ],
)
def test_unknown_arguments_are_refused_with_what_is_meant(folder: Path, name: str, meant: str) -> None:
    with pytest.raises(TypeError, match=f"unexpected argument '{name}': is {meant}= meant"):
        Loader(folder, **{name: 1})


def test_what_nobody_means_is_given_no_meaning(folder: Path) -> None:
    with pytest.raises(TypeError, match=r"unexpected argument 'train'$"):
        Loader(folder, batch_size=1, train=True)


def test_arguments_by_place(folder: Path) -> None:
    loader: Any = Loader
    with pytest.raises(TypeError, match="by name, like batch_size=256, shuffle=True; 1 more came by place"):
        loader(folder, 256, True)
    with pytest.raises(feedwater.UnsupportedTransformError, match="Is batch_size=256 meant"):
        loader(folder, 256)
    with pytest.raises(TypeError, match="source is missing: pass the path"):
        loader(batch_size=1)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"weights": [1.0]}, "weights= is not there yet: .*WeightedRandomSampler"),
        ({"fallback": "local"}, "fallback= is not there yet"),
    ],
)
def test_what_is_not_there_yet_says_what_to_do_instead(folder: Path, options: dict[str, Any], why: str) -> None:
    with pytest.raises(feedwater.NotYetError, match=why) as caught:
        Loader(folder, batch_size=1, **options)
    assert isinstance(caught.value, NotImplementedError)


def test_methods_that_are_not_there_yet(folder: Path) -> None:
    loader: Any = Loader(folder, batch_size=1)
    for name in ("select", "concat", "mix"):
        assert not hasattr(loader, name), "there is nothing behind it"
    with pytest.raises(AttributeError):
        feedwater.Tabel  # noqa: B018


def clash(**options: Any) -> dict[str, Any]:
    return options


@pytest.mark.parametrize(
    ("options", "error", "why"),
    [
        (clash(), ValueError, "batch_size is missing"),
        (clash(batch_size=0), ValueError, "batch_size=0"),
        (clash(batch_size=-3), ValueError, "batch_size=-3"),
        (clash(batch_size=2.0), TypeError, "whole number"),
        (clash(batch_size=True), TypeError, "whole number"),
        (clash(batch_size=1, shuffle=True, sampler=[0]), ValueError, "leave out shuffle"),
        (clash(batch_size=1, batch_sampler=[[0]]), ValueError, "batch_sampler decides about batch_size"),
        (clash(shuffle=True, batch_sampler=[[0]]), ValueError, "batch_sampler decides about shuffle"),
        (clash(sampler=[0], batch_sampler=[[0]]), ValueError, "batch_sampler decides about sampler"),
        (clash(drop_last=True, batch_sampler=[[0]]), ValueError, "batch_sampler decides about drop_last"),
        (clash(tail="drop", batch_sampler=[[0]]), ValueError, "batch_sampler decides about drop_last"),
        (clash(tail="valid", batch_sampler=[[0]]), ValueError, "ask for the mask"),
        (clash(batch_size=1, drop_last=True, tail="valid"), ValueError, "contradict"),
        (clash(batch_size=1, tail="valid"), ValueError, "ask for the mask"),
        (clash(batch_size=1, tail="long"), ValueError, "'short', 'valid', 'drop'"),
        (clash(batch_size=1, seed=-1), ValueError, "seed=-1"),
        (clash(batch_size=1, seed=1 << 64), ValueError, "2..64"),
        (clash(batch_size=1, seed=0.5), ValueError, "seed=0.5"),
        (clash(batch_size=1, steps_per_epoch=0), ValueError, "steps_per_epoch=0"),
        (clash(batch_size=1, steps_per_epoch=3, sampler=[0]), ValueError, "steps_per_epoch does not go with"),
        (clash(batch_size=1, rank=0), ValueError, "rank and num_replicas go together"),
        (clash(batch_size=1, rank=0, num_replicas=1, mesh=object()), ValueError, "one or the other"),
        (clash(batch_size=1, rank=2, num_replicas=2), ValueError, "rank=2 and num_replicas=2: need 0 <= rank"),
        (clash(batch_size=1, rank=-1, num_replicas=2), ValueError, "rank=-1 and num_replicas=2: need 0 <= rank"),
        (clash(batch_size=1, rank="0", num_replicas=2), TypeError, "rank='0': needs a whole number"),
        (clash(batch_size=1, rank=False, num_replicas=2), TypeError, "rank=False: needs a whole number"),
        (clash(batch_size=1, rank=0, num_replicas=2.0), TypeError, "num_replicas=2.0: needs a whole number"),
        (clash(batch_size=1, rank=0, num_replicas=0), ValueError, "num_replicas=0: needs to be 1 or more"),
        (clash(batch_size=1, fields="image"), TypeError, "tuple of names"),
        (clash(batch_size=1, fields=()), ValueError, "empty"),
        (clash(batch_size=1, fields=("image", "boxes")), ValueError, "no field 'boxes'"),
        (clash(batch_size=1, fields={"image": "x", "label": "x"}), ValueError, "one name"),
        (clash(batch_size=1, fields=("image", "image", "label")), ValueError, "one name in .'image', 'image', 'label'"),
        (clash(batch_size=1, batch_transform=3), TypeError, "batch, rng"),
        (clash(batch_size=1, dtype="int64"), TypeError, "int64"),
        (clash(batch_size=1, memory_format="nhwc"), ValueError, "channels_last"),
        (clash(batch_size=1, memory=0), ValueError, "memory=0"),
        (clash(batch_size=1, memory="1GB"), TypeError, "whole number"),
        (clash(batch_size=1, on_error="ignore"), ValueError, "'raise', 'skip', 'substitute'"),
        (clash(batch_size=1, max_errors=-1), ValueError, "max_errors"),
        (clash(batch_size=1, max_errors=1.5), ValueError, "max_errors"),
        (clash(batch_size=1, max_errors=1.0), ValueError, r"one sample or all of them: pass 1, an int.* math\.inf"),
        (clash(batch_size=1, max_errors=np.float32(1)), ValueError, "one sample or all of them"),
        (clash(batch_size=1, max_errors=float("nan")), ValueError, "max_errors=nan"),
        (clash(batch_size=1, timeout=float("nan")), ValueError, "timeout=nan"),
        (clash(batch_size=1, timeout=-1), ValueError, "timeout"),
        (clash(batch_size=1, start_timeout="soon"), ValueError, "start_timeout"),
        (clash(batch_size=1, nodes=""), ValueError, "names no node"),
        (clash(batch_size=1, nodes=[]), ValueError, "names no node"),
        (clash(batch_size=1, nodes=3), TypeError, "nodes=3: pass .host:port"),
        (clash(batch_size=1, nodes=["a:1", 3]), TypeError, "nodes=.'a:1', 3.: pass .host:port"),
        (clash(batch_size=1, mesh=3), TypeError, "mesh=3: pass a torch DeviceMesh, or rank and num_replicas"),
        (clash(batch_size=1, sampler=3), TypeError, "sampler=3: pass a sampler of PyTorch, or a list"),
        (clash(batch_size=1, sampler="abc"), TypeError, "sampler='abc': pass a sampler"),
        (clash(batch_size=1, sampler=["a"]), TypeError, "list gave 'a': needs indices"),
        (clash(batch_size=1, sampler=[[1, 2]]), TypeError, r"list gave \[1, 2\]: .*batch_sampler="),
        (clash(batch_size=1, sampler=iter([1])), TypeError, "used up after one epoch: pass list"),
        (clash(batch_size=1, sampler=[True, False]), TypeError, r"list gave True: .* numpy.flatnonzero\(mask\)"),
        (clash(batch_size=1, sampler=np.ones(3, bool)), TypeError, r"sampler is a mask, .* numpy.flatnonzero\(mask\)"),
        (clash(batch_size=1, sampler=torch.ones(3) > 0), TypeError, r"sampler is a mask, .* numpy.flatnonzero\(mask\)"),
        (clash(batch_size=1, sampler=[1.5]), TypeError, "list gave 1.5: needs indices, whole numbers"),
        (clash(batch_size=1, sampler=[]), ValueError, r"sampler=\[\] chooses no sample"),
        (clash(batch_sampler=()), ValueError, r"batch_sampler=\(\) chooses no sample"),
        (clash(batch_size=1, sampler=np.array([], np.int64)), ValueError, r"sampler=array\(.* chooses no sample"),
        (clash(batch_size=1, sampler=torch.empty(0, dtype=int)), ValueError, r"sampler=tensor\(.* chooses no sample"),
        (clash(batch_size=1, sampler=range(0)), ValueError, r"sampler=range\(0, 0\) chooses no sample"),
        (clash(batch_size=1, sampler=torch.utils.data.SubsetRandomSampler([])), ValueError, "Sampler .*no sample"),
        (clash(batch_sampler=torch.utils.data.BatchSampler([0], 2, True)), ValueError, "BatchSampler .*no sample"),
        (clash(batch_sampler=3), TypeError, "batch_sampler=3"),
        (clash(batch_size=1, shuffle="yes"), TypeError, "shuffle='yes': needs True or False"),
        (clash(batch_size=1, shuffle=0), TypeError, "shuffle=0: needs True or False"),
        (clash(batch_size=1, shuffle="blocks"), ValueError, 'or "blocks:64", which keeps 64 neighbours'),
        (clash(batch_size=1, shuffle="blocks:-4"), ValueError, "shuffle='blocks:-4': needs True or False"),
        (clash(batch_size=1, shuffle="blocks:1"), ValueError, "are what shuffle=True permutes"),
        (clash(batch_size=1, shuffle="blocks:0"), ValueError, "needs 2 to 4294967296 neighbours"),
        (clash(batch_size=1, shuffle="blocks:4294967297"), ValueError, "needs 2 to 4294967296 neighbours"),
        (clash(sampler=[0], batch_size=1, shuffle="blocks:8"), ValueError, "leave out shuffle"),
        (clash(batch_size=1, drop_last=None), TypeError, "drop_last=None: needs True or False"),
        (clash(batch_size=1, job=3), TypeError, 'job=3: needs a name, like job="3"'),
        (clash(batch_size=1, batch_transform=lambda batch: batch), TypeError, "called with .batch, rng., and this one"),
        (clash(batch_size=1, batch_transform=dict), TypeError, "must be a function"),
        (clash(batch_size=1, nodes="cpu-1"), ValueError, "'cpu-1' is no address: write host:port"),
        (clash(batch_size=1, nodes="cpu-1:7070,:7070"), ValueError, "':7070' is no address"),
        (clash(batch_size=1, nodes="http://cpu-1/"), ValueError, "is no address"),
        (clash(batch_size=1, local_workers=0), ValueError, "local_workers=0"),
    ],
)
def test_arguments_are_checked(folder: Path, options: dict[str, Any], error: type[Exception], why: str) -> None:
    with pytest.raises(error, match=why):
        Loader(folder, **options)


@pytest.mark.parametrize("name", ["timeout", "start_timeout"])
def test_infinity_is_for_ever_as_0_is(folder: Path, name: str) -> None:
    assert getattr(Loader(folder, batch_size=1, **{name: float("inf")})._config, name) == 0


def test_numpys_numbers_are_taken_as_pythons(folder: Path) -> None:
    given: dict[str, Any] = {"timeout": np.int64(3), "start_timeout": np.float32(0.5), "max_errors": np.float32(0.5)}
    config = Loader(folder, batch_size=np.int64(1), **given)._config
    assert (config.timeout, config.start_timeout, config.max_errors) == (3, 0.5, 0.5)
    assert {type(value) for value in (config.timeout, config.start_timeout, config.max_errors)} == {float}
    assert type(Loader(folder, batch_size=1, max_errors=np.int64(4))._config.max_errors) is int
    for name in given:
        with pytest.raises(ValueError, match=f"{name}=True: needs"):
            Loader(folder, batch_size=1, **{name: True})


def test_samplers_may_know_no_length(folder: Path) -> None:
    class Unknown:
        def __iter__(self) -> Iterator[int]:
            return iter([0])

        def __len__(self) -> int:
            raise RuntimeError("not before the first epoch")

    assert Loader(folder, batch_size=1, sampler=Unknown())._config.listed
    assert Loader(folder, batch_sampler=Unknown())._config.listed


def test_fields_that_are_asked_for_are_those_that_come(folder: Path) -> None:
    def fields(**options: Any) -> list[str]:
        return list(Loader(folder, batch_size=1, **options)._config.names)

    assert fields() == fields(fields=None) == ["image", "label"]
    assert fields(masks=folder) == ["image", "mask"]
    for given in (("image", "label"), ["image", "label"], {"image": "image", "label": "label"}):
        assert fields(masks=folder, fields=given) == ["image", "label"]


def test_cores_here_beside_nodes_need_the_data_here(folder: Path) -> None:
    assert Loader(folder, batch_size=1, local_workers=2, nodes="a:1")._config.local_workers == 2
    with pytest.raises(ValueError, match="needs the data too: pass its folder here"):
        Loader("photos", batch_size=1, local_workers=2, nodes="a:1")


def test_uint8_cannot_hold_what_floats_made(folder: Path) -> None:
    t = feedwater.transforms
    with pytest.raises(feedwater.UnsupportedTransformError, match="leave out ToDtype"):
        Loader(folder, [t.ToImage(), t.ToDtype("float32")], batch_size=1, dtype="uint8")


def test_a_missing_folder_is_named_at_once(folder: Path) -> None:
    with pytest.raises(feedwater.DataError, match=f"{folder}/c: no such folder"):
        Loader(folder / "c", batch_size=1)
    with pytest.raises(feedwater.DataError, match="not a folder"):
        Loader(folder / "a/1.jpg", batch_size=1)


@pytest.mark.parametrize("source", [3, np.zeros(3), torch.utils.data.TensorDataset(torch.zeros(3))])
def test_other_sources_are_refused(source: Any) -> None:
    with pytest.raises(TypeError, match="pass the path of a folder"):
        Loader(source, batch_size=1)


def test_how_sources_are_named_in_the_plan(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder.parent)
    sources = {
        (str(folder), None): ({"root": "", "path": str(folder)}, None),
        (folder.name, None): ({"root": "", "path": str(folder)}, None),
        ("imagenet/train/x", "n:1"): ({"root": "imagenet", "path": "train/x"}, None),
        ("imagenet", "n:1"): ({"root": "imagenet", "path": ""}, None),
        (str(folder), "n:1"): ({"root": "", "path": ""}, str(folder)),
        (Path(folder.name), "n:1"): ({"root": "", "path": ""}, str(folder)),
        (f"./{folder.name}/a", "n:1"): ({"root": "", "path": ""}, str(folder / "a")),
        (f"{folder.name}/a", "n:1"): ({"root": folder.name, "path": "a"}, None),
    }
    for (source, nodes), (plan, local) in sources.items():
        config = Loader(source, batch_size=1, nodes=nodes)._config
        assert (config.to_plan()["source"], config.source.local) == (plan, local)
    with pytest.raises(feedwater.DataError, match=r"/not/here: no such folder .* write \"root/path\""):
        Loader("/not/here", batch_size=1, nodes="n:1")


def test_apply_exif_is_in_the_plan_only_where_it_is_asked_for(folder: Path) -> None:
    assert "apply_exif" not in Loader(folder, batch_size=1)._config.to_plan()
    assert Loader(folder, batch_size=1, apply_exif=True)._config.to_plan()["apply_exif"] is True


def test_sources_of_nodes_are_left_to_the_agent_with_absolute_paths(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    nodes = "dns:cpu:7070, dns+srv:_a._tcp.b, k8s:a/b:c, unix:/run/n, file:list, file:/etc/nodes"
    config = Loader("x", batch_size=1, nodes=nodes)._config
    assert config.nodes == (
        "dns:cpu:7070",
        "dns+srv:_a._tcp.b",
        "k8s:a/b:c",
        "unix:/run/n",
        f"file:{tmp_path}/list",
        "file:/etc/nodes",
    )


@pytest.mark.parametrize("nodes", ["a:1,b:2", " a:1 , b:2,", ["a:1", "b:2"], ("a:1", "b:2")])
def test_nodes_come_with_commas_or_as_a_list(nodes: Any) -> None:
    assert Loader("x", batch_size=1, nodes=nodes)._config.nodes == ("a:1", "b:2")


def test_an_image_folder_brings_its_transform(folder: Path) -> None:
    ours, theirs = feedwater.transforms.CenterCrop(9), feedwater.transforms.CenterCrop(5)
    data = datasets.ImageFolder(folder, transform=theirs)
    assert Loader(data, batch_size=1)._config.pictures[0].compiled.ops == (theirs,)
    assert Loader(data, ours, batch_size=1)._config.pictures[0].compiled.ops == (ours,)
    subset = torch.utils.data.Subset(torch.utils.data.Subset(data, [2, 1]), [1])
    config = Loader(subset, batch_size=1)._config
    assert config.pictures[0].compiled.ops == (theirs,)
    assert config.source.indices is not None
    assert config.source.indices.tolist() == [1]


def test_image_folders_with_code_are_refused(folder: Path) -> None:
    def load(path: str) -> None: ...

    for data, why in (
        (datasets.ImageFolder(folder, loader=load), "loader of its own"),
        (datasets.ImageFolder(folder, target_transform=load), "target_transform"),
        (datasets.ImageFolder(folder, is_valid_file=lambda path: True), "is_valid_file"),
        (
            type("Mine", (datasets.ImageFolder,), {"__getitem__": lambda self, i: i})(folder),
            "Mine overrides __getitem__",
        ),
    ):
        with pytest.raises(TypeError, match=why):
            Loader(data, batch_size=1)
    with pytest.raises(feedwater.DataError, match="from 0 to 3"):
        Loader(torch.utils.data.Subset(datasets.ImageFolder(folder), [0, 3]), batch_size=1)


@pytest.mark.parametrize(
    ("chosen", "error", "why"),
    [
        (np.array([True, False, True]), TypeError, r"a mask, True and False: .* numpy.flatnonzero\(mask\)"),
        (torch.tensor([True, False, True]), TypeError, "a mask"),
        ([True, False, True], TypeError, "a mask"),
        ([0.0, 1.5], TypeError, "float64: needs whole numbers"),
        (["0"], TypeError, "needs whole numbers"),
        ([], feedwater.DataError, "chooses no sample"),
    ],
)
def test_a_subset_chooses_by_whole_numbers(folder: Path, chosen: Any, error: type[Exception], why: str) -> None:
    data = datasets.ImageFolder(folder)
    with pytest.raises(error, match=f"the Subset's indices are .*{why}"):
        Loader(torch.utils.data.Subset(data, chosen), batch_size=1)
    for good in ([2, 0], (2, 0), np.array([2, 0], np.uint8), torch.tensor([2, 0]), [torch.tensor(2), np.int64(0)]):
        indices = Loader(torch.utils.data.Subset(data, good), batch_size=1)._config.source.indices
        assert indices is not None and indices.tolist() == [2, 0] and indices.dtype == np.int64


@pytest.mark.parametrize(
    ("transform", "options", "expected"),
    [  # dtype, layout, channels first
        ("picture", {}, ("uint8", "hwc", True)),
        ("picture", {"memory_format": torch.contiguous_format}, ("uint8", "chw", True)),
        ("picture", {"memory_format": torch.channels_last}, ("uint8", "hwc", True)),
        ("picture", {"dtype": torch.float16}, ("float16", "chw", True)),
        ("float", {}, ("float32", "chw", True)),
        ("float", {"memory_format": torch.channels_last}, ("float32", "hwc", True)),
        ("float", {"dtype": torch.bfloat16}, ("bfloat16", "chw", True)),
    ],
)
def test_the_look_of_tensors(folder: Path, transform: str, options: dict[str, Any], expected: tuple[Any, ...]) -> None:
    t = feedwater.transforms
    steps = {"picture": [t.CenterCrop(8)], "float": [t.ToImage(), t.ToDtype("float32", scale=True)]}[transform]
    output = Loader(folder, steps, batch_size=1, **options)._config.pictures[0].output
    assert (output.dtype, output.layout, output.channels_first) == expected
    assert output.torch


def test_the_look_of_arrays_without_torch(folder: Path) -> None:
    script = f"""
import sys, feedwater
t = feedwater.transforms
def look(steps, **options):
    o = feedwater.Loader({str(folder)!r}, steps, batch_size=1, **options)._config.pictures[0].output
    assert not o.torch
    return o.dtype, o.layout, o.channels_first
assert look([t.CenterCrop(8)]) == ("uint8", "hwc", False)
assert look([t.CenterCrop(8)], dtype="float32") == ("float32", "hwc", False)
assert look([t.CenterCrop(8), t.ToImage()]) == ("uint8", "hwc", True)
assert look([t.ToImage(), t.ToDtype("float32", scale=True)]) == ("float32", "chw", True)
assert look([t.CenterCrop(8)], memory_format="contiguous") == ("uint8", "chw", True)
assert look([t.ToImage(), t.ToDtype("float32")], memory_format="channels_last") == ("float32", "hwc", True)
try: look([t.ToImage(), t.ToDtype("bfloat16")])
except TypeError as error: assert "needs torch" in str(error)
else: raise AssertionError
assert "torch" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", script], check=True)


def test_a_job_is_named_by_its_launcher(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert Loader(folder, batch_size=1, job="mine")._config.job == "mine"
    monkeypatch.setenv("SLURM_JOB_ID", "77")
    assert Loader(folder, batch_size=1)._config.job == "77"
    monkeypatch.setenv("SLURM_STEP_ID", "2")
    assert Loader(folder, batch_size=1)._config.job == "77.2", "each srun is a run of its own"
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "elastic")
    assert Loader(folder, batch_size=1)._config.job == "elastic"
