"""Resume a run: optional flags, flags that must agree, and refusals."""

from __future__ import annotations

import json
import re
import shutil
import signal

import pytest

from t2t_repro import registry
from t2t_repro.cli.main import main
from t2t_repro.runs.run import RUN_FILE, Run
from t2t_repro.training.checkpoint_paths import all_checkpoints, step_of
from t2t_repro.user_packages import remember
from tests.support.trained_system import HPARAMS, printed_by

# Without what most tests here do not look at, and which takes most of the time.
QUICK = ["--eval_sentences", "0", "--attention_samples", "0"]
QUICK += ["--average_last", "0", "--no_final_score"]


def describe(run, **changes):
    """Change the description of a run."""
    description = json.loads((run / RUN_FILE).read_text())
    (run / RUN_FILE).write_text(json.dumps(description | changes))


def last_step(folder):
    return step_of(all_checkpoints(folder)[-1])


@pytest.mark.usefixtures("eager")
def test_the_output_folder_alone_finishes_the_run(own_run, capsys):
    for path in own_run.glob("model.ckpt-60*"):
        path.unlink()
    recorded = Run.load_existing(own_run).training
    changed = {"train_steps": 43, "log_step_count_steps": 2}
    describe(own_run, training=recorded | changed)
    printed_by(["train", "--output_dir", str(own_run), *QUICK])
    assert "resuming from step 40" in capsys.readouterr().err
    assert last_step(own_run) == 43
    lines = (own_run / "metrics.jsonl").read_text().splitlines()
    steps = [json.loads(line)["step"] for line in lines]
    assert steps.count(42) == 1  # log_step_count_steps is remembered


@pytest.mark.usefixtures("eager")
def test_a_stopped_training_is_saved_and_exits_with_its_signal(own_run, capsys):
    flags = ["--train_steps", "1000000", "--log_step_count_steps", "1", *QUICK]
    signals = [signal.SIGINT]
    with registry.monitors.isolated():

        @registry.register_monitor
        def stop(training):
            # A second signal would end it at once.
            return lambda split, step, metrics: (
                signals and signal.raise_signal(signals.pop())
            )

        assert main(["train", "--output_dir", str(own_run), *flags]) == 130
    printed = capsys.readouterr()
    assert printed.out == ""
    (step,) = re.findall(r"stopped at step (\d+) of 1000000; `t2t train", printed.err)
    assert last_step(own_run) == int(step)


@pytest.mark.parametrize(
    ("flags", "answer"),
    [
        (["--problem", "algorithmic_sort"], "problem is 'text_pairs' there"),
        (["--hparams", HPARAMS.replace("=32,f", "=48,f")], "hidden_size is 32 there"),
        # Only overrides that disagree are named.
        (["--hparams", "filter_size=48"], "filter_size is 32 there, 48 now.\n"),
        (["--hparams_set", "transformer_multi30k"], "hparams_set is"),
    ],
)
def test_a_flag_that_disagrees_with_the_run_is_refused(own_run, flags, answer, capsys):
    command = ["train", "--output_dir", str(own_run), "--train_steps", "70", *flags]
    assert main(command) == 1
    assert answer in capsys.readouterr().err
    assert last_step(own_run) == 60


def test_a_mistyped_folder_does_not_start_the_demonstration(tmp_path, capsys):
    assert main(["train", "--output_dir", str(tmp_path / "rum")]) == 2
    assert "has no run to resume" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_the_new_place_of_moved_data_is_remembered(trained, own_run, tmp_path, capsys):
    moved = shutil.copytree(trained.data_dir, tmp_path / "moved")
    describe(own_run, data_dir=str(tmp_path / "gone"))
    command = ["train", "--output_dir", str(own_run), *QUICK]
    assert main(command) == 1
    assert f"the data folder {tmp_path / 'gone'}, recorded" in capsys.readouterr().err
    printed_by([*command, "--data_dir", str(moved)])
    assert Run.load_existing(own_run).data_dir == str(moved)


@pytest.mark.parametrize(
    "damage",
    [
        {"training": None},
        {"training": {"foo": 1}},
        {"training": {"train_steps": "many"}},
        {"tokenizers": {}},
    ],
)
def test_odd_content_of_the_runs_file_is_a_line_with_its_name(own_run, capsys, damage):
    describe(own_run, **damage)
    assert main(["train", "--output_dir", str(own_run)]) == 1
    assert str(own_run / RUN_FILE) in capsys.readouterr().err


def test_a_package_that_has_moved_is_named(own_run, tmp_path, capsys):
    describe(own_run, usr_dir=str(tmp_path / "moved"))
    assert main(["average", "--output_dir", str(own_run), "--last", "2"]) == 1
    errors = capsys.readouterr().err
    assert f"the run needs the package {tmp_path / 'moved'}" in errors
    assert "give its new folder as t2t_usr_dir" in errors


def test_a_resumed_run_knows_the_problem_of_its_package(own_run, tmp_path, capsys):
    package = tmp_path / "resumed_package"
    package.mkdir()
    (package / "__init__.py").write_text(
        "from t2t_repro.data.problem import Problem\n"
        "from t2t_repro.registry import register_problem\n"
        "@register_problem\n"
        "class EchoOfAPackage(Problem):\n"
        "    def pairs(self, split, tmp_dir):\n"
        "        return iter(())\n"
    )
    describe(own_run, usr_dir=str(package), problem="echo_of_a_package")
    remember(package)
    with registry.problems.isolated():
        assert main(["train", "--output_dir", str(own_run), "--train_steps", "61"]) == 1
    errors = capsys.readouterr().err
    assert "unknown problem" not in errors
    assert "echo_of_a_package" in errors


def test_a_problem_without_a_folder_does_not_resume_the_demonstration(
    own_run, tmp_path, capsys, monkeypatch
):
    (tmp_path / "t2t_demo").mkdir()
    own_run.rename(tmp_path / "t2t_demo" / "run")
    monkeypatch.chdir(tmp_path)
    flags = ["--hparams_set", "transformer_tiny", "--data_dir", "data"]
    assert main(["train", "--problem", "algorithmic_sort", *flags]) == 2
    assert "--output_dir is missing" in capsys.readouterr().err
