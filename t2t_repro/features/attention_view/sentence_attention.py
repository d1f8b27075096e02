"""The attention of one sentence pair: its weights, its tokens, its words, its page.

SentencePiece spells a character outside its vocabulary in the bytes of its UTF-8, one
piece per byte: "日" is "<0xE6>", "<0x97>", "<0xA5>". Labels join them. Bytes that form
no character stay as they are written, and so do control characters, which cannot be
seen.

The page needs no network and no other file. Its Content-Security-Policy allows the
script and the style of this package by their hashes, and nothing else.
"""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import html
import itertools
import json
import re
import reprlib
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import resources
from typing import Any

import numpy as np

from t2t_repro.errors import UserError
from t2t_repro.text.tokenizer import SPECIAL_SYMBOLS, Tokenizer

DOCUMENT_VERSION = 1
START_TOKEN = "<start>"  # the zero vector that the decoder reads first
MOST_ATTENDED_ROWS = 32  # attention over parameters has thousands of rows
FIRST_WORDS = 40  # characters of a sentence in a menu

_NAMES_OF_A_MAP = ("kind", "label", "queries", "keys")
# These of each kind that every model has.
_KINDS = (
    ("encoder_self", "Encoder self-attention", "source", "source"),
    ("decoder_self", "Decoder self-attention", "target", "read"),
    ("memory", "Encoder-decoder attention", "target", "source"),
)

Span = tuple[int, int]
EOS = SPECIAL_SYMBOLS[1]
EOS_SIGN = "<EOS>"  # EOS on pages and figures, as in the paper's figures
_SPACE = "\u2581"  # a space in SentencePiece's pieces
_BYTE = re.compile(r"<0x([0-9A-F]{2})>")
_NO_CHARACTER = range(0xDC80, 0xDD00)  # where "surrogateescape" puts other bytes
# Characters that could end the script element; U+2028 and U+2029 end a line of script.
JSON_ESCAPES = {ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}


def check_number(kind: str, received: int | None, count: int) -> None:
    """Refuse a layer or a head that an attention does not have.

    Args:
        kind: "layer" or "head".
        received: Its number, counted from 1.
        count: Number of layers or heads.

    Raises:
        UserError: If the number is None, or not from 1 to `count`.
    """
    if received is None or not 1 <= received <= count:
        raise UserError(
            f"received {kind} {received}, expected 1 to {count}: this attention has "
            f"{count} {kind}{'s' * (count > 1)}."
        )


@dataclasses.dataclass(frozen=True)
class TokenSequence:
    """Tokens that attend or are attended to.

    Attributes:
        text: The text that the tokens come from, if any.
        tokens: Vocabulary entries, such as "▁Hund" or "</s>".
        words: Half-open spans of tokens that form the words, in order. They cover all
            tokens.
        language: Code of the language of the text, such as "de", if it is known.
    """

    text: str
    tokens: tuple[str, ...]
    words: tuple[Span, ...]
    language: str | None = None

    @classmethod
    def from_ids(
        cls,
        tokenizer: Tokenizer,
        ids: Sequence[int],
        text: str,
        language: str | None = None,
    ) -> TokenSequence:
        """Make a sequence from ids."""
        spans = tuple(tokenizer.word_spans(ids))
        return cls(text, tuple(tokenizer.pieces(ids)), spans, language)

    @classmethod
    def from_labels(cls, labels: Sequence[str]) -> TokenSequence:
        """Make a sequence whose tokens are words."""
        spans = tuple((index, index + 1) for index in range(len(labels)))
        return cls("", tuple(labels), spans)

    def shifted(self) -> TokenSequence:
        """Return the tokens that a decoder reads to predict these."""
        words = [(start + 1, end + 1) for start, end in self.words]
        start, end = words.pop()
        if start < end - 1:  # only the last token is not read
            words.append((start, end - 1))
        tokens = (START_TOKEN, *self.tokens[:-1])
        return TokenSequence("", tokens, ((0, 1), *words), self.language)

    def word_labels(self) -> list[str]:
        """Return the text of each word, with EOS as "<EOS>"."""
        shown = with_eos_sign(self.tokens)
        return [word_text(shown[start:end]) for start, end in self.words]

    def to_document(self) -> dict[str, Any]:
        """Return the content as JSON values, with tokens as a user can read them."""
        return {
            "text": self.text,
            "tokens": [join_bytes([token]) for token in with_eos_sign(self.tokens)],
            "words": self.words,
            "labels": self.word_labels(),
            "lang": self.language,
        }


