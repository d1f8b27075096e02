"""A problem: the source of its text, and how it is split into subwords.

A problem yields pairs of plain text, so everything downstream (preparation, decoding,
scoring, serving) treats embedded, public and the user's own data alike. After
tensor2tensor's `data_generators/text_problems.py`.
"""

from __future__ import annotations

import copy
import dataclasses
import reprlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Protocol, Self, TypeVar

from t2t_repro.constants import AUTO_TOKENIZER
from t2t_repro.errors import UsageError, UserError
from t2t_repro.progress import Progress
from t2t_repro.registry import REVERSED_SUFFIX, snake_case
from t2t_repro.settings.prepare_settings import PrepareSettings
from t2t_repro.text.lines import is_blank

if TYPE_CHECKING:
    import numpy as np
    import tensorflow as tf
    from keras import KerasTensor

    from t2t_repro.data.request import SplitText
    from t2t_repro.text.tokenizer import Tokenizer
    from t2t_repro.translation_scores import Scores


SPLITS = ("train", "dev", "test")


@dataclasses.dataclass(frozen=True)
class Vocabulary:
    """The vocabulary that a problem uses by default.

    Attributes:
        kind: "subwords" (a SentencePiece model learned from the training text),
            "symbols" (the given symbols, written with spaces between them),
            "subwords_to_symbols" (subwords for the inputs, and for the targets the
            symbols that the training targets are written with), or "own" (what
            `Problem.make_tokenizers` makes).
        size: Number of entries of the subword vocabulary, including the three special
            ones.
        model_type: SentencePiece's algorithm, "bpe" or "unigram".
        shared: Whether both sides share one vocabulary, as in the paper's section 5.1.
        symbols: The symbols if `kind` is "symbols".
        source_model: Path of a SentencePiece model of the inputs; None = learn one.
        target_model: Path of a SentencePiece model of the targets.
    """

    kind: str = "subwords"
    size: int = 8_000
    model_type: str = "bpe"
    shared: bool = True
    symbols: tuple[str, ...] = ()
    source_model: str | None = None
    target_model: str | None = None


@dataclasses.dataclass(frozen=True)
class Output:
    """The output that the user gets for a source.

    Attributes:
        text: Text on one line.
        repairs: Kinds of repairs of the model's text, each kind once.
    """

    text: str
    repairs: tuple[str, ...] = ()


class TargetGrammar(Protocol):
    """The texts that a model may write for a source; see `Problem.target_grammar`.

    A grammar knows the words of a source by their kinds, which are numbers.
    """

    def word_kinds(self, source: str) -> list[int]:
        """Return the kind of each word of a source, in its normal form."""
        ...

    def word_kinds_in_graph(self, sources: tf.Tensor) -> tf.RaggedTensor:
        """Return the kinds of the words of `[batch]` strings, int32 `[batch, None]`."""
        ...

    def outside(
        self,
        ids: KerasTensor,
        position: KerasTensor,
        max_lengths: KerasTensor,
        word_kinds: KerasTensor,
        vocab_size: int,
    ) -> KerasTensor:
        """Return the tokens that cannot continue any text within the limit.

        Args:
            ids: Hypotheses, int32 `[rows, beam, max_length]`, padded with PAD_ID.
            position: Number of their tokens, int32 scalar.
            max_lengths: Limits of the tokens with EOS, int32 `[rows]`.
            word_kinds: Kind of each word of the sources, int32 `[rows, n]`, padded with
                `NO_WORD`. The last column has only padding.
            vocab_size: Number of tokens.

        Returns:
            Boolean `[rows * beam, vocab_size]`, True = forbidden.
        """
        ...

    def words_written(self, vocab_size: int) -> np.ndarray:
        """Return the words that each token stands for, float32 `[vocab_size]`."""
        ...


