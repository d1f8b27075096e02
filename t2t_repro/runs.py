"""A run's folder: what was trained, on what, and everything to rebuild it."""

from __future__ import annotations

import dataclasses
import importlib.metadata
from pathlib import Path
from typing import Any

import t2t_repro
from t2t_repro.description_file import (
    description_text,
    differences,
    load_description,
)
from t2t_repro.errors import UserError
from t2t_repro.files import atomic_write
from t2t_repro.settings.hparams import HParams
from t2t_repro.text import Tokenizer
from t2t_repro.text.tokenizer_files import (
    SIDES,
    load_tokenizers,
    tokenizer_file_names,
)

RUN_FILE = "hparams.json"
FORMAT = 2
# May differ between a run and its resumption.
_PROVENANCE = ("data_dir", "usr_dir", "tokenizers", "versions", "format")


def software_versions() -> dict[str, str]:
    """Return the versions of this package and of what it computes with."""
    names = ("tensorflow", "keras", "tensorflow-text", "sentencepiece")
    versions = {name: importlib.metadata.version(name) for name in names}
    return {"t2t_repro": t2t_repro.__version__} | versions


@dataclasses.dataclass(frozen=True)
class Run:
    """The content of `hparams.json`.

    Attributes:
        problem: Name of the problem, `_rev` included.
        model: Name of the model.
        hparams_set: Name of the set.
        hparams: Every value, overrides included.
        random_seed: Of initial weights, dropout and data order.
        num_replicas: Replicas that share a global batch.
        data_dir: Absolute path of the prepared data.
        data_digest: What stands for its content.
        usr_dir: Absolute path of the user's own package, if there is one.
        tokenizers: File names, in the run's folder, of "inputs" and "targets".
        versions: Of the software that began the run.
        format: Version of this file's form.
    """

    problem: str
    model: str
    hparams_set: str
    hparams: HParams
    random_seed: int
    num_replicas: int
    data_dir: str
    data_digest: str
    usr_dir: str | None
    tokenizers: dict[str, str]
    versions: dict[str, str] = dataclasses.field(default_factory=software_versions)
    format: int = FORMAT

    @classmethod
    def load(cls, output_dir: str | Path) -> Run | None:
        """Read a run's file, or return None where there is none.

        Raises:
            UserError: If the file is damaged or of another version.
        """
        return load_description(
            Path(output_dir) / RUN_FILE,
            cls._from_values,
            expected_format=FORMAT,
            way_out="restore it from a copy, or train into another --output_dir.",
        )

    @classmethod
    def _from_values(cls, values: dict[str, Any]) -> Run:
        return cls(hparams=HParams.from_dict(values.pop("hparams")), **values)

    @classmethod
    def load_existing(cls, output_dir: str | Path) -> Run:
        """Read a run's file.

        Raises:
            UserError: If there is none, or it is damaged.
        """
        run = cls.load(output_dir)
        if run is None:
            raise UserError(
                f"received --output_dir {output_dir}, expected the folder of a run "
                f"with {RUN_FILE} in it: `t2t train` writes one."
            )
        return run

    def save(self, output_dir: str | Path) -> None:
        """Write the file, whole or not at all."""
        text = description_text(self._values() | {"hparams": self.hparams.to_dict()})
        atomic_write(Path(output_dir) / RUN_FILE, text)

    def _values(self) -> dict[str, Any]:
        names = [field.name for field in dataclasses.fields(self)]
        return {name: getattr(self, name) for name in names}

    def _compared_values(self) -> dict[str, Any]:
        """Return everything that must not differ when a run is resumed."""
        left_out = (*_PROVENANCE, "hparams")
        own = {k: v for k, v in self._values().items() if k not in left_out}
        return {**self.hparams.values(), **own}

    def check_same(self, other: Run, output_dir: str | Path) -> None:
        """Refuse to go on with a run under other settings than it began with.

        Args:
            other: What is asked for now.
            output_dir: Folder of this run.

        Raises:
            UserError: Naming every difference.
        """
        found = differences(self._compared_values(), other._compared_values())
        if found:
            raise UserError(
                f"{output_dir} holds a run with other settings: "
                f"{'; '.join(found)}.\nGive the same ones to go on with it, or "
                "another --output_dir to begin a new run."
            )

    def check_same_tokenizers(
        self, output_dir: str | Path, source: Tokenizer, target: Tokenizer
    ) -> None:
        """Refuse data whose ids mean other text than the run's.

        Args:
            output_dir: Folder of this run.
            source: Tokenizer of the data's inputs.
            target: Tokenizer of the data's targets.

        Raises:
            UserError: If a vocabulary differs.
        """
        pairs = zip((source, target), self.load_tokenizers(output_dir), strict=True)
        if any(given.to_bytes() != own.to_bytes() for given, own in pairs):
            raise UserError(
                f"{output_dir} holds a run on data with another vocabulary.\nGive the "
                "--data_dir it was trained on to go on with it, or another "
                "--output_dir to begin a new run."
            )

    def load_tokenizers(self, output_dir: str | Path) -> tuple[Tokenizer, Tokenizer]:
        """Read the tokenizers of inputs and targets from the run's folder."""
        return load_tokenizers(output_dir, self.tokenizers)


def save_tokenizers(
    output_dir: str | Path, source: Tokenizer, target: Tokenizer
) -> dict[str, str]:
    """Copy a run's tokenizers into its folder, so that the folder is complete.

    Args:
        output_dir: Folder of the run.
        source: Of the inputs.
        target: Of the targets; the same object if the vocabulary is shared.

    Returns:
        File names for "inputs" and "targets".
    """
    names = tokenizer_file_names(source, target)
    for side, tokenizer in zip(SIDES, (source, target), strict=True):
        tokenizer.save(Path(output_dir) / names[side])
    return names
