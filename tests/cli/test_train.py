from __future__ import annotations

import io
import json
import logging
import shlex
from pathlib import Path

import pytest
import tensorflow as tf
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from t2t_repro.cli.main import main
from t2t_repro.training.checkpoint_paths import (
    all_checkpoints,
    find_checkpoint,
    step_of,
)
from t2t_repro.training.checkpoints import read_values
from tests.support.command_lines import answers_without_tensorflow
from tests.support.eager import train_eagerly
from tests.support.trained_system import HPARAMS, printed_by, train_arguments


def on(output_dir, arguments):
    return [*arguments[:-1], str(output_dir)]


def test_the_folder_of_a_run_is_complete(trained):
    assert (trained.data_dir / "text_pairs.manifest.json").exists()
    names = {path.name for path in trained.output_dir.iterdir()}
    assert names >= {"hparams.json", "metrics.jsonl", "train", "eval", "shared.model"}
    assert names >= {"averaged", "best"}
    assert not [name for name in names if "incomplete" in name]
    steps = [step_of(path) for path in all_checkpoints(trained.output_dir)]
    assert steps == [20, 40, 60]


@pytest.mark.parametrize("command", ["decode", "evaluate"])
def test_the_next_commands_run_as_printed(trained, own_run, monkeypatch, command):
    printed = trained.printed.replace(str(trained.output_dir), str(own_run))
    (line,) = (x for x in printed.splitlines() if x.startswith(f"  t2t {command} "))
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"3 times .\n")))
    out = printed_by(shlex.split(line)[1:])
    if command == "decode":
        assert out.count("\n") == 1
    else:
        assert json.loads(out)["data"] == "test"
        assert json.loads(out)["checkpoint"].endswith("averaged/model.ckpt-60")


def test_training_draws_a_bar_on_a_terminal(own_run, monkeypatch):
    terminal = io.StringIO()
    terminal.isatty = lambda: True
    monkeypatch.setattr("sys.stderr", terminal)
    printed_by(["train", "--output_dir", str(own_run), "--no_final_score"])
    assert "60/60" in terminal.getvalue()


def test_training_learns_something(trained):
    losses = [line["loss"] for line in trained.metrics("train")]
    assert losses[-1] < losses[0] - 1.0


def test_metrics_hold_both_sides_speed_and_dev_scores(trained):
    train, dev = trained.metrics("train"), trained.metrics("eval")
    assert [line["step"] for line in train] == list(range(10, 61, 10))
    assert [line["step"] for line in dev] == [30, 60]
    assert {"loss", "nll", "learning_rate", "gradient_norm", "padding_share"} <= set(
        train[0]
    )
    assert {"source_tokens_per_second", "target_tokens_per_second"} <= set(train[0])
    assert {"nll", "perplexity", "token_accuracy", "bleu"} <= set(dev[0])


@pytest.mark.parametrize("split", ["train", "eval"])
def test_tensorboard_has_the_values_of_the_metrics(trained, split):
    events = EventAccumulator(str(trained.output_dir / split))
    events.Reload()
    own = set(trained.metrics(split)[0]) - {"split", "step", "time"}
    scalars = [
        tag.split("/")
        for tag, metadata in events.summary_metadata.items()
        if metadata.plugin_data.plugin_name == "scalars"
    ]
    assert {name for _, name in scalars} == own


def test_tensorboard_has_translations_and_attention_of_three_dev_sentences(trained):
    events = EventAccumulator(str(trained.output_dir / "eval"))
    events.Reload()
    tags = [tag for tag in events.Tags()["tensors"] if tag.startswith("attention/")]
    assert sorted(tags) == [f"attention/sentence_{number}" for number in range(3)]
    for tag in (*tags, "translations"):
        assert [event.step for event in events.Tensors(tag)] == [30, 60]


def test_a_finished_run_only_prints_its_report_again(trained, own_run):
    before = (own_run / "metrics.jsonl").read_text()
    command = ["train", *on(own_run, trained.arguments), "--train_steps", "60"]
    assert "BLEU on test (" in printed_by(command)
    assert (own_run / "metrics.jsonl").read_text() == before


def test_a_folder_that_cannot_be_created_is_reported_first(trained, tmp_path, capsys):
    (tmp_path / "file").write_text("")
    arguments = train_arguments(trained.text, tmp_path / "data", tmp_path / "file")
    assert main(["train", *arguments]) == 1
    assert "file" in capsys.readouterr().err
    assert not (tmp_path / "data").exists()


