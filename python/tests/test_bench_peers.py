"""What bench/peers makes of runs: samples counted by their ids, tables, comparisons. Runs are of a made-up peer."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
FAKE = """
import os, signal
import numpy as np
from peer import BATCH, SIZE, Base

class Peer(Base):
    packages = ("numpy",)

    def batches(self):
        pid = os.fork() if self.settings.variant == "forks" else 0
        if self.settings.variant == "forks" and not pid:
            signal.pause()
        if self.settings.variant == "raises":
            raise ValueError("no such luck")
        first = self.settings.state or 0
        for epoch in range(self.settings.epochs):
            for self.place in range(first, self.settings.samples // BATCH):
                if pid and self.place == 1:
                    os.waitpid(pid, 0)
                    continue
                begin = self.place * BATCH
                yield np.zeros((BATCH, 3, SIZE, SIZE), np.float32), range(begin, begin + BATCH)

    def state(self):
        return self.place + 1 - (self.settings.variant == "repeats")
"""


@pytest.fixture(autouse=True)
def bench(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """bench/peers can be imported, and peers of this test be run."""
    for folder in (ROOT / "bench", ROOT / "bench" / "peers"):
        monkeypatch.syspath_prepend(str(folder))
    (tmp_path / "peer_fake.py").write_text(FAKE)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    for name in ("contestants", "count", "install", "main", "measure", "peer", "report"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setattr(sys, "modules", dict(sys.modules))  # these are names for anybody


def fake(variant: str = "", **options: Any) -> Any:
    """A contestant, and settings of four batches."""
    import contestants
    import peer

    contestant = contestants.Contestant("fake", "peer_fake", variant=variant, worker=r"peer\.py", **options)
    return contestant, peer.Settings("", "", 4 * peer.BATCH, variant, epochs=1)


def row(name: str, *rates: float, **more: Any) -> dict[str, Any]:
    """A row of results."""
    rounds = [{"rate": rate, "cpu": 1.0, "wait_p50": 0.01, "wait_p99": 0.02, "first": 0.5} for rate in rates]
    rest = {"workers": 2, "resume": {"no": "no | state"}, "kill": {"no": "threads"}, "conversion": {}}
    return {"name": name, "rounds": rounds, **rest, **more}


def test_samples_are_counted_by_ids() -> None:
    import count

    assert count.of_epoch(4, [0, 1], [2, 3]) == count.Samples(lost=0, repeated=0)
    assert count.of_epoch(4, [0, 1], [1, 1, 3]) == count.Samples(lost=1, repeated=2)
    with pytest.raises(ValueError, match=r"no sample has: \[4\]"):
        count.of_epoch(4, [4])


def test_a_run_is_measured_from_outside() -> None:
    import measure

    contestant, settings = fake()
    found = measure.speed(sys.executable, contestant, measure.Settings(**{**vars(settings), "epochs": 2}))
    assert found["rate"] > 0
    assert found["cpu"] >= 0
    assert found["wait_p50"] <= found["wait_p99"]
    assert "numpy" in found["versions"]


def test_an_epoch_that_is_none_is_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    import measure

    contestant, settings = fake()
    monkeypatch.setattr(measure.Run, "ids", property(lambda _: [0] * 4 * 64))
    with pytest.raises(RuntimeError, match="epoch 0 is no epoch"):
        measure.speed(sys.executable, contestant, settings)


def test_what_resuming_repeats_is_counted() -> None:
    import measure

    contestant, settings = fake()
    assert measure.resume(sys.executable, contestant, settings)["repeated"] == 0
    contestant, settings = fake("repeats")
    found = measure.resume(sys.executable, contestant, settings)
    assert (found["lost"], found["repeated"]) == (0, 64)


def test_the_error_of_a_run_is_told() -> None:
    import measure

    contestant, settings = fake("raises")
    with pytest.raises(RuntimeError, match="fake: ValueError: no such luck"):
        measure.speed(sys.executable, contestant, settings)


def test_a_worker_is_killed_and_what_is_lost_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    import measure

    contestant, settings = fake("forks")
    monkeypatch.setattr(measure, "KILL_AT", 1)
    killed: list[int] = []
    kill = os.kill
    monkeypatch.setattr(measure.os, "kill", lambda pid, number: (killed.append(pid), kill(pid, number)))
    found = measure.kill(sys.executable, contestant, settings)
    assert len(killed) == 1
    assert (found["lost"], found["repeated"]) == (64, 0)


def test_the_table_has_everybody() -> None:
    import report

    rows = [row("slow", 100.0, 120.0), row("Feedwater, local", 300.0), {"name": "gone", "absent": "no wheel"}]
    lines = report.table(rows).splitlines()
    assert [line.split(" | ")[0] for line in lines[2:]] == [
        "| Feedwater, local, 2 workers",
        "| slow, 2 workers",
        "| gone",
    ]
    assert "| 110 (100 … 120) |" in lines[3]
    assert "no: no \\| state" in lines[3]
    assert "not measured: no wheel" in lines[4]
    assert len({line.replace("\\|", "").count("|") for line in lines}) == 1


def test_the_picture_has_a_bar_for_each() -> None:
    import report

    drawn = report.picture([row("a & b", 100.0), row("Feedwater, local", 300.0), {"name": "gone", "absent": "x"}])
    assert drawn.count("<rect") == 2
    assert "a &amp; b" in drawn
    assert drawn.count('class="ours"') == 1


def test_where_feedwater_loses_is_told() -> None:
    import report

    rows = [row("fast", 400.0), row("slow", 100.0), row("Feedwater, local", 300.0)]
    assert report.losses(rows) == ["images/s: fast is better, 400 against 300"]


def test_a_page_gets_table_and_picture(tmp_path: Path) -> None:
    import report

    page = tmp_path / "peers.md"
    page.write_text("before\n<!-- measured -->\nold\n<!-- end -->\nafter\n")
    rows = [row("fast", 400.0), row("Feedwater, local", 300.0)]
    about = {"machine": "a machine", "load": 1.0, "others": "nobody", "rounds": 1}
    for _ in range(2):
        report.document({"rows": rows, **about}, page)
    text = page.read_text()
    assert text.startswith("before\n<!-- measured -->")
    assert text.endswith("<!-- end -->\nafter\n")
    assert "old" not in text
    assert text.count("| fast, 2 workers |") == 1
    assert "- images/s: fast is better" in text
    assert "<svg" in (tmp_path / "peers.svg").read_text()


def test_results_are_compared() -> None:
    import report

    old = {"machine": "one", "rows": [row("a", 100.0, 110.0), row("b", 100.0, 110.0), row("c", 1.0)]}
    new = {"machine": "one", "rows": [row("a", 200.0, 220.0), row("b", 105.0, 105.0), row("d", 1.0)]}
    text = report.compare(old, new)
    assert "| a | 2.00 | 1.00 | ranges apart |" in text
    assert "| b | 1.00 | 1.00 | ranges overlap |" in text
    assert "| d | | | only in the new file |" in text
    assert "| c | | | only in the old file |" in text
    assert "differ" not in text
    assert "differ" in report.compare(old, {**new, "machine": "two"})


def test_every_peer_has_its_file_and_versions() -> None:
    import contestants

    place = ROOT / "bench" / "peers"
    for one in contestants.CONTESTANTS:
        assert one.absent or (place / f"{one.module}.py").exists(), one.name
        if one.environment:
            pinned = (place / "requirements" / f"{one.environment}.txt").read_text().split()
            assert all("==" in line for line in pinned), one.name
    assert [one.name for one in contestants.chosen(["webd"])][-1] == "WebDataset"
    with pytest.raises(SystemExit, match="no contestant has 'wepd' in its name"):
        contestants.chosen(["webd", "wepd"])
