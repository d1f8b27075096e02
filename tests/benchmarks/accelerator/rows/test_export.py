"""Batches of several seeds, as arrays."""

from __future__ import annotations

import dataclasses
import itertools

import keras
import numpy as np
import pytest

from benchmarks.accelerator.rows.batches import (
    BatchPairs,
    export_corpus,
    in_order_of_shapes,
    pairs_of_batch,
    source_pieces,
    training_batches,
)
from benchmarks.accelerator.rows.corpus import Corpus
from benchmarks.accelerator.rows.export import main, row_job
from benchmarks.accelerator.rows.job import load_jobs, save_jobs
from t2t_repro import catalogue
from t2t_repro.data.batch_plan import BatchPlan
from t2t_repro.data.pipeline import training_epoch
from t2t_repro.errors import UserError

SEEDS, STEPS = (3, 4), 40
# A pass over the data is shorter than the steps, and has several shapes.
UNPACKED = "batch_size=300,max_length=24,min_length_bucket=12,length_bucket_step=1.3"
PACKED = "batch_size=300,max_length=24,packed_length=50"


@pytest.fixture(scope="module", params=[UNPACKED, PACKED], ids=["unpacked", "packed"])
def hparams(request):
    return catalogue.hparams("transformer_tiny").parse(request.param).resolved()


@pytest.fixture(scope="module")
def corpus(data, hparams, tmp_path_factory) -> Corpus:
    path = tmp_path_factory.mktemp("corpus") / "corpus.npz"
    export_corpus(data, hparams, SEEDS, STEPS).save(path)
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
        available = int(np.sum(corpus.orders[seed].shapes == shape))
        count = min(len(batches), available)
        assert count > 1
        found = corpus.batches(seed, shape, count)
        assert found.keys() == batches[0].keys()
        for name, array in found.items():
            np.testing.assert_array_equal(array, [x[name] for x in batches[:count]])


def test_seeds_have_different_batches(corpus):
    shape = int(corpus.orders[SEEDS[0]].shapes[0])
    first, second = (corpus.batches(seed, shape, 1)["targets"] for seed in SEEDS)
    assert (first != second).any()


def test_all_seeds_have_the_shapes_of_the_first_seeds_batches(data, hparams, corpus):
    plan = BatchPlan.for_training(hparams)
    batches = itertools.islice(training_batches(data, plan, SEEDS[0]), STEPS)
    shapes = [plan.shapes.index(batch["targets"].shape) for batch in batches]
    assert [*corpus.orders] == [*SEEDS]
    for order in corpus.orders.values():
        assert order.shapes.tolist() == shapes
    assert [rows for rows, *_ in corpus.shapes] == [*plan.rows]


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
    batches = [BatchPairs(shape, [0], [n]) for n, shape in enumerate([0, 0, 1, 0, 1])]
    found = in_order_of_shapes(iter(batches), [1, 0, 1, 0])
    assert [uses.pairs for uses in found] == [[2], [0], [4], [1]]


def test_jobs_are_read_as_they_were_written(tmp_path):
    jobs = [
        row_job("forms/weighted", "long", [1, 2], (10, 10)),
        row_job("table3/big", "small", [5], (10, 12)),
    ]
    save_jobs(jobs, tmp_path)
    assert load_jobs(tmp_path) == jobs
    weighted, big = jobs
    assert (weighted.train_steps, weighted.average_last) == (10_000, 5)
    assert (weighted.measure_every, weighted.decode_hparams.beam_size) == (200, 4)
    assert (big.train_steps, big.average_last, big.name) == (
        2_500,
        1,
        "table3-big-small",
    )
    assert weighted.hparams.branch_learning_rate_constant == 0.32


def test_a_folder_without_jobs_is_a_user_error(tmp_path):
    with pytest.raises(UserError, match=r"expected a folder with jobs\.json"):
        load_jobs(tmp_path)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("table3/a_h3", "a_h3"),
        ("randomisation/learned", "expected the row of one system"),
    ],
)
def test_a_row_that_cannot_be_exported_is_a_user_error(tmp_path, capsys, row, message):
    folders = ["--text_dir", "t", "--data_dir", "d", "--to", str(tmp_path / "jobs")]
    assert main([*folders, "--scale", "small", row]) == 1
    assert message in capsys.readouterr().err
    assert not (tmp_path / "jobs").exists()


@pytest.mark.parametrize("count", ["0", "x", "-1", ""])
def test_a_number_of_seeds_is_at_least_one(count, capsys):
    folders = ["--text_dir", "t", "--data_dir", "d", "--to", "jobs"]
    with pytest.raises(SystemExit, match="2"):
        main([*folders, f"table3/base:{count}"])
    assert "TABLE/ROW[:SEEDS]: " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"measure_every": 300}, "multiple of measure_every=300"),
        ({"average_last": 51}, "expected 1 to 50 measurements"),
        ({"vocab_sizes": (10, 70_000)}, "at most 65,536"),
        ({"search": "beam_size=2,coverage_penalty=0.1"}, "only beam_size, alpha"),
        ({"seeds": ()}, "at least one"),
    ],
)
def test_a_job_that_cannot_be_trained_is_a_user_error(change, message):
    job = row_job("forms/weighted", "long", [1, 2], (10, 10))
    with pytest.raises(UserError, match=message):
        dataclasses.replace(job, **change)


def test_the_digest_of_a_job_is_that_of_its_corpus_too(tmp_path):
    job = row_job("forms/weighted", "long", [1, 2], (10, 10))
    with pytest.raises(UserError, match="does not exist"):
        job.digest(tmp_path)
    (tmp_path / job.corpus).write_bytes(b"a")
    digest = job.digest(tmp_path)
    other = dataclasses.replace(job, seeds=(1, 3))
    assert other.digest(tmp_path) != digest
    (tmp_path / job.corpus).write_bytes(b"b")
    assert job.digest(tmp_path) != digest


def test_a_pair_that_is_not_in_the_text_is_a_user_error(data, hparams):
    plan = BatchPlan.for_training(hparams)
    batch = next(training_batches(data, plan, 3))
    with pytest.raises(UserError, match="several copies"):
        pairs_of_batch(batch, plan, {})
