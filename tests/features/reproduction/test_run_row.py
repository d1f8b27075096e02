"""A row's run, with fakes for preparing, training and translating."""

from __future__ import annotations

import dataclasses
import importlib
import json
import sys
from types import SimpleNamespace

import pytest
import sacrebleu

from t2t_repro import runs
from t2t_repro.data import prepare
from t2t_repro.errors import UserError
from t2t_repro.features.parsing.bracketing import BracketingScores
from t2t_repro.features.reproduction import row_scores
from t2t_repro.features.reproduction import row_scores as lengths
from t2t_repro.features.reproduction.paper_tables import find_row
from t2t_repro.features.reproduction.recipes import PARSING, TRANSLATION
from t2t_repro.features.reproduction.result_files import read_result
from t2t_repro.features.reproduction.row_plan import RunFolders, plan_of
from t2t_repro.translation_scores import Score, TranslationScores

MODULE = "t2t_repro.features.reproduction.run_row"
# Three windows: a first update of 7 seconds alone, 99 steps at 4 per second, then 50 at
# 2 with a compilation of 5.25 seconds.
METRICS = [
    {"split": "train", "step": 1, "compile_seconds": 7.0},
    {"split": "train", "step": 100, "steps_per_second": 4.0},
    {"split": "eval", "step": 100, "perplexity": 12.0},
    {
        "split": "train",
        "step": 150,
        "steps_per_second": 2.0,
        "compile_seconds": 5.25,
    },
    {"split": "eval", "step": 150, "perplexity": 9.5},
]
BLEU = {"dev": 21.5, "test": 23.25}
# How much the average is better.
GAIN = {"latest": 0.0, "averaged": 0.125}
# Outputs of a long run and their references, by checkpoint and split.
OUTPUTS = {
    ("latest", "dev"): "a dog runs over the red grass",
    ("latest", "test"): "two men sit on a bench",
    ("averaged", "dev"): "a dog runs over the green grass",
    ("averaged", "test"): "two men are sitting on a bench",
}
REFERENCES = {
    "dev": "a dog runs over the green grass today",
    "test": "two men sit on a bench",
}


def translation_scores(split, gain=0.0):
    return TranslationScores(
        bleu=Score(BLEU[split] + gain, f"signature of {split}"),
        bleu_lowercase=Score(1.0, ""),
        chrf=Score(2.0, ""),
        length_ratio=1.0,
        sentences=2,
    )


BRACKETS = BracketingScores(
    f1=70.5,
    precision=1.0,
    recall=2.0,
    complete_match=3.0,
    f1_up_to_40=80.25,
    sentences_up_to_40=1,
    sentences=8,
)


class Stage:
    """Fakes of the use cases, and a record of their calls."""

    def __init__(self):
        self.calls = []
        self.complete = True
        self.is_parser = False

    def open_or_prepare(self, problem, data_dir, given):
        self.calls.append(("prepare", problem, data_dir, given))
        return self

    def f1_by_length(self, hypotheses, references):
        self.calls.append(("lengths", hypotheses, references))
        return {"1 to 10 words": 91.25, "over 40 words": 60.75}

    def raw_text(self, split):
        return [f"source of {split}"], [f"reference of {split}"]

    def train(self, settings, data, show_progress):
        assert data is self
        self.calls.append(("train", settings))
        folder = settings.output_dir
        with open(f"{folder}/metrics.jsonl", "w", encoding="utf-8") as file:
            file.writelines(f"{json.dumps(record)}\n" for record in METRICS)
        return SimpleNamespace(complete=self.complete, steps=150, output_dir=folder)

    def load(self, output_dir, checkpoint=None):
        self.calls.append(("load", output_dir, checkpoint))
        return FakeSystem(self)

    def dev_likelihood(self, system, data):
        assert data is self
        self.calls.append(("likelihood", system.checkpoint, system.weights))
        nll = {"latest": 2.25, "averaged": 2.125}[system.checkpoint]
        return {"nll": nll, "perplexity": 100 * nll}

    def named(self, name):
        return [call[1:] for call in self.calls if call[0] == name]


class FakeSystem:
    """A loaded system whose outputs name its branch weights."""

    model = SimpleNamespace(count_params=lambda: 4321)
    run = SimpleNamespace(versions={"keras": "3.15"})

    def __init__(self, stage):
        self.stage = stage
        self.weights = None

    def replace_branch_weights(self, mode, seed):
        self.weights = f"{mode} {seed}"

    def evaluate(self, sources, references):
        split = sources[0].removeprefix("source of ")
        assert references == [f"reference of {split}"]
        scores = BRACKETS if self.stage.is_parser else translation_scores(split)
        return SimpleNamespace(
            scores=scores,
            hypotheses=[f"{split} by {self.weights}", "é"],
            repaired=2,
            repairs={},
        )