@dataclasses.dataclass(frozen=True)
class AttentionMap:
    """All weights of one kind of attention.

    Attributes:
        kind: "encoder_self", "decoder_self", "memory", "encoder_parameters" or
            "decoder_parameters".
        label: Name for a user.
        queries: Name of the sequence that attends, in `Attention.sequences`.
        keys: Name of the sequence attended to.
        weights: float32 `[layer, head, query, key]`; rows sum to one.
    """

    kind: str
    label: str
    queries: str
    keys: str
    weights: np.ndarray


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class Attention:
    """Every attention weight of a model for one sentence pair.

    Attributes:
        source: Tokens of the source, with EOS.
        target: Tokens of the target, with EOS; position t predicts token t.
        encoder_self: Encoder self-attention, float32 `[layer, head, source, source]`.
        decoder_self: Decoder self-attention, float32 `[layer, head, target, target]`.
            Its keys are the tokens that the decoder reads, one position later than
            `target`. tensor2tensor's notebook labels them with `target`.
        memory: Attention of the decoder to the encoder's output, float32
            `[layer, head, target, source]`.
        score: Log-probability of the target given the source, in nats.
        encoder_parameters: Attention over parameters in the encoder, float32
            `[layer, head, source, memory_rows]`, or None.
        decoder_parameters: The same in the decoder.
        title: Title for a user.
    """

    source: TokenSequence
    target: TokenSequence
    encoder_self: np.ndarray
    decoder_self: np.ndarray
    memory: np.ndarray
    score: float
    encoder_parameters: np.ndarray | None = None
    decoder_parameters: np.ndarray | None = None
    title: str = ""

    def __repr__(self) -> str:
        texts = " -> ".join(reprlib.repr(x.text) for x in (self.source, self.target))
        shapes = [
            f"{field.name} {value.shape}"
            for field in dataclasses.fields(self)
            if isinstance(value := getattr(self, field.name), np.ndarray)
        ]
        return f"<Attention {texts}: {', '.join(shapes)}>"

    def maps(self) -> Iterator[AttentionMap]:
        """Yield the kinds of attention; parameters are cut to the rows most used."""
        for kind, label, queries, keys in _KINDS:
            yield AttentionMap(kind, label, queries, keys, getattr(self, kind))
        for side, queries, (_, weights) in self._parameters():
            kind = f"{side}_parameters"
            label = f"{side.capitalize()} attention over parameters"
            yield AttentionMap(kind, label, queries, f"{side}_rows", weights)

    def sequences(self) -> dict[str, TokenSequence]:
        """Return the sequences of tokens by the names that `AttentionMap` uses."""
        texts = {"source": self.source, "target": self.target}
        rows = {
            f"{side}_rows": TokenSequence.from_labels(labels)
            for side, _, (labels, _) in self._parameters()
        }
        return texts | {"read": self.target.shifted()} | rows

    def _parameters(self) -> Iterator[tuple[str, str, tuple[list[str], np.ndarray]]]:
        for side, queries in (("encoder", "source"), ("decoder", "target")):
            weights = getattr(self, f"{side}_parameters")
            if weights is not None:
                yield side, queries, _keep_most_attended(weights)

    def in_words(self, kind: str) -> np.ndarray:
        """Return the weights between words, float32 `[layer, head, query, key]`.

        Args:
            kind: See `AttentionMap`.

        Raises:
            KeyError: If the model has no attention of this kind.
        """
        found = {attention.kind: attention for attention in self.maps()}[kind]
        sequences = self.sequences()
        return merge_words(
            found.weights, sequences[found.queries].words, sequences[found.keys].words
        )

    def to_document(self) -> dict[str, Any]:
        """Return the content as JSON values, with weights in base64 float16."""
        return {
            "version": DOCUMENT_VERSION,
            "title": self.title,
            "first_words": first_words(self.source.text),
            "score": round(self.score, 6),
            "sequences": {
                name: sequence.to_document()
                for name, sequence in self.sequences().items()
            },
            "maps": [_map_document(attention) for attention in self.maps()],
        }

    def _repr_html_(self) -> str:
        """Show the page of `t2t attention --html` in a notebook."""
        page = html_page([self.to_document()], self.title or "Attention")
        return (
            f'<iframe srcdoc="{html.escape(page)}" sandbox="allow-scripts" '
            'title="Attention" style="width: 100%; height: 45em; border: 0"></iframe>'
        )


def merge_words(
    weights: np.ndarray, query_words: Sequence[Span], key_words: Sequence[Span]
) -> np.ndarray:
    """Merge weights between tokens into weights between words.

    A word attends with the mean of its tokens, and receives the sum of what its tokens
    receive, so rows still sum to one.

    Args:
        weights: `[..., query, key]`.
        query_words: Spans of the queries.
        key_words: Spans of the keys.

    Returns:
        `[..., len(query_words), len(key_words)]`.
    """
    rows = [weights[..., a:b, :].mean(axis=-2) for a, b in query_words]
    merged = np.stack(rows, axis=-2)
    columns = [merged[..., a:b].sum(axis=-1) for a, b in key_words]
    return np.stack(columns, axis=-1)


