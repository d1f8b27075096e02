"""XLA compiles the step if it is asked to, on one replica and on several."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import tensorflow as tf

from t2t_repro.data.pipeline import BATCH_SIGNATURE
from t2t_repro.training import step
from t2t_repro.training.step import StepOptions, make_train_step

MODEL = SimpleNamespace(trainable_variables=["weights"])


class Strategy:
    """A strategy that runs the step of its first replica."""

    def __init__(self, replicas):
        self.num_replicas_in_sync = replicas

    def run(self, function, args):
        self.ran = function, args
        return {"loss": "losses of the replicas"}

    def experimental_local_results(self, value):
        return [f"first of {value}", f"second of {value}"]


@pytest.fixture
def functions(monkeypatch):
    """Record the arguments of `tf.function`, which compiles nothing."""
    calls = []

    def function(wrapped=None, **given):
        if wrapped is None:
            return lambda late: function(late, **given)
        calls.append((wrapped, given))
        return wrapped

    monkeypatch.setattr(tf, "function", function)
    return calls


@pytest.mark.parametrize("jit_compile", [True, False])
def test_the_step_of_one_replica_is_compiled_as_requested(functions, jit_compile):
    options = StepOptions(label_smoothing=0.17, jit_compile=jit_compile)
    made = make_train_step(MODEL, "optimizer", Strategy(1), options)
    ((wrapped, given),) = functions
    assert made is wrapped
    assert (made.model, made.optimizer, made.options) == (MODEL, "optimizer", options)
    assert given == {"input_signature": [BATCH_SIGNATURE], "jit_compile": jit_compile}


@pytest.mark.parametrize("replicas", [1, 2])
def test_a_step_without_its_products_is_not_compiled_as_one_function(
    functions, replicas
):
    options = StepOptions(label_smoothing=0.17, jit_compile=True, jit_products=False)
    make_train_step(MODEL, "optimizer", Strategy(replicas), options)
    ((_, given),) = functions
    assert not given.get("jit_compile")


@pytest.mark.parametrize("jit_compile", [True, False])
def test_only_the_gradients_of_several_replicas_are_compiled(functions, jit_compile):
    options = StepOptions(label_smoothing=0.17, jit_compile=jit_compile)
    strategy = Strategy(2)
    made = make_train_step(MODEL, "optimizer", strategy, options)
    *compiled, (distributed, given) = functions
    assert made is distributed
    assert not given.get("jit_compile")
    assert made("batch") == {"loss": "first of losses of the replicas"}
    replica_step, arguments = strategy.ran
    assert arguments == ("batch",)
    assert replica_step.model is MODEL
    assert (replica_step.optimizer, replica_step.options) == ("optimizer", options)
    # Sums over replicas cannot be compiled.
    gradients = step._ReplicaStep.gradients
    assert [(each.__func__, given) for each, given in compiled] == (
        [(gradients, {"jit_compile": True})] if jit_compile else []
    )
    if jit_compile:
        assert replica_step.gradients is compiled[0][0]


def test_a_step_is_not_compiled_and_not_clipped_by_default():
    options = StepOptions(label_smoothing=0.1)
    assert (options.clip_grad_norm, options.jit_compile) == (0.0, False)
