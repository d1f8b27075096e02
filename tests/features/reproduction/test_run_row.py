"""A row's run, with fakes for preparing, training and translating."""

from __future__ import annotations

import dataclasses
import json
from types import SimpleNamespace

import pytest
import sacrebleu

from t2t_repro.errors import UserError
from t2t_repro.features.reproduction import row_scores, run_row
from t2t_repro.features.reproduction.paper_tables import find_row
from t2t_repro.features.reproduction.recipes import TRANSLATION
from t2t_repro.features.reproduction.result_files import read_result
from t2t_repro.features.reproduction.row_plan import RunFolders, plan_of
from t2t_repro.translation_scores import Score, TranslationScores

# Three windows: a first update of 7 seconds alone, 99 steps at 4 per second, then 50 at
# 2 with a compilation of 5.25 seconds.
METRICS = [
    {"split": "train", "step": 1, "compile_seconds": 7.0},
    {"split": "train", "step": 100, "steps_per_second": 4.0},
    {"split": "eval", "step": 100, "perplexity": 12.0},
    {"split": "train", "step": 150, "steps_per_second": 2.0, "compile_seconds": 5.25},
    {"split": "eval", "step": 150, "perplexity": 9.5},
]
BLEU = {"dev": 21.5, "test": 23.25}
# How much the average is better.
GAIN = {"latest": 0.0, "averaged": 0.125}
OUTPUTS = {
    ("latest", "dev"): "a dog runs over the red grass",
    ("latest", "test"): "two men sit on a bench é",
    ("averaged", "dev"): "a dog runs over the green grass",
    ("averaged", "test"): "two men are sitting on a bench",
}
REFERENCES = {
    "dev": "a dog runs over the green grass today",
    "test": "two men sit on a bench",
}


class Stage:
    """Fakes of the use cases, and a record of their calls."""

    def __init__(self):
        self.calls = []
        self.complete = True

    def open_or_prepare(self, problem, data_dir, given):
        self.calls.append(("prepare", problem.name, given))
        return self

    def raw_text(self, split):
        return [split], [REFERENCES[split]]

    def train(self, settings, data, show_progress):
        assert data is self
        self.calls.append(("train", settings))
        with open(f"{settings.output_dir}/metrics.jsonl", "w") as file:
            file.writelines(f"{json.dumps(record)}\n" for record in METRICS)
        return SimpleNamespace(complete=self.complete, steps=150)

    def load(self, output_dir, checkpoint):
        self.calls.append(("load", output_dir.name, checkpoint))
        return Loaded(checkpoint)

    def dev_likelihood(self, system, data):
        self.calls.append(("likelihood", system.checkpoint, system.weights))
        nll = {"latest": 2.25, "averaged": 2.125}[system.checkpoint]
        return {"nll": nll, "perplexity": 100 * nll}

    def named(self, name):
        return [call[1:] for call in self.calls if call[0] == name]


class Loaded:
    """A checkpoint of a system."""

    model = SimpleNamespace(count_params=lambda: 4321)
    run = SimpleNamespace(versions={"keras": "3.15"})

    def __init__(self, checkpoint):
        self.checkpoint = checkpoint

    def replace_branch_weights(self, mode, seed):
        self.weights = (mode, seed)

    def evaluate(self, sources, references):
        (split,) = sources
        assert references == [REFERENCES[split]]
        bleu = Score(BLEU[split] + GAIN[self.checkpoint], f"signature of {split}")
        scores = TranslationScores(bleu, Score(1.0, ""), Score(2.0, ""), 1.0, 2)
        hypotheses = [OUTPUTS[self.checkpoint, split]]
        return SimpleNamespace(scores=scores, hypotheses=hypotheses)


@pytest.fixture
def stage(monkeypatch):
    stage = Stage()
    for owner, name, fake in (
        (run_row, "train", stage.train),
        (run_row, "System", stage),
        (run_row, "open_or_prepare", stage.open_or_prepare),
        (row_scores, "dev_likelihood", stage.dev_likelihood),
    ):
        monkeypatch.setattr(owner, name, fake)
    return stage


@pytest.fixture
def folders(tmp_path):
    for name in ("text", "out", "results"):
        (tmp_path / name).mkdir()
    for name in TRANSLATION.file_names:
        (tmp_path / "text" / name).write_text(f"text of {name}\n")
    return RunFolders(tmp_path / "data", tmp_path / "out", tmp_path / "text")


def pooled(checkpoint):
    outputs = [OUTPUTS[checkpoint, split] for split in ("dev", "test")]
    return sacrebleu.corpus_bleu(outputs, [[*REFERENCES.values()]]).score


def test_a_long_run_scores_its_last_checkpoint_and_the_average_of_five(stage, folders):
    """With the branch weights of each row."""
    plan = plan_of(*find_row("randomisation/random"), "long", 3)
    path, *_ = run_row.run_row(plan, folders)
    ((settings,),) = stage.named("train")
    assert (settings.train_steps, settings.average_last) == (10_000, 5)
    scored = [
        (checkpoint, (mode, 3))
        for mode in ("learned", "random", "uniform")
        for checkpoint in ("latest", "averaged")
    ]
    assert stage.named("load") == [("out", checkpoint) for checkpoint, _ in scored]
    assert stage.named("likelihood") == scored
    result = read_result(path.read_text())
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
    assert result.seconds == 7.0 + 99 / 4 + 50 / 2 + 5.25
    for (checkpoint, split), line in OUTPUTS.items():
        end = ".averaged" if checkpoint == "averaged" else ""
        file = folders.output_dir / f"{split}.weighted_transformer_n2{end}.txt"
        assert file.read_text(encoding="utf-8") == f"{line}\n"


def test_the_papers_recipe_has_no_text_and_saves_by_time(stage, folders):
    plan = plan_of(*find_row("table2/transformer_big"), "paper")
    results = folders.output_dir.with_name("results")
    folders = dataclasses.replace(folders, text_dir=None, result_dir=results)
    (path,) = run_row.run_row(plan, folders)
    assert stage.named("prepare") == [("translate_ende_wmt14", {})]
    ((settings,),) = stage.named("train")
    assert settings.train_steps == 300_000
    assert settings.save_checkpoints_steps is None
    assert settings.save_checkpoints_secs == 600.0
    assert path == results / "transformer_big-paper-1.json"
    result = read_result(path.read_text())
    assert (result.scores, result.data) == ({"BLEU (test)": 23.375}, {})


def test_a_training_that_was_stopped_is_not_scored(stage, folders):
    stage.complete = False
    with pytest.raises(UserError, match="stopped at step 150 of 2500; the same"):
        run_row.run_row(plan_of(*find_row("table3/a_h1")), folders)
    assert stage.named("load") == []


def test_missing_text_is_found_before_anything_is_prepared(stage, folders):
    plan = plan_of(*find_row("table3/a_h1"))
    (folders.text_dir / "val.de").unlink()
    with pytest.raises(UserError, match=r"val\.de is missing"):
        run_row.run_row(plan, folders)
    nowhere = dataclasses.replace(folders, result_dir=folders.data_dir)
    with pytest.raises(UserError, match="result_dir="):
        run_row.run_row(plan, nowhere)
    assert stage.calls == []
