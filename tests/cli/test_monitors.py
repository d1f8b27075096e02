"""A user's package watches a training run."""

from __future__ import annotations

import json
import sys
import textwrap

import pytest

from t2t_repro import registry
from t2t_repro.cli.main import main


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


def test_a_package_receives_every_line_of_metrics_and_adds_its_own(
    package, trained, tmp_path, eager
):
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
