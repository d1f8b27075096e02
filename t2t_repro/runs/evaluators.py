"""Make what watches a training run: evaluators of the dev split, and monitors."""

from __future__ import annotations

import dataclasses
import importlib
import logging

import keras

from t2t_repro import registry
from t2t_repro.data.batch_plan import BatchPlan
from t2t_repro.data.pipeline import evaluation_batches
from t2t_repro.data.prepared import PreparedData
from t2t_repro.decoding.problem_defaults import own_defaults
from t2t_repro.decoding.translate import Translator
from t2t_repro.evaluation.development import (
    likelihood_evaluator,
    translation_evaluator,
)
from t2t_repro.features import declared
from t2t_repro.settings.decode_hparams import DecodeHParams
from t2t_repro.settings.hparams import HParams
from t2t_repro.settings.train_settings import TrainSettings
from t2t_repro.training.loop_options import Evaluator
from t2t_repro.training.metrics_log import Listener

logger = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class Training:
    """A training run, as evaluators and monitors see it.

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


def make_evaluators(training: Training) -> list[Evaluator]:
    """Return the evaluators of a run: the core's, the features' and the user's.

    Those of the core and of features read the dev split, so there are none without it.

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
    for feature in declared().values():
        for name in feature.evaluators:
            evaluators += importlib.import_module(name).make_evaluators(training)
    return evaluators + made


def make_listeners(training: Training) -> list[Listener]:
    """Return the monitors that the user's package registered, ready to listen.

    Args:
        training: The training run.
    """
    return [make(training) for make in registry.monitors.values()]


def _translation_evaluator(training: Training) -> Evaluator:
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
