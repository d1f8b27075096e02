"""The commands and files that the documentation names exist."""

from __future__ import annotations

import ast
import json
import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from t2t_repro import catalogue
from t2t_repro.cli.main import COMMANDS, main
from t2t_repro.cli.train import DEMO_FOLDER
from t2t_repro.features.serving.service_metrics import ServiceMetrics
from t2t_repro.features.serving.service_settings import ServiceSettings
from t2t_repro.features.tensor2tensor import command_flags
from t2t_repro.features.tensor2tensor.command_bleu import run_bleu
from t2t_repro.features.tensor2tensor.command_flags import given_flags
from t2t_repro.features.tensor2tensor.command_line import Translation
from t2t_repro.features.tensor2tensor.command_main import translate
from t2t_repro.settings.decode_hparams import DecodeHParams
from tests.support.command_lines import parsed

# Languages of blocks that a shell runs; blocks without one may have commands, too.
SHELLS = ("", "bash", "console", "sh", "shell")
_REDIRECTIONS = {"<", ">", ">>", "2>", "&>"}
_SEPARATORS = {"&&", "||", ";", "|", "&", "(", ")"}


class Command(NamedTuple):
    """A command on a page."""

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


def example_commands(page: str, text: str) -> Iterator[Command]:
    """Yield what a systemd unit runs, or the container of a Dockerfile."""
    text = text.replace("\\\n#", " ").replace("\\\n", " ")
    for line in re.findall(r"^ExecStart=\S+/t2t (.*)", text, re.MULTILINE):
        yield Command(page, ("t2t", *shlex.split(line)))
    start = re.search(r"^ENTRYPOINT (.*)", text, re.MULTILINE)
    if start:
        arguments = re.findall(r" docker run .* t2t-serve (--.*)", text)
        arguments += [
            shlex.join(json.loads(line))
            for line in re.findall(r"^CMD (\[.*)", text, re.MULTILINE)
        ]
        for further in arguments:
            yield Command(page, (*json.loads(start[1]), *shlex.split(further)))


def inline_commands(page: str, text: str) -> Iterator[Command]:
    """Yield what stands as code in the text and begins with "t2t" and a name."""
    outside = re.sub(r"^ *```.*?^ *```", "", text, flags=re.MULTILINE | re.DOTALL)
    for code in re.findall(r"`(t2t [a-z][^`]*)`", outside):
        yield Command(page, tuple(code.replace("\\|", "|").split()))


REPOSITORY = Path(__file__).parent.parent
PAGES = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").glob("*.md"))]
TEXTS = {page.name: page.read_text(encoding="utf-8") for page in PAGES}
IN_BLOCKS = [c for page, text in TEXTS.items() for c in block_commands(page, text)]
EXAMPLES = {
    path.name: path.read_text(encoding="utf-8")
    for path in sorted((REPOSITORY / "docs" / "examples").iterdir())
}
IN_EXAMPLES = [c for name, t in EXAMPLES.items() for c in example_commands(name, t)]
INLINE = [c for page, text in TEXTS.items() for c in inline_commands(page, text)]
# They answer in a second, and need no files but text.
QUICK = ("list", "show", "compare", "t2t-bleu")


def name_of(command: Command) -> str:
    return f"{command.page}: {' '.join(command.words)}"


def arguments_of(command: Command) -> list[str]:
    if command.words[0] == "t2t":
        # N stands for a number, such as that of a seed.
        return ["1" if word == "N" else word for word in command.words[1:]]
    return translate(command.words[0], command.words[1:]).arguments


@pytest.mark.parametrize("command", [*IN_BLOCKS, *IN_EXAMPLES], ids=name_of)
def test_a_command_is_accepted_by_its_parser(command):
    if command.words[0] in ("t2t-bleu", "t2t-translate-all"):
        assert given_flags(command.words[0], command.words[1:])
        return
    first, *arguments = arguments_of(command)
    if first.startswith("-"):
        assert main([first]) == 0
    elif {"-h", "--help"} & set(arguments):
        assert main([first, *arguments]) == 0
    else:
        assert first in COMMANDS
        flags = vars(parsed(first, arguments))
        check_values(first, flags)


def check_values(command, flags):
    """Check the values that the parser does not: names and overrides."""
    if flags.get("decode_hparams"):
        reader = "decode" if command == "serve" else command
        assert DecodeHParams().parse_for(reader, flags["decode_hparams"])
    if flags.get("t2t_usr_dir"):
        return  # its names are registered by a package that the page shows
    if flags.get("problem"):
        assert catalogue.problem(flags["problem"])
    if flags.get("hparams_set"):
        hparams = catalogue.hparams(flags["hparams_set"])
        assert hparams.parse(flags.get("hparams") or "")


@pytest.mark.parametrize("command", INLINE, ids=name_of)
def test_a_command_in_the_text_exists_with_its_flags(command):
    name = command.words[1]
    assert name in COMMANDS
    given = {flag for word in command.words for flag in re.findall(r"^--(\w+)", word)}
    assert given <= Translation(name).accepted | {"help"}


def can_run(command: Command) -> bool:
    name = command.words[1] if command.words[0] == "t2t" else command.words[0]
    return name in QUICK and "--t2t_usr_dir" not in command.words


