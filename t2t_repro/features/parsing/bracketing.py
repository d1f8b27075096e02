"""Labelled bracketing by EVALB's rules with its parameter file COLLINS.prm.

Collins 1997; EVALB (Sekine and Collins), README section 7. Punctuation is deleted by
its part of speech before spans are counted, empty constituents are dropped, ADVP and
PRT are the same label, and a repeated bracket matches as often as both trees have it.
"""

from __future__ import annotations

import dataclasses
from collections import Counter, defaultdict
from collections.abc import Sequence

from t2t_repro.errors import UserError
from t2t_repro.features.parsing.trees import Constituent, Tree
from t2t_repro.text.lines import check_scored
from t2t_repro.text_tables import quantity
from t2t_repro.translation_scores import Scores

# COLLINS.prm: DELETE_LABEL (its TOP and -NONE- never reach a `Tree`) and EQ_LABEL.
DELETED_TAGS = frozenset((",", ":", "``", "''", "."))
SAME_LABEL = {"PRT": "ADVP"}
SHORT_SENTENCE = 40  # words; COLLINS.prm: CUTOFF_LEN

Brackets = Counter[tuple[str, int, int]]


@dataclasses.dataclass(frozen=True)
class BracketingScores(Scores):
    """Scores of trees against reference trees, 0 to 100.

    Attributes:
        f1: 2 precision recall / (precision + recall), over all brackets of all trees.
        precision: Percentage of the brackets of the hypotheses that are correct.
        recall: Percentage of the brackets of the references that are found.
        complete_match: Percentage of the trees with exactly the brackets of their
            references.
        f1_up_to_40: F1 over the sentences of at most 40 words, including punctuation.
        sentences_up_to_40: Number of these sentences.
        sentences: Number of all sentences.
    """

    f1: float
    precision: float
    recall: float
    complete_match: float
    f1_up_to_40: float
    sentences_up_to_40: int
    sentences: int

    def lines(self, description: str) -> list[str]:
        """Return F1 and its parts, one per line; see `Scores`."""
        return [
            f"F1 on {description}: {self.f1:.2f}",
            f"precision {self.precision:.2f}, recall {self.recall:.2f}, complete match "
            f"{self.complete_match:.2f}",
            f"F1 up to {SHORT_SENTENCE} words: {self.f1_up_to_40:.2f}  "
            f"({quantity(self.sentences_up_to_40, 'sentence')})",
        ]


@dataclasses.dataclass(frozen=True)
class _Counts:
    """Numbers of brackets in one tree or in many."""

    found: int = 0
    true: int = 0
    matched: int = 0

    def __add__(self, other: _Counts) -> _Counts:
        return _Counts(
            self.found + other.found,
            self.true + other.true,
            self.matched + other.matched,
        )

    @property
    def f1(self) -> float:
        return 100 * 2 * self.matched / max(self.found + self.true, 1)


def score_trees(
    hypotheses: Sequence[Tree], references: Sequence[Tree]
) -> BracketingScores:
    """Score trees by their brackets; parts of speech do not count.

    Args:
        hypotheses: Trees over the same words as the references.
        references: The true trees, whose parts of speech tell which words are
            punctuation.

    Raises:
        UserError: If the numbers of trees or the words differ, or there is no tree.
            EVALB skips such sentences, which favours a parser that fails on hard ones.
    """
    check_scored(hypotheses, references, "tree")
    pairs = list(zip(hypotheses, references, strict=True))
    counts = [
        _compare(hypothesis, reference, number)
        for number, (hypothesis, reference) in enumerate(pairs, start=1)
    ]
    short = [
        count
        for count, reference in zip(counts, references, strict=True)
        if len(reference.leaves) <= SHORT_SENTENCE
    ]
    total = sum(counts, _Counts())
    complete = sum(count.found == count.true == count.matched for count in counts)
    return BracketingScores(
        f1=total.f1,
        precision=100 * total.matched / max(total.found, 1),
        recall=100 * total.matched / max(total.true, 1),
        complete_match=100 * complete / len(counts),
        f1_up_to_40=sum(short, _Counts()).f1,
        sentences_up_to_40=len(short),
        sentences=len(counts),
    )


def pairwise_f1(trees: Sequence[Tree]) -> list[list[float]]:
    """Return F1, 0 to 100, of every tree (rows) if another is the truth (columns).

    Two trees without brackets that count are equal, so they have 100.
    """
    counts = [[_count(tree, true) for true in trees] for tree in trees]
    return [
        [count.f1 if count.found or count.true else 100.0 for count in row]
        for row in counts
    ]


def brackets(tree: Tree, tags: Sequence[str]) -> Brackets:
    """Return the brackets that count, over the words that are not deleted.

    Args:
        tree: The tree.
        tags: The true part of speech of each word.
    """
    kept_before = [0]
    for tag in tags:
        kept_before.append(kept_before[-1] + (tag not in DELETED_TAGS))
    spans = (
        (SAME_LABEL.get(c.label, c.label), kept_before[c.start], kept_before[c.end])
        for c in tree.constituents
    )
    return Counter(span for span in spans if span[1] < span[2])


def _compare(hypothesis: Tree, reference: Tree, number: int) -> _Counts:
    if hypothesis.words != reference.words:
        raise UserError(
            f"tree {number} has other words than its reference: "
            f"{' '.join(hypothesis.words)!r} and {' '.join(reference.words)!r}"
        )
    return _count(hypothesis, reference)


def _count(hypothesis: Tree, reference: Tree) -> _Counts:
    tags = [leaf.tag for leaf in reference.leaves]
    found, true = brackets(hypothesis, tags), brackets(reference, tags)
    return _Counts(found.total(), true.total(), (found & true).total())


Span = tuple[int, int]
# A constituent, and its number among equal ones, from the outermost.
_Bracket = tuple[str, int, int, int]


def consensus_tree(trees: Sequence[Tree], weights: Sequence[float]) -> Tree:
    """Return the tree of all constituents that have more than half of the weight.

    Any two of them occur together in one of the trees, so they never cross. Of all
    trees over the words, this one has the highest expected difference of correct and
    wrong constituents (Goodman 1996, "Parsing algorithms and metrics", maximizes the
    expected number of correct ones). Spans count with their punctuation, which EVALB's
    rules leave out.

    Args:
        trees: Trees over the same words; the first one gives the parts of speech.
        weights: Weight of each tree, not negative.
    """
    total = sum(weights)
    mass: defaultdict[_Bracket, float] = defaultdict(float)
    places: defaultdict[_Bracket, float] = defaultdict(float)
    for tree, weight in zip(trees, weights, strict=True):
        for bracket, place in _number_constituents(tree):
            mass[bracket] += weight
            places[bracket] += weight * place
    kept = [bracket for bracket in mass if mass[bracket] > total / 2]
    # Preorder; the mean place orders constituents of the same span.
    kept.sort(key=lambda x: (x[1], -x[2], places[x] / mass[x]))
    found = tuple(Constituent(label, start, end) for label, start, end, _ in kept)
    return Tree(trees[0].leaves, found)


def _number_constituents(tree: Tree) -> list[tuple[_Bracket, int]]:
    """Return the constituents in preorder, each with its place in its span's chain."""
    seen: Counter[Constituent] = Counter()
    chains: Counter[Span] = Counter()
    numbered = []
    for constituent in tree.constituents:
        label, span = constituent.label, (constituent.start, constituent.end)
        numbered.append(((label, *span, seen[constituent]), chains[span]))
        seen[constituent] += 1
        chains[span] += 1
    return numbered
