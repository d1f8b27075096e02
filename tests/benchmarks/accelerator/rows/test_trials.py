"""Trials of a set on text files, without the training itself."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.accelerator.rows.corpus import Corpus
from benchmarks.accelerator.rows.job import load_jobs
from benchmarks.accelerator.rows.outcome import Outcome
from benchmarks.accelerator.rows.results import main as write_results
from benchmarks.accelerator.rows.trials import main
from tests.support.trained_system import write_text

FLAGS = (
    *("--hparams_set", "transformer_tiny", "--vocab_size", "350"),
    *("--train_steps", "4", "--save_checkpoints_steps", "2", "--average_last", "2"),
    *("--hparams", "batch_size=300,max_length=24,min_length_bucket=24"),
    *("--decode_hparams", "beam_size=2,extra_length=7"),
)


@pytest.fixture(scope="module")
def export(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trials")
    text = write_text(folder)
    files = [
        flag
        for split in ("train", "dev")
        for side in ("source", "target")
        for flag in (f"--{split}_{side}", str(text[split, side]))
    ]

    def run(*trials: str):
        jobs = folder / "jobs"
        places = ["--data_dir", str(folder / "data"), "--to", str(jobs)]
        status = main(["export", *FLAGS, *files, *places, "--trials", *trials])
        return status, jobs

    return run


def outcome_of(
    digest: str, corpus: Corpus, tokenizer, translations: list[str]
) -> Outcome:
    ids = np.zeros((2, 2, len(corpus.sources), 40), np.uint16)
    for number, text in enumerate(translations):
        found = [*tokenizer.encode(text), 1]
        ids[1, 0, number, : len(found)] = found
    return Outcome(
        digest=digest,
        steps=np.array([2, 4]),
        loss=np.zeros((2, 2)),
        nll=np.array([[3.0, 2.5], [2.0, 1.5]]),
        averaged_nll=np.array([1.25, 1.0]),
        ids=ids,
        seconds=1.0,
        processes=1,
        device="cpu",
        precision="float32",
        versions="{}",
        parameters=1,
        arrays={},
    )


def test_trials_change_the_set_and_are_scored_on_dev_alone(export, data, capsys):
    status, folder = export("plain", "wet=layer_prepostprocess_dropout=0.4")
    assert status == 0
    plain, wet = load_jobs(folder)
    assert (plain.name, wet.name, plain.seeds) == ("plain", "wet", (1, 2))
    assert wet.hparams.layer_prepostprocess_dropout == 0.4
    assert plain.hparams.layer_prepostprocess_dropout != 0.4
    assert plain.hparams.batch_size == wet.hparams.batch_size == 300
    corpus = Corpus.load(folder / plain.corpus)
    sources, references = data.raw_text("dev")
    assert len(corpus.sources) == len(sources)
    outcome = outcome_of(plain.digest(folder), corpus, data.tokenizers()[1], references)
    outcome.save(folder / "plain.npz")
    capsys.readouterr()
    assert main(["score", "--jobs", str(folder), "--outcomes", str(folder)]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines[1:] == [
        ["plain", "1", "last", "2.000", "0.00"],
        ["plain", "1", "averaged", "1.250", "100.00"],
        ["plain", "2", "last", "1.500", "0.00"],
        ["plain", "2", "averaged", "1.000", "0.00"],
    ]


def test_trials_give_no_result_files(export, data, capsys, tmp_path):
    _, folder = export("plain")
    (plain,) = load_jobs(folder)
    corpus = Corpus.load(folder / plain.corpus)
    _, references = data.raw_text("dev")
    digest = plain.digest(folder)
    outcome_of(digest, corpus, data.tokenizers()[1], references).save(
        folder / "plain.npz"
    )
    flags = [f"--{name}={folder}" for name in ("jobs", "outcomes", "text_dir")]
    flags += [f"--{x}={tmp_path}" for x in ("data_dir", "result_dir", "curve_dir")]
    assert write_results(flags) == 1
    assert "plain is no row of a table" in capsys.readouterr().err


def test_an_outcome_of_another_job_is_not_scored(export, data, capsys):
    _, folder = export("plain")
    (plain,) = load_jobs(folder)
    corpus = Corpus.load(folder / plain.corpus)
    _, references = data.raw_text("dev")
    outcome = outcome_of("other", corpus, data.tokenizers()[1], references)
    outcome.save(folder / "plain.npz")
    assert main(["score", "--jobs", str(folder), "--outcomes", str(folder)]) == 1
    assert "expected the outcome of a job" in capsys.readouterr().err


def test_trials_with_other_batches_are_a_user_error(export, capsys):
    status, _ = export("plain", "short=max_length=20")
    assert status == 1
    assert "export them apart" in capsys.readouterr().err
