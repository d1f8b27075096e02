"""Residual connection, dropout and layer normalization around a sublayer.

Paper section 3.1 and 5.4; tensor2tensor `common_layers.py: layer_prepostprocess`.
"""

from __future__ import annotations

from typing import Any, Self

import keras
from keras import KerasTensor, ops

from t2t_repro.choices import Norm, check_choice
from t2t_repro.layers.dropout import Dropout
from t2t_repro.layers.options import LayerOptions


@keras.saving.register_keras_serializable(package="t2t_repro")
class ResidualConnection(keras.layers.Layer):
    """The two steps around a sublayer F: `prepare` its input, then add its output.

    Post-norm (the paper; tensor2tensor's "none" and "dan")::

        y = LayerNorm(x + Dropout(F(x)))

    Pre-norm (tensor2tensor's "n" and "da", its default since 2017-10)::

        y = x + Dropout(F(LayerNorm(x)))

    In both cases `y = residual(x, F(residual.prepare(x)))`.

    Args:
        hidden_size: Width of x (d_model).
        norm: "post" or "pre".
        dropout_rate: The paper's P_drop.
        epsilon: Added to the variance in layer normalization. The papers' systems use
            1e-6; Keras's own default is 1e-3.
        **kwargs: Arguments of `keras.layers.Layer`.

    Call arguments:
        x: Input before `prepare`, `[batch, length, hidden_size]`.
        output: Output of the sublayer, of the same shape; or one output per branch,
            `[batch, branches, length, hidden_size]`, and x is added to each of them.
        training: Whether dropout is active.

    Returns:
        y, of the shape of `output`.

    Raises:
        ValueError: If `norm` is unknown.
    """

    def __init__(
        self,
        *,
        hidden_size: int,
        norm: Norm,
        dropout_rate: float,
        epsilon: float = 1e-6,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        check_choice("norm", norm, Norm)
        self.hidden_size = hidden_size
        self.norm = norm
        self.dropout_rate = dropout_rate
        self.epsilon = epsilon
        self.dropout = Dropout(dropout_rate, name="dropout", dtype=self.dtype_policy)
        self.normalization = keras.layers.LayerNormalization(
            epsilon=epsilon, name="normalization", dtype=self.dtype_policy
        )

    @classmethod
    def from_options(cls, options: LayerOptions, **kwargs: Any) -> Self:
        """Make the layer from the options of a layer; `kwargs` go to the class."""
        return cls(
            hidden_size=options.hidden_size,
            norm=options.norm,
            dropout_rate=options.residual_dropout,
            epsilon=options.norm_epsilon,
            **kwargs,
        )

    def build(self, input_shape: object = None) -> None:
        self.normalization.build((None, None, self.hidden_size))

    def prepare(self, x: KerasTensor) -> KerasTensor:
        """Return the input of the sublayer: x, normalized under pre-norm."""
        return self.normalization(x) if self.norm == "pre" else x

    def call(
        self, x: KerasTensor, output: KerasTensor, training: bool | None = None
    ) -> KerasTensor:
        if len(output.shape) > len(x.shape):
            x = ops.expand_dims(x, axis=1)
        total = x + self.dropout(output, training=training)
        return total if self.norm == "pre" else self.normalization(total)

    def get_config(self) -> dict[str, object]:
        return super().get_config() | {
            "hidden_size": self.hidden_size,
            "norm": self.norm,
            "dropout_rate": self.dropout_rate,
            "epsilon": self.epsilon,
        }