@pytest.mark.parametrize("command", [*filter(can_run, IN_BLOCKS)], ids=name_of)
def test_a_quick_command_runs(command, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for number, word in enumerate(command.words):
        name = word.rpartition("=")[2]
        if re.fullmatch(r"[\w-]+\.\w+", name):
            lines = (
                f"The dog number {line * number} runs home.\n" for line in range(9)
            )
            Path(name).write_text("".join(lines))
    if command.words[0] == "t2t-bleu":
        assert run_bleu(command.words[1:]) == 0
    else:
        assert main(command.words[1:]) == 0
    assert capsys.readouterr().out


@pytest.mark.parametrize("name", [*COMMANDS, *command_flags.COMMANDS])
def test_every_command_is_in_the_documentation(name):
    programs = [f"t2t {name}", name]
    assert any(
        re.search(rf"\b{p}\b", text) for p in programs for text in TEXTS.values()
    ), f"no page of docs/ describes {programs[0]}"


def docstrings() -> str:
    files = (REPOSITORY / "tests").rglob("*.py")
    trees = [ast.parse(file.read_text(encoding="utf-8")) for file in files]
    described = (ast.Module, ast.ClassDef, ast.FunctionDef)
    nodes = [x for tree in trees for x in ast.walk(tree) if isinstance(x, described)]
    return "\n".join(ast.get_docstring(node) or "" for node in nodes)


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "docs/overview.md", "docstrings"])
def test_files_that_are_named_exist_and_hold_what_is_named(page):
    text = docstrings() if page == "docstrings" else (REPOSITORY / page).read_text()
    named = re.findall(
        r"`((?:[\w.-]+/)*[\w-]+\.(?:py|md|toml|json)|(?:[\w.-]+/)+)(?:: ([\w.]+))?`",
        text,
    )
    assert len(named) > 5
    folders = ["t2t_repro", "problems", "hparams", "docs", "tests", "benchmarks"]
    for path, name in named:
        if "NAME" in path:  # of a feature
            continue
        found = [
            *([REPOSITORY / path] if (REPOSITORY / path).exists() else []),
            *(x for folder in folders for x in (REPOSITORY / folder).rglob(path)),
        ]
        assert found, path
        parts = name.split(".") if name else []
        assert all(part in found[0].read_text() for part in parts), f"{path}: {name}"


def value_of(flag: str, commands: list[Command]) -> str:
    (words,) = {c.words for c in commands if flag in c.words}
    return words[words.index(flag) + 1]


def test_the_examples_wait_as_long_and_ask_where_the_server_does():
    unit, container = EXAMPLES["t2t-serve.service"], EXAMPLES["Dockerfile"]
    started = [c for c in IN_EXAMPLES if c.page == "t2t-serve.service"]
    seconds = int(re.search(r"^TimeoutStopSec=(\d+)", unit, re.MULTILINE)[1])
    assert seconds >= int(value_of("--deadline", started)) + 15
    # Credentials are files of the names that LoadCredential gives.
    assert "/{}".format(re.search(r"LoadCredential=(\w+):", unit)[1]) in value_of(
        "--api_key_file", started
    )
    port = json.loads(re.search(r"^ENTRYPOINT (.*)", container, re.MULTILINE)[1])[-1]
    assert f"EXPOSE {port}\n" in container
    assert f"http://127.0.0.1:{port}/readyz" in container
    copied = re.findall(r"^COPY (?!--)(.*) \S+$", container, re.MULTILINE)
    for path in " ".join(copied).split():
        assert (REPOSITORY / path).exists()
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    (extras,) = re.findall(r"whl\)\[([\w,]+)\]", container)
    assert set(extras.split(",")) <= {*project["optional-dependencies"]}


def test_the_page_of_t2t_serve_names_its_flags_defaults_and_metrics():
    page = TEXTS["serve.md"]
    prose = re.sub(r"^```.*?^```", "", page, flags=re.MULTILINE | re.DOTALL)
    given = {*re.findall(r"`--(\w+)", prose)}
    assert given <= Translation("serve").accepted
    rows = re.findall(r"^\| `--(\w+)` \| (\S+)", page, re.MULTILINE)
    assert {name for name, _ in rows} == {*ServiceSettings.names()}
    defaults = ServiceSettings()
    for name, value in rows[1:]:
        assert float(value) == getattr(defaults, name), name
    names = {*re.findall(r"`(t2t_\w+)`", prose)} - {"t2t_demo"}
    measured = re.findall(r"^# TYPE (t2t_\w+)", ServiceMetrics().text().decode(), re.M)
    assert names == {name for name in measured if not name.endswith("_created")}


def test_commands_are_found():
    assert len(IN_BLOCKS) >= 30
    assert len({command.page for command in IN_BLOCKS}) >= 4
    assert len(INLINE) >= 30
    assert {command.page for command in IN_EXAMPLES} == set(EXAMPLES)
    assert len(IN_EXAMPLES) >= 3
    assert sum(map(can_run, IN_BLOCKS)) >= 4


@pytest.mark.parametrize("page", TEXTS)
def test_the_demonstration_is_read_from_the_folder_that_it_writes(page):
    demo = re.escape(str(DEMO_FOLDER))
    runs = re.findall(rf'(?:--output_dir |load\(")({demo}[^\s")]*)', TEXTS[page])
    assert set(runs) <= {str(DEMO_FOLDER / "run")}
