"""The command in the documentation runs an export with TensorFlow's own tool."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys

import pytest


@pytest.fixture(scope="module")
def command(repository):
    page = (repository / "docs" / "serving.md").read_text(encoding="utf-8")
    (line,) = re.findall(r"^python -c .*saved_model_cli.*$", page, re.MULTILINE)
    python, *arguments = shlex.split(line)
    assert python == "python"
    return [sys.executable, *arguments]


def run(command, subword_system, folder):
    (folder / "translator").symlink_to(subword_system.folder)
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False
    )


def test_the_documented_command_translates(command, subword_system, tmp_path):
    ended = run(command, subword_system, tmp_path)
    assert ended.returncode == 0, ended.stderr
    expected = subword_system.translator.translate(["A dog runs."])[0][0].text
    assert f"Result for output key outputs:\n{[expected.encode()]}" in ended.stdout
    assert "Result for output key truncated:\n[False]" in ended.stdout


def test_the_documented_command_shows_all_signatures(command, subword_system, tmp_path):
    show = [*command[: command.index("run")], "show", "--dir", "translator", "--all"]
    ended = run(show, subword_system, tmp_path)
    assert ended.returncode == 0, ended.stderr
    for name in ("serving_default", "n_best", "score", "attention"):
        assert f"signature_def['{name}']" in ended.stdout
    assert "could not be listed" not in ended.stdout
