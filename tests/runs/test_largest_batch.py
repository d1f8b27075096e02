"""The trial of the largest batch gets what it needs to give advice."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from t2t_repro import catalogue
from t2t_repro.data.batch_plan import BatchPlan
from t2t_repro.runs import trainer as trainer_module
from t2t_repro.runs.prepared_training import PreparedTraining
from t2t_repro.runs.trainer import memory_advice

SIZES = (700_000, 900_000)  # so the sum of gradients has several tenths of a GB


@pytest.fixture
def trial(monkeypatch):
    """Return the arguments of the trial by name, with updates of three micro-batches.

    They have the hparams as `hparams`, and the number of the set iteration as
    `iterations`.
    """
    found = {}

    def record(step, plan, strategy, variables, *, advice, prepare):
        prepare()
        found.update(step=step, plan=plan, advice=advice)

    monkeypatch.setattr(trainer_module, "try_largest_batch", record)
    monkeypatch.setattr(trainer_module, "device_memory", lambda: 5_000_000_000)
    hparams = catalogue.hparams("transformer_tiny").replace(
        batch_size=640, update_tokens=1920, rdrop_weight=1.0, rdrop_after_steps=30
    )
    plan = BatchPlan.for_training(hparams, 3)
    trainer = SimpleNamespace(
        strategy=SimpleNamespace(num_replicas_in_sync=1),
        show_progress=False,
        train_step="step",
        batches=SimpleNamespace(data=SimpleNamespace(plan=plan)),
        checkpoints=SimpleNamespace(variables={}),
        optimizer=SimpleNamespace(
            iterations=SimpleNamespace(
                assign=lambda value: found.update(iterations=value)
            )
        ),
        first_updates=SimpleNamespace(add=lambda length: found.update(length=length)),
    )
    tokenizers = tuple(SimpleNamespace(vocab_size=size) for size in SIZES)
    data = SimpleNamespace(tokenizers=lambda: tokenizers)
    training = PreparedTraining(None, None, hparams, None, None, None)
    trainer_module.try_memory(training, trainer, data)
    return found | {"hparams": hparams}


def test_the_advice_is_about_the_update_that_failed(trial):
    hparams = trial["hparams"].replace(shared_embedding_and_softmax_weights=False)
    expected = memory_advice(hparams, SIZES, 5_000_000_000, micro_batches=3)
    assert trial["advice"]() == expected
    assert expected != memory_advice(hparams, SIZES, 5_000_000_000)


def test_the_trial_makes_both_passes_and_compiles_the_longest_shape(trial):
    assert (trial["step"], trial["iterations"]) == ("step", 30)
    assert trial["length"] == max(length for _, length in trial["plan"].shapes)
