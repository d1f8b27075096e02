"""Every flag of a command of the core reaches its argument, in one table."""

from __future__ import annotations

import argparse
import importlib
from types import SimpleNamespace

import pytest

from t2t_repro import runs
from t2t_repro.cli import train as train_command
from t2t_repro.cli.main import COMMANDS, main
from t2t_repro.data import prepare as prepare_module
from t2t_repro.runs.system import System
from t2t_repro.runs.training_config import TrainingConfig
from t2t_repro.settings.decode_hparams import DecodeHParams
from tests.cli.stand_ins.conftest import FakeData
from tests.runs.test_run import SETTINGS
from tests.support.recorder import Recorder, record

SEARCH = "beam_size=3,alpha=0.9"
SYSTEM = {
    "output_dir": ("{run}", "load.output_dir"),
    "checkpoint_path": ("{run}/best/model.ckpt-60", "load.checkpoint"),
    "t2t_usr_dir": ("{package}", "catalogue.usr_dir"),
}
# Flag -> its text, the argument of a function that receives it, and there its value if
# that is not the text.
PREPARATION = {
    "vocab_size": ("350", "settings.vocab_size"),
    "vocab_type": ("unigram", "settings.model_type"),
    "separate_vocabularies": (None, "settings.shared_vocabulary", False),
    "max_pair_length": ("70", "settings.max_pair_length"),
    "max_length_ratio": ("1.5", "settings.max_length_ratio"),
    "keep_duplicates": (None, "settings.drop_duplicates", False),
    "subword_copies": ("3", "settings.subword_copies"),
    "subword_sampling": ("0.25", "settings.subword_sampling"),
    "num_shards": ("4", "settings.num_shards"),
    "shuffle_seed": ("9", "settings.shuffle_seed"),
    "character_coverage": ("0.99", "settings.character_coverage"),
}
MODELS = {
    "source_model": ("{a}", "settings.source_model"),
    "target_model": ("{b}", "settings.target_model"),
}
DATA = {
    "problem": ("text_pairs", "prepare.problem.name"),
    **{
        f"{split}_{side}": (f"{{{side}}}", f"files.{split}.{side}")
        for split in ("train", "dev", "test")
        for side in ("source", "target")
    },
    "data_dir": ("{data}", "prepare.data_dir"),
    "tmp_dir": ("{tmp}", "prepare.tmp_dir"),
    "num_workers": ("2", "prepare.num_workers"),
}
TRAINING = {name: str(value) for name, value in SETTINGS.values().items()} | {
    "output_dir": "{new}",
    "t2t_usr_dir": "{package}",
    "model": "transformer",
    "hparams_set": "transformer_tiny",
    "hparams": "filter_size=48",
    "decode_hparams": SEARCH,
    "warm_start_from": "{run}",
    "deterministic": None,
}
FLAGS = {
    "datagen": {
        **DATA,
        **PREPARATION,
        "t2t_usr_dir": ("{package}", "catalogue.usr_dir"),
    },
    "datagen with models": {**DATA, **MODELS},
    "train": {
        **DATA,
        **PREPARATION,
        **{name: (text, f"train.{name}") for name, text in TRAINING.items()},
        "deterministic": (None, "train.deterministic", True),
    },
    "decode": {
        **SYSTEM,
        "decode_from_file": ("{source}", "hypotheses.sentences", ["s"]),
        "target_prefix": ("{target}", "hypotheses.prefixes", ["t"]),
        "decode_hparams": (SEARCH, "hypotheses.decode_hparams", SEARCH),
    },
    "score": {
        **SYSTEM,
        "source": ("{source}", "score.sources", ["s"]),
        "target": ("{target}", "score.targets", ["t"]),
        "decode_hparams": ("alpha=0.9", "scorer.decode_hparams", "alpha=0.9"),
    },
    "evaluate": {
        **SYSTEM,
        "source": ("{source}", "evaluate.sources", ["s"]),
        "reference": ("{target}", "evaluate.references", ["t"]),
        "decode_hparams": (SEARCH, "evaluate.decode_hparams", SEARCH),
        "bleu_tokenizer": ("intl", "system.problem.bleu_tokenizer"),
        "branch_weights": ("random", "branches.mode"),
        "branch_seed": ("7", "branches.seed"),
    },
    "average": {
        "output_dir": ("{run}", "average.output_dir"),
        "last": ("2", "average.last"),
        "t2t_usr_dir": ("{package}", "average.t2t_usr_dir"),
    },
    "export": {
        **SYSTEM,
        "export_dir": ("{new}", "export.export_dir"),
        "max_source_tokens": ("777", "export.max_source_tokens"),
        "decode_hparams": (SEARCH, "export.decode_hparams", SEARCH),
    },
}
# Flags that choose, print or exclude another one, each with its own test.
FILES = ("tsv", "trees")
CARD = {"card", "card_html", "card_language"}
OTHER_TEXT = {"train_weights", "tfds", "drop_duplicates", "seed", "max_length", *MODELS}
OTHER_TEXT |= {f"{split}_{kind}" for split in FakeData.splits for kind in FILES}
OTHERS = {
    "datagen": OTHER_TEXT,
    "train": OTHER_TEXT | {"schedule", "no_final_score", "ensemble"},
    "decode": {
        *("engine", "quantization", "export_dir"),
        *("decode_to_file", "translations_dir", "output_format"),
    },
    "score": {"scores_to_file", "per_token", "output_format"},
    "evaluate": {
        *("engine", "quantization", "export_dir", "hypothesis", "split", "data_dir"),
        *("decode_to_file", *CARD),
    },
    "average": {"best"},
    "export": {"format", "quantization", "parity_sentences"},
}


