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


def test_the_documented_command_translates(command, subword_system, tmp_path):
    (tmp_path / "translator").symlink_to(subword_system.folder)
    ended = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    expected = subword_system.translator.translate(["A dog runs."])[0][0].text
    assert f"Result for output key outputs:\n{[expected.encode()]}" in ended.stdout
    assert "Result for output key truncated:\n[False]" in ended.stdout


def test_the_documented_program_shows_all_signatures(
    command, subword_system, monkeypatch, capsys
):
    """It runs in this process, which has imported TensorFlow already."""
    program = command[command.index("-c") + 1]
    arguments = ["show", "--dir", str(subword_system.folder), "--all"]
    monkeypatch.setattr(sys, "argv", ["-c", *arguments])
    with pytest.raises(SystemExit) as ended:
        exec(program, {})
    assert not ended.value.code
    printed = capsys.readouterr().out
    for name in ("serving_default", "n_best", "score", "attention"):
        assert f"signature_def['{name}']" in printed
    assert "could not be listed" not in printed
