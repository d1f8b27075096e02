"""Scores of runs that are no rows of a table, without the training itself."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from benchmarks.accelerator.rows import export, results
from benchmarks.accelerator.rows.corpus import Corpus
from benchmarks.accelerator.rows.job import load_jobs
from t2t_repro.runs.describing import describe
from t2t_repro.runs.resuming import resolved_hparams
from t2t_repro.runs.run import save_tokenizers
from t2t_repro.settings.train_settings import TrainSettings
from tests.support.accelerator_jobs import call, make_outcome

HPARAMS = "batch_size=300,max_length=24,min_length_bucket=24"


@pytest.fixture(scope="module")
def folder(data, tmp_path_factory):
    """Make two runs as `t2t train --train_steps 1` does, except for checkpoints."""
    folder = tmp_path_factory.mktemp("runs")
    changes = {
        "plain": HPARAMS,
        "wet": f"{HPARAMS},layer_prepostprocess_dropout=0.4",
        "short": HPARAMS.replace("24", "20"),
    }
    for name, hparams in changes.items():
        settings = TrainSettings(
            output_dir=str(folder / name),
            hparams_set="transformer_tiny",
            hparams=hparams,
            train_steps=1,
            save_checkpoints_steps=2,
            average_last=2,
            decode_hparams="beam_size=2,extra_length=7",
        )
        run = describe(settings, resolved_hparams(settings), data, 1)
        (folder / name).mkdir()
        names = save_tokenizers(folder / name, *data.tokenizers())
        dataclasses.replace(run, tokenizers=names).save(folder / name)
    return folder


def export_runs(folder, *names):
    to = folder / "jobs"
    flags = ["--to", str(to), "--seeds", "2", "--train_steps", "4"]
    status = call(export, [*flags, *(str(folder / name) for name in names)])
    return status, to


def score(folder):
    return call(results, ["--jobs", str(folder), "--outcomes", str(folder)])


def test_runs_are_scored_on_dev_alone(folder, data, capsys):
    status, jobs = export_runs(folder, "plain", "wet")
    assert status == 0
    plain, wet = load_jobs(jobs)
    assert (plain.name, wet.name, plain.seeds, plain.updates) == (
        *("plain", "wet"),
        [1, 2],
        4,
    )
    assert wet.hparams.layer_prepostprocess_dropout == 0.4
    assert plain.hparams.layer_prepostprocess_dropout != 0.4
    assert plain.hparams.batch_size == wet.hparams.batch_size == 300
    assert plain.run["training"]["train_steps"] == 4
    corpus = Corpus.load(jobs / "corpus.npz")
    sources, references = data.raw_text("dev")
    assert len(corpus.sources) == len(sources)
    nothing = np.zeros((2, len(sources), 40), np.uint16)
    perfect = nothing.copy()
    for number, text in enumerate(references):
        ids = [*data.tokenizers()[1].encode(text), 1]
        perfect[0, number, : len(ids)] = ids
    arrays = {"ids/last": nothing, "ids/averaged": perfect}
    make_outcome(plain.digest(jobs), **arrays).save(jobs / "plain.npz")
    capsys.readouterr()
    assert score(jobs) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines[1:] == [
        ["plain", "1", "last", "2.000", "0.00"],
        ["plain", "1", "averaged", "1.250", "100.00"],
        ["plain", "2", "last", "1.500", "0.00"],
        ["plain", "2", "averaged", "1.000", "0.00"],
    ]


def test_an_outcome_of_another_job_is_not_scored(folder, capsys):
    _, jobs = export_runs(folder, "plain")
    make_outcome("other").save(jobs / "plain.npz")
    assert score(jobs) == 1
    assert "expected the outcome of a job" in capsys.readouterr().err


def test_runs_with_other_batches_are_a_user_error(folder, capsys):
    status, _ = export_runs(folder, "plain", "short")
    assert status == 1
    assert "export them apart" in capsys.readouterr().err


def test_only_one_run_can_be_resumed(folder, capsys):
    flags = ["--to", str(folder / "jobs"), "--resume"]
    assert call(export, [*flags, *(str(folder / x) for x in ("plain", "wet"))]) == 1
    assert call(export, [*flags, "table3/base"]) == 1
    assert capsys.readouterr().err.count("--resume needs the folder of one run") == 2
