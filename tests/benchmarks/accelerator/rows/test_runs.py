"""Weights that a job kept, as runs and as parsers' results."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import keras
import numpy as np
import pytest

from benchmarks.accelerator.rows import results
from benchmarks.accelerator.rows.batches import export_corpus
from benchmarks.accelerator.rows.job import Job, Outcome, load_jobs, save_jobs
from benchmarks.accelerator.rows.runs import system_folders, write_system
from t2t_repro.data.prepared import PreparedData
from t2t_repro.errors import UserError
from t2t_repro.features.parsing.tree_problem import ParsingProblem
from t2t_repro.features.reproduction.paper_tables import find_row
from t2t_repro.features.reproduction.result_files import read_result
from t2t_repro.features.reproduction.row_plan import plan_of
from t2t_repro.features.reproduction.run_row import open_data
from t2t_repro.models.token_counters import TokenCounters
from t2t_repro.runs import Run, System, load_ensemble
from tests.support.accelerator_jobs import call, make_job, make_outcome

PARSER = "table4/transformer_4_layers_wsj_only"
TINY = (
    "hidden_size=16,filter_size=16,num_heads=2,num_hidden_layers=1,batch_size=64,"
    "max_length=24,packed_length=24,packed_source_length=24,min_length_bucket=8"
)
TREE = "(S (NP (DT the) (NN dog{})) (VP (VBZ barks)))"


def outcome_of(job: Job, data: PreparedData, digest: str = "") -> Outcome:
    kept: dict[str, list[np.ndarray]] = {}
    run = Run(**job.run | {"hparams": job.hparams})
    for seed in job.seeds:
        keras.utils.set_random_seed(seed)
        for variable in run.build_model(*data.tokenizers()).trainable_variables:
            kept.setdefault(f"averaged/{variable.path}", []).append(variable.numpy())
    return make_outcome(digest, **{name: np.stack(x) for name, x in kept.items()})


@pytest.fixture(scope="module")
def translator(data) -> Job:
    hparams = "hidden_size=16,filter_size=16"
    return make_job(data, "transformer_tiny", hparams, keeps_weights=True)


@pytest.fixture(scope="module")
def outcome(data, translator) -> Outcome:
    return outcome_of(translator, data)


def test_several_seeds_become_an_ensemble_with_their_weights(
    data, translator, outcome, tmp_path
):
    folder = tmp_path / "system"
    write_system(translator, outcome, data, folder)
    members = [folder / "member-1", folder / "member-2"]
    assert system_folders(folder) == members
    for number, member in enumerate(members):
        system = System.load(member, "averaged")
        assert system.run.random_seed == translator.seeds[number]
        assert system.run.hparams.filter_size == 16
        for variable in system.model.trainable_variables:
            expected = outcome.arrays[f"averaged/{variable.path}"][number]
            np.testing.assert_array_equal(variable.numpy(), expected)
    assert len(load_ensemble(folder, ["averaged"]).model.members) == 2


def test_one_seed_becomes_a_run(data, translator, outcome, tmp_path):
    job = dataclasses.replace(translator, seeds=(4,))
    write_system(job, outcome, data, tmp_path / "run")
    assert system_folders(tmp_path / "run") == [tmp_path / "run"]
    assert System.load(tmp_path / "run", "averaged").run.random_seed == 4


def test_what_cannot_become_a_run_is_a_user_error(data, translator, outcome, tmp_path):
    without = dataclasses.replace(translator, keeps_weights=False)
    with pytest.raises(UserError, match="job kept no weights: export it again"):
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
    return make_job(
        parser_data,
        "transformer_parsing_small",
        TINY,
        row=PARSER,
        scale="small",
        keeps_weights=True,
    )


@pytest.fixture(scope="module")
def jobs(parser, parser_data, tmp_path_factory) -> Path:
    """Return the folder of the parser's job, which has nothing to translate."""
    folder = tmp_path_factory.mktemp("jobs")
    seeds, updates = parser.seeds, parser.updates
    corpus, _ = export_corpus(parser_data, parser.hparams, seeds, updates, splits=())
    save_jobs(folder, [parser], corpus)
    return folder


def test_a_parser_s_job_has_the_counters_of_its_run(parser, parser_data, jobs):
    source, target = parser_data.tokenizers()
    run = Run(**parser.run | {"hparams": parser.hparams})
    assert parser.counters == run.counters(source, target)
    words, depth = parser.counters.target
    opening = {target.decode([token]) for token in depth.plus}
    assert opening == {"(S", "(NP", "(VP"}
    assert words.plus
    (read,) = load_jobs(jobs)
    assert TokenCounters.from_config(read.counters) == parser.counters


def test_a_translation_job_has_no_counters(translator):
    assert translator.counters is None


def test_the_result_of_a_parser_has_f1_and_its_commands(
    parser, parser_data, trees, jobs, tmp_path, monkeypatch
):
    short = {"beam_size": 1, "extra_length": 9}
    search = ParsingProblem.decode_defaults | short
    monkeypatch.setattr(ParsingProblem, "decode_defaults", search)
    outcomes, files = tmp_path / "outcomes", tmp_path / "results"
    for folder in (outcomes, files):
        folder.mkdir()
    kept = outcome_of(parser, parser_data, parser.digest(jobs))
    kept.save(outcomes / f"{parser.name}.npz")
    folders = {"jobs": jobs, "outcomes": outcomes, "text_dir": trees}
    folders |= {"result_dir": files, "curve_dir": files}
    flags = [f"--{name}={path}" for name, path in folders.items()]
    assert call(results, flags) == 0
    first, second = (
        read_result((files / f"transformer_parsing_wsj-small-{seed}.json").read_text())
        for seed in (4, 5)
    )
    assert {"F1 (dev)", "% repaired (dev)"} < first.scores.keys()
    assert (first.steps, first.seconds, first.seed) == (8, 7.2, 4)
    assert second.hardware == "1 x a GPU, 2 seeds at once, beside other training runs"
    exported, trained, scored = first.commands
    assert f"--scale small --seeds 2 --first_seed 4 {PARSER}" in exported
    assert trained.endswith("--precision float32")
    assert "rows.results --jobs JOBS" in scored
    # The runs are there, and are not written again.
    assert System.load(outcomes / parser.name / "member-2", "averaged")
    assert call(results, flags) == 0


def test_a_row_needs_folders_for_its_files(jobs, parser, parser_data, tmp_path, capsys):
    outcome = outcome_of(parser, parser_data, parser.digest(jobs))
    outcome.save(tmp_path / f"{parser.name}.npz")
    assert call(results, [f"--jobs={jobs}", f"--outcomes={tmp_path}"]) == 1
    assert "rows need --text_dir" in capsys.readouterr().err
