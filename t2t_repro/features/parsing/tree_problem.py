"""Constituency parsing as translation of words into a bracketed tree (section 6.3).

The pairs are sentences and their trees in Penn Treebank brackets. A model writes
brackets and one symbol per word. Any output is repaired into a tree over the words.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from t2t_repro.data.file_problem import FileProblem
from t2t_repro.data.problem import Output, Problem, Vocabulary
from t2t_repro.data.request import TreeFile
from t2t_repro.data.text_files import read_lines
from t2t_repro.errors import UserError
from t2t_repro.features.parsing.bracketing import (
    BracketingScores,
    consensus_tree,
    pairwise_f1,
    score_trees,
)
from t2t_repro.features.parsing.tree_symbols import LeafForm, from_symbols, to_symbols
from t2t_repro.features.parsing.trees import Tree, read_trees, treebank_words
from t2t_repro.text.tokenizer import Tokenizer, split_symbols

if TYPE_CHECKING:
    from t2t_repro.features.parsing.bracket_grammar import BracketGrammar


class ParsingProblem(Problem):
    """Sentences and their trees.

    Attributes:
        leaves: Form of the leaves that a model writes. "any": XX for every word, as in
            Vinyals et al. 2015. "tag": the part of speech. "initial": the initial of
            the word, then its part of speech.
    """

    vocabulary = Vocabulary(kind="subwords_to_symbols", size=16_000, shared=False)
    max_length = 512
    metric = "f1"
    # Section 6.3. With this batch size, keys and values of 21 beams fit in memory.
    # Differs from the paper, which does not mention it: valid trees over the words rank
    # above hypotheses that need repair (docs/results/tables.md).
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
        """Return the words as treebanks write them: brackets as `-LRB-` and `-RRB-`."""
        return " ".join(treebank_words(sentence))

    def encode_target(self, target: str) -> str:
        return " ".join(to_symbols(read_tree(target), leaves=self.leaves))

    def target_grammar(self, tokenizer: Tokenizer) -> BracketGrammar:
        """Return the grammar of trees over exactly the words of the source."""
        # Listing the problems must not wait for TensorFlow.
        from t2t_repro.features.parsing.bracket_grammar import tree_grammar

        tokens = range(tokenizer.vocab_size)
        return tree_grammar(tokenizer.pieces(tokens), self.leaves)

    def word_tokens(self, tokenizer: Tokenizer) -> tuple[int, ...]:
        """Return the leaves, which represent the words; brackets represent none."""
        leaves = self.target_grammar(tokenizer).leaves
        return tuple(sorted({token for kind in leaves for token in kind}))

    def bracket_tokens(self, tokenizer: Tokenizer) -> Sequence[tuple[int, int]]:
        return self.target_grammar(tokenizer).brackets

    def postprocess(self, source: str, written: str) -> Output:
        symbols, words = split_symbols(written), treebank_words(source)
        repaired = from_symbols(symbols, words, leaves=self.leaves)
        return Output(str(repaired.tree), repaired.repairs)

    def development_score(
        self, hypotheses: Sequence[str], references: Sequence[str]
    ) -> float:
        """Return F1 over sentences of all lengths, 0 to 100."""
        return self.score(hypotheses, references).f1

    def score(
        self, hypotheses: Sequence[str], references: Sequence[str]
    ) -> BracketingScores:
        return score_trees([*map(read_tree, hypotheses)], [*map(read_tree, references)])

    def similarities(self, outputs: Sequence[str]) -> list[list[float]]:
        """Return F1 of the brackets of every tree against every other, 0 to 100."""
        return pairwise_f1([*map(read_tree, outputs)])

    def consensus(self, outputs: Sequence[str], weights: Sequence[float]) -> str:
        """Return the tree of the constituents with more than half of the weight."""
        return str(consensus_tree([*map(read_tree, outputs)], weights))


class TreeFileProblem(ParsingProblem, FileProblem[TreeFile]):
    """Bracketed trees from one file per split."""

    file_kind = "trees"
    contents = "trees"
    training_files = "train_trees"

    def read(self, files: TreeFile) -> Iterator[tuple[str, str]]:
        return map(sentence_and_tree, _trees_of(files.trees))


def sentence_and_tree(tree: Tree) -> tuple[str, str]:
    """Return the pair of a tree: its words, and its brackets on one line."""
    return " ".join(tree.words), str(tree)


def read_tree(line: str) -> Tree:
    """Read the one tree of a line.

    Raises:
        UserError: If the line is not one bracketed tree.
    """
    try:
        found = [tree for _, tree in read_trees([line])]
    except ValueError as error:
        raise UserError(
            f"received {line!r}, expected a bracketed tree: {error}"
        ) from error
    if len(found) != 1:
        raise UserError(f"received {line!r}, expected one bracketed tree per line")
    return found[0]


def _trees_of(path: Path) -> Iterator[Tree]:
    try:
        for _, tree in read_trees(read_lines(path)):
            yield tree
    except ValueError as error:
        raise UserError(
            f"received {path}, expected the Penn Treebank's brackets: {error}"
        ) from error
