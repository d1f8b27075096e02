"""`t2t export` and `t2t decode` with CTranslate2, on a trained system."""

from __future__ import annotations

import json
import re
import runpy
import subprocess
import sys

import pytest

from t2t_repro.cli.main import main
from t2t_repro.errors import UserError
from t2t_repro.features.ctranslate2.ctranslate2_limits import QUANTIZATIONS
from t2t_repro.features.ctranslate2.ctranslate2_parity import Parity
from tests.conftest import REPOSITORY
from tests.support.trained_system import printed_by

pytestmark = pytest.mark.usefixtures("shared_translators", "without_xla")

pytest.importorskip("ctranslate2", reason="needs the package ctranslate2")

PAGE = (REPOSITORY / "docs" / "serving.md").read_text(encoding="utf-8")
HPARAMS = ["--decode_hparams", "beam_size=1,extra_length=20"]


def code_blocks(language):
    fences = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    return [text for name, text in fences if name == language]


def export_arguments(trained, folder):
    return [
        *("export", "--format", "ctranslate2", "--export_dir", str(folder)),
        *("--output_dir", str(trained.output_dir)),
    ]


@pytest.fixture(scope="module")
def source(trained, tmp_path_factory):
    own = trained.text["test", "source"].read_text().splitlines()
    long = "three times: the horse is blue . " * 12
    lines = [*own, "", "漢字 🙂", " ", long, "\u200b"]
    path = tmp_path_factory.mktemp("source") / "source"
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


@pytest.fixture(scope="module")
def exported(trained, tmp_path_factory):
    """Return an export and what the command printed."""
    folder = tmp_path_factory.mktemp("export") / "translator"
    return folder, printed_by(export_arguments(trained, folder))


def decoded(trained, source, *flags):
    command = ["decode", "--output_dir", str(trained.output_dir), *HPARAMS, *flags]
    return printed_by([*command, "--decode_from_file", str(source)]).split("\n")[:-1]


def test_the_export_is_compared_with_the_trained_model(exported):
    folder, printed = exported
    lines = printed.splitlines()
    assert lines[0] == str(folder)
    assert re.match(r"Compared with the trained model on \d+ sentences:", lines[1])
    assert re.search(r"greedy search: (\d+) of \1 translations equal", printed)
    parity = json.loads((folder / "t2t_repro.json").read_text())["parity"]
    assert parity["largest_difference"] < 1e-4


def test_greedy_translations_equal_those_of_tensorflow(trained, exported, source):
    folder, _ = exported
    flags = ["--engine", "ctranslate2", "--export_dir", str(folder)]
    ours = decoded(trained, source)
    assert decoded(trained, source, *flags) == ours
    assert len(set(ours)) > 4


def test_decode_converts_a_checkpoint_once(trained, source, caplog):
    flags = ["--engine", "ctranslate2", "--checkpoint_path", "latest"]
    first = decoded(trained, source, *flags)
    (folder,) = (trained.output_dir / "ctranslate2").iterdir()
    written = (folder / "model.bin").stat().st_mtime_ns
    assert decoded(trained, source, *flags) == first
    assert (folder / "model.bin").stat().st_mtime_ns == written
    assert first == decoded(trained, source, "--checkpoint_path", "latest")


def test_a_converted_system_translates_without_tensorflow(trained, source):
    flags = ["--engine", "ctranslate2", "--checkpoint_path", "latest"]
    expected = decoded(trained, source, *flags)
    command = ["decode", "--output_dir", str(trained.output_dir), *HPARAMS, *flags]
    program = (
        "import sys; from t2t_repro.cli.main import main; "
        f"main({[*command, '--decode_from_file', str(source)]!r}); "
        "assert not {'tensorflow', 'keras'} & sys.modules.keys()"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        encoding="utf-8",
        check=False,
        cwd=REPOSITORY,
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.split("\n")[:-1] == expected


def test_evaluate_scores_the_translations_of_decode(trained, tmp_path):
    flags = ["--engine", "ctranslate2", "--checkpoint_path", "latest"]
    source, reference = (trained.text["test", side] for side in ("source", "target"))
    target = tmp_path / "target"
    command = ["evaluate", "--output_dir", str(trained.output_dir), *HPARAMS]
    files = ["--source", str(source), "--reference", str(reference)]
    outputs = ["--decode_to_file", str(target)]
    found = json.loads(printed_by([*command, *flags, *files, *outputs]))
    assert target.read_text().split("\n")[:-1] == decoded(trained, source, *flags)
    ours = json.loads(printed_by([*command, *flags[2:], *files]))
    assert found["bleu"] == ours["bleu"]
    assert found["checkpoint"].endswith("model.ckpt-60")
    assert (found["engine"], found["quantization"]) == ("ctranslate2", "float32")
    on_split = json.loads(printed_by([*command, *flags, "--split", "test"]))
    assert on_split["bleu"] == ours["bleu"]


def test_an_export_that_differs_too_much_leaves_nothing(
    trained, tmp_path, capsys, monkeypatch
):
    def refuse(parity, quantization):
        raise UserError(f"{quantization} differs too much")

    monkeypatch.setattr(Parity, "check", refuse)
    flags = ["--quantization", "int8"]
    assert main([*export_arguments(trained, tmp_path / "e"), *flags]) == 1
    assert "int8 differs too much" in capsys.readouterr().err
    assert [*tmp_path.iterdir()] == []


def test_the_program_of_the_page_needs_only_two_packages(trained, exported, source):
    folder, _ = exported
    (program,) = (b for b in code_blocks("python") if "import ctranslate2" in b)
    sentences = [line for line in source.read_text().split("\n")[:14] if line]
    program += (
        "\nimport json, sys\n"
        "assert not {'tensorflow', 'keras', 't2t_repro'} & sys.modules.keys()\n"
        f"print(json.dumps(translate({sentences!r})))\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder.parent,
    )
    assert ended.returncode == 0, ended.stderr
    first, found = ended.stdout.splitlines()
    assert first.startswith("['")
    command = ["decode", "--output_dir", str(trained.output_dir)]
    path = folder.parent / "sentences"
    path.write_text("".join(f"{sentence}\n" for sentence in sentences))
    ours = printed_by([*command, "--decode_from_file", str(path)]).splitlines()
    equal = [a == b for a, b in zip(json.loads(found), ours, strict=True)]
    assert sum(equal) >= 0.7 * len(equal)


def test_the_python_example_of_the_page_runs(trained, tmp_path, monkeypatch, capsys):
    (program,) = (b for b in code_blocks("python") if "CTranslate2System" in b)
    (tmp_path / "run").symlink_to(trained.output_dir)
    # The test fixture is trained too little for 8 bits.
    (tmp_path / "program.py").write_text(program.replace('"int8"', '"float32"'))
    monkeypatch.chdir(tmp_path)
    runpy.run_path("program.py", run_name="__main__")
    assert capsys.readouterr().out.startswith("[")


def test_the_page_has_the_limits_of_every_format():
    rows = re.findall(r"^\| (`\w+`.*?) \| (.+) \| (.+) \| (\d+) % \|$", PAGE, re.M)
    found = {}
    for names, *limits in rows:
        for name in re.findall(r"`(\w+)`", names):
            found[name] = tuple(float(limit) for limit in limits)
    assert found == {
        name: (limits.mean, limits.largest, 100 * limits.equal)
        for name, limits in QUANTIZATIONS.items()
    }
