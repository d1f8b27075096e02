"""Turn a problem's text into shards of ids, raw text for scoring and a manifest.

All text is checked before anything is written, and incomplete files have temporary
names.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import sentencepiece

from t2t_repro import __version__
from t2t_repro.data.encoding import check_sampling
from t2t_repro.data.manifest import Manifest, manifest_name, summary_lines
from t2t_repro.data.output_files import OutputFiles, locked_folder, write_errors
from t2t_repro.data.prepared import (
    PreparedData,
    Sources,
    check_agrees,
    check_given,
    sources_of,
)
from t2t_repro.data.problem import Problem
from t2t_repro.data.request import OWN_MODEL, requested_settings
from t2t_repro.data.shard_writer import write_splits
from t2t_repro.data.vocabulary import given_tokenizers, learn_tokenizers
from t2t_repro.errors import UsageError
from t2t_repro.files import check_local_path
from t2t_repro.progress import bars_allowed
from t2t_repro.settings.prepare_settings import PrepareSettings
from t2t_repro.text import Tokenizer
from t2t_repro.text.tokenizer_files import SIDES, tokenizer_file_names

logger = logging.getLogger(__name__)


def prepare(
    problem: Problem,
    data_dir: str | Path,
    tmp_dir: str | Path | None = None,
    settings: PrepareSettings | None = None,
    *,
    num_workers: int = 1,
    show_progress: bool = False,
) -> PreparedData:
    """Write a problem's data, unless it is already prepared in exactly this way.

    Args:
        problem: The problem. A `_rev` problem shares the files of its base.
        data_dir: Folder to write to.
        tmp_dir: Folder for downloads, or None for the source's own default.
        settings: Settings of the preparation; by default the problem's own.
        num_workers: Number of processes that encode a long text. The data does not
            depend on it.
        show_progress: Whether to draw progress bars if standard error is a terminal.

    Returns:
        The prepared data.

    Raises:
        UserError: If the text cannot be used, the data in the folder is damaged, was
            prepared in another way or by another program, or another process is
            preparing it now.
    """
    folder = Path(data_dir)
    check_local_path("" if tmp_dir is None else tmp_dir)
    settings = settings or problem.prepare_settings
    if num_workers < 1:
        raise UsageError(
            f"received num_workers={num_workers}, expected at least 1, which does all "
            "work in this process"
        )
    found = PreparedData.find_or_adopt(folder, problem)
    adopted = found is not None and found.is_adopted
    sources = {} if adopted else sources_of(problem.base, settings, tmp_dir)
    if found is None:
        with bars_allowed(show_progress), locked_folder(folder, problem.file_prefix):
            # Another process may have finished in the meantime.
            found = PreparedData.find(folder, problem)
            if found is None:
                manifest = _prepare_afresh(
                    problem.base, folder, tmp_dir, settings, sources, num_workers
                )
                return PreparedData(problem, folder, manifest)
    if adopted:
        own = problem.prepare_settings
        names = (*settings.names(), *OWN_MODEL)
        changed = [n for n in names if getattr(settings, n) != getattr(own, n)]
        check_given(found, settings, changed, tmp_dir)
    else:
        check_agrees(found, settings, settings.names(), sources)
    found.check_files(checksums=True)
    logger.info("%s is already prepared in %s", problem.base.name, folder)
    return found


def open_or_prepare(
    problem: Problem,
    data_dir: str | Path,
    given_settings: Mapping[str, Any] | None = None,
    tmp_dir: str | Path | None = None,
    *,
    num_workers: int = 1,
    show_progress: bool = False,
) -> PreparedData:
    """Return a problem's prepared data, after preparing it if it does not exist.

    Existing data has to agree only with the given settings and text, so the settings
    that it was prepared with need not be repeated. The sizes of its files are checked;
    `prepare` also checks their content.

    Args:
        problem: The problem, with its files if it reads files.
        data_dir: Folder of the data.
        given_settings: Values of `PrepareSettings` by name. The problem decides the
            others if the data has to be prepared.
        tmp_dir: Folder for downloads, or None for the source's own default.
        num_workers: Number of processes that encode a long text.
        show_progress: Whether to draw progress bars if standard error is a terminal.

    Returns:
        The prepared data.

    Raises:
        UserError: If the data does not agree, is damaged or cannot be prepared.
    """
    given = given_settings or {}
    settings = requested_settings(problem, given)
    found = PreparedData.find_or_adopt(data_dir, problem)
    if found is None:
        found = prepare(
            problem,
            data_dir,
            tmp_dir,
            settings,
            num_workers=num_workers,
            show_progress=show_progress,
        )
        logger.info("\n".join(summary_lines(found)))
        return found
    check_given(found, settings, given, tmp_dir)
    found.check_files(checksums=False)
    return found


def _prepare_afresh(
    problem: Problem,
    folder: Path,
    tmp_dir: str | Path | None,
    settings: PrepareSettings,
    sources: Sources,
    num_workers: int,
) -> Manifest:
    problem = problem.in_folder(folder)
    prefix = problem.file_prefix
    outputs = OutputFiles(folder, prefix)
    outputs.refuse_foreign()
    logger.info("%s: reading the text", problem.name)
    problem.check(tmp_dir)
    tokenizers = given_tokenizers(problem, settings)
    with write_errors(folder), outputs:
        tokenizers = tokenizers or problem.make_tokenizers(settings, tmp_dir)
        if tokenizers is None:
            tokenizers = learn_tokenizers(problem, settings, tmp_dir)
        check_sampling(settings, tokenizers)
        tokenizer_names = write_tokenizers(outputs, tokenizers)
        splits = write_splits(
            problem, tmp_dir, settings, tokenizers, outputs, num_workers
        )
        versions = {
            "t2t_repro": __version__,
            "sentencepiece": sentencepiece.__version__,
        }
        manifest = Manifest(
            problem=problem.name,
            problem_version=problem.version,
            settings=settings.recorded(),
            sources=sources,
            splits=splits,
            tokenizers=tokenizer_names,
            vocab_sizes={
                side: tokenizer.vocab_size
                for side, tokenizer in zip(SIDES, tokenizers, strict=True)
            },
            files=outputs.identities(),
            versions=versions,
        )
        path = outputs.path(manifest_name(prefix))
        path.write_bytes(manifest.text().encode())
        outputs.refuse_foreign()  # made by another program in the meantime
    return manifest


def write_tokenizers(
    outputs: OutputFiles, tokenizers: tuple[Tokenizer, Tokenizer]
) -> dict[str, str]:
    """Write the files of the tokenizers, and return their names by side.

    Args:
        outputs: Files of the prepared data.
        tokenizers: Tokenizers of both sides; one object twice if they share one.
    """
    names = tokenizer_file_names(
        *tokenizers, shared=outputs.prefix, prefix=f"{outputs.prefix}."
    )
    by_name = dict(zip(names.values(), tokenizers, strict=True))
    for name, tokenizer in by_name.items():
        outputs.path(name).write_bytes(tokenizer.to_bytes())
    return names