@pytest.fixture
def stage(monkeypatch, request):
    """Put the fakes where the module of `run_row` imports them from."""
    stage = getattr(request, "param", Stage)()
    for owner, name, stand_in in (
        (runs, "train", stage.train),
        (runs, "System", stage),
        (runs, "TrainSettings", lambda **values: SimpleNamespace(**values)),
        (prepare, "open_or_prepare", stage.open_or_prepare),
        (lengths, "f1_by_length", stage.f1_by_length),
        (row_scores, "dev_likelihood", stage.dev_likelihood),
    ):
        monkeypatch.setattr(owner, name, stand_in, raising=False)
    sys.modules.pop(MODULE, None)
    yield stage
    sys.modules.pop(MODULE, None)


def run(plan, folders):
    return importlib.import_module(MODULE).run_row(plan, folders)


def folders_in(tmp_path, recipe):
    """Return the folders of a run, with a file for each of the recipe's texts."""
    text_dir, output_dir = tmp_path / "text", tmp_path / "out"
    for folder in (text_dir, output_dir):
        folder.mkdir()
    for name in recipe.file_names:
        (text_dir / name).write_text(f"text of {name}\n")
    return RunFolders(tmp_path / "data", output_dir, text_dir)


def test_a_row_is_prepared_trained_and_scored_by_its_recipe(stage, tmp_path):
    plan = plan_of(*find_row("table3/a_h1"), "small", 3)
    (path,) = run(plan, folders_in(tmp_path, TRANSLATION))
    assert [name for name, *_ in stage.calls] == ["prepare", "train", "load"]
    ((settings,),) = stage.named("train")
    assert settings.hparams == plan.recipe.hparams
    assert (settings.random_seed, settings.train_steps) == (3, 2_500)
    assert stage.named("load") == [(tmp_path / "out", "latest")]
    result = read_result(path.read_text())
    assert path == tmp_path / "out" / "transformer_base_a_h1-small-3.json"
    assert (result.scale, result.seed, result.steps) == ("small", 3, 2_500)
    assert [*result.scores.items()] == [
        ("perplexity (dev)", 9.5),
        ("BLEU (dev)", 21.5),
        ("BLEU (test)", 23.25),
    ]
    assert result.signature == "signature of test"
    assert result.seconds == 7.0 + 99 / 4 + 50 / 2 + 5.25
    assert (result.parameters, result.versions) == (4321, {"keras": "3.15"})
    assert result.commands == tuple(plan.commands())
    assert result.data == TRANSLATION.text_digests(tmp_path / "text")
    assert " x " in result.hardware
    output = tmp_path / "out" / "dev.transformer_base_a_h1.txt"
    assert output.read_text(encoding="utf-8") == "dev by learned 3\né\n"


class LongStage(Stage):
    """A stage whose systems and outputs differ by checkpoint."""

    def raw_text(self, split):
        return [split], [REFERENCES[split]]

    def load(self, output_dir, checkpoint=None):
        super().load(output_dir, checkpoint)
        return LongSystem(self, checkpoint)


class LongSystem(FakeSystem):
    """A loaded checkpoint."""

    def __init__(self, stage, checkpoint):
        super().__init__(stage)
        self.checkpoint = checkpoint

    def evaluate(self, sources, references):
        (split,) = sources
        assert references == [REFERENCES[split]]
        return SimpleNamespace(
            scores=translation_scores(split, GAIN[self.checkpoint]),
            hypotheses=[OUTPUTS[self.checkpoint, split]],
        )


def pooled(checkpoint):
    """Return sacreBLEU's score of the outputs of both splits together."""
    outputs = [OUTPUTS[checkpoint, split] for split in ("dev", "test")]
    return sacrebleu.corpus_bleu(outputs, [[*REFERENCES.values()]]).score


