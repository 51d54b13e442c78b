"""Builds that differ: what a state pins, what the agent is, and what is said of it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import PIL.Image
import pytest
import version_1

import feedwater
from feedwater import StateMismatchError
from feedwater._agent import revisions
from feedwater._agent.failure import error_of

TABLES = Path(__file__).parents[2] / "pipeline" / "revision"
PINNED = {
    "plan": {"order": 1, "op/CenterCrop": 1},
    "codecs": {"codec/png": 1},
    "trainer": {"order": 1, "lasthop": 1},
    "build": "1 (aaaa)",
}

VERSION = re.escape(feedwater.__version__)


def test_the_package_and_the_program_have_the_same_tables() -> None:
    lines = [line.split() for line in (TABLES / "table.txt").read_text().splitlines() if not line.startswith("#")]
    table = {line[0]: int(line[1]) for line in lines if line}
    assert {unit: table[unit] for unit in revisions.UNITS} == revisions.UNITS
    assert set(re.findall(r'"([0-9a-f]{32})"', (TABLES / "known.go").read_text())) == revisions.KNOWN


def opens(fake: Any) -> list[dict[str, Any]]:
    """What agents were told when plans were opened, in order."""
    return [line["params"] for line in fake.log("call") if line["call"] == "open"]


def state_of(fake: Any) -> dict[str, Any]:
    loader = fake.loader(shuffle=True)
    next(iter(loader))
    state: dict[str, Any] = loader.state_dict()
    loader.close()
    return state


def changed(part: str, unit: str, revision: int) -> dict[str, Any]:
    return {**PINNED, part: {**PINNED[part], unit: revision}, "build": "2 (bbbb)"}  # type: ignore[dict-item]


def test_a_state_tells_the_revisions_and_pins_them_when_it_goes_on(fake: Any) -> None:
    fake.set(revisions=PINNED)
    state = state_of(fake)
    assert state["version"] == 2
    assert state["revisions"] == PINNED
    json.dumps(state)
    other = fake.loader(shuffle=True)
    other.load_state_dict(state)
    next(iter(other))
    assert opens(fake)[-1]["revisions"] == PINNED
    other.close()
    meant = fake.loader(shuffle=True)
    meant.load_state_dict(state, strict=False)
    next(iter(meant))
    assert opens(fake)[-1]["revisions"] is None


@pytest.mark.parametrize("part", ["plan", "trainer"])
def test_a_state_of_other_revisions_is_refused_and_may_be_meant(fake: Any, part: str) -> None:
    fake.set(revisions=PINNED)
    state = state_of(fake)
    fake.set(revisions=changed(part, "order", 2))
    other = fake.loader(shuffle=True)
    why = {
        "plan": r"order was of revision 1 \(build 1 \(aaaa\)\), is of 2 \(build 2 \(bbbb\)\)",
        "trainer": rf"order is of revision 2 in this feedwater, {VERSION}, and was of 1 \(nodes of build 1 ",
    }[part] + r".*In another order samples come twice.*strict=False"
    with pytest.raises(StateMismatchError, match=why):
        other.load_state_dict(state)
    other.load_state_dict(state, strict=False)
    next(iter(other))


def test_a_state_of_another_last_hop_says_that_samples_stay_the_same(fake: Any) -> None:
    """The node is told the state's revisions, and answers with the build of the state: that is not this side's."""
    fake.set(revisions=PINNED)
    state = state_of(fake)
    fake.set(revisions={**changed("trainer", "lasthop", 2), "build": PINNED["build"]})
    other = fake.loader(shuffle=True)
    with pytest.raises(
        StateMismatchError, match=r"Samples and their order are the same; what is made.*strict=False"
    ) as e:
        other.load_state_dict(state)
    assert f"lasthop is of revision 2 in this feedwater, {feedwater.__version__}, and was of 1 (nodes of" in str(
        e.value
    )
    other.load_state_dict(state, strict=False)
    assert other.state_dict()["consumed"] == state["consumed"]


@pytest.mark.usefixtures("real")
def test_a_package_that_is_replaced_while_the_program_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(revisions, "__version__", "0.0.1")
    folder = version_1.folder(tmp_path, "ordinary")
    loader = feedwater.Loader(folder, feedwater.transforms.CenterCrop(4), batch_size=1)
    said = f"feedwater {VERSION} was installed while this program ran, which has 0.0.1 loaded.*start the program again"
    for ask in (lambda: next(iter(loader)), loader.preview):
        with pytest.raises(feedwater.VersionError, match=said):
            ask()


def test_a_state_tells_the_versions_of_objects_and_pins_them_when_it_goes_on(fake: Any) -> None:
    fake.set(stores={"aa": "11"})
    state = state_of(fake)
    assert state["stores"] == {"aa": "11"}
    fake.set(stores={"aa": "11", "bb": "22"})
    other = fake.loader(shuffle=True)
    other.load_state_dict(state)
    next(iter(other))
    assert opens(fake)[-1]["stores"] == {"aa": "11"}
    assert other.state_dict()["stores"] == {"aa": "11", "bb": "22"}


def test_a_state_tells_the_versions_of_nodes_that_came_later(fake: Any) -> None:
    fake.set(stores={"aa": "11"}, later_stores={"aa": "11", "bb": "22"})
    with fake.loader(shuffle=True) as loader:
        next(iter(loader))
        state = loader.state_dict()
    assert state["stores"] == {"aa": "11", "bb": "22"}
    fake.set(stores={"bb": "22"})
    with fake.loader(shuffle=True) as other:
        other.load_state_dict(state)
        next(iter(other))
        assert opens(fake)[-1]["stores"] == state["stores"]
    fake.set(stores={"bb": "23"})
    with fake.loader(shuffle=True) as other, pytest.raises(feedwater.DataError, match=r"were replaced in its bucket"):
        other.load_state_dict(state)


def test_a_state_of_other_versions_is_refused_and_may_be_meant(fake: Any) -> None:
    fake.set(stores={"aa": "11"})
    state = state_of(fake)
    fake.set(stores={"aa": "12"})
    loader = fake.loader(shuffle=True)
    with pytest.raises(feedwater.DataError, match=r"were replaced in its bucket .* strict=False"):
        loader.load_state_dict(state)
    loader.load_state_dict(state, strict=False)
    next(iter(loader))
    fresh = fake.loader(shuffle=True)
    fresh.load_state_dict(state, strict=False)
    next(iter(fresh))
    assert opens(fake)[-1]["stores"] is None


@pytest.mark.parametrize("stores", [None, {}, {"cc": "33"}])
def test_a_state_of_another_store_or_of_none_goes_on(fake: Any, stores: Any) -> None:
    state = {**state_of(fake), "stores": stores}
    fake.set(stores={"aa": "11"})
    loader = fake.loader(shuffle=True)
    loader.load_state_dict(state)
    next(iter(loader))


def test_a_state_from_before_versions_were_told_goes_on(fake: Any) -> None:
    state = state_of(fake)
    del state["stores"]
    fake.set(stores={"aa": "11"})
    loader = fake.loader(shuffle=True)
    loader.load_state_dict(state)
    next(iter(loader))


@pytest.mark.parametrize("stores", ["x", ["aa"], {"aa": 1}])
def test_a_state_whose_stores_are_none_is_told_before_an_agent_reads_it(fake: Any, stores: Any) -> None:
    state = state_of(fake)
    with pytest.raises(StateMismatchError, match=r"the state has stores=.*: not a state of a Loader"):
        fake.loader(shuffle=True).load_state_dict({**state, "stores": stores})


@pytest.mark.parametrize("revisions", ["x", {"plan": [1]}, {"plan": {"order": "1"}}, {"codecs": {"codec/png": -1}}])
def test_a_state_whose_revisions_are_none_is_told_before_an_agent_reads_it(fake: Any, revisions: Any) -> None:
    fake.set(revisions=PINNED)
    state = state_of(fake)
    loader = fake.loader(shuffle=True)
    with pytest.raises(StateMismatchError, match=r"the state has revisions=.*: not a state of a Loader"):
        loader.load_state_dict({**state, "revisions": revisions})
    loader.close()


def test_codecs_of_a_state_are_left_to_the_nodes(fake: Any) -> None:
    """A list of files does not know their formats."""
    fake.set(revisions=PINNED)
    state = state_of(fake)
    fake.set(revisions=changed("codecs", "codec/png", 2))
    other = fake.loader(shuffle=True)
    other.load_state_dict(state)
    next(iter(other))


def test_states_of_version_1_go_on_if_their_build_is_known(fake: Any) -> None:
    known = next(iter(revisions.KNOWN))
    fake.set(numerics=known)
    state = {**state_of(fake), "version": 1}
    del state["revisions"]
    other = fake.loader(shuffle=True)
    other.load_state_dict(state)
    next(iter(other))
    assert (opens(fake)[-1]["numerics"], opens(fake)[-1]["revisions"]) == (known, None)
    other.close()
    last = fake.loader(shuffle=True)
    with pytest.raises(
        StateMismatchError, match=r"version 1, and its numerics 1717.* of no build that is known.*strict=False"
    ):
        last.load_state_dict({**state, "numerics": "17" * 16})
    last.load_state_dict({**state, "numerics": "17" * 16}, strict=False)
    next(iter(last))


def test_a_state_of_a_later_version_names_the_way_out(fake: Any) -> None:
    with pytest.raises(StateMismatchError, match=r"version 9; .* versions 1 to 2: use the release that saved it"):
        fake.loader(shuffle=True).load_state_dict({**state_of(fake), "version": 9})


def test_another_agent_is_pinned_to_what_the_first_one_found(fake: Any) -> None:
    fake.set(revisions=PINNED, faults=[{"at": "want", "nth": 3, "do": "kill"}])
    loader = fake.loader(shuffle=True)
    assert len(list(loader)) == len(loader)
    first, second = opens(fake)
    assert (first["revisions"], second["revisions"]) == (None, PINNED)
    assert (first["numerics"], second["numerics"]) == (None, "17" * 32)


@pytest.mark.parametrize(
    ("greeting", "who"),
    [
        ({"version": "9.9"}, r"build 9\.9"),
        ({"socket": 77, "build": "0 (cafe)"}, r"build 0 \(cafe\)"),
        ({"units": {**revisions.UNITS, "order": 0}, "build": "0 (cafe)"}, r"build 0 \(cafe\)"),
        (None, "too old to tell its version"),
    ],
)
def test_a_program_of_another_release_is_named_at_once(fake: Any, greeting: Any, who: str) -> None:
    fake.set(greeting=greeting)
    with pytest.raises(feedwater.VersionError, match=who + r".*this Python package \(version .*FEEDWATER_BINARY"):
        next(iter(fake.loader()))
    assert not opens(fake)


def test_a_program_without_a_version_goes_with_any(fake: Any) -> None:
    fake.set(greeting={"version": "dev"})
    next(iter(fake.loader()))


def test_an_error_of_kind_revision_has_all_members() -> None:
    told = {"unit": "codec/png", "pinned": 1, "found": 2, "pinned_build": "1 (aaaa)", "build": "2 (bbbb)"}
    error = error_of(
        {"kind": "revision", "message": "no node can", "nodes": [{"addr": "a:1", "error": "has 2"}], **told}
    )
    assert isinstance(error, feedwater.RevisionError)
    assert {name: getattr(error, name) for name in told} == told
    assert "a:1" in str(error)


@pytest.mark.usefixtures("real")
@pytest.mark.parametrize(("where", "unit"), [("plan", "op/CenterCrop"), ("plan", "order"), ("codecs", "codec/png")])
def test_a_loader_without_nodes_speaks_of_none_where_its_build_is_another(
    tmp_path: Path, where: str, unit: str
) -> None:
    (tmp_path / "a").mkdir()
    for number in range(3):
        PIL.Image.new("RGB", (9, 9), (number, 2, 3)).save(tmp_path / "a" / f"{number}.png")
    first, second = (feedwater.Loader(tmp_path, feedwater.transforms.CenterCrop(4), batch_size=1) for _ in range(2))
    next(iter(first))
    state = first.state_dict()
    state["revisions"] |= {where: {**state["revisions"][where], unit: 700}, "build": "v0"}
    with pytest.raises(feedwater.RevisionError) as raised:
        second.load_state_dict(state)
        next(iter(second))
    told = str(raised.value)
    assert re.search(rf"takes {unit}: this process has revision \d+ \(build .*the job's is .*700", told)
    assert f"; the job goes on with Feedwater of build v0, or of another that has revision 700 of {unit}; with" in told
    assert "node" not in told


@pytest.mark.parametrize(("says", "who"), [("unknown flag: --greeting", "too old"), ("", "")])
def test_preview_names_a_program_of_another_release(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, binary: str, says: str, who: str
) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "a.bmp").write_bytes(b"")
    if says:
        program = tmp_path / "feedwater"
        program.write_text(f'#!/bin/sh\necho "feedwater: {says}" >&2\nexit 2\n')
        program.chmod(0o755)
        binary = str(program)
    monkeypatch.setenv("FEEDWATER_BINARY", binary)
    monkeypatch.setattr(revisions, "SOCKET", 77)
    loader = feedwater.Loader(tmp_path, feedwater.transforms.CenterCrop(4), batch_size=1)
    with pytest.raises(feedwater.VersionError, match=f"{who}.*of different releases: install both from one wheel"):
        loader.preview()


# Of build 4a99f83, the last whose states told no revisions.
VERSION_1: dict[str, Any] = json.loads(Path(__file__).with_name("version_1.json").read_text())


@pytest.mark.usefixtures("real")
@pytest.mark.parametrize("on_node", [False, True])
def test_a_state_of_version_1_goes_on_with_the_same_batches(tmp_path: Path, nodes: Any, on_node: bool) -> None:
    """What was raised since takes no part in such a run."""
    source: dict[str, Any] = {}
    if on_node:
        source = {
            "source": "photos",
            "local_workers": "auto",
            "nodes": nodes.start(version_1.folder(tmp_path, "ordinary")),
        }
    with version_1.loader(tmp_path, "ordinary", **source) as loader:
        loader.load_state_dict(VERSION_1["ordinary"]["state"])
        assert version_1.digests(loader, 100) == VERSION_1["ordinary"]["batches"]
        state = loader.state_dict()
    assert state["version"] == 2
    with version_1.loader(tmp_path, "ordinary", **source) as again:
        again.load_state_dict(state)
        assert next(iter(again))


@pytest.mark.usefixtures("real")
@pytest.mark.parametrize(("run", "unit"), [("turned", "exif"), ("png", "codec/png"), ("webp", "codec/webp")])
def test_a_state_of_version_1_whose_bytes_changed_is_refused(tmp_path: Path, run: str, unit: str) -> None:
    """Its plan applies EXIF data, or its files are of a format, that has been of another revision since."""
    state = VERSION_1[run]["state"]
    with version_1.loader(tmp_path, run) as loader:
        with pytest.raises(feedwater.RevisionError, match=rf"{unit}\b.* revision [2-9] .*strict=False") as refused:
            loader.load_state_dict(state)
            version_1.digests(loader, 1)
        assert ". " not in str(refused.value).strip()
    with version_1.loader(tmp_path, run) as loader:
        loader.load_state_dict(state, strict=False)
        assert len(version_1.digests(loader, 100)) == len(VERSION_1[run]["batches"])
