"""Every flag of `t2t reproduce` reaches the report or the run; all values differ."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from t2t_repro.cli.main import main
from t2t_repro.features.reproduction import command_reproduce as reproduce
from t2t_repro.features.reproduction import complexity_report
from t2t_repro.features.reproduction.row_plan import RunFolders
from tests.support.recorder import record


def test_the_first_table_is_drawn_on_request(monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    record(monkeypatch, complexity_report, "measure_layers", "measurements")
    record(monkeypatch, complexity_report, "complexity_report", "complexity")
    record(monkeypatch, reproduce, "write_report", "one report")
    checked = record(monkeypatch, reproduce, "check_file")  # it needs matplotlib
    drawn = record(monkeypatch, complexity_report, "plot_complexity")
    assert main(["reproduce", "table1/recurrent", "--plot", "times.png"]) == 0
    assert [*drawn.call.values()] == ["measurements", "times.png"]
    assert checked.call["path"] == "times.png"
    assert capsys.readouterr().out == "one report\n"


@pytest.fixture
def ran(monkeypatch):
    """Record the plans and folders of runs."""
    seen = []

    def run_row(plan, folders, **_):
        seen.append((plan, folders))
        return [Path("a.json"), Path("b.json")]

    module = SimpleNamespace(run_row=run_row)
    monkeypatch.setitem(sys.modules, "t2t_repro.features.reproduction.run_row", module)
    return seen


def test_a_run_has_every_flag(ran, tmp_path, capsys):
    for name in ("text", "results"):
        (tmp_path / name).mkdir()
    flags = {
        "scale": "small",
        "seed": "0",
        "text_dir": str(tmp_path / "text"),
        "data_dir": "data",
        "output_dir": "out",
        "result_dir": str(tmp_path / "results"),
    }
    given = [f"--{name}={value}" for name, value in flags.items()]
    assert main(["reproduce", "--run", "table3/a_h1", *given]) == 0
    ((plan, folders),) = ran
    assert (plan.scale, plan.seed) == ("small", 0)
    assert [row.name for row in plan.rows] == ["a_h1"]
    assert folders == RunFolders(
        data_dir=Path("data"),
        output_dir=Path("out"),
        text_dir=tmp_path / "text",
        result_dir=tmp_path / "results",
    )
    assert capsys.readouterr().out == "a.json\nb.json\n"


def test_the_page_is_written_with_the_results_of_a_folder(monkeypatch, capsys):
    pytest.importorskip("scipy", reason="the extra `results` is not installed")
    from results import pages

    record(monkeypatch, reproduce, "results_with", "results in {}".format)
    checked = record(monkeypatch, reproduce, "check_file")
    paths = [Path("figures/a.svg"), Path("page.md")]
    written = record(monkeypatch, pages, "write_pages", paths)
    flags = ["--page", "page.md", "--result_dir", "folder"]
    assert main(["reproduce", *flags]) == 0
    assert checked.call["path"] == "page.md"
    assert [*written.call.values()] == ["page.md", "results in folder"]
    assert capsys.readouterr().out == "figures/a.svg\npage.md\n"


def test_the_course_of_a_training_is_recorded(monkeypatch, capsys):
    from results import curves

    saved = []

    def save(folder):
        saved.append(folder)
        return "plain-1.json"

    found = record(
        monkeypatch, curves, "curve_of", lambda *_: SimpleNamespace(save=save)
    )
    flags = ["--record", "run", "--name", "plain", "--result_dir", "curves"]
    assert main(["reproduce", *flags]) == 0
    assert [*found.call.values()] == ["run", "plain"]
    assert saved == ["curves"]
    assert capsys.readouterr().out == "plain-1.json\n"


@pytest.mark.parametrize(
    "flags",
    [
        ["--page", "page.md", "--seed", "3"],
        ["--page", "page.txt"],
        ["--record", "run", "--name", "plain"],
        ["--record", "run", "--result_dir", "."],
        ["--name", "plain", "--result_dir", "."],
        ["--run", "table3/a_h1", "--name", "plain"],
        ["--run", "table2/transformer_big", "--scale=paper", "--output_dir=o"],
    ],
)
def test_flags_of_pages_and_records_that_do_not_fit_are_refused(flags):
    assert main(["reproduce", *flags]) == 2
