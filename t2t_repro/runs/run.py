"""A run's folder: the description of a training run, and its tokenizers."""

from __future__ import annotations

import dataclasses
import importlib
import importlib.metadata
import inspect
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

import t2t_repro
from t2t_repro import catalogue, features
from t2t_repro.constants import AUTO_TOKENIZER
from t2t_repro.errors import UsageError, UserError
from t2t_repro.files import (
    atomic_write,
    description_text,
    differences,
    load_description,
)
from t2t_repro.models.token_counters import TokenCounters
from t2t_repro.settings.hparams import HParams
from t2t_repro.settings.train_settings import TrainSettings
from t2t_repro.text import Tokenizer
from t2t_repro.text.tokenizer_files import (
    SIDES,
    load_tokenizers,
    tokenizer_file_names,
)
from t2t_repro.user_packages import is_imported, is_remembered

if TYPE_CHECKING:
    import keras

    from t2t_repro.data.prepared import PreparedData
    from t2t_repro.runs.system import System


RUN_FILE = "hparams.json"
NO_DATA = ""  # digest of the data of a run that has none yet
FORMAT = 2
# Must be the same when a run is resumed, and so must its hparams. Differs from
# tensor2tensor: another number of replicas would change the global batch.
_FIXED = (
    "problem",
    "model",
    "hparams_set",
    "random_seed",
    "num_replicas",
    "data_digest",
)
# Training settings that `Run.training` holds; the others have their own fields.
_TRAINING = tuple(
    name
    for name in TrainSettings.names()
    if name
    not in (
        "output_dir",
        "model",
        "hparams_set",
        "hparams",
        "random_seed",
        "t2t_usr_dir",
    )
)


def software_versions() -> dict[str, str]:
    """Return the versions of this package and of the libraries it computes with."""
    names = ("tensorflow", "keras", "tensorflow-text", "sentencepiece")
    versions = {name: importlib.metadata.version(name) for name in names}
    return {"t2t_repro": t2t_repro.__version__} | versions


