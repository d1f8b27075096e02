from __future__ import annotations

import keras
import pytest
import tensorflow as tf

from t2t_repro import catalogue
from t2t_repro.errors import UserError
from t2t_repro.training.setup import make_optimizer, make_strategy, xla_is_wise


@pytest.fixture(scope="module")
def base():
    return catalogue.hparams("transformer_base")


def test_one_device_needs_no_strategy():
    assert make_strategy(1).num_replicas_in_sync == 1


def test_replicas_asked_for_too_late_are_a_users_error():
    tf.constant(0)
    with pytest.raises(UserError, match="cannot make 2 CPU replicas"):
        make_strategy(2)


def test_xla_is_used_with_one_replica():
    assert xla_is_wise(tf.distribute.get_strategy())


def test_adam_has_the_papers_values(base):
    optimizer = make_optimizer(base)
    values = (optimizer.beta_1, optimizer.beta_2, optimizer.epsilon)
    assert values == (0.9, 0.98, 1e-9)


def test_the_learning_rate_follows_the_schedule(base):
    optimizer = make_optimizer(base)
    optimizer.build([keras.Variable([0.0])])
    rates = []
    for done in (0, 3999, 15999):
        optimizer.iterations.assign(done)
        rates.append(float(optimizer.learning_rate.numpy()))
    # equation (3) at steps 1, 4,000 and 16,000
    expected = [512**-0.5 * min(s**-0.5, s * 4000**-1.5) for s in (1, 4000, 16000)]
    assert rates == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(
    ("dtype", "scaled"), [("float32", False), ("bfloat16", False), ("float16", True)]
)
def test_only_float16_has_its_loss_scaled(base, dtype, scaled):
    optimizer = make_optimizer(base.replace(activation_dtype=dtype))
    assert isinstance(optimizer, keras.optimizers.LossScaleOptimizer) == scaled


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_names_in_checkpoints_do_not_depend_on_what_was_made_before(base, dtype):
    paths = []
    for _ in range(2):
        optimizer = make_optimizer(base.replace(activation_dtype=dtype))
        optimizer.build([keras.Variable([0.0], name="weight")])
        paths.append([variable.path for variable in optimizer.variables])
    assert paths[0] == paths[1]
    assert len(set(paths[0])) == len(paths[0])
