"""A user's package watches a training run, and is imported only with consent."""

from __future__ import annotations

import json
import sys
import textwrap

import pytest

from t2t_repro import registry
from t2t_repro.cli.main import main
from t2t_repro.runs import System
from t2t_repro.runs.run import RUN_FILE
from tests.runs.test_run import make_run


@pytest.fixture
def package(tmp_path):
    """A package that writes what its monitor and its evaluator receive."""
    folder = tmp_path / "watching_package"
    folder.mkdir()
    received = tmp_path / "received.jsonl"
    (folder / "__init__.py").write_text(
        textwrap.dedent(
            f"""
            import json
            from t2t_repro.registry import register_evaluator, register_monitor

            def write(*values):
                with open({str(received)!r}, "a") as file:
                    file.write(json.dumps(values) + "\\n")

            @register_monitor
            def recorder(training):
                steps = training.settings.train_steps
                write("start", steps, training.data.problem.name)
                return lambda split, step, metrics: write(split, step, dict(metrics))

            @register_evaluator
            def weights(training):
                return lambda step, log: {{"weights": len(training.model.weights)}}
            """
        )
    )
    with registry.monitors.isolated(), registry.evaluators.isolated():
        yield folder, received
    sys.modules.pop("watching_package", None)


def test_a_package_receives_metrics_and_adds_its_own(package, trained, tmp_path, eager):
    folder, received = package
    arguments = [*trained.arguments[:-1], str(tmp_path / "run")]
    how_often = ["--log_step_count_steps", "1", "--local_eval_frequency", "2"]
    quick = ["--eval_sentences", "0", "--attention_samples", "0", "--no_final_score"]
    flags = [*arguments, *how_often, *quick, "--t2t_usr_dir", str(folder)]
    assert main(["train", *flags, "--train_steps", "2"]) == 0
    start, *lines = map(json.loads, received.read_text().splitlines())
    assert start == ["start", 2, "text_pairs"]
    written = [
        json.loads(line)
        for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()
    ]
    assert [line[:2] for line in lines] == [[x["split"], x["step"]] for x in written]
    for (_, _, metrics), line in zip(lines, written, strict=True):
        assert metrics == {name: line[name] for name in metrics}
    evaluated = {x["step"]: x for x in written if x["split"] == "eval"}
    assert evaluated[2]["weights"] > 10


COMMANDS = {
    "decode": ("--decode_from_file", "{run}/pairs"),
    "decode --engine ctranslate2": ("--decode_from_file", "{run}/pairs"),
    "score": ("--source", "{run}/pairs", "--target", "{run}/pairs"),
    "evaluate": (),
    "attention": ("--source", "1 2", "--html", "{run}/page.html"),
    "average": (),
    "export": ("--export_dir", "{run}/export"),
    "train": (),
    "plan": (),
}


@pytest.fixture
def foreign(tmp_path, monkeypatch):
    """Return a run with a package in its own folder, which leaves a mark."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)
    package = tmp_path / "run" / "foreign_package"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(
        f"open({str(tmp_path / 'mark')!r}, 'w').close()\n"
    )
    (tmp_path / "run" / "pairs").write_text("1\n")
    make_run(usr_dir="run/foreign_package").save(tmp_path / "run")
    with registry.problems.isolated():
        yield tmp_path / "run"
    sys.modules.pop("foreign_package", None)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_run_does_not_run_its_package(foreign, capsys, command):
    flags = [flag.format(run=foreign) for flag in COMMANDS[command]]
    words = [*command.split(), "--output_dir", str(foreign), *flags]
    assert main(words) == 1
    error = capsys.readouterr().err
    assert str(foreign / "foreign_package") in error
    assert RUN_FILE in error
    assert "--t2t_usr_dir" in error
    assert not (foreign.parent / "mark").exists()


def test_the_flag_is_consent_and_is_remembered(foreign, capsys):
    package = str(foreign / "foreign_package")
    flags = ["average", "--output_dir", str(foreign)]
    assert main([*flags, "--t2t_usr_dir", package]) == 1
    assert "no checkpoint" in capsys.readouterr().err
    mark = foreign.parent / "mark"
    assert mark.exists()
    mark.unlink()
    del sys.modules["foreign_package"]  # as in a new process
    assert main(flags) == 1
    assert "no checkpoint" in capsys.readouterr().err
    assert mark.exists()


def test_a_package_that_cannot_be_imported_is_not_remembered(foreign, capsys):
    package = foreign / "foreign_package"
    (package / "__init__.py").write_text("1 / 0")
    assert main(["list", "--t2t_usr_dir", str(package)]) == 1
    assert "ZeroDivisionError" in capsys.readouterr().err
    assert main(["average", "--output_dir", str(foreign)]) == 1
    assert "--t2t_usr_dir" in capsys.readouterr().err


def test_an_argument_is_consent_in_python(foreign):
    with pytest.raises(Exception, match="t2t_usr_dir"):
        System.load(foreign)
    with pytest.raises(Exception, match="no latest checkpoint"):
        System.load(foreign, t2t_usr_dir=foreign / "foreign_package")
    assert (foreign.parent / "mark").exists()
