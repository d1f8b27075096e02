"""The models of a service: runs, CTranslate2 exports and SavedModels, alike.

Imports TensorFlow only for a model that needs it.
"""

from __future__ import annotations

import abc
import functools
import re
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from t2t_repro import features
from t2t_repro.decoding.hypothesis import Hypothesis
from t2t_repro.errors import UsageError, UserError
from t2t_repro.runs.translating_system import TranslatingSystem
from t2t_repro.settings.decode_hparams import DecodeHParams

if TYPE_CHECKING:
    from t2t_repro.runs.system import System

TRANSLATE, N_BEST, SCORE, ATTENTION = "serving_default", "n_best", "score", "attention"

# Scores of places without a hypothesis are about -1e9.
_EMPTY = -5e8
_LANGUAGES = re.compile(r"([a-z]{2,3}(?:-[A-Z][A-Za-z]+)?)-([a-z]{2,3}(?:-[A-Z]\w+)?)")

Languages = tuple[str | None, str | None]


def languages_in(name: str) -> Languages:
    """Return the languages that a name such as "en-de" names, else None for each."""
    match = _LANGUAGES.fullmatch(name)
    return (match[1], match[2]) if match else (None, None)


class ServedModel(abc.ABC):
    """A model of a service.

    Args:
        name: Name in requests.
        languages: Codes of the languages of its sources and translations, if known.
        hparams: Settings of the search, which a request may change.

    Attributes:
        engine: "tensorflow", "ctranslate2" or "saved_model".
    """

    engine: str

    def __init__(self, name: str, languages: Languages, hparams: DecodeHParams) -> None:
        self.name = name
        self.source_language, self.target_language = languages
        self.hparams = hparams.replace(return_beams=False, write_beam_scores=False)

    @property
    @abc.abstractmethod
    def signatures(self) -> tuple[str, ...]:
        """Names of TensorFlow Serving's signatures that it answers."""

    @property
    def shows_attention(self) -> bool:
        """Whether it has documents of attention; see `attention_document`."""
        return False

    @abc.abstractmethod
    def settings(self, hparams: DecodeHParams) -> DecodeHParams:
        """Complete and check the settings of a request.

        Raises:
            UsageError: If the model cannot follow one.
        """

    @abc.abstractmethod
    def translate(
        self,
        texts: Sequence[str],
        hparams: DecodeHParams,
        prefixes: Sequence[str] | None = None,
        first: int = 0,
    ) -> list[list[Hypothesis]]:
        """Return the hypotheses of each text, best first.

        Args:
            texts: Sentences.
            hparams: From `settings`.
            prefixes: Text that each translation must begin with.
            first: Number of the first text in its request, for random translations.
        """

    @abc.abstractmethod
    def pairs(self, signature: str, pairs: Sequence[tuple[str, str]]) -> dict[str, Any]:
        """Return the outputs of the signature "score" or "attention" for pairs.

        Args:
            signature: One of `signatures`.
            pairs: Sources and translations.

        Returns:
            Arrays `[batch, ...]` by name.
        """

    def attention_document(self, source: str, target: str | None) -> dict[str, Any]:
        """Return what the view of attention shows for a source and its translation.

        Raises:
            UserError: If a text has no words or is too long for the model.
        """
        raise NotImplementedError

    @abc.abstractmethod
    def warm_up(self) -> None:
        """Translate once, because the first translation is slow."""


