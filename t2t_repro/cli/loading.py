"""Load the catalogue, TensorFlow or a trained system for a command.

TensorFlow is imported without its banner, which no setting can silence.
"""

from __future__ import annotations

import argparse
import functools
import importlib
import os
import re
import sys
import tempfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from types import ModuleType
from typing import TYPE_CHECKING, cast

from t2t_repro import catalogue
from t2t_repro.decoding.problem_defaults import with_problem_defaults
from t2t_repro.machine import keep_freed_memory
from t2t_repro.progress import status
from t2t_repro.runs.run import Run, member_folders, run_group
from t2t_repro.runs.run_checkpoints import choose_checkpoint
from t2t_repro.settings.decode_hparams import DecodeHParams
from t2t_repro.user_packages import remember

if TYPE_CHECKING:
    from t2t_repro.runs import System, TranslatingSystem

# TensorFlow and Keras import these if they are installed, for functions that no command
# uses: the conversion of JAX models to TFLite, Keras's plots, and sparse matrices in
# TensorFlow's old copy of Keras. It takes 0.9 seconds.
_UNUSED = ("jax", "matplotlib", "scipy")

# TF_CPP_MIN_LOG_LEVEL is read only after the import has written these lines.
_BANNER = re.compile(rb"I\d{4} |WARNING: All log messages before absl::InitializeLog")


def import_tensorflow() -> None:
    """Import TensorFlow and Keras, once a command needs them.

    Drops the informational lines of the import. Warnings and errors, such as those of a
    broken GPU driver, are still shown. From then on, the process keeps the memory that
    it frees, which makes training on a CPU faster; see `keep_freed_memory`.
    """
    with status("importing TensorFlow"):
        import_tensorflow_silently()


def import_tensorflow_silently() -> None:
    """Import TensorFlow and Keras as `import_tensorflow` does, without a status."""
    keep_freed_memory()
    with _drop_banner(), _hide_packages(_UNUSED):
        importlib.import_module("tensorflow")
        importlib.import_module("keras")


def _use_one_thread_per_operation() -> None:
    """Leave the cores to batches that are translated at the same time.

    See `num_parallel_batches`. TensorFlow accepts the setting only before its first
    operation. The variable TF_NUM_INTRAOP_THREADS takes precedence.
    """
    import tensorflow as tf

    if "TF_NUM_INTRAOP_THREADS" in os.environ:
        return
    with suppress(RuntimeError):
        tf.config.threading.set_intra_op_parallelism_threads(1)


def load_catalogue(usr_dir: str | None) -> None:
    """Load the catalogues and the user's package, which may import TensorFlow.

    Args:
        usr_dir: Folder of the package, or None. It is remembered, so that runs that
            need the package find it without the flag.
    """
    if usr_dir is None:
        catalogue.load()
        return
    with status(f"importing {usr_dir}"), _drop_banner():
        catalogue.load(usr_dir)
    remember(usr_dir)


def load_system(
    args: argparse.Namespace,
    hparams: DecodeHParams,
    *,
    ensembles: bool = False,
    parallel_batches: bool = False,
) -> System:
    """Load the trained system that the flags of `add_system_flags` name.

    Mistakes are reported before TensorFlow is imported.

    Args:
        args: Flags of the command.
        hparams: Settings of the search, to be checked.
        ensembles: Whether the folder may be an ensemble's, and several checkpoints
            may be given; see `RunGroup`.
        parallel_batches: Whether to translate many sentences, several batches at the
            same time.

    Raises:
        UserError: If the run or the checkpoint is missing or damaged.
        UsageError: If a setting does not fit the run.
    """
    folders = member_folders(args.output_dir) if ensembles else []
    run = Run.load_existing(folders[0] if folders else args.output_dir)
    load_catalogue(run.package(args.t2t_usr_dir))
    problem = catalogue.problem(run.problem)
    with_problem_defaults(hparams, problem, run.hparams.max_length)
    several = several_checkpoints(args.checkpoint_path) if ensembles else []
    if folders and args.checkpoint_path and not several:
        several = [args.checkpoint_path]
    if folders or several:
        group = run_group(args.output_dir)
        group.find_members(args.output_dir, several)
        found = args.output_dir, several, args.t2t_usr_dir
        load = functools.partial(group.load_ensemble, *found)
    else:
        checkpoint = choose_checkpoint(args.output_dir, args.checkpoint_path)
        load = functools.partial(_restore, run, args.output_dir, checkpoint)
    import_tensorflow()
    if parallel_batches:
        _use_one_thread_per_operation()
    with status("loading the model"):
        return load()


def _restore(run: Run, output_dir: str, checkpoint: str) -> System:
    from t2t_repro.runs import System

    return System.of_run(run, output_dir, checkpoint)


def warm_up(system: TranslatingSystem, hparams: DecodeHParams) -> None:
    """Trace the search before the first sentence is translated."""
    with status("preparing the search"):
        system.warm_up(hparams)


@contextmanager
def _hide_packages(names: Sequence[str]) -> Generator[None]:
    """Import as if some packages that are not loaded yet were not installed."""
    hidden = [name for name in names if name not in sys.modules]
    modules = cast("dict[str, ModuleType | None]", sys.modules)
    modules.update(dict.fromkeys(hidden))
    try:
        yield
    finally:
        for name in hidden:
            del sys.modules[name]


def several_checkpoints(text: str | None) -> list[str]:
    """Return the checkpoints of a comma-separated list; empty if there is only one."""
    names = [name.strip() for name in (text or "").split(",")]
    is_path = len(names) > 1 and os.path.exists(f"{text}.index")
    return [] if len(names) == 1 or is_path else names


@contextmanager
def _drop_banner() -> Generator[None]:
    """Buffer stderr, also of native code, then write all of it but the banner."""
    sys.stderr.flush()
    stderr = os.dup(2)
    with tempfile.TemporaryFile() as held_back:
        os.dup2(held_back.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(stderr, 2)
            os.close(stderr)
            held_back.seek(0)
            for line in held_back:
                if not _BANNER.match(line):
                    os.write(2, line)
