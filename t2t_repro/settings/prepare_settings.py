"""Settings of data preparation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from t2t_repro.errors import UsageError
from t2t_repro.settings.typed_settings import TypedSettings, setting

# Far above every vocabulary; a larger number is a slip.
MAX_VOCAB_SIZE = 10_000_000

# Manifests keep the names that these settings had when format 2 was introduced.
_RECORDED_NAMES = {"max_pair_length": "max_length", "shuffle_seed": "seed"}

# Settings that were added after format 2 of the manifest. They are recorded only if
# they differ from their defaults, so that earlier data remains valid.
_RECORDED_IF_GIVEN = ("subword_copies", "subword_sampling")


@dataclass(frozen=True, kw_only=True)
class PrepareSettings(TypedSettings):
    """Settings of data preparation, which turns text into shards.

    Two preparations agree only if all their settings do. Paths of the user's own models
    are not among these settings: a manifest compares the content of the models.

    Attributes:
        source_model: Path of the user's own SentencePiece model of the inputs, or of
            both sides if `target_model` is None.
        target_model: Path of the user's own SentencePiece model of the targets.
    """

    flag: ClassVar[str] = "preparation"
    how_to_list: ClassVar[str] = "`t2t datagen --help` explains every name."

    vocab_size: int = setting(
        "subwords, including the special ones and 256 bytes",
        8_000,
        at_least=1,
        at_most=MAX_VOCAB_SIZE,
    )
    model_type: str = setting(
        "algorithm that learns the subwords", "bpe", choices=("bpe", "unigram")
    )
    shared_vocabulary: bool = setting("one vocabulary for both sides", True)
    max_pair_length: int = setting(
        "leave out pairs with a longer side, including the end of sentence",
        256,
        unit="subwords",
        at_least=2,
    )
    max_length_ratio: float = setting(
        "leave out training pairs with one side more than this many times as long as "
        "the other, in subwords; 0 keeps all",
        0.0,
        at_least=0,
    )
    drop_duplicates: bool = setting("leave out repeated training pairs", False)
    num_shards: int = setting("files of the training split", 10, at_least=1)
    shuffle_seed: int = setting("order of the training pairs", 1, at_least=0)
    character_coverage: float = setting(
        "share of the characters of the text that get their own subword; the others "
        "are spelt in bytes",
        0.9999,
        # The range that SentencePiece accepts.
        at_least=0.98,
        at_most=1,
    )
    subword_copies: int = setting(
        "copies of each training pair, which differ in their sampled subwords",
        1,
        at_least=1,
    )
    subword_sampling: float = setting(
        "sample the subwords of training text: for bpe the probability to leave out a "
        "merge, for unigram the exponent of the probabilities; 0 = no sampling",
        0.0,
        at_least=0,
        at_most=1,
    )
    source_model: str | None = None
    target_model: str | None = None

    def check_together(self) -> None:
        """Check that copies of a pair differ.

        Raises:
            UsageError: If they would all be the same.
        """
        if self.subword_copies > 1 and not self.subword_sampling:
            raise UsageError(
                f"received subword_copies={self.subword_copies} with "
                "subword_sampling=0, which would write the same copy again and again, "
                "expected subword_sampling above 0, such as 0.1"
            )

    def recorded(self) -> dict[str, Any]:
        """Return the settings under the names that manifests record, without paths."""
        return {
            _RECORDED_NAMES.get(name, name): value
            for name, value in self.values().items()
            if name not in _RECORDED_IF_GIVEN or value != self.about(name).default
        }

    @classmethod
    def value_in(cls, recorded: Mapping[str, Any], name: str) -> Any:
        """Return a setting from the settings of a manifest.

        Args:
            recorded: Return value of `recorded`.
            name: Name of the setting.
        """
        default = cls.about(name).default if name in _RECORDED_IF_GIVEN else None
        return recorded.get(_RECORDED_NAMES.get(name, name), default)
