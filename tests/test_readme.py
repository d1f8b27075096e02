"""The programs of README and of the guide work as printed.

`test_docs_commands.py` has their commands.
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from t2t_repro import catalogue, registry
from t2t_repro.cli.main import main
from tests.support.eager import train_eagerly

REPOSITORY = Path(__file__).parent.parent
README, LIBRARY, EXTENDING = (
    (REPOSITORY / name).read_text(encoding="utf-8")
    for name in ("README.md", "docs/python.md", "docs/extending.md")
)

QUICK = ["--xla", "off", "--eval_sentences", "0", "--attention_samples", "0"]
QUICK += ["--hparams", "num_hidden_layers=1,hidden_size=32"]


def code_blocks(page, language=""):
    fences = re.findall(r"^```(\w*)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    return [text for name, text in fences if name == language]


def commands(page):
    text = "\n".join(code_blocks(page)).replace("\\\n", " ")
    lines = [line.partition(" #")[0] for line in text.splitlines()]
    return [line[line.index("t2t ") :] for line in lines if re.search(r"\bt2t ", line)]


@pytest.mark.parametrize(
    "example",
    [
        *code_blocks(README, "python"),
        *code_blocks(LIBRARY, "python"),
        # Others import what is not installed, such as wandb.
        code_blocks(EXTENDING, "python")[0],
    ],
)
def test_the_python_examples_use_names_that_exist(example):
    statements = list(ast.walk(ast.parse(example)))
    modules = [n for n in statements if isinstance(n, ast.Import)]
    names = [n for n in statements if isinstance(n, ast.ImportFrom)]
    assert modules or names
    for module in (alias.name for n in modules for alias in n.names):
        importlib.import_module(module)
    for statement in names:
        module = importlib.import_module(statement.module)
        for alias in statement.names:
            assert hasattr(module, alias.name), alias.name


@pytest.mark.slow
def test_the_python_example_trains_translates_and_exports(tmp_path):
    (example,) = code_blocks(LIBRARY, "python")
    ended = subprocess.run(
        [sys.executable, "-c", example],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3"},
    )
    assert ended.returncode == 0, ended.stderr
    (printed,) = ended.stdout.splitlines()
    assert ast.literal_eval(printed) == ["el gato sigue el niño"]
    assert f"`{printed}`" in LIBRARY
    assert (tmp_path / "translator" / "saved_model.pb").exists()


def test_the_users_package_trains(tmp_path, monkeypatch, capsys):
    (example,) = (
        b for b in code_blocks(EXTENDING, "python") if "register_problem" in b
    )
    package = tmp_path / "my_package"
    package.mkdir()
    # As printed, but with fewer sentences, one narrow layer and fewer evaluations.
    small = example.replace("20_000", "500").replace("else 200", "else 20")
    assert small != example
    (package / "__init__.py").write_text(small, encoding="utf-8")
    (command,) = (c for c in commands(EXTENDING) if "translate_english_shouting" in c)
    words = shlex.split(command.replace("--train_steps 500", "--train_steps 1"))
    train_eagerly(monkeypatch)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "source.txt").write_text("a sentence\n")
    with as_in_a_new_process("my_package"):
        assert main([*words[1:], *QUICK]) == 0
    assert "BLEU on dev (20 sentences" in capsys.readouterr().out
    # The run remembers --t2t_usr_dir.
    with as_in_a_new_process("my_package"):
        decode = ["decode", "--output_dir", "run", "--decode_from_file", "source.txt"]
        decode += ["--decode_to_file", "target.txt", "--decode_hparams", "beam_size=1"]
        assert main(decode) == 0
    assert (tmp_path / "target.txt").read_text().count("\n") == 1


@contextlib.contextmanager
def as_in_a_new_process(package):
    """Forget a package of a user and what it registers, before and afterwards."""
    catalogue.load()
    with registry.problems.isolated(), registry.hparams_sets.isolated():
        assert package not in sys.modules
        yield
        del sys.modules[package]
