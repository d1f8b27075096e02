"""Position-wise feed-forward network (paper section 3.3, equation (2)).

tensor2tensor: `common_layers.py: dense_relu_dense`.
"""

from __future__ import annotations

from typing import Any, Self

import keras
from keras import KerasTensor

from t2t_repro.layers.options import LayerOptions
from t2t_repro.layers.residual import Dropout


@keras.saving.register_keras_serializable(package="t2t_repro")
class FeedForward(keras.layers.Layer):
    """FFN(x) = max(0, x W_1 + b_1) W_2 + b_2, the same at every position.

    Args:
        hidden_size: Width of input and output (d_model).
        filter_size: Width between the two matrices (d_ff).
        dropout_rate: Dropout after the ReLU (not in the paper's base;
            tensor2tensor `relu_dropout`).
        **kwargs: Arguments of `keras.layers.Layer`.

    Call arguments:
        x: `[batch, length, hidden_size]`.
        training: Whether dropout is active.

    Returns:
        `[batch, length, hidden_size]`.
    """

    def __init__(
        self,
        *,
        hidden_size: int,
        filter_size: int,
        dropout_rate: float = 0.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.hidden_size = hidden_size
        self.filter_size = filter_size
        self.dropout_rate = dropout_rate
        self.filter = keras.layers.Dense(
            filter_size,
            activation="relu",
            kernel_initializer="glorot_uniform",
            name="filter",
            dtype=self.dtype_policy,
        )
        self.output_projection = keras.layers.Dense(
            hidden_size,
            kernel_initializer="glorot_uniform",
            name="output",
            dtype=self.dtype_policy,
        )
        self.relu_dropout = Dropout(
            dropout_rate, name="relu_dropout", dtype=self.dtype_policy
        )

    @classmethod
    def from_options(cls, options: LayerOptions, **kwargs: Any) -> Self:
        """Make the sublayer from the options of a layer; `kwargs` go to the class."""
        return cls(
            hidden_size=options.hidden_size,
            filter_size=options.filter_size,
            dropout_rate=options.relu_dropout,
            **kwargs,
        )

    def build(self, input_shape: object = None) -> None:
        self.filter.build((None, None, self.hidden_size))
        self.output_projection.build((None, None, self.filter_size))

    def call(self, x: KerasTensor, training: bool | None = None) -> KerasTensor:
        hidden = self.relu_dropout(self.filter(x), training=training)
        return self.output_projection(hidden)

    def get_config(self) -> dict[str, object]:
        return super().get_config() | {
            "hidden_size": self.hidden_size,
            "filter_size": self.filter_size,
            "dropout_rate": self.dropout_rate,
        }
