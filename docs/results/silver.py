"""Silver trees: a parser's own trees of raw text, for semi-supervised training.

Differs from Vaswani et al. 2017, section 6.3, and Vinyals et al. 2015, whose silver
trees are those of other parsers: these are of the parser trained on the gold trees.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from t2t_repro.data.request import TreeFile
from t2t_repro.data.text_files import read_lines
from t2t_repro.decoding.hypothesis import rank
from t2t_repro.features.parsing.tree_problem import TreeFileProblem
from t2t_repro.files import atomic_write
from t2t_repro.settings.decode_hparams import DecodeHParams

if TYPE_CHECKING:
    from t2t_repro.runs import TranslatingSystem

SHARE = 0.5  # of the sentences, those with the most probable symbols


def write_semi_supervised(
    parser: TranslatingSystem,
    gold: str | Path,
    raw: str | Path,
    path: str | Path,
    share: float = SHARE,
) -> int:
    """Write a training file: gold trees, then silver trees of other text.

    Args:
        parser: A parser that was trained on the gold trees.
        gold: File of gold trees, which are copied.
        raw: File of trees of other text. Only their words are read.
        path: File to write.
        share: See `silver_trees`.

    Returns:
        Number of silver trees.

    Raises:
        UserError: If a file cannot be read, or `raw` does not hold trees.
    """
    pairs = TreeFileProblem().read(TreeFile(Path(raw)))
    sentences = [sentence for sentence, _ in pairs if sentence]
    silver = silver_trees(parser, sentences, share)
    atomic_write(Path(path), "\n".join([*read_lines(Path(gold)), *silver, ""]))
    return len(silver)


def silver_trees(
    parser: TranslatingSystem,
    sentences: Sequence[str],
    share: float = SHARE,
    decode_hparams: DecodeHParams | None = None,
) -> list[str]:
    """Parse sentences, and return the trees that the parser is surest of.

    Outputs that need repair, and trees without a log-probability, such as those of
    sentences that are parsed in pieces, are left out.

    Args:
        parser: A trained parser.
        sentences: Words separated by spaces.
        share: Largest share of the sentences to keep, by the mean log-probability of
            the symbols.
        decode_hparams: Settings of the search; None = the problem's.

    Returns:
        Trees in the order of the sentences, each on one line.
    """
    hparams = parser.with_problem_defaults(decode_hparams or DecodeHParams())
    found: list[tuple[float, int, str]] = []
    for place, (best, *_) in enumerate(parser.hypotheses(sentences, hparams)):
        (ranked,) = rank([best], hparams)
        if not best.repairs and ranked.log_prob is not None and ranked.tokens:
            found.append((ranked.log_prob / ranked.tokens, place, best.text))
    surest = sorted(found, reverse=True)[: int(share * len(sentences))]
    return [text for _, _, text in sorted(surest, key=lambda tree: tree[1])]
