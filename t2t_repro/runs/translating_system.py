"""A trained system that translates, whatever its engine; imports no TensorFlow."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar

from t2t_repro.data.problem import Problem
from t2t_repro.decoding.hypothesis import Hypothesis, count_repairs
from t2t_repro.decoding.problem_defaults import with_problem_defaults
from t2t_repro.decoding.sentences import SentenceTranslator
from t2t_repro.errors import UsageError
from t2t_repro.recently_used import RecentlyUsed
from t2t_repro.settings.decode_hparams import DecodeHParams
from t2t_repro.text.lines import as_line, check_same_length, listed
from t2t_repro.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    # At run time, problems import the metrics when they score.
    from t2t_repro.translation_scores import Scores

MAX_TRANSLATORS = 16  # per system, whose users may ask for any settings


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """Outputs of a system for given sources, and their scores.

    Attributes:
        scores: Scores against the references.
        hypotheses: Best output per source, each on one line.
        repaired: Number of outputs that were repaired.
        repairs: Number of outputs per kind of repair, most frequent first.
    """

    scores: Scores
    hypotheses: list[str]
    repaired: int
    repairs: dict[str, int]


class TranslatingSystem(abc.ABC):
    """Tokenizers and a problem around a trained model; a subclass has the model.

    Args:
        problem: The problem that the model was trained on.
        tokenizers: Tokenizers of the inputs and of the targets.
        checkpoint: Path of the checkpoint.

    Attributes:
        follows_grammar: Whether its engine can follow a grammar.
    """

    follows_grammar: ClassVar[bool] = True

    def __init__(
        self,
        problem: Problem,
        tokenizers: tuple[Tokenizer, Tokenizer],
        checkpoint: str,
    ) -> None:
        self.problem = problem
        self.source_tokenizer, self.target_tokenizer = tokenizers
        self.checkpoint = checkpoint
        self._translators = RecentlyUsed[SentenceTranslator](MAX_TRANSLATORS)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.checkpoint}, {self.problem.name}>"

    @property
    @abc.abstractmethod
    def max_input_length(self) -> int:
        """Longest source that the model reads at once, in tokens with EOS."""

    @property
    @abc.abstractmethod
    def data_dir(self) -> str | None:
        """Folder of the prepared data of the training run, or None if it is unknown."""

    @property
    def engine_report(self) -> dict[str, str]:
        """Facts about the engine for the report of an evaluation; empty without one."""
        return {}

    @abc.abstractmethod
    def _new_translator(self, hparams: DecodeHParams) -> SentenceTranslator:
        """Make a translator of the model.

        Args:
            hparams: Settings of the search, with the problem's defaults.
        """

    def with_problem_defaults(self, hparams: DecodeHParams) -> DecodeHParams:
        """Use the problem's defaults for settings that the user did not give.

        Raises:
            UsageError: If a given setting would have no effect or cannot work.
        """
        return with_problem_defaults(
            hparams,
            self.problem,
            self.max_input_length,
            follows_grammar=self.follows_grammar,
        )

    def translator(
        self, decode_hparams: DecodeHParams | None = None
    ) -> SentenceTranslator:
        """Return a translator of the model; equal settings share one.

        The system keeps those that were used last. Threads may call it, and share its
        translators.

        Raises:
            UserError: If the engine cannot load the model.
            UsageError: See `with_problem_defaults`; or if the engine does not follow a
                setting.
        """
        hparams = self.with_problem_defaults(decode_hparams or DecodeHParams())
        return self._translators.get(hparams, lambda: self._new_translator(hparams))

    def translate(
        self, sentences: Iterable[str], decode_hparams: DecodeHParams | None = None
    ) -> list[str]:
        """Return the best translation of each sentence.

        Args:
            sentences: Sources: a list, an array, a generator or another iterable.
            decode_hparams: Settings of the search.

        Raises:
            ValueError: If `sentences` is one string, or an item is not a string.
        """
        translated = self.translator(decode_hparams).translate(sentences)
        return [hypotheses[0].text for hypotheses in translated]

    def hypotheses(
        self,
        sentences: Iterable[str],
        decode_hparams: DecodeHParams | None = None,
        advance: Callable[[int], object] = lambda count: None,
        *,
        prefixes: Sequence[str] | None = None,
        first: int = 0,
    ) -> Iterator[list[Hypothesis]]:
        """Yield the hypotheses of each sentence, best first, chunk by chunk.

        Args:
            sentences: Sources.
            decode_hparams: Settings of the search.
            advance: Called with the number of sentences completed since the last call.
            prefixes: Text that each translation must begin with; see
                `SentenceTranslator.translate`.
            first: Number of the first sentence in the whole input, on which random
                translations depend.

        Raises:
            UserError: If a prefix cannot be followed.
            UsageError: See `translator`; or if there are prefixes, and the engine
                follows none.
        """
        translator = self.translator(decode_hparams)
        return translator.stream(sentences, advance, prefixes=prefixes, first=first)

    def warm_up(self, decode_hparams: DecodeHParams | None = None) -> None:
        """Translate once, because the first translation of a process is slow.

        TensorFlow traces the search, or the engine loads the model.
        """
        self.translator(decode_hparams).translate(["."])

    def evaluate(
        self,
        sources: Iterable[str],
        references: Iterable[str],
        decode_hparams: DecodeHParams | None = None,
        advance: Callable[[int], object] = lambda count: None,
        *,
        other_references: Sequence[Sequence[str]] = (),
    ) -> Evaluation:
        """Translate sources and score the translations.

        Args:
            sources: Sources.
            references: One reference per source.
            decode_hparams: Settings of the search.
            advance: Called with the number of sentences completed since the last call.
            other_references: Further references, in streams of one per source.

        Raises:
            UserError: If the numbers of sources and references differ, or are zero.
            UsageError: See `translator`; or if there are several references, and the
                problem is not scored by BLEU.
        """
        sources = listed(sources, "sources")
        references = listed(references, "references")
        self._check_references(sources, [references, *other_references])
        translated = self.hypotheses(sources, decode_hparams, advance)
        best = [hypotheses[0] for hypotheses in translated]
        hypotheses = [as_line(hypothesis.text) for hypothesis in best]
        return Evaluation(
            scores=self._score(hypotheses, references, other_references),
            hypotheses=hypotheses,
            repaired=sum(bool(hypothesis.repairs) for hypothesis in best),
            repairs=count_repairs(best),
        )

    def _score(
        self,
        hypotheses: Sequence[str],
        references: Sequence[str],
        other_references: Sequence[Sequence[str]],
    ) -> Scores:
        if not other_references:
            return self.problem.score(hypotheses, references)
        from t2t_repro.translation_scores import score_translations

        tokenizer = self.problem.tokenizer_for(references)
        return score_translations(hypotheses, references, tokenizer, other_references)

    def _check_references(
        self, sources: Sequence[str], streams: Sequence[Sequence[str]]
    ) -> None:
        if len(streams) > 1 and not self.problem.scores_bleu:
            raise UsageError(
                f"received {len(streams)} references for problem {self.problem.name}, "
                "whose outputs have one: give one."
            )
        for references in streams:
            check_same_length(sources, references)
