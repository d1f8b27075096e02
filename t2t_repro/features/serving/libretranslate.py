"""LibreTranslate's interface: `/translate`, `/languages`, `/detect`.

Differs from LibreTranslate: nothing detects a language, and a request may have `model`,
`decode_hparams`, `target_prefix` and `stream`.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from t2t_repro.decoding.hypothesis import Hypothesis
from t2t_repro.errors import UserError
from t2t_repro.features.serving.request_bodies import (
    as_text,
    check_texts,
    search_settings,
)
from t2t_repro.features.serving.served_models import ServedModel
from t2t_repro.features.serving.service import Found, Service, all_found
from t2t_repro.features.serving.service_settings import FAILED, ServiceError, expected
from t2t_repro.features.serving.text_segments import SegmentedText
from t2t_repro.settings.decode_hparams import DecodeHParams

logger = logging.getLogger(__name__)

# The languages of the papers and of Multi30k; clients show other codes as they are.
_LANGUAGE_NAMES = {
    "ar": "Arabic",
    "cs": "Czech",
    "de": "German",
    "en": "English",
    "es": "Spanish",
    "fi": "Finnish",
    "fr": "French",
    "hi": "Hindi",
    "it": "Italian",
    "ja": "Japanese",
    "ko": "Korean",
    "nl": "Dutch",
    "pl": "Polish",
    "pt": "Portuguese",
    "ro": "Romanian",
    "ru": "Russian",
    "sv": "Swedish",
    "tr": "Turkish",
    "uk": "Ukrainian",
    "zh": "Chinese",
}
_AUTO = "auto"


def languages(models: Mapping[str, ServedModel]) -> list[dict[str, Any]]:
    """Return the source languages, each with the languages it is translated into."""
    targets: dict[str, list[str]] = {}
    for model in models.values():
        source, target = model.source_language, model.target_language
        if source and target and target not in targets.setdefault(source, []):
            targets[source].append(target)
    codes = dict.fromkeys([*targets, *(t for ts in targets.values() for t in ts)])
    return [
        {
            "code": code,
            "name": _LANGUAGE_NAMES.get(code, code),
            "targets": targets.get(code, []),
        }
        for code in codes
    ]


def chosen_model(service: Service, body: Mapping[str, Any]) -> ServedModel:
    """Return the model that a request names, or that has its languages.

    Raises:
        ServiceError: If there is none.
    """
    if "model" in body:
        return service.model(as_text(body["model"], "model"))
    source = as_text(body.get("source", _AUTO), "source")
    target = as_text(body.get("target", ""), "target")
    models = service.models.values()
    found = [
        model
        for model in models
        if model.target_language == target and source in (model.source_language, _AUTO)
    ]
    if len({model.source_language for model in found}) == 1:
        return found[0]
    known = [
        f"{model.source_language} to {model.target_language}"
        for model in models
        if model.source_language
    ]
    raise expected(
        f"{source} to {target}",
        " or ".join(known)
        or "a model by its name, because no model here has known languages (serve it "
        "with a name such as en-de)",
    )


@dataclasses.dataclass(frozen=True)
class TranslateRequest:
    """A request of `/translate`, checked.

    Attributes:
        model: The model.
        texts: The texts.
        is_list: Whether they came as a list.
        alternatives: Number of further translations of each text.
        hparams: Settings of the search.
        prefix: Text that the translation begins with, or None.
        streams: Whether the answer is sent sentence by sentence.
    """

    model: ServedModel
    texts: list[str]
    is_list: bool
    alternatives: int
    hparams: DecodeHParams
    prefix: str | None
    streams: bool

    @classmethod
    def parse(cls, service: Service, body: Mapping[str, Any]) -> TranslateRequest:
        """Check the fields of a request.

        Raises:
            ServiceError: If one is missing or refused.
            UserError: If a setting of the search is refused.
        """
        if "q" not in body:
            raise expected([*body], "the text in the field q")
        is_list = isinstance(body["q"], list)
        given = body["q"] if is_list else [body["q"]]
        texts = [as_text(text, "q") for text in given]
        check_texts(texts, service.settings)
        format_ = body.get("format", "text")
        if format_ != "text":
            raise expected(format_, "the format text, the only one here")
        streams = str(body.get("stream", False)).lower() in ("true", "1")
        prefix = body.get("target_prefix")
        if (streams or prefix is not None) and is_list:
            raise ServiceError(
                400,
                "received a list as q, expected one text with stream or target_prefix.",
            )
        model = chosen_model(service, body)
        alternatives = _alternatives(body, service.settings.max_beam_size)
        hparams = _hparams(service, model, body, alternatives)
        prefix = None if prefix is None else as_text(prefix, "target_prefix")
        return cls(model, texts, is_list, alternatives, hparams, prefix, streams)


def _alternatives(body: Mapping[str, Any], max_beam_size: int) -> int:
    value = body.get("alternatives", 0)
    try:
        number = int(value) if isinstance(value, (int, str)) else -1
    except ValueError:
        number = -1
    if not 0 <= number < max_beam_size:
        raise expected(value, f"a number of alternatives from 0 to {max_beam_size - 1}")
    return number


def _hparams(
    service: Service, model: ServedModel, body: Mapping[str, Any], alternatives: int
) -> DecodeHParams:
    given = body.get("decode_hparams", {})
    hparams = search_settings(model.hparams, given, service.settings)
    if alternatives:
        beam_size = max(hparams.beam_size, alternatives + 1)
        changes = {} if model.engine == "saved_model" else {"beam_size": beam_size}
        hparams = hparams.replace(**changes, return_beams=True)
    return model.settings(hparams)


class _Translation:
    """A text whose sentences are being translated."""

    def __init__(self, request: TranslateRequest, segments: SegmentedText) -> None:
        self.segments = segments
        self._alternatives = request.alternatives
        self.found: list[Sequence[Hypothesis]] = []

    def _text(self, rank: int) -> str:
        """Return the text with the hypotheses of a rank, or the last ones."""
        return self.segments.join(
            [h[min(rank, len(h) - 1)].text if h else "" for h in self.found]
        )

    def answer(self) -> dict[str, Any]:
        answer: dict[str, Any] = {"translatedText": self._text(0)}
        if self._alternatives:
            most = max(map(len, self.found), default=1)
            others = [self._text(rank) for rank in range(1, most)]
            answer["alternatives"] = others[: self._alternatives]
        return answer

    def event(self) -> dict[str, Any]:
        """Return the last sentence that was found."""
        number = len(self.found) - 1
        sentence = self.segments.sentences[number]
        texts = [h.text for h in self.found[number]] or [""]
        event: dict[str, Any] = {
            "index": number,
            "source": sentence.text,
            "start": sentence.start,
            "end": sentence.start + len(sentence.text),
            "translatedText": texts[0],
            "space": sentence.space,
        }
        if number == 0:
            event["before"] = self.segments.before
        if self._alternatives:
            event["alternatives"] = texts[1 : self._alternatives + 1]
        return event


def _queue(
    service: Service, request: TranslateRequest, segments: Sequence[SegmentedText]
) -> list[Found]:
    """Queue the sentences of all texts."""
    sentences = [s.text for text in segments for s in text.sentences]
    if not sentences:
        return []
    prefixes = None
    if request.prefix is not None:
        prefixes = [request.prefix, *[""] * (len(sentences) - 1)]
    return service.translations(request.model, sentences, request.hparams, prefixes)


def _segments(request: TranslateRequest) -> list[SegmentedText]:
    language = request.model.source_language
    return [SegmentedText.split(text, language) for text in request.texts]


async def translate(service: Service, request: TranslateRequest) -> dict[str, Any]:
    """Answer a request of `/translate` as a whole.

    Raises:
        ServiceError: If the queue is full.
        UserError: If the prefix cannot be followed.
    """
    segments = _segments(request)
    found = iter(await all_found(_queue(service, request, segments)))
    answers = []
    for text in segments:
        translation = _Translation(request, text)
        translation.found = [next(found) for _ in text.sentences]
        answers.append(translation.answer())
    if not request.is_list:
        return answers[0]
    return {name: [answer[name] for answer in answers] for name in answers[0]}


def stream(service: Service, request: TranslateRequest) -> AsyncIterator[bytes]:
    """Queue a text, and return its translation as server-sent events.

    Raises:
        ServiceError: If the queue is full.
    """
    (segments,) = _segments(request)
    translation = _Translation(request, segments)
    futures = _queue(service, request, [segments])
    return _events(translation, futures, service.settings.deadline)


async def _events(
    translation: _Translation, futures: Sequence[Found], seconds: float
) -> AsyncIterator[bytes]:
    """Yield an event per sentence, then one for the whole text or for an error."""
    end = asyncio.get_running_loop().time() + seconds
    try:
        for future in futures:
            async with asyncio.timeout_at(end):
                translation.found.append(await future)
            yield _event(translation.event())
        yield _event(translation.answer(), "done")
    except TimeoutError:
        yield _event({"error": f"no answer within {seconds:g} s."}, "error")
    except UserError as error:
        yield _event({"error": str(error)}, "error")
    except Exception:
        logger.exception("cannot translate a stream")
        yield _event({"error": FAILED}, "error")
    finally:
        for future in futures:
            future.cancel()


def _event(data: Mapping[str, Any], name: str = "") -> bytes:
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(data, ensure_ascii=False)}\n\n".encode()
