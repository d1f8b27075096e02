"""Token embeddings, which can share their matrix with the softmax.

Paper section 3.4; tensor2tensor `modalities.py: symbol_bottom, symbol_top`.
"""

from __future__ import annotations

from typing import Any

import keras
from keras import KerasTensor, ops

from t2t_repro.constants import PAD_ID
from t2t_repro.layers.dense import shape_of


@keras.saving.register_keras_serializable(package="t2t_repro")
class TokenEmbedding(keras.layers.Layer):
    """A matrix that turns ids into vectors and vectors into logits.

    Embeddings are multiplied by sqrt(d_model) (paper section 3.4). The embedding of
    padding is exactly the zero vector (tensor2tensor `symbol_bottom`), which is also
    the first input of the decoder.

    Args:
        vocab_size: Number of rows (V).
        hidden_size: Width (d_model). Rows are initially N(0, 1 / d_model).
        logit_bias: Whether a trained vector is added to the logits, initially zero.
        **kwargs: Arguments of `keras.layers.Layer`.

    Call arguments:
        ids: Token ids, int32 `[batch, length]`.

    Returns:
        Embeddings in the compute dtype, `[batch, length, hidden_size]`.

    Example:
    ```python
    embedding = TokenEmbedding(vocab_size=100, hidden_size=64)
    x = embedding(np.array([[5, 3, 1, 0]]))
    assert x.shape == (1, 4, 64)
    assert embedding.logits(x).shape == (1, 4, 100)
    ```
    """

    def __init__(
        self,
        *,
        vocab_size: int,
        hidden_size: int,
        logit_bias: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.vocab_size = vocab_size
        self.hidden_size = hidden_size
        self.logit_bias = logit_bias

    def build(self, input_shape: object = None) -> None:
        self.table = self.add_weight(
            name="table",
            shape=(self.vocab_size, self.hidden_size),
            initializer=keras.initializers.RandomNormal(stddev=self.hidden_size**-0.5),
        )
        if self.logit_bias:
            self.bias = self.add_weight(
                name="bias", shape=(self.vocab_size,), initializer="zeros"
            )

    def call(self, ids: KerasTensor) -> KerasTensor:
        table = ops.convert_to_tensor(self.table, dtype=self.compute_dtype)
        real = ops.cast(ops.not_equal(ids, PAD_ID), self.compute_dtype)
        return ops.take(table, ids, axis=0) * (real * self.hidden_size**0.5)[..., None]

    def padding_row(self) -> KerasTensor:
        """Return the multiplied row of padding, which `call` never does.

        Returns:
            In the compute dtype, `[hidden_size]`.
        """
        row = ops.convert_to_tensor(self.table)[PAD_ID]
        return ops.cast(row, self.compute_dtype) * self.hidden_size**0.5

    def columns(self) -> KerasTensor:
        """Return the transposed matrix, in the compute dtype.

        Returns:
            `[hidden_size, vocab_size]`.
        """
        return ops.transpose(
            ops.convert_to_tensor(self.table, dtype=self.compute_dtype)
        )

    def logits(
        self, hidden: KerasTensor, columns: KerasTensor | None = None
    ) -> KerasTensor:
        """Project onto the vocabulary with the same matrix.

        Args:
            hidden: Decoder output, `[batch, length, hidden_size]`.
            columns: The result of `columns`, if there are many calls. TensorFlow
                rearranges a matrix before it multiplies few rows, which takes up to ten
                times as long as the product if the matrix is transposed.

        Returns:
            Logits, float32 `[batch, length, vocab_size]`.
        """
        hidden = ops.cast(hidden, self.compute_dtype)
        # One product of two matrices. Keras turns "BTD,DV->BTV" into a batch of B small
        # products on TensorFlow, which is slow for the few rows of a decoding step.
        rows = ops.reshape(hidden, (-1, self.hidden_size))
        columns = self.columns() if columns is None else columns
        logits = ops.cast(ops.matmul(rows, columns), "float32")
        if self.logit_bias:
            logits = logits + ops.convert_to_tensor(self.bias, dtype="float32")
        return ops.reshape(logits, (*shape_of(hidden)[:-1], self.vocab_size))

    def get_config(self) -> dict[str, object]:
        return super().get_config() | {
            "vocab_size": self.vocab_size,
            "hidden_size": self.hidden_size,
            "logit_bias": self.logit_bias,
        }
