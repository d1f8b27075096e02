from __future__ import annotations

import importlib.util
import json
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from t2t_repro import _checkout
from t2t_repro.cli.main import main
from t2t_repro.features.parsing.tree_problem import ParsingProblem
from t2t_repro.features.reproduction import command_reproduce as reproduce
from t2t_repro.features.reproduction import complexity_report, recipes
from t2t_repro.features.reproduction.paper_tables import find_row
from t2t_repro.features.reproduction.recipes import PARSING, TRANSLATION
from t2t_repro.features.reproduction.row_plan import RunFolders, plan_of
from tests.support.recorder import record
from tests.support.result import RESULT
from tests.support.trained_system import HPARAMS, sentence_pairs

NAMES = [
    *("table1", "table2", "table3", "table4", "aop", "weighted", "sensitivity"),
    *("randomisation", "enfr", "attention", "branches", "forms", "dropout"),
    *("positions", "text"),
]


def test_without_a_table_all_tables_are_listed(capsys):
    assert main(["reproduce"]) == 0
    names = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert names == NAMES


def test_a_single_row_is_shown(capsys):
    assert main(["reproduce", "table3/a_h1"]) == 0
    printed = capsys.readouterr().out
    assert "5.29" in printed
    assert "5.00" not in printed


def test_a_single_row_is_compared_on_the_split_of_its_table(capsys):
    assert main(["reproduce", "weighted/transformer_small"]) == 0
    printed = capsys.readouterr().out
    # newstest2014, not newstest2013.
    assert "small, BLEU (test): standard deviation" in printed
    assert "small, BLEU (dev): standard deviation" not in printed


@pytest.mark.parametrize(
    ("what", "answer"),
    [
        ("table33", "Did you mean table3"),
        ("table3/a_h2", "Did you mean a_h"),
        ("weigthed", "Did you mean weighted"),
    ],
)
def test_a_mistyped_name_is_answered_with_the_closest_name(what, answer, capsys):
    assert main(["reproduce", what]) == 2
    assert answer in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "answer"),
    [
        (["--run", "table3"], "expected TABLE/ROW"),
        (["--run", "table2/bytenet"], "published only"),
        (["--run", "table3/a_h1"], "--data_dir is missing"),
        (
            ["--run", "table3/a_h1", "--data_dir=d", "--output_dir=o"],
            "text_dir is missing: scale=small",
        ),
        (
            ["--run", "table4/transformer_4_layers_wsj_only", "--scale", "paper"],
            "does not give the number of training steps",
        ),
        (["--run", "table3/a_h1", "--scale=paper", "--data_dir=d"], "--output_dir is"),
        (["--run", "table1/recurrent"], "`t2t reproduce table1/recurrent` measures"),
        (["--run", "table3/a_h1", "--seed", "-1"], "argument --seed: received '-1'"),
        (["table3", "--run", "table3/a_h1"], "received --run and a table"),
        (
            ["--run", "table3/a_h1", "--format", "json"],
            "--format has no effect with --run: leave it out",
        ),
        (["--page", "p.md", "--record", "run"], "received --record and --page, exp"),
        (["--format", "json"], "--format needs a table"),
        (["table1", "--result_dir", "."], "--result_dir needs a table with scores"),
        (["table3", "--format", "xml"], "invalid choice: 'xml'"),
        (["table3", "--scale", "paper"], "--scale needs --run"),
        (["table3", "--plot", "x.png"], "--plot needs table1"),
        (["table1", "--plot", "x.xyz"], "expected a file name in .png, .pdf, .svg"),
        (["--page", "page.txt"], "expected a file name in .md"),
        (
            ["--page", "page.md", "--seed", "3"],
            "--seed has no effect with --page: leave it out",
        ),
        (["--record", "run", "--name", "plain"], "--result_dir is missing"),
        (["--record", "run", "--result_dir", "."], "--name is missing"),
        (["--name", "plain", "--result_dir", "."], "--record is missing"),
        (
            ["--run", "table3/a_h1", "--name", "plain"],
            "--name has no effect with --run: leave it out",
        ),
        (
            ["--run", "table2/transformer_big", "--scale=paper", "--output_dir=o"],
            "--data_dir is missing: --scale paper needs it",
        ),
    ],
)
def test_flags_that_cannot_be_combined_are_refused(arguments, answer, capsys):
    assert main(["reproduce", *arguments]) == 2
    assert answer in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        ["table1", "--plot", "nowhere/x.png"],
        ["--page", "nowhere/page.md"],
        ["table3", "--result_dir", "nowhere"],
        [
            *("--run", "table3/a_h1", "--text_dir", ".", "--data_dir", "d"),
            *("--output_dir", "o", "--result_dir", "nowhere"),
        ],
    ],
)
def test_a_missing_folder_is_reported_before_any_work(arguments, capsys):
    assert main(["reproduce", *arguments]) == 1
    assert "nowhere" in capsys.readouterr().err


