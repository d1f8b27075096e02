"""A package's problem of tensor2tensor as a `Problem`.

The package's class keeps all names that tensor2tensor gives it, and the registered
problem holds one object of it. So no name of the package can hide one of `Problem`.
"""

from __future__ import annotations

import copy
import inspect
import itertools
import logging
import random
import tempfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, Self

from t2t_repro import registry
from t2t_repro.data.problem import Problem, Vocabulary
from t2t_repro.data.request import LEARNED_MODEL
from t2t_repro.data.vocabulary import learn_from_lines
from t2t_repro.errors import UsageError, UserError
from t2t_repro.features.tensor2tensor.package_encoders import (
    DeferredIds,
    LearnedEncoder,
    TextEncoder,
)
from t2t_repro.features.tensor2tensor.package_problems import (
    Text2TextProblem,
    VocabType,
)
from t2t_repro.features.tensor2tensor.package_refusals import (
    Refused,
    answer,
    decorator,
    located,
)
from t2t_repro.settings.prepare_settings import PrepareSettings
from t2t_repro.text import Tokenizer
from t2t_repro.user_packages import located_error

logger = logging.getLogger(__name__)

_MAX_SHARDS = 99_999  # their names have five digits
_THEIR_SPLITS = {"train": "train", "dev": "eval", "test": "test"}
_SEED = 429459  # of t2t-datagen
_TMP_DIR = "t2t_datagen"
# tensor2tensor's datagen leaves out no pair for its length, but training does.
_ANY_LENGTH = 1_000_000

# Methods that would change the data or the model if tensor2tensor called them.
_UNCALLED = {
    "generate_data": "yield the pairs in `generate_samples`",
    "hparams": "modalities and vocabularies are fixed here",
    "preprocess_example": "change the texts in `generate_samples`",
    "preprocess": "change the texts in `generate_samples`",
    "example_reading_spec": "pairs have the features inputs and targets",
    "max_length": "set max_length in the hparams set",
}
_EVALUATION = ("eval_metrics", "eval_metric_fns", "eval_hooks", "decode_hooks")
# Values that ask for what is not here, and how it is called here.
_SWITCHES = {
    "packed_length": (False, "the hparam packed_length packs pairs into rows"),
    "multiprocess_generate": (False, "num_workers processes encode the text"),
    "has_inputs": (True, "there are no language models"),
    "batch_size_means_tokens": (True, "the hparam batch_size counts tokens"),
}


