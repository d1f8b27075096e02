"""Random strings of the kinds that break programs on text."""

from __future__ import annotations

import random
from collections.abc import Callable

import regex

LONGEST = 10_000  # bytes

_SCRIPTS = (
    (0x0041, 0x007A),  # Latin
    (0x00C0, 0x017F),  # Latin with accents
    (0x0370, 0x03FF),  # Greek
    (0x0400, 0x04FF),  # Cyrillic
    (0x0590, 0x05FF),  # Hebrew
    (0x0600, 0x06FF),  # Arabic
    (0x0900, 0x097F),  # Devanagari
    (0x0E00, 0x0E7F),  # Thai
    (0x3040, 0x30FF),  # Kana
    (0x4E00, 0x9FFF),  # Han
    (0xAC00, 0xD7A3),  # Hangul
    (0x10330, 0x1034A),  # Gothic, outside the basic plane
)
# `regex` knows the properties that Python's `unicodedata` lacks.
_UNSEEN = regex.compile(
    r"[[\p{Z}\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}]"
    r"--[\p{Prepended_Concatenation_Mark}]]*",
    regex.VERSION1,
)
_SPACES = " \t\u00a0\u2003\u3000\u200b"
_BREAKS = "\n\r\v\f\x1c\x85\u2028\u2029\t"
_INVISIBLE = "\u200b\u200c\u200d\u2060\ufeff\u00ad\u034f\U000e0041"
_BLANK = " \t\v\x01\x7f\x85\u00a0\u00ad\u200b\u200e\u2028\u2060\u3000\u3164\ufe0f\ufeff"
_DIRECTIONS = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f"
_NONCHARACTERS = "\ufffe\uffff\ufdd0\U0001ffff\U0010ffff\ufffd"
_EMOJI = "🙂👩🏽\u200d🇩🇪\ufe0f❤\u20e3🏴"
_TEMPLATES = ("{}", "{0}", "%s", "%(name)s", "%n%n%n", "${HOME}", "\\x00", "\\u0041")
_PIECES = ("▁", "▁▁", "▁the", "<s>", "</s>", "<unk>", "<pad>", "<0x41>", "<0x00>")
_WORDS = ("we", "sleep", "the", "old", "horse", "sees", "a", "child", "today", ".")


def _joined(choices: str | tuple[str, ...], separator: str = "") -> Callable:
    def text(source: random.Random) -> str:
        return separator.join(source.choices(choices, k=source.randint(1, 20)))

    return text


def _control_characters(source: random.Random) -> str:
    codes = [*range(32), *range(127, 160)]
    return "".join(map(chr, source.choices(codes, k=source.randint(1, 12))))


def _words_around(character: str) -> Callable[[random.Random], str]:
    return lambda source: character.join(source.choices(_WORDS, k=4))


def _mixed_scripts(source: random.Random) -> str:
    ranges = source.choices(_SCRIPTS, k=source.randint(1, 20))
    return "".join(chr(source.randint(*bounds)) for bounds in ranges)


def _combining_marks(source: random.Random) -> str:
    marks = (chr(source.randint(0x300, 0x36F)) for _ in range(source.randint(1, 40)))
    return source.choice("aé漢\u0627 ") + "".join(marks)


def _any_characters(source: random.Random) -> str:
    codes = (source.randint(0, 0x10FFFF) for _ in range(source.randint(1, 20)))
    return "".join(chr(code) for code in codes if not 0xD800 <= code <= 0xDFFF)


_VALID: dict[str, Callable[[random.Random], str]] = {
    "empty": lambda source: "",
    "spaces": _joined(_SPACES),
    "blank": _joined(_BLANK),
    "control characters": _control_characters,
    "NUL": _words_around("\0"),
    "line breaks": _joined((*_BREAKS, *_WORDS)),
    "tabs": _words_around("\t"),
    "mixed scripts": _mixed_scripts,
    "combining marks": _combining_marks,
    "directions": _joined((*_DIRECTIONS, "שלום", "مرحبا", "left")),
    "invisible": _joined((*_INVISIBLE, "a", " ")),
    "emoji": _joined(_EMOJI),
    "noncharacters": _joined((*_NONCHARACTERS, "a")),
    "templates": _joined(_TEMPLATES, " "),
    "vocabulary entries": _joined((*_PIECES, "a", " ")),
    "any characters": _any_characters,
    "words": _joined(_WORDS, " "),
}


def _truncated_character(source: random.Random) -> bytes:
    encoded = _mixed_scripts(source).encode()
    return encoded[: source.randint(1, len(encoded))] + b" we sleep"


def _any_bytes(source: random.Random) -> bytes:
    return source.randbytes(source.randint(1, 20))


def _encoded_surrogates(source: random.Random) -> bytes:
    codes = (source.randint(0xD800, 0xDFFF) for _ in range(source.randint(1, 4)))
    return "".join(map(chr, codes)).encode("utf-8", "surrogatepass") + b" we"


_INVALID: dict[str, Callable[[random.Random], bytes]] = {
    "truncated character": _truncated_character,
    "any bytes": _any_bytes,
    "surrogates": _encoded_surrogates,
}

KINDS = (*_VALID, *_INVALID)


def hard_text(kind: str, source: random.Random) -> bytes:
    """Return a string of one of `KINDS`; those of the last three are not UTF-8."""
    if kind in _INVALID:
        return _INVALID[kind](source)
    return _VALID[kind](source).encode()


def shows_nothing(text: str) -> bool:
    """Return whether no character of a text is visible, by Unicode's properties."""
    return _UNSEEN.fullmatch(text) is not None


def random_hard_text(source: random.Random) -> bytes:
    """Return a string of one kind, of several kinds, or a long one."""
    text = hard_text(source.choice(KINDS), source)
    fate = source.random()
    if fate < 0.2:
        return text + b" " + hard_text(source.choice(KINDS), source)
    if fate < 0.203:
        return text * (source.randint(1, LONGEST) // max(len(text), 1))
    return text