def test_a_mistyped_problem_is_named_before_a_missing_flag(capsys):
    assert main(["train", "--problem", "algoritmic_sort"]) == 2
    assert "Did you mean algorithmic_sort" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("flag", "value"),
    [
        ("--train_steps", "0"),
        ("--train_steps", "many"),
        ("--keep_checkpoint_max", "0"),
        ("--random_seed", str(2**32)),
        ("--cpu_replicas", "-1"),
        ("--xla", "perhaps"),
    ],
)
def test_a_value_out_of_range_is_refused(trained, flag, value, capsys):
    assert main(["train", *trained.arguments, flag, value]) == 2
    errors = capsys.readouterr().err
    assert flag in errors
    assert value in errors


MISTYPED = [
    (["--hparams", "hiden_size=8"], "Did you mean hidden_size"),
    (["--hparams_set", "transfomer_tiny"], "Did you mean transformer_tiny"),
    (["--model", "transfromer"], "Did you mean transformer"),
    (["--problem", "algoritmic_sort"], "Did you mean algorithmic_sort"),
    (["--train_step", "5"], "Did you mean --train_steps"),
    (["--train_source", "a"], "without --train_target"),
]


def test_mistyped_names_are_reported_without_tensorflow(tmp_path):
    flags = ["--problem", "algorithmic_sort", "--hparams_set", "transformer_tiny"]
    flags += ["--data_dir", "data", "--output_dir", "run"]
    commands = [["train", *flags, *changes] for changes, _ in MISTYPED]
    answers = answers_without_tensorflow(commands, tmp_path)
    for (code, _, errors), (_, answer) in zip(answers, MISTYPED, strict=True):
        assert (code, answer in errors) == (2, True), errors
    assert not list(tmp_path.iterdir())


# Many words on one side and one on the other give vocabularies of different sizes.
WORDS = ("house", "tree", "river", "window", "garden", "kitchen", "mountain", "street")


def text_files(folder: Path) -> list[str]:
    flags = []
    for split, count in (("train", 64), ("dev", 8)):
        sides = {
            "source": [f"{a} {b} {a}{b}" for a in WORDS for b in WORDS][:count],
            "target": ["x"] * count,
        }
        for side, lines in sides.items():
            path = folder / f"{split}.{side}"
            path.write_text("".join(f"{line}\n" for line in lines))
            flags += [f"--{split}_{side}", str(path)]
    return flags


@pytest.mark.usefixtures("eager")
def test_training_and_scoring_a_reversed_problem_swap_the_sides(tmp_path, capsys):
    # Inputs are the side of the small vocabulary: an id of the other side is outside
    # its embedding, and looking it up fails.
    code = main(
        [
            *("train", "--problem", "text_pairs_rev", *text_files(tmp_path)),
            *("--separate_vocabularies", "--vocab_size", "400", "--keep_duplicates"),
            *("--hparams_set", "transformer_tiny", "--hparams", HPARAMS),
            *("--data_dir", f"{tmp_path}/data", "--output_dir", f"{tmp_path}/run"),
            *("--train_steps", "1", "--eval_sentences", "0", "--average_last", "0"),
            *("--attention_samples", "0", "--xla", "off"),
        ]
    )
    assert code == 0
    printed = capsys.readouterr()
    assert f"\nreference    {WORDS[0]} " in printed.out
    assert "embeddings and softmax share no weights" in printed.err
    paths = {name for name, _ in tf.train.list_variables(str(tmp_path / "run"))}
    assert [name for name in paths if "source_embedding" in name]
    assert not [name for name in paths if "shared_embedding" in name]


# One update with a learning rate so small that float32 weights near 1 do not change.
ONE_UPDATE = ["--train_steps", "1", "--average_last", "0", "--no_final_score"]
ONE_UPDATE += ["--eval_sentences", "0", "--attention_samples", "0"]


def warm_start(trained, folder, source):
    flags = [*on(folder, trained.arguments), "--warm_start_from", str(source)]
    return ["train", *flags, *ONE_UPDATE]


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
        code = main(warm_start(trained, folder, trained.output_dir))
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
    assert main(warm_start(trained, new, tmp_path / place)) == 1
    assert place in capsys.readouterr().err
    assert not all_checkpoints(new)
