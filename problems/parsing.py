"""Constituency parsing as writing: words in, a bracketed tree out (section 6.3).

The pairs are sentences and their trees in Penn Treebank brackets. What a model writes
are brackets and one symbol for each word; whatever it writes is made a tree over the
words.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import cast

from t2t_repro.data.problem import SPLITS, Output, Problem, Vocabulary
from t2t_repro.data.text_files import PairFiles, TreeFile, identities, read_lines
from t2t_repro.errors import UsageError, UserError
from t2t_repro.metrics.bracketing import BracketingScores, score_trees
from t2t_repro.registry import register_problem
from t2t_repro.text.symbols import split_symbols
from t2t_repro.text.tree_symbols import LeafForm, from_symbols, to_symbols
from t2t_repro.text.trees import Tree, read_trees, words_of

SYNTHETIC_PAIRS = {"train": 30_000, "dev": 500, "test": 500}


class ParsingProblem(Problem):
    """Sentences and their trees.

    Attributes:
        leaves: how leaves are written: as XX for every word, as in Vinyals et al. 2015,
            as parts of speech, or as these and their words' initials.
    """

    vocabulary = Vocabulary(kind="subwords_to_symbols", size=16_000, shared=False)
    max_length = 512
    metric = "f1"
    # Section 6.3. The batch keeps the keys and values of 21 beams in memory.
    # Differs from the paper, which does not speak of it: what is no tree over the words
    # gives way to what is one, if the beam holds one (measured in docs/results.md).
    decode_defaults = MappingProxyType(
        {
            "beam_size": 21,
            "alpha": 0.3,
            "extra_length": 300,
            "batch_size": 512,
            "prefer_unrepaired": True,
        }
    )
    leaves: LeafForm = "any"

    def normalize_source(self, sentence: str) -> str:
        """Gives the words as treebanks have them: brackets are `-LRB-` and `-RRB-`."""
        return " ".join(words_of(sentence))

    def encode_target(self, target: str) -> str:
        return " ".join(to_symbols(_tree(target), leaves=self.leaves))

    def postprocess(self, source: str, written: str) -> Output:
        symbols, words = split_symbols(written), words_of(source)
        repaired = from_symbols(symbols, words, leaves=self.leaves)
        return Output(str(repaired.tree), repaired.repairs)

    def development_score(
        self, hypotheses: Sequence[str], references: Sequence[str]
    ) -> float:
        return self.score(hypotheses, references).f1

    def score(
        self, hypotheses: Sequence[str], references: Sequence[str]
    ) -> BracketingScores:
        return score_trees([*map(_tree, hypotheses)], [*map(_tree, references)])


def _tree(text: str) -> Tree:
    """Reads the one tree of a line."""
    try:
        found = [tree for _, tree in read_trees([text])]
    except ValueError as error:
        raise UserError(
            f"received {text!r}, expected a bracketed tree: {error}"
        ) from error
    if len(found) != 1:
        raise UserError(f"received {text!r}, expected one bracketed tree on a line")
    return found[0]


@register_problem
class ParsingPtb(ParsingProblem):
    """Your own treebank: bracketed trees in a file a split, parts of speech as XX.

    Traces, and what holds nothing else, are left out, and so are function tags.

    Args:
        files: the file of "train" and, where there are such, "dev" and "test".
    """

    file_kind = "trees"

    def __init__(self, files: Mapping[str, TreeFile] | None = None) -> None:
        self._files = dict(files or {})
        if self._files:
            self.splits = tuple(split for split in SPLITS if split in self._files)

    @property
    def has_text(self) -> bool:
        return bool(self._files)

    def with_files(self, files: Mapping[str, PairFiles | TreeFile]) -> ParsingPtb:
        return type(self)(cast("Mapping[str, TreeFile]", files))

    def pairs(
        self, split: str, tmp_dir: str | Path | None
    ) -> Iterator[tuple[str, str]]:
        del tmp_dir
        self._require_files()
        for tree in _trees_of(self._files[split].trees):
            yield " ".join(tree.words), str(tree)

    def source_identities(
        self, tmp_dir: str | Path | None
    ) -> Mapping[str, Mapping[str, object]]:
        del tmp_dir
        self._require_files()
        return identities(self._files)

    def check(self, tmp_dir: str | Path | None) -> None:
        del tmp_dir
        for file in self._files.values():
            for _ in _trees_of(file.trees):
                pass

    def _require_files(self) -> None:
        if "train" not in self._files:
            raise UsageError(
                f"{self.name} received no training trees, expected --train_trees"
            )


@register_problem
class ParsingPtbTags(ParsingPtb):
    """As parsing_ptb, but parts of speech are written as well, as in tensor2tensor."""

    leaves = "tag"


@register_problem
class ParsingPtbInitials(ParsingPtb):
    """As parsing_ptb_tags, but each part of speech has its word's initial before it.

    `(NP t/DT c/NN )NP` for (NP (DT the) (NN cat)). Differs from Vinyals et al. 2015,
    who leave the words out: then nothing but a count of leaves tells a model which word
    is next, and that is the last thing that it learns. With an initial to write it must
    find the next word from the beginning, and where it skips one all the same, the
    leaves behind it keep their words.
    """

    leaves = "initial"


def _trees_of(path: Path) -> Iterator[Tree]:
    try:
        for _, tree in read_trees(read_lines(path)):
            yield tree
    except ValueError as error:
        raise UserError(
            f"received {path}, expected the Penn Treebank's brackets: {error}"
        ) from error


@register_problem
class ParsingSynthetic(ParsingProblem):
    """Trees of the embedded grammar's English, with initials; needs no download."""

    vocabulary = Vocabulary(kind="subwords_to_symbols", size=3_000, shared=False)
    leaves = "initial"

    def pairs(
        self, split: str, tmp_dir: str | Path | None
    ) -> Iterator[tuple[str, str]]:
        # Listing the problems must not wait for the lexicon.
        from .synthetic.grammar import sentences

        del tmp_dir
        for sentence in sentences(split, SYNTHETIC_PAIRS[split]):
            tree = _tree(sentence.tree)
            yield " ".join(tree.words), str(tree)
