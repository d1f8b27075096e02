"""The programs of README work as printed; test_docs_commands.py has its commands."""

from __future__ import annotations

import ast
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")


def code_blocks(language=""):
    fences = re.findall(r"^```(\w*)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
    return [text for name, text in fences if name == language]


def commands():
    """Return every `t2t` command of the code blocks, on one line."""
    text = "\n".join(code_blocks()).replace("\\\n", " ")
    lines = [line.partition(" #")[0] for line in text.splitlines()]
    return [line[line.index("t2t ") :] for line in lines if re.search(r"\bt2t ", line)]


def test_the_python_example_trains_translates_and_exports(tmp_path):
    (example,) = (b for b in code_blocks("python") if "t2t_repro.runs" in b)
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
    (translation,) = ast.literal_eval(printed)
    assert isinstance(translation, str)
    assert (tmp_path / "translator" / "saved_model.pb").exists()


def test_the_users_package_trains(tmp_path):
    (example,) = (b for b in code_blocks("python") if "register_problem" in b)
    package = tmp_path / "my_package"
    package.mkdir()
    # As printed, but with fewer sentences to be quick.
    small = example.replace("20_000", "500").replace("else 200", "else 20")
    assert small != example
    (package / "__init__.py").write_text(small, encoding="utf-8")
    (command,) = (c for c in commands() if "--t2t_usr_dir" in c)
    words = shlex.split(command.replace("--train_steps 500", "--train_steps 1"))
    ended = subprocess.run(
        [sys.executable, "-m", "t2t_repro.cli.main", *words[1:], "--xla", "off"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert "BLEU on dev (20 sentences" in ended.stdout
    # The run remembers --t2t_usr_dir.
    decoded = subprocess.run(
        [sys.executable, "-m", "t2t_repro.cli.main", "decode", "--output_dir", "run"],
        cwd=tmp_path,
        input="a sentence\n",
        capture_output=True,
        text=True,
        check=False,
    )
    assert decoded.returncode == 0, decoded.stderr
    assert decoded.stdout.count("\n") == 1
