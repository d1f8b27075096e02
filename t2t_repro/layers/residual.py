"""Residual connection, dropout and layer normalisation round a sublayer.

Paper section 3.1 and 5.4; tensor2tensor `common_layers.py: layer_prepostprocess`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
from keras import KerasTensor

from t2t_repro.layers.dropout import Dropout


@keras.saving.register_keras_serializable(package="t2t_repro")
class ResidualConnection(keras.layers.Layer):
    """A sublayer F with what comes before and after it.

    Post-norm (the paper, tensor2tensor's "none" and "dan")::

        y = LayerNorm(x + Dropout(F(x)))

    Pre-norm (tensor2tensor's "n" and "da", its default since 2017-10)::

        y = x + Dropout(F(LayerNorm(x)))

    Args:
        hidden_size: Width of x (d_model).
        norm: "post" or "pre".
        dropout_rate: The paper's P_drop.
        epsilon: Of the layer normalisation. The papers' systems use 1e-6; Keras's
            own default is 1e-3.

    Call arguments:
        x: `[batch, length, hidden_size]`.
        sublayer: F, a function of one tensor that keeps its shape; by keyword, as
            Keras takes only tensors by place.

    Returns:
        y, `[batch, length, hidden_size]`.
    """

    NORMS = ("post", "pre")

    def __init__(
        self,
        *,
        hidden_size: int,
        norm: str,
        dropout_rate: float,
        epsilon: float = 1e-6,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if norm not in self.NORMS:
            raise ValueError(f"`norm` must be one of {self.NORMS}. Received: {norm!r}")
        self.hidden_size = hidden_size
        self.norm = norm
        self.dropout_rate = dropout_rate
        self.epsilon = epsilon
        self.dropout = Dropout(dropout_rate, name="dropout", dtype=self.dtype_policy)
        self.normalization = keras.layers.LayerNormalization(
            epsilon=epsilon, name="normalization", dtype=self.dtype_policy
        )

    def build(self, input_shape: object = None) -> None:
        self.normalization.build((None, None, self.hidden_size))

    def call(
        self,
        x: KerasTensor,
        sublayer: Callable[[KerasTensor], KerasTensor],
        training: bool | None = None,
    ) -> KerasTensor:
        if self.norm == "pre":
            return x + self.dropout(sublayer(self.normalization(x)), training=training)
        return self.normalization(x + self.dropout(sublayer(x), training=training))

    def get_config(self) -> dict[str, object]:
        return super().get_config() | {
            "hidden_size": self.hidden_size,
            "norm": self.norm,
            "dropout_rate": self.dropout_rate,
            "epsilon": self.epsilon,
        }
