"""Evaluators that the training loop calls: dev likelihood, dev translations."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence

import keras
import numpy as np
import tensorflow as tf

from t2t_repro.constants import PAD_ID, TARGETS
from t2t_repro.data.pipeline import BATCH_SIGNATURE, Batch
from t2t_repro.data.problem import Problem
from t2t_repro.decoding.translate import Translator
from t2t_repro.training.losses import token_losses
from t2t_repro.training.metrics_log import MetricsLog

logger = logging.getLogger(__name__)

SAMPLES = 3


def likelihood_evaluator(
    model: keras.Model, batches: tf.data.Dataset, *, jit_compile: bool
) -> Callable[[int, MetricsLog], dict[str, float]]:
    """Make the evaluator of dev loss, perplexity and token accuracy.

    All three are per target token, EOS included, given the true tokens before it;
    the loss is the true negative log-likelihood, without label smoothing.

    Args:
        model: The model that is trained.
        batches: Dev batches.
        jit_compile: Whether XLA compiles the evaluation.

    Returns:
        The evaluator.
    """

    @tf.function(input_signature=[BATCH_SIGNATURE], jit_compile=jit_compile)
    def sums(batch: Batch) -> tf.Tensor:
        """Return summed log-likelihood, right tokens and tokens, float32 `[3]`."""
        logits = model(batch, training=False)
        targets = batch[TARGETS]
        _, nll = token_losses(targets, logits, 0.0)
        real = tf.not_equal(targets, PAD_ID)
        right = tf.equal(tf.argmax(logits, axis=-1, output_type=tf.int32), targets)
        counts = [tf.math.count_nonzero(x) for x in (right & real, real)]
        return tf.stack([tf.reduce_sum(nll), *(tf.cast(n, tf.float32) for n in counts)])

    def evaluate(step: int, log: MetricsLog) -> dict[str, float]:
        del step, log
        totals = np.zeros(3)
        for batch in batches:
            totals += sums(batch).numpy()
        nll, right, tokens = map(float, totals)
        if not tokens:
            logger.warning("no dev pair is short enough for max_length: no dev loss")
            return {}
        return {
            "nll": nll / tokens,
            "perplexity": math.exp(min(nll / tokens, 700.0)),
            "token_accuracy": right / tokens,
        }

    return evaluate


def translation_evaluator(
    translator: Translator,
    sources: Sequence[str],
    references: Sequence[str],
    problem: Problem,
) -> Callable[[int, MetricsLog], dict[str, float]]:
    """Make the evaluator that translates dev sentences and scores them.

    Differs from tensor2tensor's `approx_bleu_score`: text is decoded from the model
    and scored as text: translations with sacreBLEU (13a, cased).

    Args:
        translator: Holds the model that is trained.
        sources: Dev sentences.
        references: Their translations.
        problem: Scores them.

    Returns:
        The evaluator; it also writes a few translations as text to the log.
    """

    def evaluate(step: int, log: MetricsLog) -> dict[str, float]:
        hypotheses = [best[0].text for best in translator.translate(sources)]
        table = "| source | translation | reference |\n|---|---|---|\n"
        rows = zip(sources, hypotheses, references, strict=True)
        for row, _ in zip(rows, range(SAMPLES), strict=False):
            table += "| " + " | ".join(_cell(text) for text in row) + " |\n"
        log.text("eval", step, "translations", table)
        return {problem.metric: problem.development_score(hypotheses, references)}

    return evaluate


def _cell(text: str) -> str:
    """Write a text so that it stays in one cell of a Markdown table."""
    return " ".join(text.split()).replace("|", "\\|")
