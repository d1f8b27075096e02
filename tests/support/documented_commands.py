"""Find the commands in the code blocks and the text of Markdown pages."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import NamedTuple

# Languages of blocks that a shell runs; blocks without one may have commands, too.
SHELLS = ("", "bash", "console", "sh", "shell")
_REDIRECTIONS = {"<", ">", ">>", "2>", "&>"}
_SEPARATORS = {"&&", "||", ";", "|", "&", "(", ")"}


class Command(NamedTuple):
    """A command on a page.

    Attributes:
        page: Name of the page.
        words: The program and its arguments, without redirections.
    """

    page: str
    words: tuple[str, ...]


def block_commands(page: str, text: str) -> Iterator[Command]:
    """Yield the commands of `t2t`, and of tensor2tensor, in a page's code blocks."""
    for language, body in re.findall(
        r"^ *```(\w*)[^\n]*\n(.*?)^ *```", text, re.MULTILINE | re.DOTALL
    ):
        if language in SHELLS:
            for line in body.replace("\\\n", " ").splitlines():
                for words in _split(line):
                    if _is_command(words):
                        yield Command(page, tuple(words))


def _is_command(words: list[str]) -> bool:
    """Return whether words are a command, not a message such as "t2t train: ..."."""
    if not re.fullmatch(r"t2t(-[a-z-]+)?", words[0]):
        return False
    return not any(word.endswith(":") for word in words[:2])


def _split(line: str) -> Iterator[list[str]]:
    """Split a line into commands, each into words, as a shell does."""
    lexer = shlex.shlex(line.removeprefix("$ "), posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    try:
        tokens = list(lexer)
    except ValueError:  # a quotation that ends on another line, such as in a message
        return
    words: list[str] = []
    skipped = False
    for token in [*tokens, ";"]:
        if token in _SEPARATORS:
            while words and re.fullmatch(r"\w+=.*", words[0]):
                words = words[1:]  # variables of the environment
            if words:
                yield words
            words = []
        elif token in _REDIRECTIONS:
            skipped = True
        elif skipped:
            skipped = False
        else:
            words.append(token)


def inline_commands(page: str, text: str) -> Iterator[Command]:
    """Yield what stands as code in the text and begins with "t2t" and a name."""
    outside = re.sub(r"^ *```.*?^ *```", "", text, flags=re.MULTILINE | re.DOTALL)
    for code in re.findall(r"`(t2t [a-z][^`]*)`", outside):
        yield Command(page, tuple(code.replace("\\|", "|").split()))
