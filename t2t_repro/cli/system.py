"""From a run's folder to a trained system in memory; shared by several commands."""

from __future__ import annotations

import argparse
import dataclasses

import keras

from t2t_repro import catalogue
from t2t_repro.data.problem import Problem
from t2t_repro.decoding.translate import Translator
from t2t_repro.errors import UsageError
from t2t_repro.runs import Run
from t2t_repro.settings.decode_hparams import DecodeHParams
from t2t_repro.text import Tokenizer
from t2t_repro.training.checkpoints import find_checkpoint, model_variables, restore


@dataclasses.dataclass(frozen=True)
class System:
    """A trained model with its tokenizers.

    Attributes:
        run: What was trained, and how.
        model: With the weights of `checkpoint`.
        source_tokenizer: Of the inputs.
        target_tokenizer: Of the outputs.
        checkpoint: Path of the checkpoint.
    """

    run: Run
    model: keras.Model
    source_tokenizer: Tokenizer
    target_tokenizer: Tokenizer
    checkpoint: str

    @property
    def problem(self) -> Problem:
        """The problem it was trained on."""
        return catalogue.problem(self.run.problem)

    def with_problem_defaults(self, hparams: DecodeHParams) -> DecodeHParams:
        """Take the problem's own values where the user gave none.

        Raises:
            UsageError: If a value of the user's would have no effect on this problem.
        """
        if "prefer_unrepaired" in hparams.origins and self.problem.writes_targets:
            raise UsageError(
                f"{hparams.flag}: prefer_unrepaired would have no effect: nothing is "
                f"repaired in what a model writes for {self.problem.name}."
            )
        own = self.problem.decode_defaults
        return hparams.replace(
            **{name: own[name] for name in own if name not in hparams.origins}
        )

    def translator(self, decode_hparams: DecodeHParams) -> Translator:
        """Make a translator with the model."""
        return Translator(
            self.model,
            self.source_tokenizer,
            self.target_tokenizer,
            decode_hparams,
            self.run.hparams.max_length,
            normalize_source=self.problem.normalize_source,
            postprocess=self.problem.postprocess,
        )


def build_model(
    run: Run, source_tokenizer: Tokenizer, target_tokenizer: Tokenizer
) -> keras.Model:
    """Make the model of a run, with fresh weights.

    Ids of two vocabularies mean different text, so no matrix is shared between them.
    Differs from tensor2tensor (`modalities.py`), which unties where the sizes differ
    and lets two vocabularies of one size share.
    """
    hparams = run.hparams
    if source_tokenizer is not target_tokenizer:
        hparams = hparams.replace(shared_embedding_and_softmax_weights=False)
    return catalogue.model(run.model).from_hparams(
        hparams, source_tokenizer.vocab_size, target_tokenizer.vocab_size
    )


def load_system(args: argparse.Namespace) -> System:
    """Rebuild the system that `add_system_arguments`' flags name.

    Raises:
        UserError: If the run or the checkpoint is missing or damaged.
    """
    run = Run.load_existing(args.output_dir)
    catalogue.load(args.t2t_usr_dir or run.usr_dir)
    checkpoint = find_checkpoint(args.output_dir, args.checkpoint_path)
    source, target = run.load_tokenizers(args.output_dir)
    model = build_model(run, source, target)
    restore(model_variables(model), checkpoint)
    return System(run, model, source, target, checkpoint)
