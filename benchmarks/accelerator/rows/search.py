"""Translate ids with beam search on Keras's JAX backend."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping

import jax
import keras
import numpy as np
from keras import ops

from benchmarks.accelerator.rows.corpus import IDS, Arrays, Texts
from benchmarks.accelerator.rows.seeds import Weights
from t2t_repro.constants import PAD_ID
from t2t_repro.decoding.beam import beam_search
from t2t_repro.decoding.beam_state import BeamSearchOptions
from t2t_repro.settings.decode_hparams import DecodeHParams

# Groups of sources of similar length, searched one after the other.
GROUPS = 2


def translate(
    model: keras.Model,
    systems: Mapping[str, Weights],
    sources: Texts,
    hparams: DecodeHParams,
) -> Arrays:
    """Find the best translation of every source, as `decoding.translator` does.

    Args:
        model: The model.
        systems: Weights of all seeds, by system.
        sources: Sources with EOS.
        hparams: Beam size, alpha and extra length of the search; it has nothing else.

    Returns:
        Ids with EOS, padded, uint16 `[seeds, sources, length]`, by system, if there are
        sources.
    """
    if not len(sources):
        return {}
    search = compiled_search(model, hparams)
    longest = int(sources.lengths.max()) + hparams.extra_length
    shape = len(next(iter(systems.values()))[0]), len(sources), longest
    found = {name: np.full(shape, PAD_ID, IDS) for name in systems}
    for numbers in np.array_split(np.argsort(sources.lengths, kind="stable"), GROUPS):
        inputs = sources.padded(numbers, int(sources.lengths[numbers].max()))
        for name, seed in itertools.product(systems, range(shape[0])):
            weights = [values[seed] for values in systems[name]]
            ids = np.asarray(search(weights, inputs))
            found[name][seed, numbers, : ids.shape[1]] = ids
    return found


def compiled_search(
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
            limits = lengths + hparams.extra_length
            found = beam_search(model.decode_step, cache, limits, longest, options)
        return found.ids[:, 0]

    return search
