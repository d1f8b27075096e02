"""`t2t plan` as a user runs it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from t2t_repro.training.checkpoint_paths import all_checkpoints
from tests.support.command_lines import answers_without_tensorflow
from tests.support.trained_system import printed_by

pytestmark = pytest.mark.usefixtures("without_xla")


def test_a_plan_needs_no_data_and_no_tensorflow(tmp_path):
    command = ["plan", "--problem", "translate_ende_wmt14"]
    command += ["--hparams_set", "transformer_base"]
    ((code, printed, _),) = answers_without_tensorflow([command], tmp_path)
    assert code == 0
    # Table 3 of the paper: base has 65 million parameters, rounded.
    assert "parameters     63,045,632" in printed
    assert list(tmp_path.iterdir()) == []


def test_the_plan_of_a_run_agrees_with_its_model_and_its_files(trained):
    plan = json.loads(
        printed_by(
            ["plan", "--output_dir", str(trained.output_dir), "--output_format", "json"]
        )
    )
    data = next(iter(all_checkpoints(trained.output_dir)))
    size = sum(f.stat().st_size for f in Path(data).parent.glob(f"{Path(data).name}.*"))
    assert plan["disk"]["checkpoint"] == pytest.approx(size, rel=0.1)
    # 256 pairs of one shape: 512 // 32 = 16 pairs per batch.
    assert plan["epochs"]["steps_per_epoch"] == 16
    assert plan["epochs"]["epochs"] == 60 / 16
    # The training run was in its fourth epoch at the end.
    assert trained.metrics("train")[-1]["epoch"] == 3
    assert plan["timing"] is None


def test_the_flags_of_a_training_give_its_plan(trained):
    flags = [*trained.arguments, "--train_steps", "77", "--cpu_replicas", "2"]
    new = trained.output_dir.with_name("planned")
    flags[flags.index("--output_dir") + 1] = str(new)
    text = printed_by(["plan", *flags])
    assert "2 replicas x 512 tokens x 1 micro-batch" in text
    assert "77" in text
    assert "not timed" in text
    assert "3 replicas" in printed_by(["plan", *flags, "--replicas", "3"])
    assert not new.exists()


@pytest.mark.usefixtures("eager")
def test_timed_steps_give_hours(trained):
    flags = ["--output_dir", str(trained.output_dir), "--xla", "off"]
    plan = json.loads(
        printed_by(["plan", *flags, "--time_steps", "2", "--output_format", "json"])
    )
    timing = plan["timing"]
    assert (timing["rows"], timing["length"], timing["steps"]) == (16, 32, 2)
    hours = 60 * timing["seconds_per_step"] / 3600
    assert timing["hours"] == pytest.approx(hours)
    tokens = 16 * 32 / timing["seconds_per_step"]
    assert timing["target_tokens_per_second"] == pytest.approx(tokens)