@dataclasses.dataclass(frozen=True)
class Run:
    """The content of `hparams.json`.

    Attributes:
        problem: Name of the problem, including `_rev`.
        model: Name of the model.
        hparams_set: Name of the set.
        hparams: Every value, including overrides.
        random_seed: Seed of initial weights, dropout and data order.
        num_replicas: Replicas that share a global batch.
        data_dir: Absolute path of the prepared data; empty if there is none yet.
        data_digest: Digest of the prepared data; `NO_DATA` of a model that another
            program trained, until training continues.
        usr_dir: Absolute path of the user's package, or None.
        tokenizers: File names, in the run's folder, of "inputs" and "targets".
        training: Values of `TrainSettings` that may change when a run is resumed.
        versions: Versions of the software that began the run.
        format: Version of the file's format.
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
    training: dict[str, Any]
    versions: dict[str, str] = dataclasses.field(default_factory=software_versions)
    format: int = FORMAT

    @classmethod
    def load(cls, output_dir: str | Path) -> Run | None:
        """Read a run's file, or return None if there is none.

        Raises:
            UserError: If the file is damaged or of another version.
        """
        return load_description(
            Path(output_dir) / RUN_FILE,
            cls._from_values,
            expected_format=FORMAT,
            advice="restore it from a copy, train into another output_dir, or let "
            "`t2t import` make a run of another program's model.",
        )

    @classmethod
    def _from_values(cls, values: dict[str, Any]) -> Run:
        run = cls(hparams=HParams.from_dict(values.pop("hparams")), **values)
        # Refuse unknown or mistyped values here, with the name of the file.
        run.train_settings("")
        for side in SIDES:
            run.tokenizers[side]
        return run

    @classmethod
    def load_existing(cls, output_dir: str | Path) -> Run:
        """Read a run's file.

        Raises:
            UserError: If the file is missing, as in the folder of an ensemble, or
                damaged.
        """
        run = cls.load(output_dir)
        if run is not None:
            return run
        expected = f"folder of a run with {RUN_FILE} in it: training writes one."
        if members := member_folders(output_dir):
            expected = (
                f"folder of one run: give that of a member, such as {members[0]}."
            )
            output_dir = f"{output_dir}, the folder of an ensemble"
        raise UserError(f"received output_dir={output_dir}, expected the {expected}")

    def save(self, output_dir: str | Path) -> None:
        """Write the file, completely or not at all."""
        values = {**vars(self), "hparams": self.hparams.to_dict()}
        atomic_write(Path(output_dir) / RUN_FILE, description_text(values))

    def _fixed_values(self) -> dict[str, Any]:
        """Return the values that must not differ when the run is resumed."""
        fixed = {name: getattr(self, name) for name in _FIXED}
        return {**self.hparams.values(), **fixed}

    def train_settings(self, output_dir: str | Path) -> TrainSettings:
        """Return the settings of this run's last training.

        Args:
            output_dir: Folder of this run.
        """
        overrides = (f"{name}={value}" for name, value in self.hparams.given().items())
        return TrainSettings(
            output_dir=str(output_dir),
            hparams_set=self.hparams_set,
            hparams=",".join(overrides),
            model=self.model,
            random_seed=self.random_seed,
            t2t_usr_dir=self.usr_dir,
            **self.training,
        )

    def check_resumable(self, other: Run, output_dir: str | Path) -> None:
        """Refuse to resume a run with settings other than its own.

        Args:
            other: Description of the requested training.
            output_dir: Folder of this run.

        Raises:
            UserError: If the settings differ; the message names every difference.
        """
        own = self.with_data(other)
        found = differences(own._fixed_values(), other._fixed_values())
        if found:
            raise UserError(
                f"{output_dir} holds a run with other settings: "
                f"{'; '.join(found)}.\nGive the same settings to resume it, or "
                "another output_dir to begin a new run; warm_start_from="
                f"{output_dir} begins it with the weights of this one."
            )

    def with_data(self, other: Run) -> Run:
        """Return this run with the data and replicas of another one if it has none.

        Args:
            other: Description of the requested training.
        """
        if self.data_digest != NO_DATA:
            return self
        names = ("problem", "num_replicas", "data_dir", "data_digest")
        return dataclasses.replace(self, **{n: getattr(other, n) for n in names})

    def check_same_tokenizers(
        self, output_dir: str | Path, source: Tokenizer, target: Tokenizer
    ) -> None:
        """Refuse data with another vocabulary than the run's.

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
                "data_dir that it was trained on to resume it, or another output_dir "
                "to begin a new run."
            )

    @property
    def bleu_tokenizer(self) -> str:
        """SacreBLEU's tokenizer of its scores; "auto" if none was chosen."""
        return self.training.get("bleu_tokenizer", AUTO_TOKENIZER)

    def load_tokenizers(self, output_dir: str | Path) -> tuple[Tokenizer, Tokenizer]:
        """Read the tokenizers of inputs and targets from the run's folder."""
        return load_tokenizers(output_dir, self.tokenizers)

    def package(self, t2t_usr_dir: str | None = None) -> str | None:
        """Return the folder of the user's package, or None if the run needs none.

        Args:
            t2t_usr_dir: Folder that the user gives; by default the recorded one.

        Raises:
            UserError: If the recorded folder no longer exists, or the user has not
                agreed to run its code: the run may come from somebody else.
        """
        folder = t2t_usr_dir or self.usr_dir
        if t2t_usr_dir is not None or folder is None:
            return folder
        if not Path(folder).is_dir():
            raise UserError(
                f"the run needs the package {folder}, which does not exist: give its "
                "new folder as t2t_usr_dir."
            )
        if not (is_imported(folder) or is_remembered(folder)):
            raise UserError(
                f"the run's {RUN_FILE} names the package {Path(folder).resolve()}, "
                "and importing it runs its code.\nIf you trust that code, give the "
                "folder as t2t_usr_dir (`--t2t_usr_dir`)."
            )
        return folder

    def load_catalogue(self, t2t_usr_dir: str | Path | None = None) -> None:
        """Load the catalogues and the user's package; see `package`."""
        given = None if t2t_usr_dir is None else str(t2t_usr_dir)
        catalogue.load(self.package(given))

    def build_model(
        self, source_tokenizer: Tokenizer, target_tokenizer: Tokenizer
    ) -> keras.Model:
        """Build the run's model with fresh weights.

        Raises:
            UserError: If positions are to be counted in something that the model or the
                problem does not know.
        """
        shared = source_tokenizer.same_ids(target_tokenizer)
        hparams = self.hparams.for_vocabularies(shared=shared)
        sizes = source_tokenizer.vocab_size, target_tokenizer.vocab_size
        model = catalogue.model(self.model)
        counters = self.counters(source_tokenizer, target_tokenizer)
        if counters is None:
            return model.from_hparams(hparams, *sizes)
        if "counters" not in inspect.signature(model.from_hparams).parameters:
            raise UserError(
                "received word_positions or depth_positions for the model "
                f"{self.model}, expected False: its `from_hparams` does not take "
                "`counters`."
            )
        return model.from_hparams(hparams, *sizes, counters=counters)

    def counters(
        self, source_tokenizer: Tokenizer, target_tokenizer: Tokenizer
    ) -> TokenCounters | None:
        """Return the counters of the model's positions, or None.

        Raises:
            UserError: If open brackets are to be counted, and the problem has none.
        """
        words, depth = self.hparams.word_positions, self.hparams.depth_positions
        if not (words or depth):
            return None
        return TokenCounters.of(
            catalogue.problem(self.problem),
            source_tokenizer,
            target_tokenizer,
            words=words,
            depth=depth,
        )


