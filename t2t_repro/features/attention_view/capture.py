"""Capture the attention of a trained model for a sentence pair."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np
import tensorflow as tf

from t2t_repro.constants import EOS_ID, INPUTS, TARGETS
from t2t_repro.data.batch_plan import padded
from t2t_repro.errors import UserError
from t2t_repro.features.attention_view.sentence_attention import (
    Attention,
    TokenSequence,
)
from t2t_repro.models.attention_weights import attention_weights
from t2t_repro.models.transformer import Transformer
from t2t_repro.text.tokenizer import Tokenizer, check_in_vocabulary
from t2t_repro.training.losses import token_losses

if TYPE_CHECKING:
    from t2t_repro.runs.system import System
    from t2t_repro.settings.decode_hparams import DecodeHParams

Side = Literal["source", "target"]


def capture_attention(
    model: Transformer,
    tokenizers: tuple[Tokenizer, Tokenizer],
    source_ids: Sequence[int],
    target_ids: Sequence[int],
    *,
    title: str = "",
    languages: tuple[str | None, str | None] = (None, None),
) -> Attention:
    """Run a model on one sentence pair and return all attention weights.

    Args:
        model: A model in any state of training.
        tokenizers: Tokenizers of the source and of the target.
        source_ids: Ids of the source, with EOS.
        target_ids: Ids of the target, with EOS if the text is complete.
        title: Title for a user.
        languages: Codes of the languages of the source and of the target, if known.
    """
    features = {INPUTS: _as_batch(source_ids), TARGETS: _as_batch(target_ids)}
    captured = attention_weights(model, features)
    s, t = len(source_ids), len(target_ids)
    _, losses = token_losses(features[TARGETS], captured.logits, 0.0)
    source, target = (
        TokenSequence.from_ids(tokenizer, ids, tokenizer.decode(ids), language)
        for tokenizer, ids, language in zip(
            tokenizers, (source_ids, target_ids), languages, strict=True
        )
    )
    return Attention(
        source=source,
        target=target,
        encoder_self=np.asarray(captured.encoder_self[0, :, :, :s, :s]),
        decoder_self=np.asarray(captured.decoder_self[0, :, :, :t, :t]),
        memory=np.asarray(captured.memory[0, :, :, :t, :s]),
        encoder_parameters=_first_or_none(captured.encoder_parameters, s),
        decoder_parameters=_first_or_none(captured.decoder_parameters, t),
        score=-float(tf.reduce_sum(losses)),
        title=title,
    )


def attention_of(
    system: System,
    source: str,
    target: str | None = None,
    decode_hparams: DecodeHParams | None = None,
) -> Attention:
    """Return every attention weight of a system for a source and its translation.

    Args:
        system: The trained system.
        source: A sentence.
        target: Its translation in the form of the problem's targets; by default the
            system's own.
        decode_hparams: Settings of the search for the system's translation.

    Raises:
        UserError: If a text has no words, is longer than the model's `max_length`, or
            has a token that the model cannot write; or for an ensemble.
    """
    system.check_single("attention shows one model")
    problem, longest = system.problem, system.max_input_length
    text = problem.normalize_source(source)
    source_ids = encode_side(system.source_tokenizer, text, longest, "source")
    if target is None:
        target_ids = system.translator(decode_hparams).translate([source])[0][0].ids
    else:
        written = problem.encode_target(target)
        target_ids = encode_side(system.target_tokenizer, written, longest, "target")
    return capture_attention(
        system.model,
        (system.source_tokenizer, system.target_tokenizer),
        source_ids,
        target_ids,
        languages=(problem.source_language, problem.target_language),
    )


def _as_batch(ids: Sequence[int]) -> tf.Tensor:
    """Return a batch of one row of at least two positions.

    Keras warns of a softmax over a single key, which an empty translation has.
    """
    return tf.constant(padded([ids], max(2, len(ids))))


def _first_or_none(weights: tf.Tensor | None, length: int) -> np.ndarray | None:
    return None if weights is None else np.asarray(weights[0, :, :, :length])


def encode_side(tokenizer: Tokenizer, text: str, longest: int, side: Side) -> list[int]:
    """Encode a source or target that the user gives, with EOS.

    Args:
        tokenizer: Tokenizer of the side.
        text: Text in the form of the training data.
        longest: Largest number of ids, including EOS.
        side: "source" or "target".

    Raises:
        UserError: If the text has no tokens or too many, or a target has one that the
            vocabulary does not have.
    """
    ids = [*tokenizer.encode(text), EOS_ID]
    if len(ids) == 1:
        raise UserError(f"received a {side} without words, expected a sentence.")
    if len(ids) > longest:
        raise UserError(
            f"received a {side} of {len(ids)} tokens, expected at most {longest} (the "
            "run's max_length): give another sentence."
        )
    if side == "target":
        check_in_vocabulary(tokenizer, text, ids)
    return ids
