"""Without the folder of a feature, the rest of the program works."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from t2t_repro.features import NAMES, declared
from tests.support.trained_system import train_arguments, write_text

PROGRAM = """
import sys
from t2t_repro.cli.main import main

for line in sys.stdin.read().split("\\n"):
    assert main(line.split("\\t")) == 0, line
"""


def copy_without(names: set[str], repository: Path, folder: Path) -> None:
    for part in ("t2t_repro", "problems", "hparams"):
        skip = shutil.ignore_patterns("__pycache__", *(names if part[0] == "t" else ()))
        shutil.copytree(repository / part, folder / part, ignore=skip)
    table = folder / "t2t_repro" / "features" / "__init__.py"
    text = table.read_text(encoding="utf-8")
    for name in names:
        text, count = re.subn(f'"{name}",? ?', "", text)
        assert count == 1
    table.write_text(text, encoding="utf-8")


def with_users(name: str) -> set[str]:
    users = {user for user, feature in declared().items() if name in feature.uses}
    return {name}.union(*map(with_users, users))


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_the_rest_works_without(name, repository, tmp_path):
    copy_without(with_users(name), repository, tmp_path)
    text, output_dir = write_text(tmp_path), str(tmp_path / "run")
    training = train_arguments(text, tmp_path / "data", tmp_path / "run")
    sources, export_dir = text["dev", "source"], tmp_path / "export"
    lines = [
        ["--help"],
        ["list"],
        ["train", *training, "--train_steps", "10", "--no_final_score"],
        ["decode", "--output_dir", output_dir, "--decode_from_file", str(sources)],
    ]
    if name != "saved_model":
        lines.append(
            ["export", "--output_dir", output_dir, "--export_dir", str(export_dir)]
        )
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        input="\n".join(map("\t".join, lines)),
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
    )
    assert ended.returncode == 0, ended.stderr
    assert (export_dir / "saved_model.pb").is_file() == (name != "saved_model")
