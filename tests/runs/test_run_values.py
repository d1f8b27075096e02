"""Every value of a run is recorded, compared and used under its own name."""

from __future__ import annotations

import dataclasses
import sys
from types import SimpleNamespace

import pytest

from t2t_repro import catalogue
from t2t_repro.errors import UserError
from t2t_repro.features.parsing.tree_problem import ParsingProblem
from t2t_repro.models.token_counters import TokenCounter, TokenCounters
from t2t_repro.models.transformer import Transformer
from t2t_repro.runs import TrainSettings
from t2t_repro.runs.run import Run, loop_settings, save_tokenizers
from t2t_repro.text import SymbolTokenizer
from t2t_repro.user_packages import remember
from tests.runs.test_run import DIGITS, LETTERS, make_run
from tests.support.recorder import Recorder, record

SETTINGS = TrainSettings(
    output_dir="folder",
    hparams_set="transformer_base",
    model="another",
    random_seed=11,
    train_steps=170,
    log_step_count_steps=3,
    local_eval_frequency=7,
    eval_sentences=5,
    bleu_tokenizer="intl",
    save_checkpoints_steps=9,
    save_checkpoints_secs=4000.0,
    keep_checkpoint_max=12,
    average_last=6,
    decode_hparams="beam_size=3",
    max_skipped_updates=13,
    spike_factor=6.5,
    max_rollbacks=2,
    keep_best=8,
    early_stopping_patience=14,
    cpu_replicas=4,
    cluster="slurm",
    xla="off",
    deterministic=True,
    try_largest_batch="off",
    t2t_usr_dir="/package",
)
OVERRIDES = {"filter_size=48", "label_smoothing=0.25"}


def described(**changes):
    values = {
        "hparams": catalogue.hparams("transformer_base").parse(",".join(OVERRIDES)),
        "hparams_set": "transformer_base",
        "model": "another",
        "random_seed": 11,
        "usr_dir": "/package",
        "training": loop_settings(SETTINGS),
    }
    return make_run(**(values | changes))


def test_the_settings_of_a_training_are_those_it_was_begun_with():
    settings = described().train_settings("folder")
    assert settings.replace(hparams="") == SETTINGS
    assert set(settings.hparams.split(",")) == OVERRIDES


def test_only_overrides_of_the_user_are_settings_of_a_training():
    hparams = catalogue.hparams("transformer_base").resolved()
    assert described(hparams=hparams).train_settings("folder").hparams == ""


def test_a_run_with_every_value_unlike_the_defaults_is_read_as_written(tmp_path):
    run = described(
        num_replicas=3,
        data_digest="the digest",
        tokenizers={"inputs": "a", "targets": "b"},
        versions={"keras": "1.0"},
    )
    run.save(tmp_path)
    assert dataclasses.asdict(Run.load(tmp_path)) == dataclasses.asdict(run)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("problem", "algorithmic_sort"),
        ("model", "another"),
        ("hparams_set", "transformer_base"),
        ("random_seed", 2),
        ("num_replicas", 2),
        ("data_digest", "4567"),
    ],
)
def test_a_run_is_not_resumed_with_another_value(tmp_path, name, value):
    other = make_run(**{name: value})
    with pytest.raises(
        UserError, match=rf"{name} is .* there, {value!r} now"
    ) as raised:
        make_run().check_resumable(other, tmp_path)
    # The weights are not lost.
    assert f"warm_start_from={tmp_path}" in str(raised.value)


def test_what_may_change_is_not_compared(tmp_path):
    other = make_run(
        data_dir="/other",
        usr_dir="/package",
        tokenizers={"inputs": "a", "targets": "b"},
        training={"train_steps": 9},
        versions={},
    )
    make_run().check_resumable(other, tmp_path)


@pytest.mark.parametrize(
    ("given", "recorded", "package"),
    [
        (None, None, None),
        ("given", None, "given"),
        (None, "recorded", "recorded"),
        ("given", "recorded", "given"),
        # What is given is checked where it is loaded.
        ("nowhere", "recorded", "nowhere"),
        ("given", "nowhere", "given"),
    ],
)
def test_the_given_package_comes_before_the_recorded_one(
    tmp_path, monkeypatch, given, recorded, package
):
    monkeypatch.chdir(tmp_path)
    for name in ("given", "recorded"):
        (tmp_path / name).mkdir()
    remember("recorded")
    run = make_run(usr_dir=recorded)
    assert run.package(given) == package
    loaded = record(monkeypatch, catalogue, "load")
    run.load_catalogue(given)
    assert loaded.call == {"usr_dir": package}


def test_a_recorded_package_needs_the_users_word(tmp_path):
    package = tmp_path / "foreign"
    package.mkdir()
    run = make_run(usr_dir=str(package))
    with pytest.raises(UserError, match=rf"{package}.* runs its code.\n.*t2t_usr_dir"):
        run.package()
    assert run.package(str(package)) == str(package)
    with pytest.raises(UserError, match="t2t_usr_dir"):
        run.package()  # an argument is consent for one call


def test_a_package_that_this_process_has_imported_needs_no_further_word(tmp_path):
    package = tmp_path / "imported_by_this_process"
    package.mkdir()
    (package / "__init__.py").touch()
    catalogue.load(package)
    try:
        assert make_run(usr_dir=str(package)).package() == str(package)
    finally:
        del sys.modules[package.name]


def test_a_recorded_package_that_is_gone_is_named():
    with pytest.raises(UserError, match="package /nowhere, which does not exist"):
        make_run(usr_dir="/nowhere").package()


SHARED = "shared_embedding_and_softmax_weights"


