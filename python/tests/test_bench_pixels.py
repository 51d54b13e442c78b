"""The table of bench/pixels: which way round its ratios are, and what holds."""

import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).resolve().parents[2] / "bench"


@pytest.fixture
def bench(monkeypatch):
    monkeypatch.setattr(sys, "path", [str(BENCH / "pixels"), str(BENCH), *sys.path])
    monkeypatch.setattr(sys, "modules", dict(sys.modules))  # "rows" and "unit" are names for anybody
    import chart
    import report
    import rows

    return rows, report, chart


def result(cpu, rate):
    return {"cpu": cpu, "rate": rate}


def test_rows(bench):
    rows, report, chart = bench
    runs = {
        "ours": [result(1, 1000), result(1, 900), result(1, 800)],
        "theirs": [result(2, 250), result(3, 300), result(4, 200)],
        "left out": [],
    }
    pairs = [("ours", "theirs", 3.0), ("ours", "left out", 1.0), ("ours", "nobody", 1.0), ("theirs", "ours", 1.0)]
    row, back = rows.rows("part", "cpu", runs, pairs)
    assert (row.ratios, row.value, row.other, row.rates) == ([2, 3, 4], 3, 4, (1000, 1000 / 3))
    assert (row.verdict, back.verdict) == ("hold", "miss")
    (row,) = rows.rows("part", "rate", runs, [("ours", "theirs", None)])
    assert (row.ratios, row.value, row.other, row.rates, row.verdict) == ([4, 3, 4], 4, 3, (900, 250), "")
    assert "4.00× (3.00 … 4.00)" in "\n".join(report.text([row]))
    assert "rect" not in chart.svg([row])
    assert chart.svg([back]).count('class="miss"') == 1


def test_pairs_have_limits_where_they_are_judged(bench):
    rows, _, _ = bench
    assert [limit for *_, limit in rows.crop_pairs(["avx2", "scalar"], True)][:6] == [2.5, 3.2, 2.0, 2.6, 1.25, 1.55]
    assert not any(limit for *_, limit in [*rows.crop_pairs(["avx2"], False), *rows.whole_pairs(False)])


def test_some_rows_alone(bench):
    import table

    names = ["eval", "PNG 32×32"]
    assert table.chosen(names, None, None) == names
    assert table.chosen(names, "PNG", None) == ["PNG 32×32"]
    assert table.chosen(names, "", "eval") == names
    assert table.chosen(names, None, "PNG") == [], "other rows alone are asked for"
    with pytest.raises(SystemExit, match="no row has 'evil' in its name; there are: eval, PNG 32×32"):
        table.chosen(names, "evil", None)


def test_each_row_on_all_cores_has_limits(bench):
    import pictures
    import rows
    import table
    import whole

    assert rows.ENCODED.keys() == pictures.ENCODINGS.keys()
    assert rows.TRANSFORMED.keys() == table.TRANSFORMS.keys()
    pairs = list(rows.dataloader_pairs(rows.TRANSFORMED["eval"]))
    assert pairs == [(whole.LOCAL[index], whole.BEST, limit) for index, limit in (("no index", 6.5), ("index", 8.5))]
    assert [limit for *_, limit in rows.dataloader_pairs(rows.ENCODED["PNG"])] == [4, 4.5, 8]
