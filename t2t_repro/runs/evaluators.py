"""Make the evaluators of a run: likelihood, translations, attention, branches."""

from __future__ import annotations

import logging

import keras
import tensorflow as tf

from t2t_repro.choices import SELF_ATTENTIONS
from t2t_repro.constants import EOS_ID, INPUTS, TARGETS
from t2t_repro.data.batch_plan import BatchPlan
from t2t_repro.data.pipeline import evaluation_batches
from t2t_repro.data.prepared import PreparedData
from t2t_repro.decoding.problem_defaults import own_defaults
from t2t_repro.decoding.text_forms import TextForms
from t2t_repro.decoding.translate import Translator
from t2t_repro.errors import UserError
from t2t_repro.evaluation.branch_weights import branch_values
from t2t_repro.evaluation.development import (
    likelihood_evaluator,
    translation_evaluator,
)
from t2t_repro.models.attention_weights import attention_weights
from t2t_repro.models.transformer import Transformer
from t2t_repro.settings.decode_hparams import DecodeHParams
from t2t_repro.settings.hparams import HParams
from t2t_repro.settings.train_settings import TrainSettings
from t2t_repro.training.loop_options import Evaluator
from t2t_repro.training.metrics_log import MetricsLog
from t2t_repro.visualization.samples import attention_evaluator, sample_pairs
from t2t_repro.visualization.summaries import write_branches

logger = logging.getLogger(__name__)


def make_evaluators(
    model: keras.Model, hparams: HParams, settings: TrainSettings, data: PreparedData
) -> list[Evaluator]:
    """Return the evaluators of the dev split, or none without a dev split.

    Args:
        model: The model in training.
        hparams: Its hparams.
        settings: Settings of the training run.
        data: Prepared data.
    """
    if "dev" not in data.splits:
        return []
    batches = evaluation_batches(data.shards("dev"), BatchPlan.for_evaluation(hparams))
    evaluators = [likelihood_evaluator(model, batches)]
    samples = settings.attention_samples
    if settings.eval_sentences:
        evaluators.append(_translation_evaluator(model, hparams, settings, data))
    # Only models of this class say what their attention layers are.
    if isinstance(model, Transformer):
        if samples and _shows_attention(model, hparams.self_attention_type):
            evaluators.append(_attention_evaluator(model, hparams, samples, data))
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


def _attention_evaluator(
    model: Transformer, hparams: HParams, samples: int, data: PreparedData
) -> Evaluator:
    tokenizers = data.tokenizers()
    pairs = sample_pairs(
        data.problem,
        tokenizers,
        *data.raw_text("dev"),
        count=samples,
        longest=hparams.max_length,
    )
    languages = (data.problem.source_language, data.problem.target_language)
    return attention_evaluator(model, tokenizers, pairs, languages=languages)


def branch_evaluator(model: Transformer) -> Evaluator:
    """Make the evaluator that writes kappa and alpha for the tab of attention."""

    def evaluate(step: int, log: MetricsLog) -> dict[str, float]:
        write_branches(log, step, branch_values(model))
        return {}

    return evaluate


def _translation_evaluator(
    model: keras.Model, hparams: HParams, settings: TrainSettings, data: PreparedData
) -> Evaluator:
    defaults = DecodeHParams()
    problem = data.problem.with_bleu_tokenizer(settings.bleu_tokenizer)
    own = defaults.replace(**own_defaults(problem))
    # The problem's batch size is meant for its beam size.
    greedy = own.replace(beam_size=1, batch_size=defaults.batch_size)
    tokenizers = data.tokenizers()
    translator = Translator(
        model,
        *tokenizers,
        greedy,
        hparams.max_length,
        forms=TextForms.of(problem),
        grammar=problem.target_grammar(tokenizers[1]),
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
