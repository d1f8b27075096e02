"""The Transformer (Vaswani et al. 2017, figure 1) as an ordinary Keras model."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any, NamedTuple, Self

import keras
from keras import KerasTensor, ops

from t2t_repro.constants import (
    DTYPE_POLICIES,
    INPUTS,
    INPUTS_POSITION,
    INPUTS_SEGMENTATION,
    PAD_ID,
    POSITIONS,
    TARGETS,
    TARGETS_POSITION,
    TARGETS_SEGMENTATION,
    WIRINGS,
    DecoderStart,
    PositionKind,
    check_choice,
)
from t2t_repro.layers.attention import padding_mask, segment_mask
from t2t_repro.layers.encoder_decoder import Decoder, Encoder
from t2t_repro.layers.sublayers import OPTION_NAMES, split_options
from t2t_repro.models.cached_decoding import CachedDecoding
from t2t_repro.models.input_layers import input_layers, token_matrices
from t2t_repro.models.token_counters import TokenCounters
from t2t_repro.registry import register_model
from t2t_repro.settings.hparams import HParams


class PackedRows(NamedTuple):
    """Sentence and position of every token in rows of several sentences.

    Attributes:
        segmentation: Number of the sentence, counted from 1; 0 for padding. int32
            `[batch, length]`.
        position: Position in the sentence, counted from 0, int32 `[batch, length]`.
    """

    segmentation: KerasTensor
    position: KerasTensor


def packed_sides(
    features: Mapping[str, KerasTensor],
) -> tuple[PackedRows, PackedRows] | tuple[None, None]:
    """Return the sentences and positions of the tokens of packed rows.

    Args:
        features: Features of `Transformer`.

    Returns:
        One for the inputs and one for the targets, or None for both if each row has
        one pair.
    """
    if INPUTS_SEGMENTATION not in features:
        return None, None
    return (
        PackedRows(features[INPUTS_SEGMENTATION], features[INPUTS_POSITION]),
        PackedRows(features[TARGETS_SEGMENTATION], features[TARGETS_POSITION]),
    )


@register_model
@keras.saving.register_keras_serializable(package="t2t_repro")
class Transformer(CachedDecoding, keras.Model):
    """Encoder-decoder Transformer.

    All weights exist after construction. The paper's names are in parentheses.

    Args:
        hidden_size: Width of the representation (d_model).
        source_vocab_size: Number of rows of the source embedding.
        target_vocab_size: Number of rows of the target embedding (V).
        num_encoder_layers: Number of encoder layers (N).
        num_decoder_layers: Number of decoder layers (N).
        positions: Kind of `layers.Positions`.
        max_positions: Number of positions, if they are learned.
        tie_embeddings: Whether source embedding, target embedding and softmax share one
            matrix (paper section 3.4), which needs equal vocabularies. Otherwise there
            are three matrices.
        logit_bias: Whether a trained vector is added to the logits, as in Marian.
        encoder_input_bias: Whether a trained vector is added to every position of the
            encoder's input, such as tensor2tensor's row of the target space.
        decoder_start: What the first target position sees: "zeros", the zero vector
            (tensor2tensor), or "pad", the embedding of padding (Marian).
        symbol_dropout: Probability with which the embedding of a source or target token
            is the zero vector in training (tensor2tensor `symbol_dropout`). Differs
            from tensor2tensor: dropped source tokens are not masked as padding is.
        counters: Counters of words and open brackets; see
            `layers.CountedPositions`. A source token has the count up to and
            including it, minus one; a target position has the count before it.
        **kwargs: Options of the layers of both stacks; see `layers.EncoderLayer`.
            `filter_size` and `num_heads` are required, and
            `layer_prepostprocess_dropout` is also the dropout of the embeddings. And
            arguments of `keras.Model`: `name`, `dtype` and `trainable`.

    Call arguments:
        features: Dict of "inputs", int32 `[batch, source_length]`, and "targets",
            int32 `[batch, target_length]`, both ending in EOS, padded with 0. A row
            has several pairs if there are also "inputs_segmentation",
            "inputs_position", "targets_segmentation" and "targets_position", of the
            same shapes; see `PackedRows`.
        training: Whether dropout is active.

    Returns:
        Logits, float32 `[batch, target_length, target_vocab_size]`. Position t
        predicts target t from the earlier targets.

    Raises:
        ValueError: If embeddings are tied and the vocabularies differ, or
            `decoder_start` is unknown.
    """

    def __init__(
        self,
        *,
        hidden_size: int,
        source_vocab_size: int,
        target_vocab_size: int,
        num_encoder_layers: int,
        num_decoder_layers: int,
        positions: PositionKind = "interleaved",
        max_positions: int = 0,
        tie_embeddings: bool = True,
        logit_bias: bool = False,
        encoder_input_bias: bool = False,
        decoder_start: DecoderStart = "zeros",
        symbol_dropout: float = 0.0,
        counters: TokenCounters | None = None,
        **kwargs: Any,
    ) -> None:
        options, others = split_options({"hidden_size": hidden_size, **kwargs})
        super().__init__(**others)
        check_choice("decoder_start", decoder_start, DecoderStart)
        self.options = options
        self.hidden_size = hidden_size
        self.source_vocab_size = source_vocab_size
        self.target_vocab_size = target_vocab_size
        self.positions = positions
        self.max_positions = max_positions
        self.tie_embeddings = tie_embeddings
        self.logit_bias = logit_bias
        self.encoder_input_bias = encoder_input_bias
        self.decoder_start: DecoderStart = decoder_start
        self.symbol_dropout = symbol_dropout
        self.counters = counters or TokenCounters()
        self._make_embeddings()
        layers = {**dataclasses.asdict(self.options), "dtype": self.dtype_policy}
        self.encoder = Encoder(num_layers=num_encoder_layers, name="encoder", **layers)
        self.decoder = Decoder(num_layers=num_decoder_layers, name="decoder", **layers)
        self.build()

    @classmethod
    def from_hparams(
        cls,
        hparams: HParams,
        source_vocab_size: int,
        target_vocab_size: int,
        counters: TokenCounters | None = None,
    ) -> Self:
        """Make a model from hparams.

        This is the only place where hparams become arguments of layers, whose options
        have the names of hparams.

        Args:
            hparams: Resolved or unresolved hparams.
            source_vocab_size: Size of the source vocabulary.
            target_vocab_size: Size of the target vocabulary.
            counters: Counters of words and open brackets; needed if
                `hparams.word_positions` or `hparams.depth_positions`.

        Returns:
            A model with initial weights.

        Raises:
            ValueError: If `counters` are needed and missing.
        """
        h = hparams.resolved()
        counting = h.word_positions or h.depth_positions
        if counting and counters is None:
            raise ValueError(
                "`word_positions` and `depth_positions` need `counters`. "
                f"Received: counters={counters}"
            )
        options = {name: getattr(h, name) for name in OPTION_NAMES & set(h.names())}
        return cls(
            **options,
            norm=WIRINGS[h.layer_preprocess_sequence].norm,
            source_vocab_size=source_vocab_size,
            target_vocab_size=target_vocab_size,
            num_encoder_layers=h.num_encoder_layers,
            num_decoder_layers=h.num_decoder_layers,
            positions=POSITIONS[h.pos],
            max_positions=h.max_length,
            tie_embeddings=h.shared_embedding_and_softmax_weights,
            logit_bias=h.logit_bias,
            encoder_input_bias=h.encoder_input_bias,
            decoder_start=h.decoder_start,
            symbol_dropout=h.symbol_dropout,
            counters=counters if counting else None,
            dtype=DTYPE_POLICIES[h.activation_dtype],
            name="transformer",
        )

    def _make_embeddings(self) -> None:
        options, policy = self.options, self.dtype_policy
        self.source_embedding, self.target_embedding, self.softmax = token_matrices(
            source_vocab_size=self.source_vocab_size,
            target_vocab_size=self.target_vocab_size,
            hidden_size=self.hidden_size,
            tied=self.tie_embeddings,
            logit_bias=self.logit_bias,
            dtype=policy,
        )
        side_layers = functools.partial(
            input_layers,
            hidden_size=self.hidden_size,
            positions=self.positions,
            max_positions=self.max_positions,
            symbol_dropout=self.symbol_dropout,
            dropout=options.layer_prepostprocess_dropout,
            dtype=policy,
        )
        counters = self.counters
        source = side_layers("source", self.source_vocab_size, counters.source)
        target = side_layers("target", self.target_vocab_size, counters.target)
        self.source_positions = source.positions
        self.target_positions = target.positions
        self.source_counted, self.target_counted = source.counted, target.counted
        self.source_symbols, self.target_symbols = source.symbols, target.symbols
        self.source_dropout, self.target_dropout = source.dropout, target.dropout

    def build(self, input_shape: object = None) -> None:
        for layer in (
            self.source_embedding,
            self.target_embedding,
            self.softmax,
            self.source_positions,
            self.target_positions,
            self.encoder,
            self.decoder,
        ):
            if not layer.built:
                layer.build()
        if self.encoder_input_bias:
            self.source_bias = self.add_weight(
                name="encoder_input_bias",
                shape=(self.hidden_size,),
                initializer="zeros",
            )

    def call(
        self, features: dict[str, KerasTensor], training: bool | None = None
    ) -> KerasTensor:
        inputs, targets = features[INPUTS], features[TARGETS]
        source, target = packed_sides(features)
        memory = self.encode(inputs, packed=source, training=training)
        if source is None or target is None:
            memory_mask = padding_mask(inputs)
        else:
            memory_mask = segment_mask(target.segmentation, source.segmentation)
        return self.decode(
            targets, memory, memory_mask, packed=target, training=training
        )

    def encode(
        self,
        inputs: KerasTensor,
        *,
        packed: PackedRows | None = None,
        training: bool | None = None,
    ) -> KerasTensor:
        """Encode source sentences.

        Args:
            inputs: Token ids, int32 `[batch, source_length]`.
            packed: Sentences and positions of the tokens, if rows are packed.
            training: Whether dropout is active.

        Returns:
            `[batch, source_length, hidden_size]`. Rows of padding have no meaning.
        """
        x = self.source_embedding(self.source_symbols(inputs, training=training))
        if self.encoder_input_bias:
            x = x + ops.convert_to_tensor(self.source_bias, dtype=self.compute_dtype)
        for counted in self.source_counted:
            # Counted from 0: the index of the token's word.
            number = counted.count(inputs, packed and packed.position) - 1
            x = x + counted(ops.maximum(number, 0))
        if packed is None:
            positions, mask = ops.arange(ops.shape(inputs)[1]), padding_mask(inputs)
        else:
            positions = packed.position
            mask = segment_mask(packed.segmentation, packed.segmentation)
        x = self.source_dropout(x + self.source_positions(positions), training=training)
        return self.encoder(x, mask, training=training)

    def decode(
        self,
        targets: KerasTensor,
        memory: KerasTensor,
        memory_mask: KerasTensor,
        *,
        packed: PackedRows | None = None,
        training: bool | None = None,
    ) -> KerasTensor:
        """Predict every target from the earlier targets.

        Args:
            targets: Token ids, int32 `[batch, target_length]`.
            memory: Output of `encode`, `[batch, source_length, hidden_size]`.
            memory_mask: Boolean `[batch, 1, 1 or target_length, source_length]`.
            packed: Sentences and positions of the targets, if rows are packed.
            training: Whether dropout is active.

        Returns:
            Logits, float32 `[batch, target_length, target_vocab_size]`.
        """
        positions, self_mask = ops.arange(ops.shape(targets)[1]), None
        # The first position sees padding, by default as the zero vector, as in
        # tensor2tensor (`shift_right_3d`); the paper does not say.
        shifted = ops.pad(targets[:, :-1], [[0, 0], [1, 0]], constant_values=PAD_ID)
        if packed is not None:
            positions = packed.position
            self_mask = segment_mask(packed.segmentation, packed.segmentation)
            shifted = ops.where(ops.equal(positions, 0), PAD_ID, shifted)
        kept = self.target_symbols(shifted, training=training)
        x = self.target_embedding(kept) + self.target_positions(positions)
        x = self.with_start(x, positions)
        for counted in self.target_counted:
            # The number before the target: the index of the next word.
            x = x + counted(counted.count(shifted, packed and packed.position))
        x = self.target_dropout(x, training=training)
        x = self.decoder(x, memory, memory_mask, self_mask, training=training)
        return self.softmax.logits(x)

    def get_config(self) -> dict[str, object]:
        return super().get_config() | {
            **dataclasses.asdict(self.options),
            "source_vocab_size": self.source_vocab_size,
            "target_vocab_size": self.target_vocab_size,
            "num_encoder_layers": self.encoder.num_layers,
            "num_decoder_layers": self.decoder.num_layers,
            "positions": self.positions,
            "max_positions": self.max_positions,
            "tie_embeddings": self.tie_embeddings,
            "logit_bias": self.logit_bias,
            "encoder_input_bias": self.encoder_input_bias,
            "decoder_start": self.decoder_start,
            "symbol_dropout": self.symbol_dropout,
            "counters": self.counters,
        }

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        counters = TokenCounters.from_config(config["counters"])
        values: dict[str, Any] = {**config, "counters": counters}
        return cls(**values)