def from_hparams(hparams, source_vocab_size, target_vocab_size):
    """Have the parameters of a model's `from_hparams`."""


@pytest.mark.parametrize(
    ("sides", "is_shared"),
    [
        ((DIGITS, DIGITS), True),
        ((DIGITS, LETTERS), False),
        # Equal sizes are not one vocabulary.
        ((DIGITS, SymbolTokenizer(list("0123"))), False),
        ((SymbolTokenizer(list("01234567")), DIGITS), False),
    ],
)
def test_the_model_has_the_hparams_and_the_sizes_of_the_vocabularies(
    monkeypatch, sides, is_shared
):
    made = Recorder(from_hparams, "model")
    named = record(monkeypatch, catalogue, "model", SimpleNamespace(from_hparams=made))
    run = described()
    assert run.build_model(*sides) == "model"
    assert named.call == {"name": "another"}
    source, target = sides
    assert made.call == {
        "hparams": run.hparams.replace(**{SHARED: is_shared}),
        "source_vocab_size": source.vocab_size,
        "target_vocab_size": target.vocab_size,
    }
    assert run.hparams.shared_embedding_and_softmax_weights


def test_the_set_decides_whether_one_vocabulary_is_shared(monkeypatch):
    made = Recorder(from_hparams)
    record(monkeypatch, catalogue, "model", SimpleNamespace(from_hparams=made))
    hparams = catalogue.hparams("transformer_base").replace(**{SHARED: False})
    described(hparams=hparams).build_model(DIGITS, DIGITS)
    assert getattr(made.call["hparams"], SHARED) is False


TREES = SymbolTokenizer(["(NP", ")NP", "NN"])
WORDS, LEAVES = TokenCounter(DIGITS.word_starts()), TokenCounter((5,))
BRACKETS = TokenCounter((3,), (4,))


def counting(*names):
    changes = dict.fromkeys(names, True)
    return described(hparams=catalogue.hparams("transformer_base").replace(**changes))


@pytest.mark.parametrize(
    ("names", "counters"),
    [
        (("word_positions",), TokenCounters((WORDS,), (LEAVES,))),
        (("depth_positions",), TokenCounters((), (BRACKETS,))),
        (
            ("word_positions", "depth_positions"),
            TokenCounters((WORDS,), (LEAVES, BRACKETS)),
        ),
    ],
)
def test_the_model_counts_what_its_hparams_say(monkeypatch, names, counters):
    made = Recorder(Transformer.from_hparams, "model")
    kind = type("Counting", (Transformer,), {"from_hparams": made})
    record(monkeypatch, catalogue, "model", lambda name: kind)
    named = record(monkeypatch, catalogue, "problem", ParsingProblem())
    run = counting(*names)
    assert run.build_model(DIGITS, TREES) == "model"
    assert named.call == {"name": run.problem}
    assert made.call["counters"] == counters


@pytest.mark.parametrize("base", [object, Transformer])
def test_a_model_whose_from_hparams_takes_no_counters_is_refused(monkeypatch, base):
    kind = type("Own", (base,), {"from_hparams": staticmethod(from_hparams)})
    record(monkeypatch, catalogue, "model", lambda name: kind)
    with pytest.raises(UserError, match="for the model another, expected False"):
        counting("word_positions").build_model(DIGITS, LETTERS)


def test_any_model_whose_from_hparams_takes_counters_may_count(monkeypatch):
    made = Recorder(Transformer.from_hparams, "model")
    kind = type("Own", (), {"from_hparams": made})
    record(monkeypatch, catalogue, "model", lambda name: kind)
    assert counting("word_positions").build_model(DIGITS, LETTERS) == "model"
    assert made.call["counters"].source == (WORDS,)


def test_brackets_that_the_targets_do_not_have_are_not_counted(monkeypatch):
    record(monkeypatch, catalogue, "model", lambda name: Transformer)
    with pytest.raises(UserError, match="the problem's targets have no brackets"):
        counting("depth_positions").build_model(DIGITS, LETTERS)


def test_each_side_is_saved_under_its_own_name(tmp_path):
    names = save_tokenizers(tmp_path, DIGITS, LETTERS)
    assert names == {"inputs": "inputs.symbols", "targets": "targets.symbols"}
    assert (tmp_path / "inputs.symbols").read_bytes() == DIGITS.to_bytes()
    assert (tmp_path / "targets.symbols").read_bytes() == LETTERS.to_bytes()


class Model(SymbolTokenizer):
    """A tokenizer whose file has another suffix than that of symbols."""

    filename_suffix = ".model"


def test_each_side_is_saved_as_a_file_of_its_kind(tmp_path):
    names = save_tokenizers(tmp_path, Model(list("01")), LETTERS)
    assert names == {"inputs": "inputs.model", "targets": "targets.symbols"}


def test_one_vocabulary_of_both_sides_is_saved_once(tmp_path):
    names = save_tokenizers(tmp_path, DIGITS, DIGITS)
    assert len(set(names.values())) == 1
    assert len([*tmp_path.iterdir()]) == 1


@pytest.mark.parametrize(
    ("sides", "is_refused"),
    [
        ((DIGITS, LETTERS), False),
        ((LETTERS, DIGITS), True),
        ((DIGITS, DIGITS), True),
        ((LETTERS, LETTERS), True),
    ],
)
def test_each_side_of_the_data_is_compared_with_the_runs(tmp_path, sides, is_refused):
    run = make_run(tokenizers=save_tokenizers(tmp_path, DIGITS, LETTERS))
    if is_refused:
        with pytest.raises(UserError, match="another vocabulary"):
            run.check_same_tokenizers(tmp_path, *sides)
    else:
        run.check_same_tokenizers(tmp_path, *sides)
