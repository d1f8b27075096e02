"""Advise on the size of batches when the memory of a device is too small."""

from __future__ import annotations

import tensorflow as tf

from t2t_repro.models.estimates import fitting_batch_size, training_memory
from t2t_repro.settings.hparams import HParams

# Allocators lose some memory between blocks, and the estimate has an error.
USABLE = 0.9


def device_memory() -> int | None:
    """Return the bytes that TensorFlow may use on the smallest GPU, or None."""
    from tensorflow.python.client import device_lib

    gpus = [
        device.memory_limit
        for device in device_lib.list_local_devices()
        if device.device_type == "GPU"
    ]
    return min(gpus, default=None)


def memory_advice(
    hparams: HParams,
    vocab_sizes: tuple[int, int],
    available: int | None,
    micro_batches: int = 1,
) -> str:
    """Return how to make the largest batch smaller.

    Args:
        hparams: Hparams of the model.
        vocab_sizes: Sizes of the source and target vocabulary.
        available: Bytes of one device, or None if they are not known.
        micro_batches: Micro-batches of the update that failed.

    Returns:
        One or two sentences with the largest `batch_size` that should fit. If even the
        one that failed should have fitted, they advise at most half of it.
    """
    length = hparams.packed_length or hparams.max_length
    batch_size = hparams.batch_size
    needed = training_memory(
        hparams,
        *vocab_sizes,
        rows=max(batch_size // length, 1),
        length=length,
        micro_batches=micro_batches,
    ).total
    half = batch_size // 2 // length * length
    fits = half
    if available is not None:
        fits = fitting_batch_size(hparams, *vocab_sizes, USABLE * available)
        if fits >= batch_size:
            fits = half
    has = "" if available is None else f" of {available / 1e9:.1f} GB"
    estimate = f"By estimate, batch_size={batch_size} needs {needed / 1e9:.1f} GB{has}"
    if fits < length:
        name = "packed_length" if hparams.packed_length else "max_length"
        return (
            f"{estimate}, and not even one row of {name}={length} tokens fits: "
            f"choose a shorter {name} or a smaller model."
        )
    return f"{estimate}; batch_size={fits} fits."


def has_gpu() -> bool:
    """Return whether TensorFlow computes on a GPU."""
    return bool(tf.config.get_visible_devices("GPU"))
