"""The command in the documentation runs an export with TensorFlow's own tool."""

from __future__ import annotations

import re
import shlex
import sys

import pytest


@pytest.fixture
def run(repository, monkeypatch, capsys):
    """Return a function that runs the documented program in this process."""
    page = (repository / "docs" / "serving.md").read_text(encoding="utf-8")
    (line,) = re.findall(r"^python -c .*saved_model_cli.*$", page, re.MULTILINE)
    python, flag, program, *documented = shlex.split(line)
    assert (python, flag) == ("python", "-c")

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["-c", *(arguments or documented)])
        with pytest.raises(SystemExit) as ended:
            exec(program, {})
        assert not ended.value.code
        return capsys.readouterr().out

    return run


def test_the_documented_command_translates(run, subword_system, tmp_path, monkeypatch):
    (tmp_path / "translator").symlink_to(subword_system.folder)
    monkeypatch.chdir(tmp_path)
    printed = run()
    expected = subword_system.translator.translate(["A dog runs."])[0][0].text
    assert f"Result for output key outputs:\n{[expected.encode()]}" in printed
    assert "Result for output key truncated:\n[False]" in printed


def test_the_documented_program_shows_all_signatures(run, subword_system):
    printed = run("show", "--dir", str(subword_system.folder), "--all")
    for name in ("serving_default", "n_best", "score", "attention"):
        assert f"signature_def['{name}']" in printed
    assert "could not be listed" not in printed