class Problem:
    """A task on pairs of text; subclasses are registered in `problems/`.

    A subclass implements `pairs` and overrides class attributes whose defaults do not
    fit. All pairs are text: a problem on symbols writes them with spaces between them.

    If the model should write a text other than the targets, `encode_target` returns
    that text, and `postprocess` turns the model's text into the user's output. If users
    write sentences in a form other than that of `pairs`, `normalize_source` converts
    them.

    Attributes:
        vocabulary: Vocabulary that the text is cut into.
        splits: Splits that `pairs` knows, a subset of "train", "dev", "test".
        max_length: Default of `PrepareSettings.max_pair_length`.
        drop_duplicates: Default of `PrepareSettings.drop_duplicates`.
        version: Version of the text. Increase it when `pairs` changes, so that earlier
            shards are refused.
        was_reversed: Whether inputs and targets are swapped when shards are read.
        file_kind: Kind of files that `with_files` accepts: "pairs", "trees", or "" if
            the problem does not read the user's files.
        metric: Name of `development_score`.
        source_language: Code of the language of the inputs, such as "en", if it is
            known.
        target_language: Code of the language of the targets, if it is known.
        bleu_tokenizer: sacreBLEU's tokenizer of the outputs; "auto" chooses it by the
            target language or the texts.
        decode_defaults: Values of `DecodeHParams` that are better for this problem than
            the general defaults.
    """

    vocabulary: Vocabulary = Vocabulary()
    splits: tuple[str, ...] = SPLITS
    max_length: int = 256
    drop_duplicates: bool = False
    version: int = 1
    was_reversed: ClassVar[bool] = False
    file_kind: str = ""
    metric: str = "bleu"
    source_language: str | None = None
    target_language: str | None = None
    bleu_tokenizer: str = AUTO_TOKENIZER
    decode_defaults: Mapping[str, float | int | str] = MappingProxyType({})

    @property
    def name(self) -> str:
        """The registered name, or the default name if it is not registered."""
        cls = type(self)
        # Not inherited: a subclass that is not registered has its own name and files.
        return vars(cls).get("registered_name") or snake_case(cls.__name__)

    @property
    def base(self) -> Problem:
        """The problem that owns the files: itself, unless it is a `_rev` problem."""
        return self

    @property
    def file_prefix(self) -> str:
        """Prefix of the names of its files in `data_dir`."""
        return self.base.name

    @property
    def has_text(self) -> bool:
        """Whether `pairs` can be read; False for a problem without its files."""
        return True

    @property
    def prepare_settings(self) -> PrepareSettings:
        """The default settings of its preparation."""
        vocabulary = self.vocabulary
        return PrepareSettings(
            vocab_size=vocabulary.size,
            model_type=vocabulary.model_type,
            shared_vocabulary=vocabulary.shared,
            max_pair_length=self.max_length,
            drop_duplicates=self.drop_duplicates,
            source_model=vocabulary.source_model,
            target_model=vocabulary.target_model,
        )

    def with_files(self, files: Mapping[str, SplitText]) -> Problem:
        """Return the same problem with the user's files.

        Args:
            files: Files of its `file_kind`, by split.

        Raises:
            UsageError: If the problem does not read the user's files.
        """
        del files
        raise UsageError(
            f"received text files for problem {self.name}, which has its own text: "
            "leave them out or use the problem text_pairs"
        )

    def in_folder(self, data_dir: str | Path) -> Self:
        """Return the same problem, whose data is prepared in a folder.

        Override it if the problem reads files from that folder.

        Args:
            data_dir: The folder.
        """
        del data_dir
        return self

    def make_tokenizers(
        self, settings: PrepareSettings, tmp_dir: str | Path | None
    ) -> tuple[Tokenizer, Tokenizer] | None:
        """Return tokenizers that the problem makes itself.

        Args:
            settings: Settings of the vocabulary.
            tmp_dir: Folder for downloads, or None for the source's own default.

        Returns:
            Tokenizers of the inputs and of the targets, one object twice if the
            vocabulary is shared; or None to learn what `vocabulary` describes.
        """
        del settings, tmp_dir
        return None

    def pairs(
        self, split: str, tmp_dir: str | Path | None
    ) -> Iterator[tuple[str, str]]:
        """Yield the pairs of a split: always the same pairs in the same order.

        Args:
            split: One of `splits`.
            tmp_dir: Folder for downloads, or None for the source's own default.

        Yields:
            Source text and target text, neither tokenized nor filtered. A training
            pair may be a `RepeatedPair`.

        Raises:
            NotImplementedError: If the subclass does not implement it.
        """
        raise NotImplementedError

    def num_pairs(self, split: str, tmp_dir: str | Path | None) -> int | None:
        """Return the approximate number of pairs of a split, to show the time left.

        Args:
            split: One of `splits`.
            tmp_dir: Folder for downloads, or None for the source's own default.

        Returns:
            The number, or None if it is not known.
        """
        del split, tmp_dir
        return None

    @property
    def writes_targets(self) -> bool:
        """Whether the model writes the targets themselves."""
        return type(self).postprocess is Problem.postprocess

    def normalize_source(self, sentence: str) -> str:
        """Convert a user's sentence to the form of the sources of `pairs`."""
        return sentence

    def encode_target(self, target: str) -> str:
        """Return the text that the model learns to write for a target."""
        return target

    def postprocess(self, source: str, written: str) -> Output:
        """Turn the text that the model wrote for a source into the user's output."""
        del source
        return Output(written)

    def target_grammar(self, tokenizer: Tokenizer) -> TargetGrammar | None:
        """Return the grammar of the texts that the model may write.

        A problem with a grammar can be decoded with `constrain=tree`.

        Args:
            tokenizer: Tokenizer of the targets, whose tokens the grammar names.
        """
        del tokenizer
        return None

    def word_tokens(self, tokenizer: Tokenizer) -> tuple[int, ...]:
        """Return the tokens that begin or stand for a word of the targets."""
        return tokenizer.word_starts()

    def bracket_tokens(self, tokenizer: Tokenizer) -> Sequence[tuple[int, int]]:
        """Return the opening and closing tokens of the targets' brackets, if any."""
        del tokenizer
        return ()

    @property
    def has_grammar(self) -> bool:
        """Whether the problem declares a grammar."""
        return type(self).target_grammar is not Problem.target_grammar

    @property
    def scores_bleu(self) -> bool:
        """Whether its outputs are scored as translations."""
        return type(self).score is Problem.score

    def with_bleu_tokenizer(self, tokenizer: str) -> Self:
        """Return the same problem with another `bleu_tokenizer`."""
        changed = copy.copy(self)
        changed.bleu_tokenizer = tokenizer
        return changed

    def tokenizer_for(self, texts: Sequence[str]) -> str:
        """Return the tokenizer of texts in the target language; never "auto"."""
        from t2t_repro.translation_scores import chosen_tokenizer

        return chosen_tokenizer(self.bleu_tokenizer, texts, self.target_language)

    def development_score(
        self, hypotheses: Sequence[str], references: Sequence[str]
    ) -> float:
        """Score outputs during training; higher is better."""
        from t2t_repro.translation_scores import bleu

        return bleu(hypotheses, references, self.tokenizer_for(references))

    def score(self, hypotheses: Sequence[str], references: Sequence[str]) -> Scores:
        """Compute all scores of outputs.

        Args:
            hypotheses: Outputs, after `postprocess`.
            references: Targets of `pairs`, one per output.

        Raises:
            UserError: If there are no outputs, or not as many as references.
        """
        from t2t_repro.translation_scores import score_translations

        return score_translations(
            hypotheses, references, self.tokenizer_for(references)
        )

    def similarities(self, outputs: Sequence[str]) -> list[list[float]]:
        """Compare outputs for one sentence with each other.

        Args:
            outputs: Outputs, after `postprocess`.

        Returns:
            In row i and column j, the score of output i if output j is the truth, 0 to
            100: cased BLEU of the sentence.
        """
        from t2t_repro.translation_scores import pairwise_bleu

        return pairwise_bleu(outputs, self.tokenizer_for(outputs))

    def consensus(self, outputs: Sequence[str], weights: Sequence[float]) -> str:
        """Combine outputs for one sentence into the one that they agree on.

        A problem that overrides this can be decoded with `mbr_consensus`.

        Args:
            outputs: Outputs, after `postprocess`.
            weights: Weight of each output; the sum is not 1.

        Raises:
            NotImplementedError: If the problem cannot combine outputs.
        """
        raise NotImplementedError

    @property
    def has_consensus(self) -> bool:
        """Whether the problem can combine outputs."""
        return type(self).consensus is not Problem.consensus

    def source_identities(
        self, tmp_dir: str | Path | None
    ) -> Mapping[str, Mapping[str, object]]:
        """Identify the sources of the text, so that stale shards are detected.

        Returns:
            For each source, by its role (such as "train_source"), facts that change
            with its content and not with its location.
        """
        del tmp_dir
        return {}

    def check(self, tmp_dir: str | Path | None) -> None:
        """Check all sources before anything is written.

        Raises:
            UserError: If a source is missing or damaged.
        """
        del tmp_dir


