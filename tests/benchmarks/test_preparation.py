import pytest

pytest.importorskip("psutil", reason="the benchmark reads memory with psutil")

from benchmarks.preparation import MARKER, projections, table, write_corpus, write_page


def row(pairs: int, workers: int, seconds: float, peak: float) -> dict:
    phases = {"reading": 1.0, "encoding": seconds / 2}
    return {
        "pairs": pairs,
        "workers": workers,
        "seconds": seconds,
        "cpu_seconds": seconds - 7,
        "peak_bytes": peak,
        "phases": phases,
    }


ROWS = [
    row(100_000, 1, 40.0, 3e8),
    row(1_000_000, 1, 100.0, 8e8),
    row(5_000_000, 1, 300.0, 1e9),
    row(1_000_000, 2, 70.0, 9e8),
]


def test_projections_follow_the_line_through_the_two_largest_sizes():
    found = {(r["corpus"], r["workers"]): r for r in projections(ROWS)}
    # 50 seconds and 50 MB per million pairs.
    german, french = found["WMT14 en-de", 1], found["WMT14 en-fr", 1]
    assert (german["seconds"], french["seconds"]) == (275, 1850)
    assert (german["peak_bytes"], french["peak_bytes"]) == (975e6, 2550e6)


def test_one_size_gives_no_projection():
    found = [r for r in projections(ROWS) if r["workers"] == 2]
    assert {r["seconds"] for r in found} == {r["peak_bytes"] for r in found} == {None}


def test_the_lines_of_a_corpus_are_distinct(tmp_path):
    text = tmp_path / "text"
    text.write_text("a b\nc d\ne f\n")
    write_corpus(text, 20, tmp_path / "corpus")
    lines = (tmp_path / "corpus").read_text().splitlines()
    assert len(set(lines)) == len(lines) == 20
    assert [line[:3] for line in lines[:4]] == ["a b", "c d", "e f", "a b"]


def test_the_tables_go_between_the_markers_of_a_page(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"before\n{MARKER}\nold\n{MARKER}\nafter\n")
    results = {"machine": "M", "rows": ROWS, "projections": projections(ROWS)}
    write_page(results, page)
    before, between, after = page.read_text().split(MARKER)
    assert (before, after) == ("before\n", "\nafter\n")
    assert table(results) in between
    assert "| 5,000,000 | 1 | 300 | 293 |" in between
    assert "| WMT14 en-fr | 1 | 31 | 2,550 |" in between
