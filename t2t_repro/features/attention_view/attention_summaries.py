"""Attention of dev sentences, and branches, while a model is trained."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf
from tensorboard.compat.proto import summary_pb2

from t2t_repro.constants import EOS_ID, INPUTS, SELF_ATTENTIONS, TARGETS
from t2t_repro.data.problem import Problem
from t2t_repro.errors import UserError
from t2t_repro.features.attention_view.capture import (
    capture_attention,
    encode_source,
    encode_target,
)
from t2t_repro.features.attention_view.event_format import (
    BRANCHES_TAG,
    PLUGIN_NAME,
    pack_branches,
    pack_document,
    pack_title,
    sentence_tag,
)
from t2t_repro.features.attention_view.map_image import draw_map
from t2t_repro.models.attention_weights import attention_weights
from t2t_repro.models.transformer import Transformer
from t2t_repro.runs.evaluators import Training, branch_values
from t2t_repro.text.tokenizer import Tokenizer
from t2t_repro.training.metrics_file import EVAL_SPLIT
from t2t_repro.training.metrics_log import Evaluator, MetricsLog

logger = logging.getLogger(__name__)


IdPair = tuple[list[int], list[int]]


def make_evaluators(training: Training) -> list[Evaluator]:
    """Return the evaluators that write what the tab "Attention" shows.

    Args:
        training: The training run.
    """
    model, hparams = training.model, training.hparams
    # Only models of this class say what their attention layers are.
    if not isinstance(model, Transformer):
        return []
    evaluators = []
    samples = training.settings.attention_samples
    if samples and _shows_attention(model, hparams.self_attention_type):
        evaluators.append(_samples_evaluator(training))
    if hparams.branched_attention != "none":
        evaluators.append(branch_evaluator(model))
    return evaluators


def _shows_attention(model: Transformer, name: str) -> bool:
    """Return whether attention weights can be captured, and log why not."""
    if name in SELF_ATTENTIONS:
        return True
    tokens = tf.constant([[EOS_ID, EOS_ID]])  # Keras warns of a softmax over one value.
    try:
        attention_weights(model, {INPUTS: tokens, TARGETS: tokens})
    except UserError as error:
        logger.warning("TensorBoard gets no attention: %s", error)
        return False
    return True


def _samples_evaluator(training: Training) -> Evaluator:
    data = training.data
    problem, tokenizers = data.problem, data.tokenizers()
    count, longest = training.settings.attention_samples, training.hparams.max_length
    texts = data.raw_text("dev")
    pairs = sample_pairs(problem, tokenizers, *texts, count=count, longest=longest)
    return attention_evaluator(
        training.model,
        tokenizers,
        pairs,
        languages=(problem.source_language, problem.target_language),
    )


def branch_evaluator(model: Transformer) -> Evaluator:
    """Make the evaluator that writes kappa and alpha for the tab of attention."""

    def evaluate(step: int, log: MetricsLog) -> dict[str, float]:
        write_branches(log, step, branch_values(model))
        return {}

    return evaluate


def sample_pairs(
    problem: Problem,
    tokenizers: tuple[Tokenizer, Tokenizer],
    sources: Sequence[str],
    references: Sequence[str],
    *,
    count: int,
    longest: int,
) -> list[IdPair]:
    """Return the ids of the first pairs that a model can be asked about.

    Args:
        problem: Problem that converts the texts to the forms that the model reads and
            writes.
        tokenizers: Tokenizers of the sources and of the targets.
        sources: Dev sentences.
        references: Their targets.
        count: Number of pairs; fewer if there are fewer.
        longest: Largest number of tokens per side, including EOS.
    """
    pairs: list[IdPair] = []
    for source, reference in zip(sources, references, strict=True):
        if len(pairs) == count:
            break
        try:
            read, written = (
                problem.normalize_source(source),
                problem.encode_target(reference),
            )
            ids = encode_source(tokenizers[0], read, longest)
            pairs.append((ids, encode_target(tokenizers[1], written, longest)))
        except UserError:  # empty, too long or not in the vocabulary
            continue
    return pairs


def attention_evaluator(
    model: Transformer,
    tokenizers: tuple[Tokenizer, Tokenizer],
    pairs: Sequence[IdPair],
    languages: tuple[str | None, str | None] = (None, None),
) -> Callable[[int, MetricsLog], dict[str, float]]:
    """Make the evaluator that writes the attention of sample sentences.

    The targets are the references, so that the tokens are the same at all steps and a
    viewer can follow how the attention between them appears.

    Args:
        model: The model in training.
        tokenizers: Tokenizers of the sources and of the targets.
        pairs: Ids of the sources and the targets, from `sample_pairs`.
        languages: Codes of the languages of the sources and of the targets, if known.

    Returns:
        A function that writes to the log and returns no scores.
    """

    def evaluate(step: int, log: MetricsLog) -> dict[str, float]:
        for number, (source, target) in enumerate(pairs):
            attention = capture_attention(
                model,
                tokenizers,
                source,
                target,
                title=f"dev sentence {number + 1}",
                languages=languages,
            )
            write_attention(log, step, number, attention.to_document())
        return {}

    return evaluate


IMAGE_TAG = "samples/encoder_decoder_attention"


def write_attention(
    log: MetricsLog, step: int, number: int, document: dict[str, Any]
) -> None:
    """Write a sentence pair for the tabs "Attention" and "Images".

    Args:
        log: Log of the run.
        step: Number of completed updates.
        number: Number of the sentence pair, from 0. It must stay the same at all steps.
        document: The document of `Attention.to_document`.
    """
    title = str(document.get("title") or f"sentence {number + 1}")
    words = document.get("first_words")
    image = draw_map(document, "memory", f"{title}, step {step}")
    with log.events(EVAL_SPLIT, step):
        tf.summary.write(
            sentence_tag(f"sentence_{number}"),
            tf.constant([pack_document(document)]),
            metadata=_metadata(
                f"{title}: {words}" if words else title,
                summary_pb2.DATA_CLASS_BLOB_SEQUENCE,
            ),
        )
        if image is not None:
            tf.summary.image(f"{IMAGE_TAG}/sentence_{number}", image[None])


def write_branches(
    log: MetricsLog, step: int, layers: Sequence[dict[str, Any]]
) -> None:
    """Write kappa and alpha of every layer for the tab "Attention".

    Args:
        log: Log of the run.
        step: Number of completed updates.
        layers: Dictionaries with "name", such as "encoder layer 1", and "kappa" and
            "alpha", one number per branch.
    """
    with log.events(EVAL_SPLIT, step):
        tf.summary.write(
            BRANCHES_TAG,
            tf.constant(pack_branches(layers)),
            metadata=_metadata("branches", summary_pb2.DATA_CLASS_TENSOR),
        )


def _metadata(title: str, data_class: int) -> summary_pb2.SummaryMetadata:
    plugin_data = summary_pb2.SummaryMetadata.PluginData(
        plugin_name=PLUGIN_NAME, content=pack_title(title)
    )
    return summary_pb2.SummaryMetadata(
        display_name=title, plugin_data=plugin_data, data_class=data_class
    )