Pair = tuple[str, str]


def checked_pairs(
    problem: Problem, split: str, tmp_dir: str | Path | None
) -> Iterator[Pair]:
    """Yield the pairs of a split.

    Args:
        problem: The problem.
        split: One of its splits.
        tmp_dir: Folder for downloads, or None for the source's own default.

    Yields:
        Source text and target text.

    Raises:
        UserError: If the problem yields anything but two strings.
    """
    pairs = problem.pairs(split, tmp_dir)
    if not isinstance(pairs, Iterable):
        raise UserError(
            f"problem {problem.name}, split {split}: received {reprlib.repr(pairs)} "
            "from `pairs`, expected an iterator of pairs: yield them one by one"
        )
    for number, pair in enumerate(pairs, start=1):
        if not _is_pair(pair):
            raise UserError(
                f"problem {problem.name}, split {split}: received "
                f"{reprlib.repr(pair)} as pair {number}, expected a tuple of two "
                "strings, source and target: change what its `pairs` yields"
            )
        yield pair


def _is_pair(pair: object) -> bool:
    return (
        isinstance(pair, tuple | list)
        and len(pair) == 2
        and all(isinstance(text, str) for text in pair)
    )


def has_empty_side(pair: tuple[str, str]) -> bool:
    """Return whether a side is empty or blank."""
    return any(map(is_blank, pair))


