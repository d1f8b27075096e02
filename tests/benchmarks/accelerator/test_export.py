"""Runs whose batches are not exported for JAX."""

from __future__ import annotations

import pytest

from benchmarks.accelerator.export_batches import export_run
from t2t_repro import catalogue
from t2t_repro.errors import UserError
from tests.runs.test_run import make_run


@pytest.mark.parametrize(
    ("hparams", "replicas", "received"),
    [
        ("packed_length=96", 1, "packed_length=96, expected 0"),
        (
            "attention_dropout=0.1,rdrop_weight=1,rdrop_after_steps=5",
            1,
            "rdrop_after_steps=5, expected 0",
        ),
        ("packed_length=0", 3, "a run of 3 replicas, expected one of 1"),
    ],
)
def test_a_run_that_jax_would_train_otherwise_is_refused(
    tmp_path, hparams, replicas, received
):
    given = catalogue.hparams("transformer_tiny").parse(hparams)
    make_run(hparams=given, num_replicas=replicas).save(tmp_path)
    with pytest.raises(UserError, match=received):
        export_run(tmp_path, 2, tmp_path / "arrays")
    assert not (tmp_path / "arrays").exists()
