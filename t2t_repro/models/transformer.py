"""The Transformer (Vaswani et al. 2017, figure 1) as an ordinary Keras model."""

from __future__ import annotations

from typing import Any, TypedDict

import keras
from keras import KerasTensor, ops

from t2t_repro.constants import INPUTS, PAD_ID, TARGETS
from t2t_repro.hyperparameters import HParams
from t2t_repro.layers.decoder import Decoder, LayerCache
from t2t_repro.layers.dropout import Dropout
from t2t_repro.layers.embedding import TokenEmbedding
from t2t_repro.layers.encoder import Encoder
from t2t_repro.layers.masks import causal_mask, padding_mask
from t2t_repro.layers.positions import PositionKind, Positions
from t2t_repro.registry import register_model

# hparams' `pos` -> the kinds of layers.Positions
POSITION_KINDS: dict[str, PositionKind] = {
    "timing": "interleaved",
    "timing_concat": "concatenated",
    "emb": "learned",
    "none": "none",
}
# hparams' `activation_dtype` -> Keras dtype policies
DTYPE_POLICIES = {
    "float32": "float32",
    "bfloat16": "mixed_bfloat16",
    "float16": "mixed_float16",
}


class DecodingCache(TypedDict):
    """What the decoder remembers between steps.

    Attributes:
        layers: Keys and values of every decoder layer.
        memory_mask: Boolean `[batch, 1, 1, source_length]`.
    """

    layers: list[LayerCache]
    memory_mask: KerasTensor


