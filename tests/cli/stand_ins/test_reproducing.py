"""Every flag of `t2t reproduce` reaches the report or the run; all values differ."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from t2t_repro import catalogue
from t2t_repro.cli.main import main
from t2t_repro.features.reproduction import command_reproduce as reproduce
from t2t_repro.features.reproduction.paper_tables import TABLES
from t2t_repro.features.reproduction.result_files import shipped_course
from t2t_repro.features.reproduction.row_plan import RunFolders
from tests.support.recorder import record


class Reports:
    """Stand-ins for the functions that make and write reports."""

    def __init__(self, monkeypatch):
        self.results = record(
            monkeypatch, reproduce, "results_with", lambda place: f"results in {place}"
        )
        self.compared = record(
            monkeypatch,
            reproduce,
            "comparison_report",
            lambda table, *_: f"report of {table.name}",
        )
        self.one = record(monkeypatch, reproduce, "write_report", "one report")
        self.many = record(monkeypatch, reproduce, "write_reports", "all reports")


@pytest.fixture
def reports(monkeypatch):
    return Reports(monkeypatch)


@pytest.mark.parametrize(
    ("flags", "form", "place"),
    [
        ([], "text", None),
        (["--format", "markdown", "--result_dir", "folder"], "markdown", "folder"),
    ],
)
def test_a_table_is_compared_with_results_and_written_in_its_form(
    reports, capsys, flags, form, place
):
    assert main(["reproduce", "table3", *flags]) == 0
    call = reports.compared.call
    assert call["table"].name == "table3"
    assert [*call.values()][1:] == [
        catalogue.hparams,
        f"results in {place}",
        shipped_course(),
    ]
    assert [*reports.one.call.values()] == ["report of table3", form]
    assert capsys.readouterr().out == "one report\n"


def test_all_tables_are_compared_with_the_same_results(reports, capsys):
    flags = ["--format", "json", "--result_dir", "folder"]
    assert main(["reproduce", "all", *flags]) == 0
    names = [table.name for table in TABLES]
    assert [call["table"].name for call in reports.compared.calls] == names
    expected = [[f"report of {name}" for name in names], "json"]
    assert [*reports.many.call.values()] == expected
    assert {call for each in reports.results.calls for call in each.values()} == {
        "folder"
    }
    assert capsys.readouterr().out == "all reports\n"


@pytest.mark.parametrize("plot", [None, "times.png"])
def test_the_first_table_is_measured_and_drawn_on_request(
    reports, monkeypatch, tmp_path, plot
):
    from t2t_repro.features.reproduction import complexity_report as table1

    monkeypatch.chdir(tmp_path)
    kinds = record(monkeypatch, table1, "layers_of", ["a", "b", "c"])

    def measure(kinds, advance):
        advance(len(kinds))
        return "measurements"

    measured = record(monkeypatch, table1, "measure_layers", measure)
    written = record(monkeypatch, table1, "complexity_report", "complexity")
    checked = record(monkeypatch, reproduce, "check_plot")  # it needs matplotlib
    drawn = record(monkeypatch, reproduce, "plot_complexity")
    flags = [] if plot is None else ["--plot", plot]
    assert main(["reproduce", "table1/recurrent", *flags, "--format", "json"]) == 0
    (table,) = kinds.call.values()
    assert [row.name for row in table.rows] == ["recurrent"]
    assert next(iter(measured.call.values())) == ["a", "b", "c"]
    assert [*written.call.values()] == [table, "measurements"]
    assert [*reports.one.call.values()] == ["complexity", "json"]
    plots = [[*call.values()] for call in drawn.calls]
    assert plots == ([] if plot is None else [["measurements", plot]])
    checks = [[*call.values()] for call in checked.calls]
    assert checks == ([] if plot is None else [[plot]])


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
        "seed": "17",
        "text_dir": str(tmp_path / "text"),
        "data_dir": "data",
        "output_dir": "out",
        "result_dir": str(tmp_path / "results"),
    }
    given = [f"--{name}={value}" for name, value in flags.items()]
    assert main(["reproduce", "--run", "table3/a_h1", *given]) == 0
    ((plan, folders),) = ran
    assert (plan.scale, plan.seed) == ("small", 17)
    assert [row.name for row in plan.rows] == ["a_h1"]
    assert folders == RunFolders(
        data_dir=Path("data"),
        output_dir=Path("out"),
        text_dir=tmp_path / "text",
        result_dir=tmp_path / "results",
    )
    assert capsys.readouterr().out == "a.json\nb.json\n"


def test_a_seed_of_zero_is_a_seed(ran):
    flags = ["--text_dir=.", "--data_dir=d", "--output_dir=o", "--seed=0"]
    assert main(["reproduce", "--run", "table3/a_h1", *flags]) == 0
    assert ran[0][0].seed == 0


@pytest.mark.parametrize(
    ("folder", "missing"), [("--data_dir=d", "output_dir"), ("--output_dir=o", "data")]
)
def test_the_papers_recipe_needs_both_folders_or_none(ran, capsys, folder, missing):
    row = ["reproduce", "--run", "table2/transformer_big", "--scale=paper"]
    assert main([*row, folder]) == 2
    assert f"--{missing}" in capsys.readouterr().err
    assert main(row) == 0
    assert capsys.readouterr().out.startswith("t2t train ")
    assert ran == []


def test_a_run_is_small_by_default_and_its_folders_are_checked_first(ran, capsys):
    flags = ["--text_dir=.", "--data_dir=d", "--output_dir=o"]
    row = ["reproduce", "--run", "table3/a_h1", *flags]
    assert main([*row, "--result_dir=nowhere"]) == 1
    assert "nowhere" in capsys.readouterr().err
    assert ran == []
    assert main(row) == 0
    assert ran[0][0].scale == "small"


@pytest.mark.parametrize(
    "flags",
    [
        ["table3", "--seed", "3"],
        ["table3", "--plot", "times.png"],
        ["--format", "json"],
        ["table1", "--plot", "times.unknown"],
        ["table3", "--page", "page.md"],
        ["--page", "page.md", "--seed", "3"],
        ["--page", "page.txt"],
        ["--record", "run", "--name", "plain"],
        ["--record", "run", "--result_dir", "."],
        ["--name", "plain", "--result_dir", "."],
        ["--record", "run", "--name", "n", "--result_dir", ".", "--page", "p.md"],
        ["--run", "table3/a_h1", "--name", "plain"],
    ],
)
def test_flags_that_do_not_belong_to_a_table_are_refused(reports, flags):
    assert main(["reproduce", *flags]) == 2
    assert reports.compared.calls == []


def test_the_page_is_written_with_the_results_of_a_folder(reports, monkeypatch, capsys):
    pytest.importorskip("scipy", reason="the extra `results` is not installed")
    from results import pages, request

    checked = record(monkeypatch, request, "check_page")
    paths = [Path("figures/a.svg"), Path("page.md")]
    written = record(monkeypatch, pages, "write_pages", paths)
    flags = ["--page", "page.md", "--result_dir", "folder"]
    assert main(["reproduce", *flags]) == 0
    assert [*checked.call.values()] == ["page.md"]
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
