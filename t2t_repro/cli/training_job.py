"""What `t2t train` does once TensorFlow is there."""

from __future__ import annotations

import argparse
import logging
from pathlib import Path

import keras

from t2t_repro.cli.final_report import write_final_report
from t2t_repro.cli.flags import problem_and_settings
from t2t_repro.cli.system import build_model
from t2t_repro.data.pipeline import BatchPlan, evaluation_batches
from t2t_repro.data.prepare import open_or_prepare
from t2t_repro.decoding.translate import Translator
from t2t_repro.errors import UsageError
from t2t_repro.evaluation.branch_weights import branch_monitor
from t2t_repro.evaluation.development import (
    likelihood_evaluator,
    translation_evaluator,
)
from t2t_repro.runs import Run, save_tokenizers
from t2t_repro.settings.decode_hparams import DecodeHParams
from t2t_repro.settings.hparams import HParams
from t2t_repro.training.checkpoints import TrainingCheckpoints
from t2t_repro.training.loop import (
    Evaluator,
    LoopOptions,
    Monitor,
    Trainer,
    TrainingData,
)
from t2t_repro.training.setup import (
    make_optimizer,
    make_repeatable,
    make_strategy,
    should_use_xla,
)
from t2t_repro.training.step import StepOptions

logger = logging.getLogger(__name__)