@pytest.mark.parametrize("stage", [LongStage], indirect=True)
def test_a_long_run_scores_its_last_checkpoint_and_the_average_of_five(stage, tmp_path):
    plan = plan_of(*find_row("table3/a_h1"), "long", 3)
    (path,) = run(plan, folders_in(tmp_path, TRANSLATION))
    ((settings,),) = stage.named("train")
    assert (settings.train_steps, settings.average_last) == (10_000, 5)
    out = tmp_path / "out"
    assert stage.named("load") == [(out, "latest"), (out, "averaged")]
    result = read_result(path.read_text())
    assert path == out / "transformer_base_a_h1-long-3.json"
    assert result.scores == {
        "nll (dev)": 2.25,
        "perplexity (dev)": 225.0,
        "BLEU (dev)": 21.5,
        "BLEU (test)": 23.25,
        "BLEU (dev+test)": pytest.approx(pooled("latest")),
        "nll (dev), averaged": 2.125,
        "perplexity (dev), averaged": 212.5,
        "BLEU (dev), averaged": 21.625,
        "BLEU (test), averaged": 23.375,
        "BLEU (dev+test), averaged": pytest.approx(pooled("averaged")),
    }
    assert abs(pooled("latest") - pooled("averaged")) > 1
    assert result.signature == "signature of test"
    assert result.commands == tuple(plan.commands())
    texts = {
        (checkpoint, split): (out / f"{split}.transformer_base_a_h1{end}").read_text()
        for checkpoint, end in (("latest", ".txt"), ("averaged", ".averaged.txt"))
        for split in ("dev", "test")
    }
    assert texts == {key: f"{line}\n" for key, line in OUTPUTS.items()}


@pytest.mark.parametrize("stage", [LongStage], indirect=True)
def test_the_nll_of_a_long_run_has_the_weights_of_the_row(stage, tmp_path):
    plan = plan_of(*find_row("randomisation/random"), "long", 5)
    run(plan, folders_in(tmp_path, TRANSLATION))
    assert stage.named("likelihood") == [
        (checkpoint, f"{mode} 5")
        for mode in ("learned", "random", "uniform")
        for checkpoint in ("latest", "averaged")
    ]


def test_a_parser_is_averaged_and_has_f1_and_repairs(stage, tmp_path):
    stage.is_parser = True
    plan = plan_of(*find_row("table4/transformer_4_layers_wsj_only"))
    (path,) = run(plan, folders_in(tmp_path, PARSING))
    assert stage.named("load") == [(tmp_path / "out", "averaged")]
    result = read_result(path.read_text())
    assert result.scores == {
        "F1 (dev)": 70.5,
        "F1 up to 40 words (dev)": 80.25,
        "% repaired (dev)": 25.0,
        "F1, 1 to 10 words (dev)": 91.25,
        "F1, over 40 words (dev)": 60.75,
    }
    hypotheses, references = ["dev by learned 1", "é"], ["reference of dev"]
    assert stage.named("lengths") == [(hypotheses, references)]
    assert result.signature == ""


def test_the_papers_recipe_has_no_text_and_saves_by_time(stage, tmp_path):
    plan = plan_of(*find_row("table2/transformer_big"), "paper")
    (tmp_path / "out").mkdir()
    results = tmp_path / "results"
    results.mkdir()
    folders = RunFolders(tmp_path / "data", tmp_path / "out", result_dir=results)
    (path,) = run(plan, folders)
    ((problem, _, given),) = stage.named("prepare")
    assert (problem.name, given) == ("translate_ende_wmt14", {})
    ((settings,),) = stage.named("train")
    assert settings.train_steps == 300_000
    assert settings.save_checkpoints_steps is None
    assert settings.save_checkpoints_secs == 600.0
    assert path == results / "transformer_big-paper-1.json"
    result = read_result(path.read_text())
    assert result.scores == {"BLEU (test)": 23.25}
    assert result.data == {}


def test_a_training_that_was_stopped_is_not_scored(stage, tmp_path):
    stage.complete = False
    plan = plan_of(*find_row("table3/a_h1"))
    with pytest.raises(UserError, match="stopped at step 150 of 2500; the same"):
        run(plan, folders_in(tmp_path, TRANSLATION))
    assert stage.named("load") == []


def test_missing_text_is_found_before_anything_is_prepared(stage, tmp_path):
    folders = folders_in(tmp_path, TRANSLATION)
    (tmp_path / "text" / "val.de").unlink()
    with pytest.raises(UserError, match=r"val\.de is missing"):
        run(plan_of(*find_row("table3/a_h1")), folders)
    nowhere = dataclasses.replace(folders, result_dir=tmp_path / "nowhere")
    with pytest.raises(UserError, match="result_dir="):
        run(plan_of(*find_row("table3/a_h1")), nowhere)
    assert stage.calls == []
