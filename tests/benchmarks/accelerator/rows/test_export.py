"""Batches of several seeds, as arrays."""

from __future__ import annotations

import dataclasses
import itertools
import json

import keras
import numpy as np
import pytest

from benchmarks.accelerator.rows import export
from benchmarks.accelerator.rows.batches import (
    contents_of,
    export_corpus,
    in_order_of_kinds,
    source_pieces,
    training_batches,
)
from benchmarks.accelerator.rows.corpus import Corpus
from benchmarks.accelerator.rows.export import job_of
from benchmarks.accelerator.rows.job import load_jobs, save_jobs
from t2t_repro import catalogue
from t2t_repro.data.batch_plan import BatchPlan
from t2t_repro.data.pipeline import training_epoch
from t2t_repro.errors import UserError
from t2t_repro.features.reproduction.paper_tables import find_row
from t2t_repro.features.reproduction.row_plan import plan_of
from t2t_repro.features.reproduction.run_row import train_settings
from t2t_repro.runs.run import describe_run
from t2t_repro.runs.training_config import resolved_hparams
from tests.support.accelerator_jobs import call, make_job

SEEDS, STEPS = (3, 4), 14
# A pass over the data is shorter than the steps, and has several shapes.
UNPACKED = "batch_size=300,max_length=24,min_length_bucket=12,length_bucket_step=1.3"
PACKED = "batch_size=300,max_length=24,packed_length=50"


@pytest.fixture(scope="module", params=[UNPACKED, PACKED], ids=["unpacked", "packed"])
def hparams(request):
    return catalogue.hparams("transformer_tiny").parse(request.param).resolved()


@pytest.fixture(scope="module")
def corpus(data, hparams, tmp_path_factory) -> Corpus:
    path = tmp_path_factory.mktemp("corpus") / "corpus.npz"
    export_corpus(data, hparams, SEEDS, STEPS)[0].save(path)
    return Corpus.load(path)


def epoch_of(data, plan, seed, epoch) -> list[dict[str, np.ndarray]]:
    """Return a pass over the data as `t2t train` makes it."""
    keras.utils.set_random_seed(seed)
    dataset = training_epoch(data.shards("train"), plan, seed=seed, epoch=epoch)
    return [*dataset.as_numpy_iterator()]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_seed_has_its_own_batches_in_their_order_within_each_shape(
    data, hparams, corpus, seed
):
    plan = BatchPlan.for_training(hparams)
    passes = [epoch_of(data, plan, seed, epoch) for epoch in (0, 1)]
    assert len(passes[0]) < STEPS
    expected = {}
    for batch in itertools.chain(*passes):
        shape = plan.shapes.index(batch["targets"].shape)
        expected.setdefault(shape, []).append(batch)
    for shape, batches in expected.items():
        available = int(np.sum(corpus.order == shape))
        count = min(len(batches), available)
        assert count > 1
        found = corpus.batches(seed, shape, count)
        assert found.keys() == batches[0].keys()
        for name, array in found.items():
            np.testing.assert_array_equal(array, [x[name] for x in batches[:count]])


def test_all_seeds_have_the_shapes_of_the_first_seeds_batches(data, hparams, corpus):
    plan = BatchPlan.for_training(hparams)
    batches = itertools.islice(training_batches(data, plan, SEEDS[0]), STEPS)
    shapes = [plan.shapes.index(batch["targets"].shape) for _, batch in batches]
    assert [*corpus.pairs] == [*SEEDS]
    assert corpus.order.tolist() == shapes
    assert [rows for rows, *_ in corpus.kinds] == [*plan.rows]


def test_batches_can_begin_in_the_middle_of_a_pass(data):
    hparams = catalogue.hparams("transformer_tiny").parse(UNPACKED).resolved()
    corpus, end = export_corpus(data, hparams, SEEDS[:1], STEPS)
    assert end > (1, 0)
    rest, same_end = export_corpus(data, hparams, SEEDS[:1], STEPS - 3, start=(0, 3))
    assert same_end == end
    assert rest.order.tolist() == corpus.order[3:].tolist()
    later = corpus.pairs[SEEDS[0]]
    later = later[later[:, 0] >= 3] - [3, 0, 0]
    np.testing.assert_array_equal(rest.pairs[SEEDS[0]], later)


def test_the_sources_are_those_of_dev_and_test_each_once(data, corpus):
    tokenizer, _ = data.tokenizers()
    lines = [line for split in ("dev", "test") for line in data.raw_text(split)[0]]
    encoded = [(*ids, 1) for ids in tokenizer.encode_batch(lines)]
    rows = corpus.sources.padded(range(len(corpus.sources)), 64)
    assert [tuple(int(x) for x in row if x) for row in rows] == encoded
    assert source_pieces(data, 24, ["dev", "test", "dev"]) == encoded