class PackageProblem(Problem):
    """Base of the registered problems of packages for tensor2tensor.

    Attributes:
        original: The package's class.
        package_problem: The package's problem.
    """

    original: ClassVar[type[Text2TextProblem]]
    max_length = _ANY_LENGTH

    def __init__(self) -> None:
        self.package_problem = self.original()
        self._data_dir = ""

    @property
    def file_prefix(self) -> str:
        return self.package_problem.dataset_filename()

    @property
    def vocabulary(self) -> Vocabulary:
        theirs = self.package_problem
        is_learned = theirs.vocab_type == VocabType.SUBWORD
        kind = "subwords" if is_learned else "own"
        return Vocabulary(kind, size=theirs.approx_vocab_size)

    @property
    def splits(self) -> tuple[str, ...]:
        shards = self._shards()
        return tuple(ours for ours, theirs in _THEIR_SPLITS.items() if theirs in shards)

    @property
    def prepare_settings(self) -> PrepareSettings:
        settings = super().prepare_settings
        return settings.replace(num_shards=self._shards().get("train", 1))

    def in_folder(self, data_dir: str | Path) -> Self:
        found = copy.copy(self)
        found._data_dir = str(data_dir)
        return found

    def check(self, tmp_dir: str | Path | None) -> None:
        del tmp_dir
        theirs = self.package_problem
        for name, (expected, instead) in _SWITCHES.items():
            if bool(value := getattr(theirs, name)) != expected:
                raise self._refused(name, f"{name}={value}", instead)
        for name, instead in _UNCALLED.items():
            if self._is_own(name):
                raise self._refused(name, f"`{name}`", instead)
        own_encoders = self._is_own("feature_encoders")
        if own_encoders and not self._is_own("generate_encoded_samples"):
            instead = "choose the vocabularies in `generate_encoded_samples`, too"
            raise self._refused("feature_encoders", "`feature_encoders`", instead)
        if left_out := [name for name in _EVALUATION if self._is_own(name)]:
            logger.info("%s: %s left out: BLEU here", self.name, ", ".join(left_out))

    def pairs(
        self, split: str, tmp_dir: str | Path | None
    ) -> Iterator[tuple[str, str]]:
        theirs = _THEIR_SPLITS[split]
        per_split = self.package_problem.is_generate_per_split
        if per_split is None:
            raise self._refused(
                "generate_samples", "no is_generate_per_split", "add it"
            )
        with _same_numbers(split):
            samples = self._samples(theirs if per_split else "train", tmp_dir)
            # One generator deals a pair to each shard of all splits in turn.
            dealt = {theirs: 1} if per_split else self._shards()
            owners = [name for name, count in dealt.items() for _ in range(count)]
            for sample, owner in zip(samples, itertools.cycle(owners), strict=False):
                if owner == theirs:
                    source, target = self._sides(sample)
                    yield source.text, target.text

    def make_tokenizers(
        self, settings: PrepareSettings, tmp_dir: str | Path | None
    ) -> tuple[Tokenizer, Tokenizer]:
        with _same_numbers("train"):
            sample = next(self._samples("train", tmp_dir), None)
            if sample is None:
                raise UserError(f"problem {self.name} yields no training pair")
            encoders = [side.encoder for side in self._sides(sample)]
            self._check_settings(settings, encoders)
            source = self._tokenizer(encoders[0], settings)
            if _is_same(*encoders):
                return source, source
            return source, self._tokenizer(encoders[1], settings)

    def stored_tokenizers(self) -> tuple[Tokenizer, Tokenizer]:
        """Return tensor2tensor's vocabularies of both sides, whose files are there.

        Raises:
            UserError: If one is missing or damaged.
        """
        self.check(None)
        if self.package_problem.learned_feature != "targets":
            raise UserError(
                f"received data of {self.name} in {self._data_dir}, whose targets are "
                "not those that are learned: prepare it in another data_dir"
            )
        by_side = self.package_problem.feature_encoders(self._data_dir)
        encoders = [by_side[side] for side in ("inputs", "targets")]
        source = encoders[0].tokenizer()
        return source, source if _is_same(*encoders) else encoders[1].tokenizer()

    def _samples(
        self, split: str, tmp_dir: str | Path | None
    ) -> Iterator[dict[str, Any]]:
        folder = tmp_dir or Path(tempfile.gettempdir()) / _TMP_DIR
        try:
            for sample in self.package_problem.generate_encoded_samples(
                self._data_dir, str(folder), split
            ):
                if sample is not None:
                    yield sample
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            if located_error(error) is not None:
                raise  # the package's own, with its line
            found = (
                f"what it yields or its vocabulary ({type(error).__name__}: {error})"
            )
            instead = "yield dicts with the texts of inputs and targets"
            raise self._refused("generate_samples", found, instead) from error

    def _sides(self, sample: dict[str, Any]) -> tuple[DeferredIds, DeferredIds]:
        source, target = (
            sample.get(name)
            for name in ("inputs", self.package_problem.learned_feature)
        )
        if not isinstance(source, DeferredIds) or not isinstance(target, DeferredIds):
            raise self._refused(
                "generate_encoded_samples",
                "an encoder of the package's own",
                "encode both sides with an encoder of text_encoder",
            )
        return source, target

    def _shards(self) -> dict[str, int]:
        """Return the number of shards of each split, by tensor2tensor's names."""
        splits = self.package_problem.dataset_splits
        try:
            found = {split["split"]: split["shards"] for split in splits}
        except (KeyError, TypeError):
            found = {}
        if not found:
            raise self._refused(
                "dataset_splits",
                f"dataset_splits of {splits!r:.99}",
                "return a list of dicts with `split` and `shards`",
            )
        for name, count in found.items():
            if name not in _THEIR_SPLITS.values():
                raise UserError(
                    f"problem {self.name}: received split {name!r}, expected "
                    f"one of {', '.join(_THEIR_SPLITS.values())}"
                )
            if type(count) is not int or not 0 < count <= _MAX_SHARDS:
                raise UserError(
                    f"problem {self.name}: received {count!r:.99} shards of {name}, "
                    f"expected a number from 1 to {_MAX_SHARDS:,}"
                )
        return found

    def _check_settings(
        self, settings: PrepareSettings, encoders: list[TextEncoder]
    ) -> None:
        """Refuse settings of a vocabulary that is not learned.

        Raises:
            UsageError: If there are any.
        """
        is_learned = any(isinstance(encoder, LearnedEncoder) for encoder in encoders)
        idle = ("shared_vocabulary",) if is_learned else LEARNED_MODEL
        for name in idle:
            value = getattr(settings, name)
            if value != getattr(self.prepare_settings, name):
                raise UsageError(
                    f"received {name}={value} for problem {self.name}, whose package "
                    f"chooses the vocabulary ({encoders[0].filename or 'bytes'}): "
                    "leave it out"
                )

    def _tokenizer(self, encoder: TextEncoder, settings: PrepareSettings) -> Tokenizer:
        if not isinstance(encoder, LearnedEncoder):
            return encoder.tokenizer()
        if settings.vocab_size == self.prepare_settings.vocab_size:
            settings = settings.replace(vocab_size=encoder.size)
        return learn_from_lines(encoder.lines, settings)

    def _is_own(self, name: str) -> bool:
        """Return whether the package defines a name, and not a stand-in."""
        owner = next((c for c in self.original.__mro__ if name in vars(c)), object)
        return owner is not object and not owner.__module__.startswith("t2t_repro.")

    def _refused(self, name: str, what: str, instead: str) -> UserError:
        found = inspect.getattr_static(self.original, name, None)
        code = getattr(getattr(found, "fget", None) or found, "__code__", None)
        at = f"{code.co_filename}:{code.co_firstlineno}: " if code else ""
        return UserError(f"{at}problem {self.name}: {what} is not here: {instead}")