@pytest.mark.parametrize(
    "missing", [["matplotlib"], ["scipy"], ["matplotlib", "scipy"]]
)
def test_a_missing_package_is_named_with_how_to_install_it(
    missing, monkeypatch, capsys
):
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name in missing else name
    )
    assert main(["reproduce", "--page", "page.md"]) == 2
    answer = f"--page needs {' and '.join(missing)}, not installed here: pip install"
    assert answer in capsys.readouterr().err


@pytest.mark.parametrize("flag", ["--page", "--record"])
def test_pages_and_records_of_results_need_a_checkout(
    flag, tmp_path, monkeypatch, capsys
):
    installed = tmp_path / "site-packages" / "t2t_repro"
    monkeypatch.setattr(_checkout, "_PACKAGE", installed)
    others = {"--page": [], "--record": ["--name=plain", "--result_dir=."]}
    assert main(["reproduce", flag, str(tmp_path / "page.md"), *others[flag]]) == 2
    assert f"{flag} needs a checkout of the repository" in capsys.readouterr().err


def test_without_folders_the_papers_recipe_is_shown(capsys):
    row = "table2/transformer_big"
    assert main(["reproduce", "--run", row, "--scale", "paper", "--seed", "7"]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed == plan_of(*find_row(row), "paper", 7).commands()


def test_json_and_markdown_are_printed_on_request(capsys):
    assert main(["reproduce", "table3/a_h1", "--format", "json"]) == 0
    data = json.loads(capsys.readouterr().out)
    # A line per scale at which the row is measured.
    assert {line["row"] for line in data["lines"]} == {"a_h1"}
    assert main(["reproduce", "all", "--format", "json"]) == 0
    names = [data["table"] for data in json.loads(capsys.readouterr().out)]
    assert names == NAMES
    assert main(["reproduce", "table3", "--format", "markdown"]) == 0
    assert "| a_h4 | (A) h=4 | 5.00 | 25.5 |" in capsys.readouterr().out


def test_results_of_a_folder_are_shown_with_the_packages(tmp_path, capsys):
    own = replace(
        RESULT, system="weighted_transformer_big", scores={"BLEU (dev)": 12.25}
    )
    own.save(tmp_path)
    assert main(["reproduce", "sensitivity/big", "--result_dir", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert "12.25" in printed
    assert "12.94" in printed  # the package's, of the plain one


def test_the_first_table_is_drawn_on_request(monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    record(monkeypatch, complexity_report, "measure_layers", "measurements")
    record(monkeypatch, complexity_report, "complexity_report", "complexity")
    record(monkeypatch, reproduce, "write_report", "one report")
    # It needs matplotlib.
    checked = record(monkeypatch, reproduce, "check_file")
    drawn = record(monkeypatch, complexity_report, "plot_complexity")
    assert main(["reproduce", "table1/recurrent", "--plot", "times.png"]) == 0
    assert [*drawn.call.values()] == ["measurements", "times.png"]
    assert checked.call["path"] == "times.png"
    assert capsys.readouterr().out == "one report\n"


@pytest.fixture
def ran(monkeypatch):
    """Record the plans and folders of runs."""
    seen = []

    def run_row(plan, folders):
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


@pytest.fixture
def no_samples(monkeypatch):
    """Translate and show nothing while a row is trained."""
    from t2t_repro.features.reproduction import run_row

    made = run_row.train_settings
    none = {"eval_sentences": 0, "attention_samples": 0}
    monkeypatch.setattr(
        run_row, "train_settings", lambda *given: replace(made(*given), **none)
    )


@pytest.fixture
def small(tmp_path, monkeypatch):
    """Return the command of a small run of two steps, without the name of its row.

    The names of its folders also occur in flags and settings.
    """
    monkeypatch.chdir(tmp_path)
    pairs = sentence_pairs()
    for name, own in (
        ("train", pairs * 4),
        ("val", pairs[::9]),
        ("test2016", pairs[4::9]),
    ):
        for side, suffix in enumerate(("en", "de")):
            text = "".join(f"{pair[side]}\n" for pair in own)
            (tmp_path / f"{name}.{suffix}").write_text(text)
    tiny = replace(TRANSLATION, train_steps=2, vocab_size=350)
    monkeypatch.setattr(recipes, "TRANSLATION", tiny)
    # Two batch shapes and narrow layers compile in seconds.
    monkeypatch.setattr(recipes, "WIDTH_DIVISOR", 32)
    longest = recipes._TRAINING["max_length"]
    monkeypatch.setitem(recipes._TRAINING, "min_length_bucket", longest - 1)
    return ["reproduce", "--text_dir=.", "--data_dir=data", "--output_dir=o", "--run"]


@pytest.mark.usefixtures("eager", "no_samples")
def test_a_small_run_writes_a_result_file(small, tmp_path, capsys):
    assert main([*small, "table3/a_h1", "--seed", "3"]) == 0
    (path,) = capsys.readouterr().out.splitlines()
    result = json.loads((tmp_path / path).read_text())
    assert result["system"] == "transformer_base_a_h1"
    assert (result["seed"], result["scale"]) == (3, "small")
    assert "tok:13a" in result["signature"]
    assert str(tmp_path) not in json.dumps(result)
    assert (
        result["commands"] == plan_of(*find_row("table3/a_h1"), "small", 3).commands()
    )
    assert len(result["data"]["train.en"]) == 64
    assert (tmp_path / "o" / "test.transformer_base_a_h1.txt").exists()
    scores = {"BLEU (dev)", "BLEU (test)", "perplexity (dev)"}
    assert set(result["scores"]) == scores


def test_table_1_is_measured(monkeypatch, capsys):
    from t2t_repro.features.reproduction import layer_complexity
    from t2t_repro.features.reproduction.layer_complexity import Sizes

    monkeypatch.setattr(layer_complexity, "DEPTH_LENGTHS", (4,))
    monkeypatch.setattr(layer_complexity, "PATH_LENGTHS", (5,))
    small = [
        replace(kind, sizes=Sizes((8, 16), (4, 8), 8))
        for kind in layer_complexity.SEQUENCE_LAYERS
    ]
    monkeypatch.setattr(layer_complexity, "SEQUENCE_LAYERS", small)
    assert main(["reproduce", "table1/self_attention"]) == 0
    printed = capsys.readouterr().out
    orders, counts = [x for x in printed.splitlines() if x.startswith("self_att")]
    assert "O(n^2 d)" in orders
    assert "nan" not in orders
    assert "n 8-16; d 4-8" in counts


@pytest.mark.usefixtures("eager", "no_samples")
def test_a_parser_is_trained_and_scored_at_the_small_scale(
    tmp_path, monkeypatch, capsys
):
    for name in PARSING.file_names:
        (tmp_path / name).write_text("(S (NP (NN a)) (VP (VB b)) (. .))\n" * 40)
    short = {"beam_size": 2, "extra_length": 9}
    search = ParsingProblem.decode_defaults | short
    monkeypatch.setattr(ParsingProblem, "decode_defaults", search)
    tiny = replace(
        PARSING,
        train_steps=2,
        vocab_size=300,
        hparams_set="transformer_tiny",
        hparams=HPARAMS,
    )
    monkeypatch.setitem(recipes.PARSERS, "transformer_parsing_wsj", tiny)
    places = [f"--{p}={tmp_path / p}" for p in ("data_dir", "output_dir")]
    row = "table4/transformer_4_layers_wsj_only"
    assert main(["reproduce", "--run", row, f"--text_dir={tmp_path}", *places]) == 0
    path = capsys.readouterr().out.strip()
    result = json.loads((tmp_path / path).read_text())
    assert set(result["scores"]) == {
        "F1 (dev)",
        "F1 up to 40 words (dev)",
        "F1, 1 to 10 words (dev)",
        "% repaired (dev)",
    }
    # A model cannot learn to write trees in two steps.
    assert result["scores"]["% repaired (dev)"] == 100
    assert result["signature"] == ""
    assert "--checkpoint_path averaged" in result["commands"][1]
