"""`t2t train --warm_start_from`, as a user runs it."""

from __future__ import annotations

import json
import logging

import pytest
import tensorflow as tf

from t2t_repro.cli.main import main
from t2t_repro.training.checkpoint_paths import all_checkpoints, find_checkpoint
from t2t_repro.training.checkpoints import read_values
from tests.support.eager import train_eagerly

# One update with a learning rate so small that float32 weights near 1 do not change.
ONE_UPDATE = ["--train_steps", "1", "--average_last", "0", "--eval_sentences", "0"]
ONE_UPDATE += ["--attention_samples", "0"]


def flags_of(trained, folder, **changes):
    """Return the flags of another training run on the same data."""
    flags = list(trained.arguments)
    flags[flags.index("--output_dir") + 1] = str(folder)
    for name, value in changes.items():
        flags += [f"--{name}", value]
    return ["train", *flags, *ONE_UPDATE, "--no_final_score"]


def values_at(folder):
    return read_values(find_checkpoint(folder, "latest"), "model")


@pytest.fixture(scope="module")
def fine_tuned(trained, tmp_path_factory):
    """Train one update from the weights of the trained system."""
    folder = tmp_path_factory.mktemp("warm") / "run"
    logger = logging.getLogger("t2t_repro")
    lines = []
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())
    logger.addHandler(handler)
    with pytest.MonkeyPatch.context() as patch:
        train_eagerly(patch)
        code = main(flags_of(trained, folder, warm_start_from=str(trained.output_dir)))
    logger.removeHandler(handler)
    assert code == 0
    return folder, lines


def test_a_new_run_begins_with_the_averaged_weights(trained, fine_tuned):
    folder, lines = fine_tuned
    averaged = find_checkpoint(trained.output_dir, "averaged")
    (line,) = [line for line in lines if line.startswith("warm start from")]
    assert averaged in line
    assert "step 0, new optimizer" in line
    given, now = read_values(averaged, "model"), values_at(folder)
    # Warm-up begins with a tiny learning rate: the first update is at most that far.
    first = json.loads((folder / "metrics.jsonl").read_text().splitlines()[0])
    for name, value in given.items():
        assert abs(now[name] - value).max() <= 1.1 * first["learning_rate"]
    assert first["step"] == 1
    reader = tf.train.load_checkpoint(all_checkpoints(folder)[-1])
    (name,) = [n for n in reader.get_variable_to_shape_map() if "iteration" in n]
    assert reader.get_tensor(name) == 1  # of the optimizer


def test_a_resumed_run_does_not_begin_again(trained, fine_tuned, tmp_path, capsys):
    folder, _ = fine_tuned
    before = {name: value.tobytes() for name, value in values_at(folder).items()}
    # The recorded settings hold the flag; without further steps nothing changes.
    assert main(["train", "--output_dir", str(folder), "--no_final_score"]) == 0
    after = {name: value.tobytes() for name, value in values_at(folder).items()}
    assert after == before
    assert "warm_start_from is not read again" in capsys.readouterr().err


def test_a_run_with_other_checkpoints_is_not_begun_again(trained, capsys):
    flags = ["train", "--output_dir", str(trained.output_dir)]
    assert main([*flags, "--warm_start_from", str(trained.output_dir)]) == 1
    message = capsys.readouterr().err
    assert "has checkpoints and began with initial weights: leave it out" in message


@pytest.mark.parametrize("place", ["nothing_here", "model.ckpt-3"])
def test_a_missing_source_is_reported_first(trained, tmp_path, capsys, place):
    new = tmp_path / "new"
    flags = flags_of(trained, new, warm_start_from=str(tmp_path / place))
    assert main(flags) == 1
    assert place in capsys.readouterr().err
    assert not all_checkpoints(new)