def _is_same(source: TextEncoder, target: TextEncoder) -> bool:
    """Return whether two encoders are of one vocabulary."""
    same_file = source.filename == target.filename and type(source) is type(target)
    return source is target or (same_file and source.filename is not None)


@contextmanager
def _same_numbers(split: str) -> Generator[None]:
    """Draw the same random numbers in each pass over a split, and others elsewhere.

    Differs from tensor2tensor, which goes on with one sequence for all splits.
    """
    from numpy import random as numbers

    states = random.getstate(), numbers.get_state()  # noqa: NPY002
    seed = _SEED + list(_THEIR_SPLITS).index(split)
    random.seed(seed)
    numbers.seed(seed)  # noqa: NPY002
    try:
        yield
    finally:
        random.setstate(states[0])
        numbers.set_state(states[1])  # noqa: NPY002


_CLASSES: dict[str, type[Text2TextProblem]] = {}


def _register(name: str, cls: Any) -> Any:
    if not issubclass(cls, Text2TextProblem) or issubclass(cls, Refused):
        base = getattr(cls, "refused_name", "") or "tensor2tensor.data_generators"
        registry.problems.refuse(name, located(answer(base)))
        return cls
    cls.name = name
    members = {"original": cls, "__doc__": cls.__doc__, "__module__": cls.__module__}
    registry.register_problem(name)(type(cls.__name__, (PackageProblem,), members))
    _CLASSES[name] = cls
    return cls


register_problem = decorator(_register)


def problem(name: str) -> Text2TextProblem:
    """Return a problem of a package, as tensor2tensor's registry does.

    Raises:
        UsageError: If the name is unknown.
    """
    base = name.removesuffix(registry.REVERSED_SUFFIX)
    if base not in _CLASSES:
        registry.problems.entry(base)
        raise UserError(located(f"problem {name} is not one of tensor2tensor's kind"))
    return _CLASSES[base](was_reversed=base != name)
