"""Write a trained system for CTranslate2, after comparing it with the trained model.

A program needs the packages `ctranslate2` and `sentencepiece`, and nothing of this one;
docs/serving.md has an example.
"""

from __future__ import annotations

import dataclasses
import importlib.metadata
from collections.abc import Sequence
from pathlib import Path

import t2t_repro
from t2t_repro import features
from t2t_repro.data.prepared import PreparedData
from t2t_repro.data.problem import Problem
from t2t_repro.decoding.problem_defaults import with_problem_defaults
from t2t_repro.errors import UserError
from t2t_repro.features.ctranslate2.ctranslate2_translator import (
    check_followed,
    import_ctranslate2,
)
from t2t_repro.features.ctranslate2.export_folder import (
    ExportDescription,
    check_exportable,
    checkpoint_digest,
    position_count,
)
from t2t_repro.features.ctranslate2.parity import (
    ComparedSystem,
    Parity,
    measure_parity,
)
from t2t_repro.files import atomic_folder
from t2t_repro.runs.system import System
from t2t_repro.settings.decode_hparams import DecodeHParams
from t2t_repro.text.tokenizer_files import SIDES, tokenizer_file_names
from t2t_repro.training.checkpoint_paths import step_in_name

_DECODE_HPARAMS = ("beam_size", "alpha", "extra_length")


@dataclasses.dataclass(frozen=True)
class Origin:
    """Where the weights of an export come from.

    Attributes:
        problem: Name of the problem, including `_rev`.
        hparams_set: Name of the hparams set.
        checkpoint: Path of the checkpoint.
    """

    problem: str
    hparams_set: str
    checkpoint: str


def export_system(
    system: System,
    export_dir: str | Path,
    decode_hparams: DecodeHParams | None = None,
    *,
    quantization: str = "float32",
    sentences: Sequence[str] | None = None,
) -> Parity:
    """Write a system for CTranslate2, and compare the two before.

    Args:
        system: The trained system.
        export_dir: Folder to create.
        decode_hparams: Settings of the search; the export has positions for its
            `extra_length`, and the translations are compared with its beam.
        quantization: Format of the weights, a name of `spec_variants.QUANTIZATIONS`.
        sentences: Sources to compare; by default the first ones of the prepared dev
            text, or of the embedded grammar if it is gone.

    Returns:
        The comparison.

    Raises:
        UserError: If CTranslate2 is not installed or cannot compute the model, the two
            differ too much, or the folder exists or cannot be written; or for an
            ensemble.
        UsageError: If `quantization` is unknown, CTranslate2 does not follow a setting,
            or as for `System.translator`.
    """
    system.check_single("CTranslate2 has no ensembles")
    run = system.run
    check_exportable(run.model, run.hparams, export_dir, quantization)
    system.warn_of_raw_text()
    longest = system.max_input_length
    hparams = with_problem_defaults(
        decode_hparams or DecodeHParams(),
        system.problem,
        longest,
        follows_grammar=False,
    )
    check_followed(hparams)
    if sentences is None:
        sentences = comparison_sentences(run.data_dir, system.problem)
    return export_ctranslate2(
        ComparedSystem(
            system.model,
            system.source_tokenizer,
            system.target_tokenizer,
            hparams,
            longest,
            position_count(longest, hparams.extra_length),
            quantization,
        ),
        Origin(run.problem, run.hparams_set, system.checkpoint),
        export_dir,
        [*map(system.problem.normalize_source, sentences)],
    )


def export_ctranslate2(
    system: ComparedSystem,
    origin: Origin,
    export_dir: str | Path,
    sentences: Sequence[str],
) -> Parity:
    """Write a CTranslate2 model, all of it or nothing.

    Args:
        system: The trained system, which `check_expressible` accepts.
        origin: Where the weights come from.
        export_dir: Folder to create.
        sentences: Sources to compare the two with; see `measure_parity`.

    Returns:
        The comparison, which is also in the description of the folder.

    Raises:
        UserError: If the model differs too much, the folder cannot be written, or
            `ctranslate2` is not installed.
    """
    import_ctranslate2()
    export_dir = Path(export_dir)
    try:
        with atomic_folder(export_dir) as folder:
            _write_weights(system, folder)
            parity = measure_parity(system, folder, sentences)
            parity.check(system.quantization)
            _describe(system, origin, parity, folder)
    except OSError as error:
        reason = error.strerror or str(error)
        raise UserError(f"cannot write {export_dir}: {reason}.") from error
    return parity


def _write_weights(system: ComparedSystem, folder: Path) -> None:
    # Imports ctranslate2, which is optional.
    from t2t_repro.features.ctranslate2.spec import model_spec, write_model

    tokenizers = (system.source_tokenizer, system.target_tokenizer)
    spec = model_spec(system.model, *tokenizers, system.positions)
    write_model(spec, str(folder), system.quantization)


def _describe(
    system: ComparedSystem,
    origin: Origin,
    parity: Parity,
    folder: Path,
) -> None:
    """Write the tokenizers and the description."""
    tokenizers = (system.source_tokenizer, system.target_tokenizer)
    names = tokenizer_file_names(*tokenizers)
    for side, tokenizer in zip(SIDES, tokenizers, strict=True):
        tokenizer.save(folder / names[side])
    settings = system.hparams.values()
    ExportDescription(
        problem=origin.problem,
        hparams_set=origin.hparams_set,
        checkpoint=origin.checkpoint,
        step=step_in_name(origin.checkpoint),
        checkpoint_digest=checkpoint_digest(origin.checkpoint),
        quantization=system.quantization,
        positions=system.positions,
        max_input_length=system.max_input_length,
        tokenizers=names,
        decode_hparams={name: settings[name] for name in _DECODE_HPARAMS},
        parity=parity.values(),
        versions={
            "t2t_repro": t2t_repro.__version__,
            "ctranslate2": importlib.metadata.version("ctranslate2"),
        },
    ).save(folder)


COMPARED_SENTENCES = 100


def comparison_sentences(data_dir: str, problem: Problem) -> list[str]:
    """Return the first sources of a run's dev text.

    If the text no longer exists, return English sentences of the embedded grammar,
    which any tokenizer can encode.

    Args:
        data_dir: Folder of the run's prepared data.
        problem: The run's problem.

    Returns:
        At most `COMPARED_SENTENCES` sentences.
    """
    try:
        sources, _ = PreparedData.load(data_dir, problem).raw_text("dev")
    except UserError:
        grammar = features.load("synthetic", "grammar")
        sources = [x.english for x in grammar.sentences("dev", COMPARED_SENTENCES)]
    return sources[:COMPARED_SENTENCES]
