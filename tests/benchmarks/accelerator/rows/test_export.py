"""Batches of several seeds, as arrays."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from benchmarks.accelerator.rows.corpus import Corpus
from benchmarks.accelerator.rows.export import (
    Uses,
    export_corpus,
    in_order_of_shapes,
    main,
    row_job,
    source_pieces,
    training_batches,
)
from benchmarks.accelerator.rows.job import load_jobs, save_jobs
from t2t_repro import catalogue
from t2t_repro.data.batch_plan import BatchPlan
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


@pytest.mark.parametrize("seed", SEEDS)
def test_a_seed_has_its_own_batches_in_their_order_within_each_shape(
    data, hparams, corpus, seed
):
    plan = BatchPlan.for_training(hparams)
    expected = {}
    for batch in itertools.islice(training_batches(data, plan, seed), STEPS):
        shape = plan.shapes.index(batch["targets"].shape)
        expected.setdefault(shape, []).append(batch)
    for shape, batches in expected.items():
        available = np.sum(corpus.orders[seed].shapes == shape)
        count = min(len(batches), int(available))
        found = corpus.batches(seed, shape, count)
        assert found.keys() == batches[0].keys()
        for name, array in found.items():
            np.testing.assert_array_equal(array, [x[name] for x in batches[:count]])


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
    whole = source_pieces(data, 24, ["dev"])
    assert max(map(len, pieces)) <= 8 < max(map(len, whole))
    joined = {x for piece in pieces for x in piece}
    assert joined == {x for source in whole for x in source}


def test_a_batch_that_waits_keeps_its_turn():
    batches = [Uses(shape, [0], [n]) for n, shape in enumerate([0, 0, 1, 0, 1])]
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


def test_an_unknown_row_is_a_user_error(tmp_path, capsys):
    folders = ["--text_dir", "t", "--data_dir", "d", "--to", str(tmp_path / "jobs")]
    assert main([*folders, "table3/a_h3"]) == 1
    assert "a_h3" in capsys.readouterr().err
    assert not (tmp_path / "jobs").exists()
