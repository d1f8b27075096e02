"""The translations of a service, whatever interface asks for them."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Sequence
from typing import Any

from t2t_repro.decoding.hypothesis import Hypothesis
from t2t_repro.errors import unknown_name
from t2t_repro.features.serving.request_batches import LONG_SENTENCE, Batches, Task
from t2t_repro.features.serving.served_models import ServedModel
from t2t_repro.features.serving.service_metrics import ServiceMetrics
from t2t_repro.features.serving.service_settings import ServiceError, ServiceSettings
from t2t_repro.settings.decode_hparams import DecodeHParams

Found = asyncio.Future[list[Hypothesis]]


class Service:
    """Models, the queue before them, and their figures.

    Args:
        models: The models, with different names.
        settings: Limits.
    """

    def __init__(
        self, models: Sequence[ServedModel], settings: ServiceSettings
    ) -> None:
        self.models = {model.name: model for model in models}
        self.settings = settings
        self.metrics = ServiceMetrics(lambda: self.batches.waiting)
        self.batches = Batches(settings, self.metrics.observe_batch)
        self.is_stopping = False

    def model(self, name: str) -> ServedModel:
        """Return a model by its name.

        Raises:
            ServiceError: If there is none.
        """
        if name not in self.models:
            how = f"This server has {', '.join(self.models)}."
            error = unknown_name("model", name[:80], self.models, how)
            raise ServiceError(404, str(error))
        return self.models[name]

    def translations(
        self,
        model: ServedModel,
        texts: Sequence[str],
        hparams: DecodeHParams,
        prefixes: Sequence[str] | None = None,
    ) -> list[Found]:
        """Queue texts for translation.

        Args:
            model: One of `models`.
            texts: Sentences; a text is not split.
            hparams: Settings that `model.settings` returned.
            prefixes: Text that each translation must begin with.

        Returns:
            The future hypotheses of each text.

        Raises:
            ServiceError: If there are too many, or the queue is full.
        """
        limit = self.settings.max_texts
        if len(texts) > limit:
            raise ServiceError(
                413,
                f"received {len(texts):,} sentences, expected at most {limit:,}: send "
                "them in several requests.",
            )
        self.batches.admit(len(texts))
        if prefixes is not None or hparams.samples:
            return self._queue_alone(model, texts, hparams, prefixes)
        found: list[Found] = [asyncio.Future()] * len(texts)
        for is_long in (False, True):
            numbers = [n for n, text in enumerate(texts) if _is_long(text) == is_long]
            if numbers:
                run = functools.partial(self._translate, model, hparams)
                task = Task((model.name, hparams, is_long), run, is_long)
                futures = self.batches.submit(task, [texts[n] for n in numbers])
                for number, future in zip(numbers, futures, strict=True):
                    found[number] = future
        return found

    def _queue_alone(
        self,
        model: ServedModel,
        texts: Sequence[str],
        hparams: DecodeHParams,
        prefixes: Sequence[str] | None,
    ) -> list[Found]:
        """Queue texts that share no batch with those of other requests.

        A sample depends on the number of its text in the request, and a prefix that
        cannot be followed fails its batch.
        """

        def run(numbers: Sequence[int]) -> list[list[Hypothesis]]:
            first, end = numbers[0], numbers[-1] + 1
            chosen = None if prefixes is None else prefixes[first:end]
            return self._translate(model, hparams, texts[first:end], chosen, first)

        is_long = any(map(_is_long, texts))
        return self.batches.submit(Task(object(), run, is_long), range(len(texts)))

    def _translate(
        self,
        model: ServedModel,
        hparams: DecodeHParams,
        texts: Sequence[str],
        prefixes: Sequence[str] | None = None,
        first: int = 0,
    ) -> list[list[Hypothesis]]:
        """Translate in a thread."""
        found = model.translate(texts, hparams, prefixes, first)
        tokens = sum(len(hypotheses[0].ids) for hypotheses in found if hypotheses)
        self.metrics.sentences.labels(model.name).inc(len(texts))
        self.metrics.tokens.labels(model.name).inc(tokens)
        return found

    def pairs(
        self, model: ServedModel, signature: str, pairs: Sequence[tuple[str, str]]
    ) -> asyncio.Future[dict[str, Any]]:
        """Queue pairs for a signature of pairs; see `ServedModel.pairs`."""
        answer = functools.partial(model.pairs, signature, pairs)
        return self._queue_long(answer, len(pairs))

    def attention(
        self, model: ServedModel, source: str, target: str | None
    ) -> asyncio.Future[dict[str, Any]]:
        """Queue a sentence for `ServedModel.attention_document`."""
        answer = functools.partial(model.attention_document, source, target)
        return self._queue_long(answer, 1)

    def _queue_long(
        self, answer: Callable[[], dict[str, Any]], sentences: int
    ) -> asyncio.Future[dict[str, Any]]:
        """Queue an answer that takes long and shares no batch."""
        self.batches.admit(sentences)

        def run(items: Sequence[None]) -> list[dict[str, Any]]:
            return [answer() for _ in items]

        return self.batches.submit(Task(object(), run, is_long=True), [None])[0]


async def all_found(futures: Sequence[Found]) -> list[list[Hypothesis]]:
    """Return the hypotheses of all texts; if one fails, the others leave the queue."""
    try:
        return await asyncio.gather(*futures)
    finally:
        for future in futures:
            future.cancel()


def _is_long(text: str) -> bool:
    return len(text) > LONG_SENTENCE // 4 and len(text.encode()) > LONG_SENTENCE
