"""Configuration of the documentation site: `sphinx-build -W docs docs/_build`."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Iterator

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import inspect
from sphinx.util.docutils import SphinxDirective

from t2t_repro import __version__
from t2t_repro.cli.main import COMMANDS, CommandParser
from t2t_repro.features.tensor2tensor import command_flags as tables
from t2t_repro.features.tensor2tensor.command_main import explanation

project = "t2t_repro"
version = release = __version__
html_title = f"t2t_repro {version}"
html_theme = "furo"
html_show_copyright = False
html_static_path = ["_static"]
html_css_files = ["site.css"]

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_build", "results/templates"]
myst_heading_anchors = 3  # links to headings, as GitHub has them
myst_enable_extensions = ["deflist"]
suppress_warnings = ["myst.header"]  # pages that begin below an included heading
highlight_language = "none"  # most blocks mix commands and what they print
smartquotes = False  # flags keep their hyphens
default_role = "code"  # docstrings have Markdown's single backticks
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
python_maximum_signature_line_length = 80
autodoc_inherit_docstrings = False  # those of Keras are Markdown
napoleon_use_ivar = True
napoleon_use_rtype = False
napoleon_custom_sections = [("Call arguments", "params_style")]

# Files outside this folder -> the pages that include them.
_INCLUDED = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}


class Commands(SphinxDirective):
    """Describe every command and its flags, as its parser does."""

    def run(self) -> list[nodes.Node]:
        text = "\n".join(_pages())
        return self.parse_text_to_nodes(text, allow_section_headings=True)


def _pages() -> Iterator[str]:
    for name, command in COMMANDS.items():
        module = importlib.import_module(command.module)
        parser = CommandParser(prog=f"t2t {name}")
        module.add_flags(parser)
        yield f"## t2t {name}\n\n{_text(module.DESCRIPTION)}\n"
        for action in parser._actions:
            if action.dest != "help" and action.help != argparse.SUPPRESS:
                yield from _flag(parser, action)
    for name, old in tables.COMMANDS.items():
        yield f"## {name}\n\nFlags of tensor2tensor, and what became of them.\n"
        for flag in old.flags.values():
            answer = explanation(name, flag)
            yield f"`--{flag.name}`\n: {answer}\n"


def _flag(parser: CommandParser, action: argparse.Action) -> Iterator[str]:
    names = ", ".join(action.option_strings) or str(action.metavar or action.dest)
    values = ""
    if action.option_strings and action.nargs != 0:
        values = str(action.metavar or action.dest.upper())
        if action.choices:
            values = "|".join(map(str, action.choices))
    text = parser._get_formatter()._expand_help(action) if action.help else ""
    yield f"`{f'{names} {values}'.strip()}`\n: {_text(text)}\n"


def _text(text: str) -> str:
    """Keep names as they are: `*` and `_` are no emphasis in a help text."""
    return " ".join(text.replace("*", r"\*").replace("<", r"\<").split())


def _link_pages(_app: Sphinx, _name: str, source: list[str]) -> None:
    for file, page in _INCLUDED.items():
        source[0] = source[0].replace(f"(../{file}", f"({page}")


def _link_included(
    _app: Sphinx, _path: object, _parent: str, content: list[str]
) -> None:
    for file, page in _INCLUDED.items():
        content[0] = content[0].replace(f"({file}", f"(docs/{page}")


def _set_dashes(_app: Sphinx, doctree: nodes.document, _name: str) -> None:
    """Write the dash between the name of an argument and its description."""
    for text in [*doctree.findall(nodes.Text)]:
        if " -- " in text and not isinstance(text.parent, nodes.literal_block):
            dashed = text.replace(" -- ", " \N{EN DASH} ")
            text.parent.replace(text, nodes.Text(dashed))


def _constructor(
    _app: Sphinx, what: str, _name: str, found: type, _options: object, *texts: str
) -> tuple[str, str] | None:
    """Return the arguments of a Keras layer, whose `__new__` hides them."""
    signature, returns = texts
    if what != "class" or signature != "(*args, **kwargs)":
        return None
    arguments = inspect.signature(found.__init__, bound_method=True)
    text = inspect.stringify_signature(
        arguments, show_return_annotation=False, unqualified_typehints=True
    )
    return text, returns


def _fence_examples(
    _app: Sphinx,
    _what: str,
    _name: str,
    _found: object,
    _options: object,
    lines: list[str],
) -> None:
    """Turn the fenced blocks below `Example:`, as Keras has them, into directives."""
    indent = ""
    for number, line in enumerate(lines):
        if line.startswith("```"):
            lines[number] = "" if indent else "    .. code-block:: python\n"
            indent = "" if indent else " " * 8
        else:
            lines[number] = indent + line
    lines[:] = "\n".join(lines).split("\n")


def setup(app: Sphinx) -> None:
    """Register the directive, and mend links to files outside the folder."""
    app.add_directive("commands", Commands)
    app.connect("source-read", _link_pages)
    app.connect("include-read", _link_included)
    app.connect("autodoc-process-docstring", _fence_examples, priority=400)
    app.connect("autodoc-process-signature", _constructor)
    app.connect("doctree-resolved", _set_dashes)
