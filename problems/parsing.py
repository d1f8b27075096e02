"""Constituency parsing: words in, a bracketed tree out (section 6.3)."""

from __future__ import annotations

from t2t_repro.features.parsing.tree_problem import TreeFileProblem
from t2t_repro.registry import register_problem


@register_problem
class ParsingPtb(TreeFileProblem):
    """Your own treebank: one file of trees per split, parts of speech as XX.

    Traces, constituents that hold nothing else, and function tags are left out.
    """


@register_problem
class ParsingPtbTags(TreeFileProblem):
    """As parsing_ptb, but with the parts of speech, as in tensor2tensor."""

    leaves = "tag"


@register_problem
class ParsingPtbInitials(TreeFileProblem):
    """As parsing_ptb_tags, but each part of speech follows the initial of its word.

    `(NP t/DT c/NN )NP` for (NP (DT the) (NN cat)). Differs from Vinyals et al. 2015,
    who leave the words out. Then a model knows which word is next only by counting
    leaves, which it learns last. To write an initial, it must find the next word from
    the beginning of training. If it still skips a word, the leaves after that word
    keep theirs.
    """

    leaves = "initial"
