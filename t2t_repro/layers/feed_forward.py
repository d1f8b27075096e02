"""Position-wise feed-forward network (paper section 3.3, equation (2)).

tensor2tensor: `common_layers.py: dense_relu_dense`.
"""

from __future__ import annotations

from typing import Any

import keras
from keras import KerasTensor

from t2t_repro.constants import Activation, check_choice
from t2t_repro.layers.dense import Dense
from t2t_repro.layers.options import Sublayer, build_dense
from t2t_repro.layers.residual import Dropout


@keras.saving.register_keras_serializable(package="t2t_repro")
class FeedForward(Sublayer):
    """FFN(x) = f(x W_1 + b_1) W_2 + b_2, the same at every position.

    The paper's f is max(0, x), the ReLU.

    Args:
        filter_size: Width between the two matrices (d_ff).
        ffn_activation: The function f, "relu", "swish" (x sigmoid(x)) or "gelu"
            (x Phi(x), not its approximation).
        relu_dropout: Dropout after it (not in the paper's base).
        **kwargs: `hidden_size`, by default that of the input, and arguments of
            `keras.layers.Layer`.

    Call arguments:
        x: `[batch, length, hidden_size]`.
        training: Whether dropout is active.

    Returns:
        `[batch, length, hidden_size]`.

    Raises:
        ValueError: If `ffn_activation` is unknown.

    Example:
    ```python
    network = FeedForward(filter_size=2048, relu_dropout=0.1)
    assert network(keras.random.normal((2, 10, 512))).shape == (2, 10, 512)
    ```
    """

    def __init__(
        self,
        *,
        filter_size: int,
        ffn_activation: Activation = "relu",
        relu_dropout: float = 0.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        check_choice("ffn_activation", ffn_activation, Activation)
        self.filter_size = filter_size
        self.ffn_activation = ffn_activation
        self.relu_dropout = relu_dropout
        policy = self.dtype_policy
        self.filter = Dense(
            filter_size,
            activation=ffn_activation,
            kernel_initializer="glorot_uniform",
            name="filter",
            dtype=policy,
        )
        self.output_projection = Dense(
            self.hidden_size or 1,  # `build` will know
            kernel_initializer="glorot_uniform",
            name="output",
            dtype=policy,
        )
        self.hidden_dropout = Dropout(relu_dropout, name="relu_dropout", dtype=policy)

    def build(self, input_shape: Any = None) -> None:
        width = self.width(input_shape)
        build_dense(self.filter, width, self.filter_size)
        build_dense(self.output_projection, self.filter_size, width)

    def call(self, x: KerasTensor, training: bool | None = None) -> KerasTensor:
        hidden = self.hidden_dropout(self.filter(x), training=training)
        return self.output_projection(hidden)