@pytest.fixture
def places(stage):
    return {
        "run": stage.run,
        "package": stage.package,
        "source": stage.file("source", "s"),
        "target": stage.file("target", "t"),
        **{name: str(stage.folder / name) for name in ("a", "b", "new", "data", "tmp")},
    }


@pytest.fixture
def received(stage, monkeypatch):
    """Record what the functions of the library receive, by their names."""
    system = stage.system
    methods = {
        name: Recorder(getattr(System, name).__get__(system), getattr(system, name))
        for name in ("hypotheses", "scorer", "evaluate", "export")
    }
    branches = Recorder(System.replace_branch_weights.__get__(system))
    for name, method in methods.items():
        monkeypatch.setattr(system, name, method)
    monkeypatch.setattr(system, "replace_branch_weights", branches)
    averaged = Recorder(runs.average, "path")
    monkeypatch.setattr(runs, "average", averaged)
    opened = record(monkeypatch, prepare_module, "open_or_prepare", FakeData())
    prepared = record(monkeypatch, prepare_module, "prepare", FakeData())
    monkeypatch.setattr("t2t_repro.cli.datagen.summary_lines", lambda data: [])
    checked = Recorder(
        TrainingConfig.from_settings,
        SimpleNamespace(changed_hparams={}, decode_hparams=None),
    )
    monkeypatch.setattr(
        train_command, "TrainingConfig", SimpleNamespace(from_settings=checked)
    )
    result = SimpleNamespace(complete=True, is_chief=False)
    trained = "t2t_repro.runs.run_training.run_training"
    monkeypatch.setattr(trained, lambda *_, **__: result)

    def of(name):
        if name in ("prepare", "settings", "files"):
            call = (opened.calls or prepared.calls)[0]
            given = call.get("given_settings") or call.get("settings")
            files = getattr(call["problem"], "_files", {})
            return {"prepare": call, "settings": given, "files": files}[name]
        if name == "score":
            return dict(zip(("", "sources", "targets"), system.calls[-1], strict=False))
        return {
            "load": stage.loaded,
            "catalogue": stage.catalogue,
            "system": system,
            "branches": branches,
            "average": averaged,
            "train": checked.calls and checked.calls[-1]["settings"],
            **methods,
        }[name]

    return of


def value_at(received, place):
    """Return the value at the place that the table names."""
    first, *rest = place.split(".")
    found = received(first)
    if isinstance(found, Recorder):
        found = found.calls[-1]
    for part in rest:
        found = found[part] if isinstance(found, dict) else getattr(found, part)
    return found


@pytest.mark.parametrize("command", FLAGS)
def test_every_flag_reaches_its_argument(command, places, received):
    line = [command.split()[0]]
    for name, (text, *_) in FLAGS[command].items():
        line += [f"--{name}"] if text is None else [f"--{name}", text.format(**places)]
    assert main(line) == 0
    for flag, (text, place, *values) in FLAGS[command].items():
        found = value_at(received, place)
        if not values:
            assert str(found) == text.format(**places), flag
        elif isinstance(found, DecodeHParams):
            parsed = DecodeHParams().parse(values[0]).values()
            given = [setting.partition("=")[0] for setting in values[0].split(",")]
            assert [found.values()[n] for n in given] == [parsed[n] for n in given]
        else:
            assert found == values[0], flag


@pytest.mark.parametrize("command", OTHERS)
def test_every_flag_of_a_command_is_in_the_table(command):
    parser = argparse.ArgumentParser(add_help=False)
    importlib.import_module(COMMANDS[command].module).add_flags(parser)
    names = {action.option_strings[0].removeprefix("--") for action in parser._actions}
    assert names == set(FLAGS[command]) | OTHERS[command]