def test_a_long_source_is_there_in_pieces(data):
    pieces = source_pieces(data, 8, ["dev"])
    tokenizer, _ = data.tokenizers()
    for ids in tokenizer.encode_batch(data.raw_text("dev")[0]):
        parts = [(*ids[start : start + 7], 1) for start in range(0, len(ids), 7)]
        assert len(parts) > 1
        assert set(parts) <= set(pieces)
    assert len(set(pieces)) == len(pieces)


def test_a_batch_that_waits_keeps_its_turn():
    batches = [(kind, [(0, n)]) for n, kind in enumerate([0, 0, 1, 0, 1])]
    found = in_order_of_kinds(iter(batches), [1, 0, 1, 0])
    assert [pairs for _, pairs in found] == [[(0, 2)], [(0, 0)], [(0, 4)], [(0, 1)]]


def row_job(data, name, scale, seeds):
    settings = train_settings(plan_of(*find_row(name), scale), "")
    run = describe_run(settings, resolved_hparams(settings), data.problem.name, data)
    return job_of(name.replace("/", "-"), run, data, seeds, row=name, scale=scale)


def test_jobs_are_read_as_they_were_written(data, corpus, tmp_path):
    weighted = row_job(data, "forms/weighted", "long", [1, 2])
    big = row_job(data, "table3/big", "small", [5])
    save_jobs(tmp_path, [weighted, big], corpus)
    read = load_jobs(tmp_path)
    for job, other in zip([weighted, big], read, strict=True):
        assert vars(other) == json.loads(json.dumps(vars(job)))
        assert other.digest(tmp_path) == job.digest(tmp_path)
    assert (weighted.updates, weighted.average_last) == (10_000, 5)
    assert (weighted.measure_every, weighted.decode_hparams.beam_size) == (200, 4)
    assert (big.updates, big.average_last, big.name) == (2_500, 1, "table3-big")
    short = make_job(data, "transformer_tiny", "", first_step=1)
    assert (short.updates, short.measure_every, short.average_last) == (7, 7, 1)
    assert weighted.hparams.branch_learning_rate_constant == 0.32


def test_a_folder_without_jobs_is_a_user_error(tmp_path):
    with pytest.raises(UserError, match=r"expected a folder with jobs\.json"):
        load_jobs(tmp_path)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("table3/a_h3", "a_h3"),
        ("randomisation/learned", "expected a row of one system"),
    ],
)
def test_a_row_that_cannot_be_exported_is_a_user_error(tmp_path, capsys, row, message):
    folders = ["--text_dir", "t", "--data_dir", "d", "--to", str(tmp_path / "jobs")]
    assert call(export, [*folders, "--scale", "small", row]) == 1
    assert message in capsys.readouterr().err
    assert not (tmp_path / "jobs").exists()


@pytest.mark.parametrize("count", ["0", "x", ""])
def test_a_number_of_seeds_is_at_least_one(count, capsys):
    with pytest.raises(SystemExit, match="2"):
        call(export, ["--data_dir=d", "--to=jobs", f"table3/base:{count}"])
    assert "expected a whole number of at least 1" in capsys.readouterr().err


def test_what_cannot_be_trained_there_is_a_user_error(data):
    job = make_job(data, "transformer_tiny", "")
    run = describe_run(
        train_settings(plan_of(*find_row("table3/base"), "long"), ""),
        job.hparams,
        data.problem.name,
        data,
    )
    training = run.training | {"decode_hparams": "beam_size=2,coverage_penalty=0.1"}
    for changes, message in (
        ({"num_replicas": 2}, "a run of one replica"),
        ({"training": training}, "only beam_size, alpha"),
    ):
        with pytest.raises(UserError, match=message):
            job_of("name", dataclasses.replace(run, **changes), data, [1])
    with pytest.raises(UserError, match="train_steps above 8"):
        make_job(data, "transformer_tiny", "", first_step=8)


def test_the_digest_of_a_job_is_that_of_its_files_too(data, tmp_path):
    job = make_job(data, "transformer_tiny", "")
    (tmp_path / "corpus.npz").write_bytes(b"a")
    resumed = dataclasses.replace(job, resumes=True)
    (tmp_path / "state.npz").write_bytes(b"a")
    found = [job.digest(tmp_path), dataclasses.replace(job, seeds=(1, 3)), resumed]
    found[1:] = [other.digest(tmp_path) for other in found[1:]]
    (tmp_path / "state.npz").write_bytes(b"b")
    found.append(resumed.digest(tmp_path))
    (tmp_path / "corpus.npz").write_bytes(b"b")
    found.append(job.digest(tmp_path))
    assert len({*found}) == 5


def test_a_pair_that_is_not_in_the_text_is_a_user_error(data, hparams):
    plan = BatchPlan.for_training(hparams)
    _, batch = next(training_batches(data, plan, 3))
    with pytest.raises(UserError, match="several copies"):
        contents_of(batch, plan, {})