class TrainingJob:
    """One call of `t2t train`.

    Args:
        args: The command's flags, complete.
        hparams: The set with its overrides.
    """

    def __init__(self, args: argparse.Namespace, hparams: HParams) -> None:
        self.args = args
        self.hparams = hparams
        self.strategy = make_strategy(args.cpu_replicas)
        self.jit_compile = (
            should_use_xla(self.strategy) if args.xla == "auto" else args.xla == "on"
        )
        self.run_before = self._check_folder()
        self.problem, given = problem_and_settings(args)
        self.data = open_or_prepare(self.problem, args.data_dir, given, args.tmp_dir)
        self.tokenizers = self.data.tokenizers()
        self._check_sharing()
        self.run_description = self._begin_or_continue()

    def run(self) -> int:
        """Train to the end and report; return the exit code."""
        steps = self._make_trainer().train()
        if steps < self.args.train_steps:
            logger.info(
                "stopped at step %d of %d; the same command goes on from there",
                steps,
                self.args.train_steps,
            )
            return 1
        write_final_report(self.args, self.data.splits)
        return 0

    def _check_folder(self) -> Run | None:
        """Make the run's folder, or find a run in it that these flags go on with.

        Raises:
            UserError: If the run that is there has other settings.
        """
        there = Run.load(self.args.output_dir)
        Path(self.args.output_dir).mkdir(parents=True, exist_ok=True)
        if there is not None:
            asked = self._asked_run(there.data_digest, there.tokenizers)
            there.check_same(asked, self.args.output_dir)
        return there

    def _asked_run(self, data_digest: str, tokenizers: dict[str, str]) -> Run:
        args = self.args
        return Run(
            problem=args.problem,
            model=args.model,
            hparams_set=args.hparams_set,
            hparams=self.hparams,
            random_seed=args.random_seed,
            num_replicas=self.strategy.num_replicas_in_sync,
            data_dir=str(Path(args.data_dir).resolve()),
            data_digest=data_digest,
            usr_dir=args.t2t_usr_dir and str(Path(args.t2t_usr_dir).resolve()),
            tokenizers=tokenizers,
        )

    def _check_sharing(self) -> None:
        """Say that two vocabularies share no embedding.

        Raises:
            UsageError: If --hparams asks that they do.
        """
        name = "shared_embedding_and_softmax_weights"
        source, target = self.tokenizers
        if source is target or not getattr(self.hparams, name):
            return
        if self.hparams.origins[name] == HParams.flag:
            raise UsageError(
                f"received {name}=true, and data with a vocabulary for each side, "
                "whose ids mean different text: leave it out, or prepare the data "
                "with one vocabulary for both."
            )
        logger.info("two vocabularies: embeddings and softmax share no weights")

    def _begin_or_continue(self) -> Run:
        """Write the run's description, or check that its data is the same."""
        digest, output_dir = self.data.digest, self.args.output_dir
        if self.run_before is not None:
            self.run_before.check_same_tokenizers(output_dir, *self.tokenizers)
            asked = self._asked_run(digest, self.run_before.tokenizers)
            self.run_before.check_same(asked, output_dir)
            return self.run_before
        names = save_tokenizers(output_dir, *self.tokenizers)
        run = self._asked_run(digest, names)
        run.save(output_dir)
        return run

    def _make_trainer(self) -> Trainer:
        args = self.args
        make_repeatable(args.random_seed)
        with self.strategy.scope():
            model = build_model(self.run_description, *self.tokenizers)
            optimizer = make_optimizer(self.hparams)
            optimizer.build(model.trainable_variables)
        data = self._training_data()
        self._announce(model, data)
        return Trainer(
            model=model,
            optimizer=optimizer,
            strategy=self.strategy,
            data=data,
            checkpoints=TrainingCheckpoints(
                args.output_dir, model, optimizer, keep=args.keep_checkpoint_max
            ),
            step_options=StepOptions(
                label_smoothing=self.hparams.label_smoothing,
                clip_grad_norm=self.hparams.clip_grad_norm,
                jit_compile=self.jit_compile,
            ),
            options=LoopOptions(
                train_steps=args.train_steps,
                seed=args.random_seed,
                log_every_steps=args.log_step_count_steps,
                eval_every_steps=args.local_eval_frequency,
                save_every_steps=args.save_checkpoints_steps,
                save_every_seconds=args.save_checkpoints_secs,
                best_metric=self.problem.metric,
            ),
            evaluators=self._evaluators(model),
            monitors=self._monitors(model),
        )

    def _plan(self, num_replicas: int) -> BatchPlan:
        h = self.hparams
        return BatchPlan.from_token_budget(
            batch_size=h.batch_size,
            max_length=h.max_length,
            min_length_bucket=h.min_length_bucket,
            length_bucket_step=h.length_bucket_step,
            num_replicas=num_replicas,
        )

    def _training_data(self) -> TrainingData:
        return TrainingData(
            shards=self.data.shards("train"),
            plan=self._plan(self.strategy.num_replicas_in_sync),
        )

    def _evaluators(self, model: keras.Model) -> list[Evaluator]:
        """Score on the dev split; without one, do not score."""
        if "dev" not in self.data.splits:
            return []
        evaluators = [self._likelihood_evaluator(model)]
        if self.args.eval_sentences:
            evaluators.append(self._translation_evaluator(model))
        return evaluators

    def _monitors(self, model: keras.Model) -> list[Monitor]:
        branched = self.hparams.branched_attention != "none"
        return [branch_monitor(model)] if branched else []

    def _likelihood_evaluator(self, model: keras.Model) -> Evaluator:
        batches = evaluation_batches(self.data.shards("dev"), self._plan(1))
        return likelihood_evaluator(model, batches, jit_compile=False)

    def _translation_evaluator(self, model: keras.Model) -> Evaluator:
        defaults = DecodeHParams()
        # The problem's own batch is for its own beam.
        greedy = defaults.replace(**self.problem.decode_defaults).replace(
            beam_size=1, batch_size=defaults.batch_size
        )
        translator = Translator(
            model,
            *self.tokenizers,
            greedy,
            self.hparams.max_length,
            normalize_source=self.problem.normalize_source,
            postprocess=self.problem.postprocess,
            jit_compile=False,
        )
        sources, references = (
            lines[: self.args.eval_sentences] for lines in self.data.raw_text("dev")
        )
        return translation_evaluator(translator, sources, references, self.problem)

    def _announce(self, model: keras.Model, data: TrainingData) -> None:
        """Say what is about to be trained, and how."""
        logger.info(
            "%s on %s: %s parameters",
            self.args.hparams_set,
            self.problem.name,
            f"{model.count_params():,}",
        )
        for split, counts in self.data.manifest.splits.items():
            left_out = counts.longer_than(self.hparams.max_length)
            if left_out and split != "test":
                logger.warning(
                    "%s: %d of %d pairs are longer than max_length=%d and left out",
                    split,
                    left_out,
                    counts.pairs_written,
                    self.hparams.max_length,
                )
        logger.info(
            "%d replica(s), %d tokens each; %d batch shapes: %s%s",
            self.strategy.num_replicas_in_sync,
            self.hparams.batch_size,
            len(data.plan.boundaries),
            ", ".join(
                f"{rows}x{length}"
                for rows, length in zip(
                    data.plan.rows, data.plan.boundaries, strict=True
                )
            ),
            "; XLA compiles each once" if self.jit_compile else "",
        )
