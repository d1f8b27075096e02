"""Stand-ins for the use cases that the commands call."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar

import pytest

from t2t_repro import catalogue, runs
from t2t_repro.decoding.hypothesis import Hypothesis
from t2t_repro.runs import PairScore
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
    engine_report: ClassVar[dict[str, str]] = {}
    repaired: tuple[str, ...] = ()

    def __init__(self, data_dir):
        self.run = SimpleNamespace(
            problem="algorithmic_reverse",
            data_dir=data_dir,
            hparams=SimpleNamespace(max_length=48),
        )
        self.data_dir = data_dir
        self.source_tokenizer = DIGITS
        self.max_input_length = 48
        self.calls = []
        self.firsts = []

    def with_problem_defaults(self, hparams):
        return hparams.replace(extra_length=17)

    def replace_branch_weights(self, mode, seed):
        self.calls.append(("branch weights", mode, seed))

    def warm_up(self, hparams):
        self.calls.append(("warm up", hparams))

    def translator(self, hparams):
        def stream(sentences, advance, **given):
            return self.hypotheses(sentences, hparams, advance, **given)

        return SimpleNamespace(stream=stream)

    def hypotheses(self, sentences, hparams, advance, *, prefixes=None, first=0):
        self.firsts.append(first)
        self.calls.append(("hypotheses", hparams, advance))
        for sentence in sentences:
            advance(1)
            repairs = ("cut",) if sentence in self.repaired else ()
            yield [
                Hypothesis(f"best {sentence}", -1.5, repairs, (3, 1)),
                Hypothesis(f"second {sentence}", -2.5, ("other",), (3, 4, 1)),
            ]

    def scorer(self, hparams):
        def score(sources, targets, advance):
            self.calls.append(("score", sources, targets, hparams, advance))
            for source, target in zip(sources, targets, strict=True):
                advance(1)
                tokens = (source, target, "</s>")
                yield PairScore(-1.25, -0.75, tokens, (-0.25, -1.0, 0.0))

        return SimpleNamespace(score=score)

    def evaluate(
        self, sources, references, hparams=None, advance=None, *, other_references=()
    ):
        self.other_references = [*other_references]
        self.calls.append(("evaluate", sources, references, hparams, advance))
        hypotheses = [f"best {source}" for source in sources]
        return SimpleNamespace(
            scores=Scores(hypotheses, references),
            hypotheses=hypotheses,
            repaired=len(self.repaired),
            repairs=dict.fromkeys(self.repaired, 5),
        )

    def export(self, export_dir, hparams, max_source_tokens):
        self.calls.append(("export", export_dir, hparams, max_source_tokens))


@dataclasses.dataclass
class Stage:
    folder: Path
    system: FakeSystem
    loaded: Recorder
    reported: Recorder
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
    made = Recorder(runs.System.of_run, system)
    reported = Recorder(runs.System.load, system)
    stand_in = SimpleNamespace(of_run=made, load=reported)
    monkeypatch.setattr(runs, "System", stand_in)
    for name in ("run", "run/best", "run/averaged"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "model.ckpt-60.index").touch()
    (tmp_path / "run" / "model.ckpt-40.index").touch()
    DIGITS.save(tmp_path / "run" / "shared.symbols")
    stage = Stage(tmp_path, system, made, reported, loaded)
    stage.save(problem="algorithmic_reverse", data_dir=str(tmp_path / "data"))
    return stage


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