def first_words(text: str) -> str:
    """Return a text that fits into a menu: whole words of at most 40 characters."""
    text = " ".join(text.split())
    if len(text) <= FIRST_WORDS:
        return text
    cut = text[: FIRST_WORDS + 1].rpartition(" ")[0] or text[:FIRST_WORDS]
    return f"{cut}…"


def _keep_most_attended(weights: np.ndarray) -> tuple[list[str], np.ndarray]:
    """Keep the rows of parameters with the most weight, and sum up the others.

    Args:
        weights: `[layer, head, position, memory_rows]`.

    Returns:
        Labels, and weights `[layer, head, position, len(labels)]`.
    """
    rows = weights.shape[-1]
    if rows <= MOST_ATTENDED_ROWS:
        return [f"row {row}" for row in range(rows)], weights
    most = np.argsort(-weights.sum(axis=(0, 1, 2)), kind="stable")
    kept = np.sort(most[:MOST_ATTENDED_ROWS])
    rest = 1.0 - weights[..., kept].sum(axis=-1, keepdims=True)
    labels = [*(f"row {row}" for row in kept), f"{rows - len(kept):,} other rows"]
    return labels, np.concatenate([weights[..., kept], rest], axis=-1)


def _map_document(attention: AttentionMap) -> dict[str, Any]:
    layers, heads = attention.weights.shape[:2]
    halves = np.ascontiguousarray(attention.weights, dtype="<f2")
    weights = base64.b64encode(halves.tobytes()).decode("ascii")
    names = {name: getattr(attention, name) for name in _NAMES_OF_A_MAP}
    return names | {"layers": layers, "heads": heads, "weights": weights}


def with_eos_sign(pieces: Iterable[str]) -> list[str]:
    """Return pieces with EOS as "<EOS>"."""
    return [EOS_SIGN if piece == EOS else piece for piece in pieces]


def word_text(pieces: Iterable[str]) -> str:
    """Return the text of a word, without spaces around it.

    Args:
        pieces: Vocabulary entries, such as "▁Hor" and "se".

    Returns:
        The text, or the pieces in a row if they are nothing but spaces.
    """
    text = join_bytes(pieces)
    return text.replace(_SPACE, " ").strip() or text


def join_bytes(pieces: Iterable[str]) -> str:
    """Return pieces in a row; bytes that form characters become these characters."""
    runs = itertools.groupby(pieces, key=_is_byte)
    return "".join(
        _characters(run) if is_byte else "".join(run) for is_byte, run in runs
    )


def _is_byte(piece: str) -> bool:
    return _BYTE.fullmatch(piece) is not None


def _characters(pieces: Iterable[str]) -> str:
    content = bytes.fromhex("".join(_BYTE.sub(r"\1", piece) for piece in pieces))
    return "".join(map(_visible, content.decode("utf-8", "surrogateescape")))


def _visible(character: str) -> str:
    code = ord(character)
    if code in _NO_CHARACTER:
        return f"<0x{code - 0xDC00:02X}>"
    if unicodedata.category(character) == "Cc":
        return "".join(f"<0x{byte:02X}>" for byte in character.encode())
    return character


def spans_without_eos(sequence: TokenSequence) -> list[Span]:
    """Return the spans of the words, except EOS."""
    return [span for span in sequence.words if sequence.tokens[span[0]] != EOS]


def comparable(word: str) -> str:
    """Return a word in lower case and without punctuation around it."""
    return word.lower().strip(".,;:!?\"'()") or word


def html_page(documents: Sequence[Mapping[str, Any]], title: str) -> str:
    """Return a page that shows the attention of sentence pairs.

    Args:
        documents: One document per sentence pair, from `Attention.to_document`.
        title: Title of the page.

    Returns:
        The text of an HTML file, to be written as UTF-8.
    """
    style = _static("page.css") + _static("attention_view.css")
    script = _static("attention_view.js") + _static("page.js")
    return _static("page.html").format(
        policy=_policy(script, style),
        title=html.escape(title),
        style=style,
        data=_embed_json({"title": title, "documents": list(documents)}),
        script=script,
    )


def _static(name: str) -> str:
    folder = resources.files("t2t_repro.features.attention_view") / "static"
    return (folder / name).read_text(encoding="utf-8")


def _embed_json(data: Mapping[str, Any]) -> str:
    """Return JSON that can't end the script element that holds it."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.translate(JSON_ESCAPES)


def _policy(script: str, style: str) -> str:
    """Return a policy that allows exactly this script and this style."""
    return (
        f"default-src 'none'; script-src '{_hash(script)}'; "
        f"style-src '{_hash(style)}'; base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"sha256-{base64.b64encode(digest).decode('ascii')}"