class ServedSystem(ServedModel):
    """A run, in TensorFlow or CTranslate2.

    Args:
        name: See `ServedModel`.
        system: The trained system.
        hparams: See `ServedModel`.
    """

    def __init__(
        self, name: str, system: TranslatingSystem, hparams: DecodeHParams
    ) -> None:
        problem = system.problem
        own = problem.source_language, problem.target_language
        super().__init__(name, languages_in(name) if None in own else own, hparams)
        self._system = system
        self.engine = system.engine_report.get("engine", "tensorflow")
        self._lock = threading.Lock()

    @property
    def signatures(self) -> tuple[str, ...]:
        if self.engine != "tensorflow":
            return (TRANSLATE, N_BEST)
        single = (ATTENTION,) if self.shows_attention else ()
        return (TRANSLATE, N_BEST, SCORE, *single)

    @property
    def shows_attention(self) -> bool:
        if self.engine != "tensorflow":
            return False  # without an import of TensorFlow
        from t2t_repro.decoding.translator import members

        return len(members(self._model)) == 1

    def settings(self, hparams: DecodeHParams) -> DecodeHParams:
        if hparams is self.hparams:  # as almost always
            return hparams
        found = self._system.with_problem_defaults(hparams)
        self._system.translator(found)
        return found

    def translate(
        self,
        texts: Sequence[str],
        hparams: DecodeHParams,
        prefixes: Sequence[str] | None = None,
        first: int = 0,
    ) -> list[list[Hypothesis]]:
        translator = self._system.translator(hparams)
        return translator.translate(
            texts, prefixes=prefixes, first=first, reports_cuts=False
        )

    def pairs(self, signature: str, pairs: Sequence[tuple[str, str]]) -> dict[str, Any]:
        sources, targets = zip(*pairs, strict=True)
        normalize = self._system.problem.normalize_source
        return _call(
            self._pair_functions[signature], [*map(normalize, sources)], targets
        )

    def attention_document(self, source: str, target: str | None) -> dict[str, Any]:
        with self._lock:  # it runs eagerly, on all cores
            found = self._trained.attention(source, target, self.hparams)
        return found.to_document()

    def warm_up(self) -> None:
        self._system.warm_up(self.hparams)
        if self.hparams.beam_size > 1:
            # A search for all hypotheses is another graph.
            self._system.warm_up(self.hparams.replace(return_beams=True))

    @property
    def _trained(self) -> System:
        return cast("System", self._system)

    @property
    def _model(self) -> Any:
        return self._trained.model

    @functools.cached_property
    def _pair_functions(self) -> dict[str, Any]:
        """The functions that an export would have, so that answers are the same."""
        import tensorflow as tf

        scored_pairs = features.load("saved_model", "scored_pairs")
        system = self._system
        pairs = scored_pairs.ScoredPairs(
            self._model,
            system.source_tokenizer.in_graph(),
            system.target_tokenizer.in_graph(),
            system.max_input_length,
            self.hparams.batch_size,
        )
        functions = {SCORE: pairs.score, ATTENTION: pairs.attention}
        return {
            name: tf.function(function, input_signature=scored_pairs.PAIRS)
            for name, function in functions.items()
        }


def _call(function: Any, inputs: Sequence[str], targets: Sequence[str]) -> dict:
    import tensorflow as tf

    found = function(inputs=tf.constant(inputs), targets=tf.constant(targets))
    return {name: tensor.numpy() for name, tensor in found.items()}


class ServedExport(ServedModel):
    """A SavedModel that `t2t export` wrote, whose search is fixed.

    Args:
        name: See `ServedModel`.
        export_dir: Its folder.

    Raises:
        UserError: If TensorFlow cannot load it, or it is another program's.
    """

    engine = "saved_model"

    def __init__(self, name: str, export_dir: str | Path) -> None:
        import tensorflow as tf
        import tensorflow_text  # noqa: F401  (the operations of the tokenizers)

        super().__init__(name, languages_in(name), DecodeHParams())
        try:
            self._export = tf.saved_model.load(str(export_dir))
        except (OSError, ValueError, RuntimeError, tf.errors.OpError) as error:
            reason = str(error).splitlines()[0]
            raise UserError(f"TensorFlow cannot load {export_dir}: {reason}") from error
        if not {TRANSLATE, N_BEST} <= {*self._export.signatures}:
            found = ", ".join(self._export.signatures) or "none"
            raise UserError(
                f"received {export_dir} with the signatures {found}, expected a "
                f"SavedModel of `t2t export`, which has {TRANSLATE} and {N_BEST}."
            )

    @property
    def signatures(self) -> tuple[str, ...]:
        return tuple(
            name
            for name in (TRANSLATE, N_BEST, SCORE, ATTENTION)
            if name in self._export.signatures
        )

    def settings(self, hparams: DecodeHParams) -> DecodeHParams:
        changed = {*DecodeHParams().diff(hparams)} - {"return_beams"}
        if changed:
            raise UsageError(
                f"{hparams.argument()}: received {', '.join(sorted(changed))}, but the "
                "search of a SavedModel is fixed when it is exported."
            )
        return hparams

    def translate(
        self,
        texts: Sequence[str],
        hparams: DecodeHParams,
        prefixes: Sequence[str] | None = None,
        first: int = 0,
    ) -> list[list[Hypothesis]]:
        if prefixes is not None:
            raise UsageError("a SavedModel does not follow target prefixes.")
        import tensorflow as tf

        signature = self._export.signatures[
            N_BEST if hparams.return_beams else TRANSLATE
        ]
        found = signature(tf.constant([*texts]))
        outputs, scores = found["outputs"].numpy(), found["scores"].numpy()
        rows = len(texts)
        return [
            [
                Hypothesis(text.decode(), float(score))
                for text, score in zip(*row, strict=True)
                if score > _EMPTY
            ]
            for row in zip(
                outputs.reshape(rows, -1), scores.reshape(rows, -1), strict=True
            )
        ]

    def pairs(self, signature: str, pairs: Sequence[tuple[str, str]]) -> dict[str, Any]:
        sources, targets = zip(*pairs, strict=True)
        return _call(self._export.signatures[signature], sources, targets)

    def warm_up(self) -> None:
        for returns_beams in (False, True):
            self.translate(["."], self.hparams.replace(return_beams=returns_beams))