class RepeatedPair(tuple[str, str]):
    """A pair that training reads several times per epoch.

    Attributes:
        copies: Number of copies in the shards. Copies do not count as repeats. If
            the pair is left out, so are all its copies.
    """

    copies: int

    def __new__(cls, source: str, target: str, copies: int) -> Self:
        pair = super().__new__(cls, (source, target))
        pair.copies = copies
        return pair


def copies_of(pair: tuple[str, str]) -> int:
    """Return how many copies of a training pair the shards have."""
    return pair.copies if isinstance(pair, RepeatedPair) else 1


_Item = TypeVar("_Item")

_PAIRS_PER_UPDATE = 1_000


def counted(pairs: Iterable[_Item], total: int | None) -> Iterator[_Item]:
    """Yield pairs, and show their number and the time left.

    Args:
        pairs: The pairs.
        total: Their approximate number; None = unknown.
    """
    with Progress(total, "pair", warm=True) as progress:
        waiting = 0
        for pair in pairs:
            yield pair
            waiting += 1
            if waiting == _PAIRS_PER_UPDATE:
                progress.advance(waiting)
                waiting = 0
        progress.advance(waiting)


_SHARED_BY_DIRECTIONS = (
    "vocabulary",
    "splits",
    "max_length",
    "drop_duplicates",
    "version",
    "file_kind",
    "metric",
    "decode_defaults",
)


class ReversedProblem(Problem):
    """A problem with inputs and targets swapped, on the same files as its base.

    The counterpart of tensor2tensor's `_rev` names (`utils/registry.py`).
    """

    was_reversed = True

    def __init__(self, base: Problem) -> None:
        if base.was_reversed:
            raise UserError(
                f"received problem {base.name}_rev, expected at most one _rev: leave "
                "one out"
            )
        if not base.writes_targets:
            raise UserError(
                f"received problem {base.name}_rev: {base.name} has no reverse, "
                "because the model does not write its targets"
            )
        self._base = base
        for name in _SHARED_BY_DIRECTIONS:
            setattr(self, name, getattr(base, name))
        self.source_language = base.target_language
        self.target_language = base.source_language

    @property
    def name(self) -> str:
        return f"{self._base.name}{REVERSED_SUFFIX}"

    @property
    def base(self) -> Problem:
        return self._base

    @property
    def has_text(self) -> bool:
        return self._base.has_text

    @property
    def prepare_settings(self) -> PrepareSettings:
        return self._base.prepare_settings

    def with_files(self, files: Mapping[str, SplitText]) -> Problem:
        return ReversedProblem(self._base.with_files(files))

    def pairs(
        self, split: str, tmp_dir: str | Path | None
    ) -> Iterator[tuple[str, str]]:
        for source, target in self._base.pairs(split, tmp_dir):
            yield target, source

    def num_pairs(self, split: str, tmp_dir: str | Path | None) -> int | None:
        return self._base.num_pairs(split, tmp_dir)

    def source_identities(
        self, tmp_dir: str | Path | None
    ) -> Mapping[str, Mapping[str, object]]:
        return self._base.source_identities(tmp_dir)

    def check(self, tmp_dir: str | Path | None) -> None:
        self._base.check(tmp_dir)

    @property
    def scores_bleu(self) -> bool:
        return self._base.scores_bleu

    def _scorer(self, texts: Sequence[str]) -> Problem:
        """Return the base problem, for scores with the tokenizer of this side."""
        return self._base.with_bleu_tokenizer(self.tokenizer_for(texts))

    def development_score(
        self, hypotheses: Sequence[str], references: Sequence[str]
    ) -> float:
        return self._scorer(references).development_score(hypotheses, references)

    def score(self, hypotheses: Sequence[str], references: Sequence[str]) -> Scores:
        return self._scorer(references).score(hypotheses, references)

    def similarities(self, outputs: Sequence[str]) -> list[list[float]]:
        return self._scorer(outputs).similarities(outputs)
