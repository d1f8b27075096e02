"""Translate sentences with any engine: cut, search, join, finish.

Imports no TensorFlow, so that an engine without it starts at once.
"""

from __future__ import annotations

import abc
import dataclasses
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from t2t_repro.data.problem import Problem, TargetGrammar
from t2t_repro.decoding.hypothesis import (
    Hypothesis,
    rank_by_expected_similarity,
    with_consensus,
)
from t2t_repro.decoding.source_pieces import (
    Piece,
    check_prefix_lengths,
    cut,
    encode_prefixes,
    parts_of_chunk,
    pieces_of_sentences,
    report_cuts,
    with_words,
)
from t2t_repro.errors import UserError
from t2t_repro.settings.decode_hparams import DecodeHParams
from t2t_repro.text.lines import is_blank, listed
from t2t_repro.text.tokenizer import Tokenizer

MIN_LONGEST_PIECE = 8  # tokens, with EOS
CHUNK_SIZE = 1024  # sentences; about 16 batches of the default size
LONG_LINE = 4  # batches; a line that fills more does not delay those before it


def longest_piece(max_input_length: int) -> int:
    """Return the number of source tokens to translate at once, without EOS.

    Args:
        max_input_length: Longest source that the model reads, including EOS.
    """
    return max(max_input_length, MIN_LONGEST_PIECE) - 1


def followed_grammar(
    hparams: DecodeHParams, problem: Problem, tokenizer: Tokenizer
) -> TargetGrammar | None:
    """Return the grammar that a search follows, or None if it follows none.

    Args:
        hparams: Settings of the search.
        problem: Problem that may have a grammar.
        tokenizer: Tokenizer of the targets.

    Raises:
        UserError: If the hparams follow a grammar that the problem does not have.
    """
    if not hparams.follows_grammar:
        return None
    grammar = problem.target_grammar(tokenizer)
    if grammar is None:
        raise UserError(
            f"received constrain={hparams.constrain} without a grammar of the outputs: "
            "use constrain=none, or let the problem's `target_grammar` return one."
        )
    return grammar


