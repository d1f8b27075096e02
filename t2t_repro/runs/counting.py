"""The tokens that count words and open brackets."""

from __future__ import annotations

from t2t_repro.errors import UserError
from t2t_repro.models.token_counters import TokenCounter, TokenCounters
from t2t_repro.text.bracket_grammar import BracketGrammar
from t2t_repro.text.tokenizer import Tokenizer


def token_counters(
    source: Tokenizer,
    target: Tokenizer,
    grammar: BracketGrammar | None,
    *,
    words: bool,
    depth: bool,
) -> TokenCounters:
    """Return counters of the words on both sides and of a target's open brackets.

    Args:
        source: Tokenizer of the inputs.
        target: Tokenizer of the targets.
        grammar: Grammar of the targets, if they have one. Its leaves represent the
            words; its brackets represent none.
        words: Whether to count words.
        depth: Whether to count open brackets.

    Raises:
        UserError: If open brackets are to be counted, and there is no grammar.
    """
    of_source, of_target = [], []
    if words:
        begins = target.word_starts() if grammar is None else _leaves(grammar)
        of_source.append(TokenCounter(source.word_starts()))
        of_target.append(TokenCounter(begins))
    if depth:
        if grammar is None:
            raise UserError(
                "received depth_positions=True, expected False: the problem's targets "
                "have no brackets."
            )
        opening, closing = zip(*grammar.brackets, strict=True)
        of_target.append(TokenCounter(opening, closing))
    return TokenCounters(tuple(of_source), tuple(of_target))


def _leaves(grammar: BracketGrammar) -> tuple[int, ...]:
    return tuple(sorted({token for leaves in grammar.leaves for token in leaves}))
