"""Translate ids with beam search on Keras's JAX backend."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import jax
import keras
import numpy as np
from keras import ops

from benchmarks.accelerator.rows.corpus import IDS, Texts
from benchmarks.accelerator.rows.seeds import Weights
from t2t_repro.constants import PAD_ID
from t2t_repro.decoding.beam_search import BeamSearchOptions, beam_search
from t2t_repro.settings.decode_hparams import DecodeHParams

# Groups of sources of similar length, searched one after the other.
GROUPS = 2


def translate(
    model: keras.Model,
    weights: Sequence[Weights],
    sources: Texts,
    hparams: DecodeHParams,
) -> np.ndarray:
    """Find the best translation of every source, as `decoding.translate` does.

    Args:
        model: The model.
        weights: Weights in the order of `model.trainable_variables`, per system.
        sources: Sources with EOS.
        hparams: Beam size, alpha and extra length of the search; it has nothing else.

    Returns:
        Ids with EOS, padded, uint16 `[systems, sources, length]`.
    """
    if not len(sources):
        return np.zeros((len(weights), 0, 0), IDS)
    search = _search(model, hparams)
    longest = int(sources.lengths.max()) + hparams.extra_length
    found = np.full((len(weights), len(sources), longest), PAD_ID, IDS)
    for numbers in np.array_split(np.argsort(sources.lengths, kind="stable"), GROUPS):
        inputs = sources.padded(numbers, int(sources.lengths[numbers].max()))
        for system, values in enumerate(weights):
            ids = np.asarray(search(values, inputs))
            found[system, numbers, : ids.shape[1]] = ids
    used = (found != PAD_ID).any(axis=(0, 1))
    return found[:, :, : int(np.flatnonzero(used).max(initial=0)) + 1]


def _search(
    model: keras.Model, hparams: DecodeHParams
) -> Callable[[Weights, np.ndarray], jax.Array]:
    """Make the compiled search of the best ids, int32 `[sources, length]`."""
    options = BeamSearchOptions(beam_size=hparams.beam_size, alpha=hparams.alpha)

    @jax.jit
    def search(weights: Weights, inputs: jax.Array) -> jax.Array:
        values = zip(model.trainable_variables, weights, strict=True)
        with keras.StatelessScope(state_mapping=list(values)):
            longest = inputs.shape[1] + hparams.extra_length
            cache = model.grow_cache(
                model.initial_cache(inputs), longest * hparams.beam_size
            )
            lengths = ops.sum(ops.cast(ops.not_equal(inputs, PAD_ID), "int32"), axis=1)
            found = beam_search(
                model.decode_step,
                cache,
                lengths + hparams.extra_length,
                longest,
                options,
            )
        return found.ids[:, 0]

    return search
