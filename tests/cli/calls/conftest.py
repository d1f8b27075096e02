"""Stand-ins for the use cases that the commands call."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from types import SimpleNamespace

import pytest

from t2t_repro import catalogue, runs
from t2t_repro.decoding.translate import Hypothesis
from t2t_repro.settings.decode_hparams import DecodeHParams
from tests.runs.test_run import DIGITS, make_run
from tests.support.recorder import Recorder, record


@dataclasses.dataclass
class Scores:
    """Scores that repeat what was scored."""

    hypotheses: list
    references: list

    def lines(self, description):
        return [f"scores: {description}"]


class FakeSystem:
    """A system that repeats its sources, and records its calls."""

    problem = catalogue.problem("algorithmic_reverse")
    checkpoint = "path of the checkpoint"
    repaired: tuple[str, ...] = ()

    def __init__(self, data_dir):
        self.run = SimpleNamespace(problem="algorithmic_reverse", data_dir=data_dir)
        self.calls = []

    def with_problem_defaults(self, hparams):
        return hparams.replace(extra_length=17)

    def replace_branch_weights(self, mode, seed):
        self.calls.append(("branch weights", mode, seed))

    def translator(self):
        return SimpleNamespace(hparams=DecodeHParams(beam_size=9, alpha=0.3))

    def hypotheses(self, sentences, hparams, advance, *, prefixes=None):
        self.prefixes = prefixes
        self.calls.append(("hypotheses", hparams, advance))
        for sentence in sentences:
            advance(1)
            repairs = ("cut",) if sentence in self.repaired else ()
            yield [
                Hypothesis(f"best {sentence}", -1.5, repairs),
                Hypothesis(f"second {sentence}", -2.5, ("other",)),
            ]

    def evaluate(self, sources, references, hparams=None, advance=None):
        self.calls.append(("evaluate", sources, references, hparams, advance))
        hypotheses = [f"best {source}" for source in sources]
        return SimpleNamespace(
            scores=Scores(hypotheses, references),
            hypotheses=hypotheses,
            repaired=len(self.repaired),
            repairs=dict.fromkeys(self.repaired, 5),
        )

    def export(self, export_dir, hparams):
        self.calls.append(("export", export_dir, hparams))


@dataclasses.dataclass
class Stage:
    """A run's folder, stand-ins for use cases, and their calls."""

    folder: Path
    system: FakeSystem
    loaded: Recorder
    catalogue: Recorder

    @property
    def run(self):
        return str(self.folder / "run")

    @property
    def package(self):
        return str(self.folder / "package")

    @property
    def flags(self):
        return [
            *("--output_dir", self.run, "--checkpoint_path", "best"),
            *("--t2t_usr_dir", self.package),
        ]

    def file(self, name, *lines):
        path = self.folder / name
        path.write_text("".join(f"{line}\n" for line in lines))
        return str(path)

    def save(self, **changes):
        hparams = catalogue.hparams("transformer_tiny").resolved()
        make_run(hparams=hparams, **changes).save(self.run)


@pytest.fixture
def stage(tmp_path, monkeypatch):
    load = catalogue.load
    loaded = record(monkeypatch, catalogue, "load", lambda _=None: load())
    system = FakeSystem(str(tmp_path / "data"))
    made = Recorder(runs.System.load, system)
    monkeypatch.setattr(runs, "System", SimpleNamespace(load=made))
    for name in ("run", "run/best", "run/averaged"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "model.ckpt-60.index").touch()
    (tmp_path / "run" / "model.ckpt-40.index").touch()
    DIGITS.save(tmp_path / "run" / "shared.symbols")
    stage = Stage(tmp_path, system, made, loaded)
    stage.save(problem="algorithmic_reverse", data_dir=str(tmp_path / "data"))
    return stage


PREPARATION = {
    "vocab_size": 350,
    "vocab_type": "unigram",
    "max_pair_length": 70,
    "max_length_ratio": 1.5,
    "num_shards": 4,
    "shuffle_seed": 9,
    "character_coverage": 0.99,
}
SETTINGS = {
    "vocab_size": 350,
    "model_type": "unigram",
    "shared_vocabulary": False,
    "max_pair_length": 70,
    "max_length_ratio": 1.5,
    "drop_duplicates": False,
    "num_shards": 4,
    "shuffle_seed": 9,
    "character_coverage": 0.99,
}


def data_flags(stage):
    """Return every flag of data, with files of each split."""
    flags = [f"--{name}={value}" for name, value in PREPARATION.items()]
    for split in ("train", "dev", "test"):
        for side in ("source", "target"):
            path = stage.file(f"{split}.{side}", f"{split} {side}")
            flags.append(f"--{split}_{side}={path}")
    return [
        *("--problem", "text_pairs", "--separate_vocabularies", "--keep_duplicates"),
        *("--data_dir", str(stage.folder / "other_data")),
        *("--tmp_dir", str(stage.folder / "tmp"), "--t2t_usr_dir", stage.package),
        *flags,
    ]


def files_of(stage):
    """Return the paths of the two sides of each split."""
    return {
        split: (stage.folder / f"{split}.source", stage.folder / f"{split}.target")
        for split in ("train", "dev", "test")
    }


def paths_of(problem):
    """Return the paths of a problem's files by split."""
    return {
        split: dataclasses.astuple(files) for split, files in problem._files.items()
    }


class FakeData:
    """Prepared data with lines of each split."""

    splits = ("train", "dev", "test")

    def __init__(self, splits=splits):
        self.splits = splits

    def raw_text(self, split):
        return (
            [f"{split} source {n}" for n in range(7)],
            [f"{split} reference {n}" for n in range(7)],
        )
