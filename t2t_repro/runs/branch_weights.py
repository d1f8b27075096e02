"""Monitor, read and replace kappa and alpha of a Weighted Transformer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import keras
import numpy as np

from t2t_repro.constants import BRANCH_WEIGHT_MODES
from t2t_repro.errors import UserError
from t2t_repro.training.metrics_file import BRANCHES_SPLIT, TRAIN_SPLIT
from t2t_repro.training.metrics_log import MetricsLog, Monitor

_SUBLAYERS = ("self_attention", "memory_attention", "feed_forward")


def branched_layers(
    model: keras.Model,
) -> Iterator[tuple[str, dict[str, keras.layers.Layer]]]:
    """Yield the layers with branches.

    Args:
        model: A `Transformer`.

    Yields:
        A name such as "encoder/layer_0", and the sublayers that own "kappa" and
        "alpha". They are one sublayer or two. With `branch_merged`, "kappa" is missing.
    """
    for stack in (model.encoder, model.decoder):
        for layer in stack.layers:
            owners = {
                kind: part
                for part in (getattr(layer, name, None) for name in _SUBLAYERS)
                for kind in ("kappa", "alpha")
                if hasattr(part, kind)
            }
            if owners:
                yield f"{stack.name}/{layer.name}", owners


def branch_monitor(model: keras.Model, log: MetricsLog) -> Monitor:
    """Make a monitor that logs kappa and alpha of every layer (figure 3).

    Args:
        model: A `Transformer` with branched attention.
        log: The log that it watches and writes to.
    """

    def write(split: str, step: int, _: Mapping[str, float]) -> None:
        if split != TRAIN_SPLIT:
            return
        values = {}
        for name, owners in branched_layers(model):
            for kind, numbers in _weights_of(owners).items():
                for branch, number in enumerate(numbers):
                    values[f"{name}/{kind}/{branch}"] = number
        log.scalars(BRANCHES_SPLIT, step, values)

    return write


def branch_values(model: keras.Model) -> list[dict[str, Any]]:
    """Return kappa and alpha of every layer, for the tab "Attention".

    Args:
        model: A `Transformer` with branched attention.

    Returns:
        Dictionaries with "name", such as "encoder layer 1", and "kappa" and "alpha" as
        far as the layer has them, one number per branch.
    """
    return [
        {"name": _title(name), **_weights_of(owners)}
        for name, owners in branched_layers(model)
    ]


def _weights_of(owners: dict[str, keras.layers.Layer]) -> dict[str, list[float]]:
    return {
        kind: keras.ops.convert_to_numpy(owner.branch_weights()[kind]).tolist()
        for kind, owner in owners.items()
    }


def _title(name: str) -> str:
    """Return "encoder layer 1" for "encoder/layer_0"."""
    stack, _, number = name.replace("/", " ").rpartition("_")
    return f"{stack} {int(number) + 1}"


def replace_branch_weights(model: keras.Model, mode: str, seed: int) -> None:
    """Replace kappa and alpha in a trained model by random weights or by 1 / M.

    This is the randomization baseline of the Weighted Transformer (section 4.4), which
    replaces them at test time only.

    Args:
        model: A trained `Transformer` with branched attention.
        mode: "learned" (nothing changes), "random" (uniform numbers divided by their
            sum, as with `branch_weights_init=random`) or "uniform".
        seed: Seed of the random weights.

    Raises:
        ValueError: If `mode` is unknown.
        UserError: If the model has no branches.
    """
    if mode not in BRANCH_WEIGHT_MODES:
        raise ValueError(
            f"`mode` must be one of {BRANCH_WEIGHT_MODES}. Received: {mode!r}"
        )
    if mode == "learned":
        return
    layers = list(branched_layers(model))
    if not layers:
        raise UserError(
            f"received branch weights {mode}, expected a Weighted Transformer: this "
            "model has no branches."
        )
    random = np.random.default_rng(seed)
    for _, owners in layers:
        for kind, owner in owners.items():
            weight = getattr(owner, kind)
            (size,) = weight.shape
            draw = random.random(size) if mode == "random" else np.ones(size)
            values = draw / draw.sum()
            is_softmax = owner.branch_normalization == "softmax"
            weight.assign(np.log(values) if is_softmax else values)
