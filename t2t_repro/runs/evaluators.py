"""Make the evaluators and monitors of a training run."""

from __future__ import annotations

import dataclasses
import logging
import math
import re
from collections.abc import Callable, Sequence

import keras
import numpy as np
import tensorflow as tf

from t2t_repro import registry
from t2t_repro.constants import PAD_ID, TARGETS
from t2t_repro.data.batch_plan import BatchPlan
from t2t_repro.data.pipeline import BATCH_SIGNATURE, Batch, evaluation_batches
from t2t_repro.data.prepared import PreparedData
from t2t_repro.data.problem import Problem
from t2t_repro.decoding.problem_defaults import own_defaults
from t2t_repro.decoding.translator import Translator
from t2t_repro.features import modules
from t2t_repro.settings.decode_hparams import DecodeHParams
from t2t_repro.settings.hparams import HParams
from t2t_repro.settings.train_settings import TrainSettings
from t2t_repro.training.losses import token_losses
from t2t_repro.training.metrics_file import EVAL_SPLIT
from t2t_repro.training.metrics_log import Evaluator, MetricsLog, Monitor
from t2t_repro.translation_scores import sentence_bleu

logger = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class TrainingContext:
    """A training run, as evaluators and monitors receive it.

    Attributes:
        model: The model in training.
        hparams: Its hparams.
        settings: Settings of the training run.
        data: Prepared data.
    """

    model: keras.Model
    hparams: HParams
    settings: TrainSettings
    data: PreparedData


def make_evaluators(training: TrainingContext) -> list[Evaluator]:
    """Return the evaluators of a run: the core's, the features' and the user's.

    Without a dev split, only the user's evaluators remain.

    Args:
        training: The training run.
    """
    made = [make(training) for make in registry.evaluators.values()]
    if "dev" not in training.data.splits:
        return made
    plan = BatchPlan.for_evaluation(training.hparams)
    batches = evaluation_batches(training.data.shards("dev"), plan)
    evaluators = [likelihood_evaluator(training.model, batches)]
    if training.settings.eval_sentences:
        evaluators.append(_translation_evaluator(training))
    for module in modules("evaluators").values():
        evaluators += module.make_evaluators(training)
    return evaluators + made


def make_monitors(training: TrainingContext) -> list[Monitor]:
    """Return the monitors that the user's package registered.

    Args:
        training: The training run.
    """
    return [make(training) for make in registry.monitors.values()]


def _translation_evaluator(training: TrainingContext) -> Evaluator:
    settings, data = training.settings, training.data
    defaults = DecodeHParams()
    problem = data.problem.with_bleu_tokenizer(settings.bleu_tokenizer)
    own = defaults.replace(**own_defaults(problem))
    # The problem's batch size is meant for its beam size.
    greedy = own.replace(beam_size=1, batch_size=defaults.batch_size)
    translator = Translator(
        training.model,
        *data.tokenizers(),
        greedy,
        training.hparams.max_length,
        problem=problem,
    )
    sources, references = (
        side[: settings.eval_sentences] for side in data.raw_text("dev")
    )
    logger.info(
        "%s during training: %d dev sentences, greedy search; decoding uses "
        "beam_size=%d and usually scores higher",
        problem.metric,
        len(sources),
        own.beam_size,
    )
    return translation_evaluator(translator, sources, references, problem)


SAMPLES = 3


def likelihood_evaluator(
    model: keras.Model, batches: tf.data.Dataset
) -> Callable[[int, MetricsLog], dict[str, float]]:
    """Make the evaluator of dev loss, perplexity and token accuracy.

    All three are per target token, including EOS, given the true tokens before it.
    The loss is the negative log-likelihood in nats, without label smoothing.

    Args:
        model: The model in training.
        batches: Batches of the dev split, int32 `[rows, length]` per side.

    Returns:
        A function that returns "nll", "perplexity" and "token_accuracy" (from 0 to 1),
        or nothing if there are no batches.
    """
    sums = _make_sums(model)

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


def _make_sums(model: keras.Model) -> Callable[[Batch], tf.Tensor]:
    """Make the function that sums over the target tokens of a batch."""

    @tf.function(input_signature=[BATCH_SIGNATURE])
    def sums(batch: Batch) -> tf.Tensor:
        """Return the total loss, correct tokens and all tokens, float32 `[3]`."""
        logits = model(batch, training=False)
        targets = batch[TARGETS]
        _, nll = token_losses(targets, logits, 0.0)
        real = tf.not_equal(targets, PAD_ID)
        right = tf.equal(tf.argmax(logits, axis=-1, output_type=tf.int32), targets)
        counts = [tf.math.count_nonzero(x) for x in (right & real, real)]
        return tf.stack([tf.reduce_sum(nll), *(tf.cast(n, tf.float32) for n in counts)])

    return sums


def translation_evaluator(
    translator: Translator,
    sources: Sequence[str],
    references: Sequence[str],
    problem: Problem,
) -> Callable[[int, MetricsLog], dict[str, float]]:
    """Make the evaluator that translates dev sentences and scores them.

    Differs from tensor2tensor's `approx_bleu_score`, which predicts each token from the
    true ones before it: the translator searches, and sacreBLEU (cased) scores the text
    in translation problems.

    Args:
        translator: Translator with the model in training; for speed, of greedy search.
        sources: Dev sentences.
        references: Their translations.
        problem: Problem that defines the score.

    Returns:
        A function that returns the score under the name of the problem's metric. It
        also writes a few translations to the log.
    """
    tokenizer = problem.tokenizer_for(references)
    cut = translator.count_cut(sources)
    if cut:
        logger.warning(
            "%d of %d dev sentences are longer than max_length: translated in pieces",
            cut,
            len(sources),
        )

    def evaluate(step: int, log: MetricsLog) -> dict[str, float]:
        translated = translator.translate(sources, reports_cuts=False)
        hypotheses = [best[0].text for best in translated]
        samples = slice(SAMPLES)
        table = _table(
            problem,
            tokenizer,
            sources[samples],
            references[samples],
            hypotheses[samples],
        )
        log.text(EVAL_SPLIT, step, "translations", table)
        return {problem.metric: problem.development_score(hypotheses, references)}

    return evaluate


def _table(
    problem: Problem,
    tokenizer: str,
    sources: Sequence[str],
    references: Sequence[str],
    hypotheses: Sequence[str],
) -> str:
    """Return sentences, their translations and the score of each as Markdown.

    The table has one column: TensorBoard divides the width among columns, and breaks
    words and numbers in narrow ones.
    """
    lines = ["| dev sentences |", "|---|"]
    samples = zip(sources, references, hypotheses, strict=True)
    for number, (source, reference, hypothesis) in enumerate(samples, start=1):
        score = _sentence_score(problem, tokenizer, hypothesis, reference)
        metric = _cell(problem.metric)
        lines += [
            f"| **source {number}:** {_cell(source)} |",
            f"| **reference {number}:** {_cell(reference)} |",
            f"| **translation {number}, {metric} {score:.1f}:** {_cell(hypothesis)} |",
        ]
    return "\n".join(lines) + "\n"


def _sentence_score(
    problem: Problem, tokenizer: str, hypothesis: str, reference: str
) -> float:
    if problem.metric == "bleu":
        # Corpus BLEU is zero for a sentence of fewer than four words.
        return sentence_bleu(hypothesis, reference, tokenizer)
    return problem.development_score([hypothesis], [reference])


def _cell(text: str) -> str:
    """Escape a text for one cell of a Markdown table."""
    return re.sub(r"([\\`*_\[\]|])", r"\\\1", " ".join(text.split()))
