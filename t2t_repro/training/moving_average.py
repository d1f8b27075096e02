"""Use the exponential moving average of the weights, which the optimizer keeps.

Keras updates it after every update: average = decay * average + (1 - decay) * weight,
beginning with the weights after the first update. It is part of the optimizer's state,
so checkpoints hold it and a resumed run continues it exactly.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import keras
import tensorflow as tf

_SUFFIX = "_average"


def moving_averages(
    model: keras.Model, optimizer: keras.optimizers.Optimizer
) -> list[tuple[keras.Variable, tf.Variable]]:
    """Return the trained weights with their averages; empty if there are none.

    Args:
        model: The model.
        optimizer: Its optimizer, built.
    """
    averages = {
        variable.name.removesuffix(_SUFFIX): variable.value
        for variable in optimizer.variables
        if variable.name.endswith(_SUFFIX)
    }
    # Keras names a variable of the optimizer after the path of its weight.
    names = {v.path.replace("/", "_"): v for v in model.trainable_variables}
    return [(names[name], average) for name, average in averages.items()]


@contextlib.contextmanager
def averaged_weights(
    model: keras.Model, optimizer: keras.optimizers.Optimizer
) -> Iterator[None]:
    """Give a model its averaged weights inside a `with` block.

    Afterwards, it has exactly the weights of before. A constraint, such as the one of a
    Weighted Transformer's kappa and alpha, holds for the averages, too: Keras averages
    weights before it applies constraints.

    Args:
        model: The model.
        optimizer: Its optimizer. Without a moving average, nothing changes.
    """
    pairs = moving_averages(model, optimizer)
    own = [weight.numpy() for weight, _ in pairs]
    try:
        for weight, average in pairs:
            value = tf.convert_to_tensor(average)
            constrained = weight.constraint(value) if weight.constraint else value
            weight.assign(constrained)
        yield
    finally:
        for (weight, _), value in zip(pairs, own, strict=True):
            weight.assign(value)
