"""Every value of a run is recorded, compared and used under its own name."""

from __future__ import annotations

import dataclasses
import json
import sys
from types import SimpleNamespace

import pytest

from t2t_repro import catalogue
from t2t_repro.errors import UserError
from t2t_repro.features.parsing.tree_problem import ParsingProblem
from t2t_repro.models.token_counters import TokenCounter, TokenCounters
from t2t_repro.models.transformer import Transformer
from t2t_repro.runs import TrainSettings
from t2t_repro.runs.run import FORMAT, RUN_FILE, Run, describe_run
from t2t_repro.text import SymbolTokenizer
from t2t_repro.user_packages import remember
from tests.support.recorder import Recorder, record

DIGITS, LETTERS = SymbolTokenizer(list("0123")), SymbolTokenizer(list("abcd"))
TINY = catalogue.hparams("transformer_tiny")
BASE = catalogue.hparams("transformer_base")
# Unlike the defaults
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
    attention_samples=2,
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
    warm_start_from="another/run",
    cpu_replicas=4,
    cluster="slurm",
    xla="off",
    deterministic=True,
    try_largest_batch="off",
    t2t_usr_dir="/package",
)
OVERRIDES = {"filter_size=48", "label_smoothing=0.25"}


def make_run(**changes):
    values = {
        "problem": "algorithmic_identity",
        "model": "transformer",
        "hparams_set": "transformer_tiny",
        "hparams": TINY,
        "random_seed": 1,
        "num_replicas": 1,
        "data_dir": "/data",
        "data_digest": "0123",
        "usr_dir": None,
        "tokenizers": {"inputs": "shared.symbols", "targets": "shared.symbols"},
        "training": {},
    }
    return Run(**(values | changes))


def described(**changes):
    values = {
        "hparams": BASE.parse(",".join(OVERRIDES)),
        "hparams_set": "transformer_base",
        "model": "another",
        "random_seed": 11,
        "usr_dir": "/package",
        "training": describe_run(SETTINGS, BASE, "", None).training,
    }
    return make_run(**(values | changes))


def test_a_run_with_every_value_unlike_the_defaults_is_read_as_written(tmp_path):
    run = described(
        num_replicas=3,
        data_digest="the digest",
        tokenizers={"inputs": "a", "targets": "b"},
        versions={"keras": "1.0"},
    )
    run.save(tmp_path)
    assert dataclasses.asdict(Run.load(tmp_path)) == dataclasses.asdict(run)
    settings = run.train_settings("folder")
    assert settings.replace(hparams="") == SETTINGS
    assert set(settings.hparams.split(",")) == OVERRIDES


def test_only_overrides_of_the_user_are_settings_of_a_training():
    hparams = BASE.resolved()
    assert described(hparams=hparams).train_settings("folder").hparams == ""


def test_a_run_records_the_versions_of_its_libraries(tmp_path):
    make_run().save(tmp_path)
    versions = json.loads((tmp_path / RUN_FILE).read_text())["versions"]
    libraries = {"tensorflow", "keras", "tensorflow-text", "sentencepiece"}
    assert set(versions) == {"t2t_repro", *libraries}


def test_a_folder_without_a_run_loads_as_none_or_is_refused(tmp_path):
    assert Run.load(tmp_path) is None
    with pytest.raises(UserError, match="expected the folder of a run"):
        Run.load_existing(tmp_path)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("num_encoder_layers", 5000),
        ("num_decoder_layers", 10**18),
        ("hidden_size", 2**30),
        ("filter_size", 10**9),
        ("max_length", 10**12),
        ("batch_size", 10**12),
    ],
)
def test_absurd_sizes_are_refused_with_the_name_of_the_file(tmp_path, name, value):
    make_run().save(tmp_path)
    values = json.loads((tmp_path / RUN_FILE).read_text())
    values["hparams"][name] = value
    (tmp_path / RUN_FILE).write_text(json.dumps(values))
    message = rf"{RUN_FILE}: {name}: received {value}, expected at most \d+\."
    with pytest.raises(UserError, match=message):
        Run.load(tmp_path)


