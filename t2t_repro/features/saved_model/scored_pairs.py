"""Functions of a SavedModel for sources with given targets: score and attention."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import keras
import tensorflow as tf

from t2t_repro.constants import EOS_ID, INPUTS, PAD_ID, TARGETS
from t2t_repro.models.attention_weights import attention_weights
from t2t_repro.text.in_graph import InGraphTokenizer
from t2t_repro.training.losses import token_losses

RowFunction = Callable[[tf.Tensor], Sequence[tf.Tensor]]


def map_groups(
    function: RowFunction,
    lengths: tf.Tensor,
    group_size: int,
    outputs: Sequence[tf.TensorSpec],
) -> list[tf.Tensor]:
    """Apply a function to groups of rows, so that memory depends on the group alone.

    Rows of similar length form a group, the longest first. As in `Translator`, the size
    of a group is its number of rows times its longest row.

    Args:
        function: Maps the numbers of the rows of a group, int32 `[group]`, to tensors
            `[group, ...]`.
        lengths: Tokens of each row, at least 1, int32 `[rows]`.
        group_size: Largest size of a group of several rows, in tokens.
        outputs: Shape `[None, ...]` and dtype of each result of `function`.

    Returns:
        The results for all rows, `[rows, ...]`, in the order of `lengths`.
    """
    order = tf.argsort(lengths, direction="DESCENDING", stable=True)
    results = [
        tf.TensorArray(
            spec.dtype,
            size=0,
            dynamic_size=True,
            infer_shape=False,
            element_shape=spec.shape,
        )
        for spec in outputs
    ]

    def one_group(
        start: tf.Tensor, group: tf.Tensor, results: list[tf.TensorArray]
    ) -> tuple[tf.Tensor, tf.Tensor, list[tf.TensorArray]]:
        rows = tf.maximum(group_size // lengths[order[start]], 1)
        chosen = order[start : start + rows]
        values = function(chosen)
        written = [
            array.write(group, value)
            for array, value in zip(results, values, strict=True)
        ]
        return start + tf.size(chosen), group + 1, written

    *_, results = tf.while_loop(
        lambda start, group, results: start < tf.size(order),
        one_group,
        (tf.constant(0), tf.constant(0), results),
        parallel_iterations=1,
    )
    places = tf.math.invert_permutation(order)
    return [tf.gather(array.concat(), places) for array in results]


def truncate(ids: tf.RaggedTensor, longest: int) -> tuple[tf.RaggedTensor, tf.Tensor]:
    """Cut rows that are too long.

    Args:
        ids: Ids, int32 `[batch, None]`.
        longest: Largest number of ids per row.

    Returns:
        The first `longest` ids of each row, int32 `[batch, None]`, and whether there
        were more, bool `[batch]`.
    """
    return ids[:, :longest], ids.row_lengths() > longest


PAIRS = [
    tf.TensorSpec([None], tf.string, name="inputs"),
    tf.TensorSpec([None], tf.string, name="targets"),
]


class ScoredPairs(tf.Module):
    """A model and its tokenizers as functions of source and target strings.

    Targets are in the form that the model writes. Neither side is cut into pieces. Of a
    text that is longer than `max_length`, the beginning is read, and "truncated", bool
    `[batch]`, is true for the pair: of a source, `max_length` - 1 tokens and EOS; of a
    target, `max_length` tokens without EOS, which would be improbable there.

    Args:
        model: A `Transformer` or `Ensemble` with trained weights. An ensemble has no
            `attention`.
        source_tokenizer: Tokenizer of the inputs.
        target_tokenizer: Tokenizer of the targets.
        max_length: Longest source or target in tokens, including EOS.
        group_size: Largest number of pairs to score at once times their longest text,
            in tokens.
    """

    def __init__(
        self,
        model: keras.Model,
        source_tokenizer: InGraphTokenizer,
        target_tokenizer: InGraphTokenizer,
        max_length: int,
        group_size: int,
    ) -> None:
        super().__init__()
        # Served models hold the weights; a Keras model must not become an attribute.
        self._logits = lambda features: model(features, training=False)
        self._weights = lambda features: attention_weights(model, features)
        self._tokenizers = {INPUTS: source_tokenizer, TARGETS: target_tokenizer}
        self._max_length = max_length
        self._group_size = group_size

    def score(self, inputs: tf.Tensor, targets: tf.Tensor) -> dict[str, tf.Tensor]:
        """Return the log-probability of every target given its source.

        Args:
            inputs: UTF-8 strings, `[batch]`.
            targets: UTF-8 strings, `[batch]`.

        Returns:
            "scores", float32 `[batch]`, in nats, without length penalty; "tokens",
            int32 `[batch]`, the number of target tokens that were scored, with EOS;
            and "truncated", bool `[batch]`.
        """
        pairs = self._encode(inputs, targets)

        def score(chosen: tf.Tensor) -> tuple[tf.Tensor]:
            features = pairs.features(chosen)
            return (_log_probabilities(features[TARGETS], self._logits(features)),)

        lengths = tf.maximum(pairs.sources.row_lengths(), pairs.targets.row_lengths())
        (scores,) = map_groups(
            score,
            tf.cast(lengths, tf.int32),
            self._group_size,
            [tf.TensorSpec([None], tf.float32)],
        )
        return {"scores": scores} | pairs.facts()

    def attention(self, inputs: tf.Tensor, targets: tf.Tensor) -> dict[str, tf.Tensor]:
        """Return all attention weights for sources and targets.

        All pairs are computed at once, because the outputs need most of the memory.

        Args:
            inputs: UTF-8 strings, `[batch]`.
            targets: UTF-8 strings, `[batch]`.

        Returns:
            The outputs of `score`; "input_tokens" and "target_tokens", string
            `[batch, length]`, padded with "<pad>"; and the weights of
            `AttentionWeights` by name, float32 `[batch, layer, head, query, key]`.
        """
        pairs = self._encode(inputs, targets)
        features = pairs.features(tf.range(tf.size(inputs)))
        captured = self._weights(features)._asdict()
        logits = captured.pop("logits")
        scores = {"scores": _log_probabilities(features[TARGETS], logits)}
        tokens = {
            "input_tokens": self._tokenizers[INPUTS].pieces(features[INPUTS]),
            "target_tokens": self._tokenizers[TARGETS].pieces(features[TARGETS]),
        }
        weights = {name: value for name, value in captured.items() if value is not None}
        return scores | pairs.facts() | tokens | weights

    def _encode(self, inputs: tf.Tensor, targets: tf.Tensor) -> _EncodedPairs:
        sources, cut_source = truncate(
            self._tokenizers[INPUTS].encode(inputs), self._max_length - 1
        )
        written, cut_target = truncate(
            _append_eos(self._tokenizers[TARGETS].encode(targets)), self._max_length
        )
        truncated = tf.logical_or(cut_source, cut_target)
        return _EncodedPairs(_append_eos(sources), written, truncated)


class _EncodedPairs(NamedTuple):
    """Ids of sources and targets, int32 `[batch, None]`, and which were cut."""

    sources: tf.RaggedTensor
    targets: tf.RaggedTensor
    truncated: tf.Tensor

    def features(self, chosen: tf.Tensor) -> dict[str, tf.Tensor]:
        """Return the model's inputs, int32 `[chosen, length]`, padded."""
        return {
            INPUTS: tf.gather(self.sources, chosen).to_tensor(PAD_ID),
            TARGETS: tf.gather(self.targets, chosen).to_tensor(PAD_ID),
        }

    def facts(self) -> dict[str, tf.Tensor]:
        """Return the outputs that do not depend on the model."""
        tokens = tf.cast(self.targets.row_lengths(), tf.int32)
        return {"tokens": tokens, "truncated": self.truncated}


def _append_eos(ids: tf.RaggedTensor) -> tf.RaggedTensor:
    return tf.concat([ids, tf.fill([ids.nrows(), 1], EOS_ID)], axis=1)


def _log_probabilities(targets: tf.Tensor, logits: tf.Tensor) -> tf.Tensor:
    """Return the log-probability of each row of targets, float32 `[batch]`."""
    _, losses = token_losses(targets, logits, 0.0)
    return -tf.reduce_sum(losses, axis=1)
