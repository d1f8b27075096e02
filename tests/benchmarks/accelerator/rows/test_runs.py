"""Weights that a job kept, as runs and as parsers' results."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import keras
import numpy as np
import pytest

from benchmarks.accelerator.rows import parsers
from benchmarks.accelerator.rows.export import row_job
from benchmarks.accelerator.rows.job import Job, load_jobs, save_jobs
from benchmarks.accelerator.rows.outcome import Outcome, outcome_path
from benchmarks.accelerator.rows.results import main as results_main
from benchmarks.accelerator.rows.runs import (
    described_run,
    system_folders,
    with_counters,
    write_system,
)
from t2t_repro import catalogue
from t2t_repro.data.prepared import PreparedData
from t2t_repro.errors import UserError
from t2t_repro.features.reproduction.lookup import find_row
from t2t_repro.features.reproduction.plan import plan_of
from t2t_repro.features.reproduction.results import read_result
from t2t_repro.features.reproduction.run_row import open_data
from t2t_repro.runs import System, load_ensemble

PARSER = "table4/transformer_4_layers_wsj_only"
TINY = (
    "hidden_size=16,filter_size=16,num_heads=2,num_hidden_layers=1,batch_size=64,"
    "max_length=24,packed_length=24,packed_source_length=24,min_length_bucket=8"
)
TREE = "(S (NP (DT the) (NN dog{})) (VP (VBZ barks)))"


def job_of(data: PreparedData, details: dict[str, str], hparams: str) -> Job:
    """Return a job of two seeds whose weights are kept."""
    source, target = data.tokenizers()
    return Job(
        name="kept",
        corpus="corpus.npz",
        hparams=catalogue.hparams(details["hparams_set"]).parse(hparams).resolved(),
        vocab_sizes=(source.vocab_size, target.vocab_size),
        seeds=(4, 5),
        train_steps=20,
        measure_every=10,
        average_last=2,
        details=details,
        keeps_weights=True,
    )


def outcome_of(job: Job, data: PreparedData) -> Outcome:
    """Return an outcome with the initial weights of each seed."""
    kept: dict[str, list[np.ndarray]] = {}
    for seed in job.seeds:
        keras.utils.set_random_seed(seed)
        model = described_run(job, data, seed).build_model(*data.tokenizers())
        for variable in model.trainable_variables:
            kept.setdefault(f"averaged/{variable.path}", []).append(variable.numpy())
    return Outcome(
        digest="",
        steps=np.array([10, 20]),
        loss=np.ones((2, 2)),
        nll=np.ones((2, 2)),
        averaged_nll=np.ones(2),
        ids=np.zeros((2, 2, 0, 0), np.uint16),
        seconds=7.25,
        processes=3,
        device="a GPU",
        precision="float32",
        versions=json.dumps({"jax": "1"}),
        parameters=model.count_params(),
        arrays={name: np.stack(values) for name, values in kept.items()},
    )


@pytest.fixture(scope="module")
def translator(data) -> Job:
    details = {"problem": "text_pairs", "hparams_set": "transformer_tiny"}
    return job_of(data, details, "hidden_size=16,filter_size=16")


@pytest.fixture(scope="module")
def outcome(data, translator) -> Outcome:
    return outcome_of(translator, data)


def test_several_seeds_become_an_ensemble_with_their_weights(
    data, translator, outcome, tmp_path
):
    folder = tmp_path / "system"
    write_system(translator, outcome, data, folder)
    members = [folder / "member-1", folder / "member-2"]
    assert system_folders(translator, folder) == members
    for number, member in enumerate(members):
        system = System.load(member, "averaged")
        assert system.run.random_seed == translator.seeds[number]
        assert system.run.hparams.filter_size == 16
        for variable in system.model.trainable_variables:
            expected = outcome.arrays[f"averaged/{variable.path}"][number]
            np.testing.assert_array_equal(variable.numpy(), expected)
    sources, _ = data.raw_text("dev")
    ensemble = load_ensemble(folder, ["averaged"])
    assert len(ensemble.translate(sources[:2])) == 2


def test_one_seed_becomes_a_run(data, translator, outcome, tmp_path):
    job = dataclasses.replace(translator, seeds=(4,))
    write_system(job, outcome, data, tmp_path / "run")
    assert system_folders(job, tmp_path / "run") == [tmp_path / "run"]
    assert System.load(tmp_path / "run", "averaged").run.random_seed == 4


def test_what_cannot_become_a_run_is_a_user_error(data, translator, outcome, tmp_path):
    without = dataclasses.replace(translator, keeps_weights=False)
    with pytest.raises(UserError, match="kept kept no weights: export it again"):
        write_system(without, outcome, data, tmp_path / "new")
    with pytest.raises(UserError, match="exists: give the name of a new folder"):
        write_system(translator, outcome, data, tmp_path)
    assert not any(tmp_path.iterdir())


@pytest.fixture(scope="module")
def trees(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("trees")
    for name, count in (("craft.train.mrg", 300), ("craft.dev.mrg", 3)):
        lines = [f"{TREE.format(n % 40)}\n" for n in range(count)]
        (folder / name).write_text("".join(lines))
    return folder


@pytest.fixture(scope="module")
def parser_data(trees) -> PreparedData:
    recipe = plan_of(*find_row(PARSER)).recipe
    small = dataclasses.replace(recipe, vocab_size=290)
    return open_data(small, trees, trees / "data")


@pytest.fixture(scope="module")
def parser(parser_data) -> Job:
    job = row_job(PARSER, "small", [4, 5], (1, 1))
    details = dict(job.details)
    return with_counters(job_of(parser_data, details, TINY), parser_data)


def test_the_row_of_a_parser_keeps_its_weights():
    assert row_job(PARSER, "small", [1], (1, 1)).keeps_weights
    assert not row_job("table3/base", "small", [1], (1, 1)).keeps_weights


def test_a_parser_s_job_has_the_counters_of_its_run(parser, parser_data, tmp_path):
    source, target = parser_data.tokenizers()
    assert parser.counters == described_run(parser, parser_data, 4).counters(
        source, target
    )
    words, depth = parser.counters.target
    opening = {target.decode([token]) for token in depth.plus}
    assert opening == {"(S", "(NP", "(VP"}
    assert words.plus
    save_jobs([parser], tmp_path)
    assert load_jobs(tmp_path) == [parser]


def test_a_translation_job_has_no_counters(data, translator):
    assert with_counters(translator, data).counters is None


def test_the_result_of_a_parser_has_f1_and_its_commands(
    parser, parser_data, trees, tmp_path, monkeypatch, capsys
):
    # The row's vocabulary needs more text.
    monkeypatch.setattr(parsers, "row_data", lambda *_: parser_data)
    jobs, outcomes, results = (tmp_path / n for n in ("jobs", "outcomes", "results"))
    for folder in (jobs, outcomes, results):
        folder.mkdir()
    (jobs / parser.corpus).write_bytes(b"corpus")
    save_jobs([parser], jobs)
    kept = outcome_of(parser, parser_data)
    dataclasses.replace(kept, digest=parser.digest(jobs)).save(
        outcome_path(outcomes, parser)
    )
    folders = {"jobs": jobs, "outcomes": outcomes, "text_dir": trees}
    folders |= {"data_dir": trees / "data", "to": tmp_path, "result_dir": results}
    flags = [text for name, path in folders.items() for text in (f"--{name}", path)]
    translations = [*map(str, flags[:8]), "--result_dir", str(results)]
    assert results_main([*translations, "--curve_dir", str(results)]) == 1
    assert "not translations: score it with" in capsys.readouterr().err
    assert parsers.main([*map(str, flags)]) == 0
    first, second = (
        read_result(
            (results / f"transformer_parsing_wsj-small-{seed}.json").read_text()
        )
        for seed in (4, 5)
    )
    assert {"F1 (dev)", "% repaired (dev)"} < first.scores.keys()
    assert (first.steps, first.seconds, first.seed) == (20, 7.2, 4)
    assert second.hardware == "1 x a GPU, 2 seeds at once, beside other training runs"
    export, train, score = first.commands
    assert f"--scale small --seeds 2 --first_seed 4 {PARSER}" in export
    assert train.endswith("--precision float32")
    assert "rows.parsers --jobs JOBS" in score
    written = (tmp_path / "kept" / "member-2" / "dev.trees").read_text()
    assert len(written.splitlines()) == 3