@register_model
@keras.saving.register_keras_serializable(package="t2t_repro")
class Transformer(keras.Model):
    """Encoder-decoder Transformer.

    All weights exist after construction. Parameter names of the paper in
    parentheses.

    Args:
        source_vocab_size: Rows of the source embedding.
        target_vocab_size: Rows of the target embedding (V).
        hidden_size: Width of the representation (d_model).
        filter_size: Inner width of the feed-forward networks (d_ff).
        num_heads: Attention heads (h).
        key_channels: Width of queries and keys over all heads (h d_k).
        value_channels: Width of values over all heads (h d_v).
        num_encoder_layers: N of the encoder.
        num_decoder_layers: N of the decoder.
        positions: Kind of `layers.Positions`.
        max_positions: Number of learned positions, where they are learned.
        norm: "post" (the paper) or "pre" (tensor2tensor since 2017-10).
        norm_epsilon: Of the layer normalisations.
        residual_dropout: On sublayer outputs and on embeddings (P_drop).
        attention_dropout: On attention weights.
        relu_dropout: After the ReLU of the feed-forward networks.
        tie_embeddings: Share one matrix between source embedding, target
            embedding and softmax (paper section 3.4). Needs equal vocabularies;
            otherwise each of the three has its own.

    Call arguments:
        features: Dict of "inputs", int32 `[batch, source_length]`, and "targets",
            int32 `[batch, target_length]`, both ending in EOS, padded with 0.

    Returns:
        Logits, float32 `[batch, target_length, target_vocab_size]`; position t
        predicts target t from the targets before it.
    """

    def __init__(
        self,
        *,
        source_vocab_size: int,
        target_vocab_size: int,
        hidden_size: int,
        filter_size: int,
        num_heads: int,
        key_channels: int,
        value_channels: int,
        num_encoder_layers: int,
        num_decoder_layers: int,
        positions: PositionKind = "interleaved",
        max_positions: int = 0,
        norm: str = "post",
        norm_epsilon: float = 1e-6,
        residual_dropout: float = 0.0,
        attention_dropout: float = 0.0,
        relu_dropout: float = 0.0,
        tie_embeddings: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if tie_embeddings and source_vocab_size != target_vocab_size:
            raise ValueError(
                "Tied embeddings need equal vocabularies. Received: "
                f"source_vocab_size={source_vocab_size}, "
                f"target_vocab_size={target_vocab_size}"
            )
        self._stack_options = {
            "hidden_size": hidden_size,
            "filter_size": filter_size,
            "num_heads": num_heads,
            "key_channels": key_channels,
            "value_channels": value_channels,
            "norm": norm,
            "norm_epsilon": norm_epsilon,
            "residual_dropout": residual_dropout,
            "attention_dropout": attention_dropout,
            "relu_dropout": relu_dropout,
        }
        self._own_options: dict[str, Any] = {
            "source_vocab_size": source_vocab_size,
            "target_vocab_size": target_vocab_size,
            "num_encoder_layers": num_encoder_layers,
            "num_decoder_layers": num_decoder_layers,
            "positions": positions,
            "max_positions": max_positions,
            "tie_embeddings": tie_embeddings,
        }
        self.target_vocab_size = target_vocab_size
        self._make_embeddings(hidden_size, residual_dropout)
        self.encoder = Encoder(
            num_layers=num_encoder_layers,
            name="encoder",
            dtype=self.dtype_policy,
            **self._stack_options,
        )
        self.decoder = Decoder(
            num_layers=num_decoder_layers,
            name="decoder",
            dtype=self.dtype_policy,
            **self._stack_options,
        )
        self.build()

    @classmethod
    def from_hparams(
        cls, hparams: HParams, source_vocab_size: int, target_vocab_size: int
    ) -> Transformer:
        """Turn hparams into keyword arguments: the one place where that happens.

        Args:
            hparams: A hparams set.
            source_vocab_size: Size of the source vocabulary.
            target_vocab_size: Size of the target vocabulary.

        Returns:
            A model with fresh weights.
        """
        h = hparams.resolved()
        return cls(
            source_vocab_size=source_vocab_size,
            target_vocab_size=target_vocab_size,
            hidden_size=h.hidden_size,
            filter_size=h.filter_size,
            num_heads=h.num_heads,
            key_channels=h.attention_key_channels,
            value_channels=h.attention_value_channels,
            num_encoder_layers=h.num_encoder_layers,
            num_decoder_layers=h.num_decoder_layers,
            positions=POSITION_KINDS[h.pos],
            max_positions=h.max_length,
            norm="pre" if h.layer_preprocess_sequence == "n" else "post",
            norm_epsilon=h.norm_epsilon,
            residual_dropout=h.layer_prepostprocess_dropout,
            attention_dropout=h.attention_dropout,
            relu_dropout=h.relu_dropout,
            tie_embeddings=h.shared_embedding_and_softmax_weights,
            dtype=DTYPE_POLICIES[h.activation_dtype],
            name="transformer",
        )

    def _make_embeddings(self, hidden_size: int, dropout_rate: float) -> None:
        options = self._own_options

        def embedding(name: str, vocab_size: int) -> TokenEmbedding:
            return TokenEmbedding(
                vocab_size=vocab_size,
                hidden_size=hidden_size,
                name=name,
                dtype=self.dtype_policy,
            )

        def position(name: str) -> Positions:
            return Positions(
                hidden_size=hidden_size,
                kind=options["positions"],
                max_length=options["max_positions"],
                name=name,
                dtype=self.dtype_policy,
            )

        def dropout(name: str) -> Dropout:
            return Dropout(dropout_rate, name=name, dtype=self.dtype_policy)

        if options["tie_embeddings"]:
            shared = embedding("shared_embedding", options["target_vocab_size"])
            self.source_embedding = self.target_embedding = self.softmax = shared
        else:
            self.source_embedding = embedding(
                "source_embedding", options["source_vocab_size"]
            )
            self.target_embedding = embedding(
                "target_embedding", options["target_vocab_size"]
            )
            self.softmax = embedding("softmax", options["target_vocab_size"])
        self.source_positions = position("source_positions")
        self.target_positions = position("target_positions")
        self.source_dropout = dropout("source_dropout")
        self.target_dropout = dropout("target_dropout")

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

    def call(
        self, features: dict[str, KerasTensor], training: bool | None = None
    ) -> KerasTensor:
        inputs, targets = features[INPUTS], features[TARGETS]
        memory = self.encode(inputs, training=training)
        return self.decode(targets, memory, padding_mask(inputs), training=training)

    def encode(self, inputs: KerasTensor, training: bool | None = None) -> KerasTensor:
        """Encode source sentences.

        Args:
            inputs: Token ids, int32 `[batch, source_length]`.
            training: Whether dropout is active.

        Returns:
            `[batch, source_length, hidden_size]`; rows at padding mean nothing.
        """
        x = self.source_embedding(inputs)
        x = x + self.source_positions(ops.arange(ops.shape(inputs)[1]))
        x = self.source_dropout(x, training=training)
        return self.encoder(x, padding_mask(inputs), training=training)

    def decode(
        self,
        targets: KerasTensor,
        memory: KerasTensor,
        memory_mask: KerasTensor,
        training: bool | None = None,
    ) -> KerasTensor:
        """Predict every target from the targets before it.

        Args:
            targets: Token ids, int32 `[batch, target_length]`.
            memory: Output of `encode`.
            memory_mask: Boolean `[batch, 1, 1, source_length]`.
            training: Whether dropout is active.

        Returns:
            Logits, float32 `[batch, target_length, target_vocab_size]`.
        """
        length = ops.shape(targets)[1]
        # The first position sees padding, which embeds as the zero vector: the paper
        # is silent (tensor2tensor `shift_right_3d`).
        shifted = ops.pad(targets[:, :-1], [[0, 0], [1, 0]], constant_values=PAD_ID)
        x = self.target_embedding(shifted) + self.target_positions(ops.arange(length))
        x = self.target_dropout(x, training=training)
        x = self.decoder(x, memory, causal_mask(length), memory_mask, training=training)
        return self.softmax.logits(x)

    def initial_cache(
        self, inputs: KerasTensor, max_length: int | KerasTensor, beam_size: int
    ) -> DecodingCache:
        """Encode the source and make room for the keys and values to come.

        Args:
            inputs: Source ids, int32 `[batch, source_length]`.
            max_length: Positions to make room for.
            beam_size: Hypotheses a sentence.

        Returns:
            The cache before the first step.
        """
        memory = self.encode(inputs, training=False)
        return {
            "layers": self.decoder.initial_cache(memory, max_length * beam_size),
            "memory_mask": padding_mask(inputs),
        }

    def decode_step(
        self,
        ids: KerasTensor,
        position: KerasTensor,
        history: KerasTensor,
        cache: DecodingCache,
    ) -> tuple[KerasTensor, DecodingCache]:
        """Predict the next token of every hypothesis.

        Args:
            ids: The token before this position (PAD_ID at position 0), int32
                `[batch, beam_size]`.
            position: int32 scalar, counted from 0.
            history: Boolean `[batch, beam_size, max_length * beam_size]`, the cache
                slots on each hypothesis' path; slot p * beam_size + k is the one
                that hypothesis k wrote at position p.
            cache: Of `initial_cache` or of the step before.

        Returns:
            Logits, float32 `[batch, beam_size, target_vocab_size]`, and the cache.
        """
        beam_size = ids.shape[1]
        positions = ops.reshape(position, (1,))
        x = self.target_embedding(ids) + self.target_positions(positions)
        x, layers = self.decoder.step(
            x,
            cache["layers"],
            position * beam_size,
            history[:, None, :, :],
            cache["memory_mask"],
        )
        return self.softmax.logits(x), {**cache, "layers": layers}

    def get_config(self) -> dict[str, object]:
        return super().get_config() | self._own_options | self._stack_options
