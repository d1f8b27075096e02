"""What is logged before a training run."""

from __future__ import annotations

import logging
from types import SimpleNamespace

import pytest
import tensorflow as tf

from t2t_repro import catalogue
from t2t_repro.data.pipeline import BatchPlan
from t2t_repro.errors import UserError
from t2t_repro.runs import training_summary
from tests.support.recorder import record


class Counts(SimpleNamespace):
    """Counts of a split of which three pairs are longer than 40 tokens."""

    pairs_written = 500

    def longer_than(self, length):
        return {40: self.left_out}[length]


def summary(caplog, jit_compile=False, plan=None, **left_out):
    """Return what the summary of a run logs."""
    caplog.set_level(logging.INFO, "t2t_repro")
    splits = {split: Counts(left_out=count) for split, count in left_out.items()}
    training_summary.log_summary(
        SimpleNamespace(
            hparams=catalogue.hparams("transformer_tiny").replace(max_length=40),
            hparams_set="the set",
            problem="the problem",
            num_replicas=3,
        ),
        SimpleNamespace(manifest=SimpleNamespace(splits=splits)),
        SimpleNamespace(count_params=lambda: 1234),
        plan or BatchPlan((13, 40), (8, 5)),
        jit_compile,
    )
    return caplog.messages


def test_the_summary_names_model_data_and_shapes(caplog):
    assert summary(caplog) == [
        "the set on the problem: 1,234 parameters",
        "2 batch shapes, rows x length: 8 x 13, 5 x 40",
    ]


@pytest.mark.parametrize(
    ("jit_compile", "plan", "expected"),
    [
        (False, BatchPlan((13,), (8,)), "1 batch shape, rows x length: 8 x 13"),
        (True, BatchPlan((13,), (8,)), "8 x 13; XLA compiles each once"),
        (
            False,
            BatchPlan((40,), (3,), packed_length=50, packed_source_length=30),
            "3 x 50 (of sources: 30)",
        ),
    ],
)
def test_shapes_are_counted_and_described(
    caplog, monkeypatch, jit_compile, plan, expected
):
    monkeypatch.setattr(training_summary, "log_left_out", lambda *_: None)
    assert summary(caplog, jit_compile, plan)[-1].endswith(expected)


def test_pairs_left_out_are_counted_in_train_and_dev_if_there_are_any(caplog):
    lines = summary(caplog, train=0, dev=3, test=4)
    assert [line for line in lines if "left out" in line] == [
        "dev: left out 3 of 500 pairs, which are longer than max_length=40"
    ]


@pytest.mark.parametrize(("source_length", "left_out"), [(30, 17), (30, 0), (50, 17)])
def test_sources_that_fit_no_packed_row_are_counted_as_well(
    monkeypatch, caplog, source_length, left_out
):
    found = record(
        monkeypatch, training_summary, "left_out_by_packing", ["a pair"] * left_out
    )
    plan = BatchPlan((40,), (3,), packed_length=50, packed_source_length=source_length)
    data = SimpleNamespace(manifest=SimpleNamespace(splits={}), shards=str.upper)
    training_summary.log_left_out(data, 40, plan)
    if source_length == 50:
        assert found.calls == []
    else:
        assert found.call == {"shards": "TRAIN", "plan": plan}
    expected = [
        "train: left out 17 more pairs, whose sources are longer than "
        "packed_source_length=30"
    ]
    assert caplog.messages == (
        expected if (source_length, left_out) == (30, 17) else []
    )


def test_damaged_data_is_reported_while_sources_are_counted(monkeypatch):
    def damaged(*_):
        raise tf.errors.DataLossError(None, None, "corrupted record")
        yield

    monkeypatch.setattr(training_summary, "left_out_by_packing", damaged)
    plan = BatchPlan((40,), (3,), packed_length=50, packed_source_length=30)
    data = SimpleNamespace(manifest=SimpleNamespace(splits={}), shards=str.upper)
    with pytest.raises(UserError, match="cannot read the prepared data"):
        training_summary.log_left_out(data, 40, plan)
