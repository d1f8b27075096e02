"""Description of one model to train with several seeds."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.accelerator.rows.corpus import LARGEST_VOCABULARY
from t2t_repro.errors import UserError
from t2t_repro.files import atomic_write
from t2t_repro.models.token_counters import TokenCounters
from t2t_repro.settings.decode_hparams import DecodeHParams
from t2t_repro.settings.hparams import HParams

JOBS_FILE = "jobs.json"
CORPUS_FILE = "corpus.npz"
# The settings that the search on JAX follows.
_FOLLOWED = ("beam_size", "alpha", "extra_length")


@dataclasses.dataclass(frozen=True)
class Job:
    """A model to train with several seeds.

    Attributes:
        name: Name of its outcome's file.
        corpus: Name of the corpus file.
        hparams: The complete hparams.
        vocab_sizes: Sizes of the source and the target vocabulary.
        seeds: The seeds.
        train_steps: Number of updates.
        measure_every: Number of steps between measurements, which divides the number of
            updates.
        average_last: Number of measured steps to average.
        search: Settings of the search, in the form of `--decode_hparams`: beam size,
            alpha and extra length.
        details: What the importing program needs to know.
        counters: What the model's positions are counted in besides tokens, if hparams
            ask for it.
        keeps_weights: Whether to keep the averaged weights of every seed.

    Raises:
        UserError: If an attribute is refused.
    """

    name: str
    corpus: str
    hparams: HParams
    vocab_sizes: tuple[int, int]
    seeds: tuple[int, ...]
    train_steps: int
    measure_every: int
    average_last: int
    search: str = ""
    details: dict[str, Any] = dataclasses.field(default_factory=dict)
    counters: TokenCounters | None = None
    keeps_weights: bool = False

    def __post_init__(self) -> None:
        every, averaged = self.measure_every, self.average_last
        self._check(bool(self.seeds), "seeds", "at least one")
        self._check(
            every > 0 and self.train_steps > 0 and self.train_steps % every == 0,
            "train_steps",
            f"a multiple of measure_every={every}",
        )
        self._check(
            0 < averaged <= self.train_steps // every,
            "average_last",
            f"1 to {self.train_steps // every} measurements",
        )
        self._check(
            max(self.vocab_sizes) <= LARGEST_VOCABULARY,
            "vocab_sizes",
            f"at most {LARGEST_VOCABULARY:,} each",
        )
        others = self.decode_hparams.replace(
            **{name: getattr(DecodeHParams(), name) for name in _FOLLOWED}
        )
        self._check(others == DecodeHParams(), "search", f"only {', '.join(_FOLLOWED)}")

    def _check(self, allowed: bool, name: str, expected: str) -> None:
        if not allowed:
            raise UserError(
                f"{self.name}: received {name}={getattr(self, name)}, expected "
                f"{expected}."
            )

    @property
    def decode_hparams(self) -> DecodeHParams:
        """Settings of the search."""
        return DecodeHParams().parse(self.search)

    def values(self) -> dict[str, Any]:
        """Return the attributes as JSON can hold them."""
        values = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        return values | {"hparams": self.hparams.to_dict()}

    def digest(self, folder: Path) -> str:
        """Return the sha256 of the job in a folder, and of its corpus.

        Raises:
            UserError: If there is no corpus.
        """
        path = folder / self.corpus
        if not path.is_file():
            raise UserError(f"{path} does not exist: export the jobs again.")
        text = json.dumps(self.values(), sort_keys=True)
        return hashlib.sha256(text.encode() + path.read_bytes()).hexdigest()


def save_jobs(jobs: Sequence[Job], folder: Path) -> None:
    """Write jobs to a folder."""
    values = [job.values() for job in jobs]
    atomic_write(folder / JOBS_FILE, json.dumps(values, indent=1) + "\n")


def load_jobs(folder: Path) -> list[Job]:
    """Read the jobs in a folder.

    Raises:
        UserError: If there are none, or one is refused.
    """
    path = folder / JOBS_FILE
    if not path.is_file():
        raise UserError(f"received {folder}, expected a folder with {JOBS_FILE} in it.")
    return [
        Job(
            **values
            | {
                "hparams": HParams.from_dict(values["hparams"]),
                "vocab_sizes": tuple(values["vocab_sizes"]),
                "seeds": tuple(values["seeds"]),
                "counters": values["counters"]
                and TokenCounters.from_config(values["counters"]),
            }
        )
        for values in json.loads(path.read_text(encoding="utf-8"))
    ]
