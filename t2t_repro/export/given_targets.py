"""Functions of a SavedModel for sources with given targets: score and attention."""

from __future__ import annotations

import keras
import tensorflow as tf

from t2t_repro.constants import EOS_ID, INPUTS, PAD_ID, TARGETS
from t2t_repro.models.attention_weights import attention_weights
from t2t_repro.text.in_graph import InGraphTokenizer
from t2t_repro.training.losses import token_losses

PAIRS = [
    tf.TensorSpec([None], tf.string, name="inputs"),
    tf.TensorSpec([None], tf.string, name="targets"),
]


class ScoredPairs(tf.Module):
    """A model and its tokenizers as functions of source and target strings.

    Targets are in the form that the model writes. Neither side is cut into pieces: a
    text of more than `max_length` tokens is an error of the call.

    Args:
        model: A `Transformer` with trained weights.
        source_tokenizer: Tokenizer of the inputs.
        target_tokenizer: Tokenizer of the targets.
        max_length: Longest source or target in tokens, including EOS.
    """

    def __init__(
        self,
        model: keras.Model,
        source_tokenizer: InGraphTokenizer,
        target_tokenizer: InGraphTokenizer,
        max_length: int,
    ) -> None:
        super().__init__()
        # Served models hold the weights; a Keras model must not become an attribute.
        self._logits = lambda features: model(features, training=False)
        self._weights = lambda features: attention_weights(model, features)
        self._tokenizers = {INPUTS: source_tokenizer, TARGETS: target_tokenizer}
        self._max_length = max_length

    def score(self, inputs: tf.Tensor, targets: tf.Tensor) -> dict[str, tf.Tensor]:
        """Return the log-probability of every target given its source.

        Args:
            inputs: UTF-8 strings, `[batch]`.
            targets: UTF-8 strings, `[batch]`.

        Returns:
            "scores", float32 `[batch]`, in nats, without length penalty; and "tokens",
            int32 `[batch]`, the number of target tokens with EOS.
        """
        features = self._features(inputs, targets)
        return _scores(features, self._logits(features))

    def attention(self, inputs: tf.Tensor, targets: tf.Tensor) -> dict[str, tf.Tensor]:
        """Return all attention weights for sources and targets.

        Args:
            inputs: UTF-8 strings, `[batch]`.
            targets: UTF-8 strings, `[batch]`.

        Returns:
            The outputs of `score`; "input_tokens" and "target_tokens", string
            `[batch, length]`, padded with "<pad>"; and the weights of
            `AttentionWeights` by name, float32 `[batch, layer, head, query, key]`.
        """
        features = self._features(inputs, targets)
        captured = self._weights(features)._asdict()
        scores = _scores(features, captured.pop("logits"))
        tokens = {
            "input_tokens": self._tokenizers[INPUTS].pieces(features[INPUTS]),
            "target_tokens": self._tokenizers[TARGETS].pieces(features[TARGETS]),
        }
        weights = {name: value for name, value in captured.items() if value is not None}
        return scores | tokens | weights

    def _features(self, inputs: tf.Tensor, targets: tf.Tensor) -> dict[str, tf.Tensor]:
        texts = {INPUTS: inputs, TARGETS: targets}
        return {name: self._encode(name, texts[name]) for name in texts}

    def _encode(self, side: str, texts: tf.Tensor) -> tf.Tensor:
        """Return ids with EOS, int32 `[batch, length]`, padded."""
        ids = self._tokenizers[side].encode(texts)
        ids = tf.concat([ids, tf.fill([ids.nrows(), 1], EOS_ID)], axis=1)
        checked = tf.debugging.assert_less_equal(
            ids.bounding_shape(axis=1, out_type=tf.int32),
            self._max_length,
            f"expected {side} of at most {self._max_length} tokens",
        )
        with tf.control_dependencies([] if checked is None else [checked]):
            return ids.to_tensor(PAD_ID)


def _scores(features: dict[str, tf.Tensor], logits: tf.Tensor) -> dict[str, tf.Tensor]:
    targets = features[TARGETS]
    _, losses = token_losses(targets, logits, 0.0)
    is_token = tf.not_equal(targets, PAD_ID)
    return {
        "scores": -tf.reduce_sum(losses, axis=1),
        "tokens": tf.math.count_nonzero(is_token, axis=1, dtype=tf.int32),
    }
