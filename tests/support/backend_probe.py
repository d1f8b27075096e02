"""A model and layers with branches on the backend that Keras uses.

``KERAS_BACKEND=jax python tests/support/backend_probe.py given.npz found.npz`` reads
weights and a batch, and writes the arrays of `results` and of `branch_probe.results`.
"""

from __future__ import annotations

import sys

import keras
import numpy as np
from keras import ops

from t2t_repro.decoding.beam import beam_search
from t2t_repro.decoding.beam_state import BeamSearchOptions
from t2t_repro.models.token_counters import TokenCounter, TokenCounters
from t2t_repro.training.losses import SmoothedCrossentropy
from tests.support import branch_probe
from tests.support.tiny_model import tiny_transformer

OPTIONS = {
    "norm": "pre",
    "positions": "halves",
    "attention_bias": True,
    "ffn_activation": "swish",
    "logit_bias": True,
    "encoder_input_bias": True,
    "decoder_start": "pad",
    "num_heads": 3,
    "attention_key_channels": 6,
    "attention_value_channels": 9,
    "num_encoder_layers": 1,
    "num_decoder_layers": 1,
    "counters": TokenCounters(
        (TokenCounter((3, 4)),),
        (TokenCounter((2, 5, 8)), TokenCounter((3, 6), (4, 7, 9))),
    ),
}
MAX_LENGTH = 6
# One of each computation; the other cases put the same parts elsewhere.
BRANCHED = (
    "around",
    "inside, unit gain, top 2 by softmax",
    "per_branch",
    "shared",
    "inside, one network",
)


def results(batch: dict[str, np.ndarray], weights: list[np.ndarray]) -> dict:
    """Return the arrays of forward pass, loss, beam search and training, by name."""
    model = tiny_transformer(**OPTIONS)
    model.set_weights(weights)

    def computed(batch: dict) -> dict:
        logits = model(batch)
        found = beam_search(
            model.decode_step,
            model.grow_cache(model.initial_cache(batch["inputs"]), MAX_LENGTH * 3),
            ops.convert_to_tensor([MAX_LENGTH, 3, 5], dtype="int32"),
            MAX_LENGTH,
            BeamSearchOptions(beam_size=3, alpha=0.6, num_hypotheses=3),
        )
        loss = SmoothedCrossentropy(0.1)(batch["targets"], logits)
        return {
            "logits": logits,
            "loss": loss,
            "ids": found.ids,
            "scores": found.scores,
        }

    if keras.backend.backend() == "jax":
        import jax

        computed = jax.jit(computed)  # or it compiles every operation alone
    arrays = computed(batch) | {"trained_weights": trained_weights(model, batch)}
    return {name: ops.convert_to_numpy(array) for name, array in arrays.items()}


def trained_weights(model: keras.Model, batch: dict[str, np.ndarray]) -> np.ndarray:
    """Return all weights in one array, after three updates by Keras's `fit`."""
    model.compile(keras.optimizers.SGD(0.1), SmoothedCrossentropy(0.1))
    model.fit(batch, batch["targets"], epochs=3, verbose=0)
    return np.concatenate([np.ravel(w) for w in model.get_weights()])


def main(given: str, found: str) -> None:
    with np.load(given) as arrays:
        batch = {name: arrays[name] for name in ("inputs", "targets")}
        weights = [arrays[f"weight_{n}"] for n in range(len(arrays) - len(batch))]
    np.savez(found, **results(batch, weights), **branch_probe.results(BRANCHED))


if __name__ == "__main__":
    main(*sys.argv[1:])