class SentenceTranslator(abc.ABC):
    """Base of the translators; a subclass searches batches of pieces.

    Args:
        source_tokenizer: Tokenizer of the inputs.
        target_tokenizer: Tokenizer of the outputs.
        hparams: See `DecodeHParams`.
        max_input_length: Longest source in tokens, including EOS, to translate in one
            piece. A longer one is cut, and the translations of its pieces are joined.
        problem: Problem that defines the forms of sentences and translations; by
            default, users write and read the text of the model.

    Raises:
        UserError: If the hparams follow a grammar or ask for a consensus, and the
            problem has none.
    """

    def __init__(
        self,
        source_tokenizer: Tokenizer,
        target_tokenizer: Tokenizer,
        hparams: DecodeHParams,
        max_input_length: int,
        problem: Problem | None = None,
    ) -> None:
        self.problem = problem or Problem()
        self.grammar = followed_grammar(hparams, self.problem, target_tokenizer)
        if hparams.mbr_consensus and not self.problem.has_consensus:
            raise UserError(
                "received mbr_consensus=true, but the outputs of this problem cannot "
                "be combined: leave it out, so that mbr_scale chooses one of them."
            )
        self.source_tokenizer = source_tokenizer
        self.target_tokenizer = target_tokenizer
        self.hparams = hparams
        self._longest_piece = longest_piece(max_input_length)

    @abc.abstractmethod
    def _search_batches(
        self, pieces: list[Piece]
    ) -> Iterator[tuple[list[int], list[list[Hypothesis]]]]:
        """Search for translations of pieces, batch by batch, in any order.

        Args:
            pieces: The pieces.

        Yields:
            The numbers of the pieces of a batch, and their hypotheses, best first.
        """

    def translate(
        self,
        sentences: Iterable[str],
        advance: Callable[[int], object] = lambda count: None,
        *,
        prefixes: Sequence[str] | None = None,
        first: int = 0,
        reports_cuts: bool = True,
    ) -> list[list[Hypothesis]]:
        """Translate sentences, all batched together.

        Args:
            sentences: Source texts, any iterable. A blank one, or one without tokens,
                has an empty translation.
            advance: Called with the number of sentences completed since the last call.
            prefixes: Text that each translation must begin with, in the form that the
                model writes; an empty one forces nothing. If a source is cut into
                pieces, the translation of the first piece begins with it.
            first: Number of the first sentence in the whole input, for messages and
                random numbers.
            reports_cuts: Whether to log which sentences are cut into pieces.

        Returns:
            The hypotheses of each sentence, best first: `beam_size` of them if the
            hparams' `return_beams` is set (fewer if fewer exist), else one. With
            `mbr_scale`, the best has the highest expected similarity. With
            `prefer_unrepaired`, repaired hypotheses rank below the others. With
            `mbr_consensus`, the text of the best is what they all agree on.

        Raises:
            UserError: If the numbers of sentences and prefixes differ, or a prefix is
                too long or has a token that the model cannot write.
        """
        sentences = _texts_with_blanks_emptied(sentences)
        pieces = self._encode(sentences, prefixes, first)
        if reports_cuts:
            report_cuts(pieces, self._longest_piece)
        return self._translate_chunk(sentences, pieces, first, advance)

    def count_cut(self, sentences: Sequence[str]) -> int:
        """Return the number of sentences that are translated in several pieces."""
        return sum(
            p.part == 1
            for p in self._encode(_texts_with_blanks_emptied(sentences), None, 0)
        )

    def stream(
        self,
        sentences: Iterable[str],
        advance: Callable[[int], object] = lambda count: None,
        chunk_size: int = CHUNK_SIZE,
        *,
        prefixes: Sequence[str] | None = None,
        first: int = 0,
    ) -> Iterator[list[Hypothesis]]:
        """Translate sentences chunk by chunk; the results are those of `translate`.

        Args:
            sentences: See `translate`.
            advance: See `translate`.
            chunk_size: Sentences that are sorted and batched together, but those before
                a very long one are translated first.
            prefixes: See `translate`. All are checked before the first translation.
            first: See `translate`.

        Yields:
            The hypotheses of each sentence, in order.

        Raises:
            UserError: See `translate`.
        """
        sentences = listed(sentences, "sentences")
        every: list[Piece] = []
        if prefixes is not None:
            every = self._encode(_texts_with_blanks_emptied(sentences), prefixes, first)
        for start in range(0, len(sentences), chunk_size):
            chunk = _texts_with_blanks_emptied(sentences[start : start + chunk_size])
            if prefixes is None:
                pieces = self._encode(chunk, None, first + start)
            else:
                pieces = pieces_of_sentences(
                    every, first + start, first + start + len(chunk)
                )
            report_cuts(pieces, self._longest_piece)
            limit = LONG_LINE * self.hparams.batch_size
            for part, own in parts_of_chunk(pieces, len(chunk), first + start, limit):
                number = first + start + part.start
                yield from self._translate_chunk(chunk[part], own, number, advance)

    def _encode(
        self, sentences: Sequence[str], prefixes: Sequence[str] | None, first: int
    ) -> list[Piece]:
        """Return the pieces of all sentences, in order."""
        normalized = [*map(self.problem.normalize_source, sentences)]
        sources = self.source_tokenizer.encode_batch(normalized)
        forced: list[list[int]] = [[] for _ in sentences]
        if prefixes is not None:
            forced = encode_prefixes(
                self.target_tokenizer, prefixes, len(sentences), first
            )
        pieces = []
        for number, ids in enumerate(sources):
            parts = cut(ids, self._longest_piece, first + number, forced[number])
            if self.grammar is not None:
                kinds = self.grammar.word_kinds(normalized[number])
                spans = self.source_tokenizer.word_spans(ids)
                parts = with_words(parts, kinds, [start for start, _ in spans])
            pieces += parts
        check_prefix_lengths(pieces, self.hparams.extra_length)
        return pieces

    def _translate_chunk(
        self,
        sentences: Sequence[str],
        pieces: list[Piece],
        first: int,
        advance: Callable[[int], object],
    ) -> list[list[Hypothesis]]:
        """Translate pieces, and join those of each sentence."""
        found: dict[int, list[list[Hypothesis]]] = {}
        translated = self._translate_pieces(pieces, advance)
        for piece, hypotheses in zip(pieces, translated, strict=True):
            found.setdefault(piece.sentence, []).append(hypotheses)
        advance(len(sentences) - len(found))
        nothing = [[Hypothesis("", 0.0)]]
        return [
            self._finish(sentence, found.get(number, nothing))
            for number, sentence in enumerate(sentences, start=first)
        ]

    def _finish(
        self, sentence: str, pieces: list[list[Hypothesis]]
    ) -> list[Hypothesis]:
        finished = []
        for hypothesis in _join(pieces):
            output = self.problem.postprocess(sentence, hypothesis.text)
            finished.append(
                dataclasses.replace(
                    hypothesis, text=output.text, repairs=output.repairs
                )
            )
        if self.hparams.mbr_scale:
            finished = rank_by_expected_similarity(
                finished, self.hparams.mbr_scale, self.problem.similarities
            )
        if self.hparams.prefer_unrepaired:
            finished.sort(key=lambda hypothesis: bool(hypothesis.repairs))
        if self.hparams.mbr_consensus:
            finished = with_consensus(
                finished, self.hparams.mbr_scale, self.problem.consensus
            )
        return finished if self.hparams.return_beams else finished[:1]

    def _translate_pieces(
        self, pieces: list[Piece], advance: Callable[[int], object]
    ) -> list[list[Hypothesis]]:
        """Translate pieces.

        Args:
            pieces: The pieces.
            advance: Called after every batch with the number of sentences that it
                completed.
        """
        results: list[list[Hypothesis]] = [[] for _ in pieces]
        left = Counter(piece.sentence for piece in pieces)
        for numbers, found in self._search_batches(pieces):
            for number, hypotheses in zip(numbers, found, strict=True):
                results[number] = hypotheses
            before = len(left)
            left -= Counter(pieces[number].sentence for number in numbers)
            advance(before - len(left))
        return results


def _texts_with_blanks_emptied(sentences: Iterable[str]) -> list[str]:
    """Return the sentences, blank ones as ""; raise ValueError if one is not text.

    A blank sentence has no tokens, but a problem's `postprocess` may put the
    words of the source into its output.
    """
    texts = listed(sentences, "sentences")
    return ["" if is_blank(text) else text for text in texts]


def _join(pieces: list[list[Hypothesis]]) -> list[Hypothesis]:
    """Join the pieces of a sentence, best with best, second with second.

    The result has as many hypotheses as the piece with the fewest.
    """
    if len(pieces) == 1:
        return pieces[0]
    return [
        Hypothesis(
            " ".join(h.text for h in row),
            sum(h.score for h in row),
            ids=tuple(token for h in row for token in h.ids),
            pieces=len(row),
        )
        for row in zip(*pieces, strict=False)
    ]