def describe_run(
    settings: TrainSettings,
    hparams: HParams,
    problem: str,
    data: PreparedData | None,
    num_replicas: int = 1,
) -> Run:
    """Return the description of a run, without its tokenizers.

    Args:
        settings: Settings of its training.
        hparams: Every value, including overrides.
        problem: Name of the problem.
        data: The prepared data, or None if there is none yet.
        num_replicas: Replicas that share a global batch.
    """
    usr_dir = settings.t2t_usr_dir
    return Run(
        problem=problem,
        model=settings.model,
        hparams_set=settings.hparams_set,
        hparams=hparams,
        random_seed=settings.random_seed,
        num_replicas=num_replicas,
        data_dir="" if data is None else str(data.folder.resolve()),
        data_digest=NO_DATA if data is None else data.digest,
        usr_dir=None if usr_dir is None else str(Path(usr_dir).resolve()),
        tokenizers={},
        training={name: getattr(settings, name) for name in _TRAINING},
    )


def save_tokenizers(
    output_dir: str | Path, source: Tokenizer, target: Tokenizer
) -> dict[str, str]:
    """Copy a run's tokenizers into its folder, so that the folder is complete.

    Args:
        output_dir: Folder of the run.
        source: Tokenizer of the inputs.
        target: Tokenizer of the targets; the same object if both sides share one.

    Returns:
        File names for "inputs" and "targets".
    """
    names = tokenizer_file_names(source, target)
    for side, tokenizer in zip(SIDES, (source, target), strict=True):
        tokenizer.save(Path(output_dir) / names[side])
    return names


class RunGroup(Protocol):
    """The functions of a module that `Feature.groups` names."""

    def member_folders(self, output_dir: str | Path) -> list[Path]:
        """Return the folders of a group's runs; none if the folder has no group."""
        ...

    def find_members(
        self, output_dir: str | Path, checkpoints: Sequence[str]
    ) -> object:
        """Refuse runs and checkpoints that cannot be loaded; imports no TensorFlow."""
        ...

    def load_ensemble(
        self,
        output_dir: str | Path,
        checkpoints: Sequence[str] = (),
        t2t_usr_dir: str | Path | None = None,
    ) -> System:
        """Load the runs of a group, or several checkpoints of a run, as one system."""
        ...


def member_folders(output_dir: str | Path) -> list[Path]:
    """Return the folders of the runs of a group; none if the folder has no group.

    Raises:
        UserError: If the description of the group is damaged.
    """
    groups = features.modules("groups").values()
    return next(filter(None, (g.member_folders(output_dir) for g in groups)), [])


def run_group(output_dir: str | Path) -> RunGroup:
    """Return the kind of group that loads a folder, or several checkpoints of a run.

    Raises:
        UsageError: If this installation knows none.
    """
    groups = list(features.modules("groups").values())
    if groups:
        loading = (g for g in groups if g.member_folders(output_dir))
        return cast("RunGroup", next(loading, groups[0]))
    raise UsageError(
        "received several checkpoints, expected one: this installation lacks the "
        "feature that loads them as an ensemble."
    )
