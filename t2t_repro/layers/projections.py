"""The learned projections of attention, and the depths of their heads."""

from __future__ import annotations

import keras


def projection(name: str, channels: int, dtype: object) -> keras.layers.Dense:
    """Make W^Q, W^K, W^V or W^O: no bias, initially Glorot uniform."""
    return keras.layers.Dense(
        channels,
        use_bias=False,
        kernel_initializer="glorot_uniform",
        name=name,
        dtype=dtype,
    )


def check_heads(num_heads: int, key_channels: int, value_channels: int) -> None:
    """Check that every head gets an equal part of the channels.

    Raises:
        ValueError: If `num_heads` does not divide the channels.
    """
    for name, channels in [("key", key_channels), ("value", value_channels)]:
        if channels % num_heads:
            raise ValueError(
                f"`num_heads` must divide `{name}_channels`. "
                f"Received: num_heads={num_heads}, {name}_channels={channels}"
            )