def test_a_run_of_another_format_is_a_user_error(tmp_path):
    dataclasses.replace(make_run(), format=99).save(tmp_path)
    with pytest.raises(UserError, match=f"received format 99, expected {FORMAT}"):
        Run.load(tmp_path)


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
    changes = {name: value, "hparams": TINY.parse("hidden_size=64")}
    with pytest.raises(UserError) as raised:
        make_run().check_resumable(make_run(**changes), tmp_path)
    message = str(raised.value)
    assert f"{name} is {getattr(make_run(), name)!r} there, {value!r} now" in message
    # Every difference is named, and the weights are not lost.
    assert "hidden_size is 128 there, 64 now" in message
    assert f"warm_start_from={tmp_path}" in message


def test_what_may_change_is_not_compared(tmp_path):
    other = make_run(
        hparams=TINY.parse("hidden_size=128"),  # only its origin differs
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
def test_the_given_package_comes_first(tmp_path, monkeypatch, given, recorded, package):
    monkeypatch.chdir(tmp_path)
    for name in ("given", "recorded"):
        (tmp_path / name).mkdir()
    remember("recorded")
    run = make_run(usr_dir=recorded)
    assert run.package(given) == package
    loaded = record(monkeypatch, catalogue, "load")
    run.load_catalogue(given)
    assert loaded.call == {"usr_dir": package}


def test_a_package_that_this_process_has_imported_needs_no_further_word(tmp_path):
    package = tmp_path / "imported_by_this_process"
    package.mkdir()
    (package / "__init__.py").touch()
    catalogue.load(package)
    try:
        assert make_run(usr_dir=str(package)).package() == str(package)
    finally:
        del sys.modules[package.name]


SHARED = "shared_embedding_and_softmax_weights"


def from_hparams(hparams, source_vocab_size, target_vocab_size):
    """Have the parameters of a model's `from_hparams`."""


@pytest.mark.parametrize(
    ("sides", "asked", "is_shared"),
    [
        ((DIGITS, DIGITS), True, True),
        ((DIGITS, DIGITS), False, False),
        ((DIGITS, LETTERS), True, False),
        # Equal sizes are not one vocabulary.
        ((DIGITS, SymbolTokenizer(list("0123"))), True, False),
        ((SymbolTokenizer(list("01234567")), DIGITS), True, False),
    ],
)
def test_a_model_has_its_hparams_and_vocabularies(monkeypatch, sides, asked, is_shared):
    made = Recorder(from_hparams, "model")
    named = record(monkeypatch, catalogue, "model", SimpleNamespace(from_hparams=made))
    run = described(hparams=BASE.replace(**{SHARED: asked}))
    assert run.build_model(*sides) == "model"
    assert named.call == {"name": "another"}
    source, target = sides
    assert made.call == {
        "hparams": run.hparams.replace(**{SHARED: is_shared}),
        "source_vocab_size": source.vocab_size,
        "target_vocab_size": target.vocab_size,
    }


TREES = SymbolTokenizer(["(NP", ")NP", "NN"])
WORDS, LEAVES = TokenCounter(DIGITS.word_starts()), TokenCounter((5,))
BRACKETS = TokenCounter((3,), (4,))


def counting(*names):
    return described(hparams=BASE.replace(**dict.fromkeys(names, True)))


@pytest.mark.parametrize("base", [object, Transformer])
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
def test_any_model_counts_what_its_hparams_say(monkeypatch, base, names, counters):
    made = Recorder(Transformer.from_hparams, "model")
    kind = type("Counting", (base,), {"from_hparams": made})
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


def test_brackets_that_the_targets_do_not_have_are_not_counted(monkeypatch):
    record(monkeypatch, catalogue, "model", lambda name: Transformer)
    with pytest.raises(UserError, match="the problem's targets have no brackets"):
        counting("depth_positions").build_model(DIGITS, LETTERS)
