"""Write a trained system for CTranslate2, after comparing it with the trained model.

A program needs the packages `ctranslate2` and `sentencepiece`, but not this one;
docs/serving.md has an example.
"""

from __future__ import annotations

import dataclasses
import importlib.metadata
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import keras

import t2t_repro
from t2t_repro import features
from t2t_repro.data.prepared import PreparedData
from t2t_repro.data.problem import Problem
from t2t_repro.decoding.problem_defaults import with_problem_defaults
from t2t_repro.errors import UserError
from t2t_repro.features.ctranslate2.ctranslate2_parity import Comparison, Parity
from t2t_repro.features.ctranslate2.ctranslate2_system import (
    ExportDescription,
    check_exportable,
    checkpoint_digest,
    position_count,
)
from t2t_repro.features.ctranslate2.ctranslate2_translator import check_followed
from t2t_repro.files import atomic_folder
from t2t_repro.runs.system import System
from t2t_repro.settings.decode_hparams import DecodeHParams
from t2t_repro.text.tokenizer_files import SIDES, tokenizer_file_names
from t2t_repro.training.checkpoint_paths import step_in_name

COMPARED_SENTENCES = 100
_DECODE_HPARAMS = ("beam_size", "alpha", "extra_length")


def export_system(
    system: System,
    export_dir: str | Path,
    decode_hparams: DecodeHParams | None = None,
    *,
    quantization: str = "float32",
    sentences: Sequence[str] | None = None,
) -> Parity:
    """Convert a system for CTranslate2, compare the two, and write all or nothing.

    Args:
        system: The trained system. One that computes in another dtype than float32 is
            compared through a float32 copy.
        export_dir: Folder to create.
        decode_hparams: Settings of the search; the export has positions for its
            `extra_length`, and the translations are compared with its beam.
        quantization: Format of the weights, a name of `QUANTIZATIONS`.
        sentences: Sources to compare; by default the first ones of the prepared dev
            text, or of the embedded grammar if it is gone. Those without tokens, or
            with more than the model reads at once, are left out.

    Returns:
        The comparison, which is also in the description of the folder.

    Raises:
        UserError: If CTranslate2 is not installed or cannot compute the model, the two
            differ too much, no sentence is left, or the folder exists or cannot be
            written; or for an ensemble.
        UsageError: If `quantization` is unknown, CTranslate2 does not follow a setting,
            or as for `System.translator`.
    """
    system.check_single("CTranslate2 has no ensembles")
    run = system.run
    check_exportable(run.model, run.hparams, export_dir, quantization)
    system.warn_of_raw_text()
    hparams = with_problem_defaults(
        decode_hparams or DecodeHParams(),
        system.problem,
        system.max_input_length,
        follows_grammar=False,
    )
    check_followed(hparams)
    if sentences is None:
        sentences = comparison_sentences(system.data_dir, system.problem)
    sources = [*map(system.problem.normalize_source, sentences)]
    longest = system.max_input_length
    try:
        with atomic_folder(Path(export_dir)) as folder:
            made = Comparison(
                _to_float32(system.model),
                (system.source_tokenizer, system.target_tokenizer),
                hparams,
                longest,
                folder,
                quantization,
                position_count(longest, hparams.extra_length),
            )
            _write_weights(system.model, made)
            parity = made.measure(sources)
            parity.check(quantization)
            _describe(system, made, parity)
    except OSError as error:
        reason = error.strerror or str(error)
        raise UserError(f"cannot write {export_dir}: {reason}.") from error
    return parity


def comparison_sentences(data_dir: str | None, problem: Problem) -> list[str]:
    """Return the first sources of a run's dev text.

    If the text does not exist, return English sentences of the embedded grammar,
    which any tokenizer can encode.

    Args:
        data_dir: Folder of the run's prepared data, or None if it has none.
        problem: The run's problem.

    Returns:
        At most `COMPARED_SENTENCES` sentences.
    """
    if data_dir is not None:
        with suppress(UserError):
            sources, _ = PreparedData.load(data_dir, problem).raw_text("dev")
            return sources[:COMPARED_SENTENCES]
    corpus = features.load("synthetic", "synthetic_corpus")
    return [x.english for x in corpus.sentences("dev", COMPARED_SENTENCES)]


def _to_float32(model: keras.Model) -> keras.Model:
    """Return the model, or a copy of it that computes in float32."""
    if model.compute_dtype == "float32":
        return model
    copy = type(model).from_config(model.get_config() | {"dtype": "float32"})
    for variable, value in zip(copy.variables, model.variables, strict=True):
        variable.assign(value)
    return copy


def _write_weights(model: keras.Model, made: Comparison) -> None:
    """Write the weights and the vocabularies."""
    # Imports ctranslate2, which is optional.
    from t2t_repro.features.ctranslate2 import ctranslate2_spec

    spec = ctranslate2_spec.model_spec(model, *made.tokenizers, made.positions)
    ctranslate2_spec.write_model(spec, str(made.folder), made.quantization)


def _describe(system: System, made: Comparison, parity: Parity) -> None:
    """Write the tokenizers and the description."""
    names = tokenizer_file_names(*made.tokenizers)
    for side, tokenizer in zip(SIDES, made.tokenizers, strict=True):
        tokenizer.save(made.folder / names[side])
    settings = made.hparams.values()
    ExportDescription(
        problem=system.run.problem,
        hparams_set=system.run.hparams_set,
        checkpoint=system.checkpoint,
        step=step_in_name(system.checkpoint),
        checkpoint_digest=checkpoint_digest(system.checkpoint),
        quantization=made.quantization,
        positions=made.positions,
        max_input_length=made.max_input_length,
        tokenizers=names,
        decode_hparams={name: settings[name] for name in _DECODE_HPARAMS},
        parity=dataclasses.asdict(parity),
        versions={
            "t2t_repro": t2t_repro.__version__,
            "ctranslate2": importlib.metadata.version("ctranslate2"),
        },
    ).save(made.folder)
