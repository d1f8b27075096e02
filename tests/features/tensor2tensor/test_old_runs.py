"""Old scripts run on the folder of a model that tensor2tensor trained."""

from __future__ import annotations

import shutil

import pytest

from t2t_repro.features.tensor2tensor.command_main import run
from t2t_repro.features.tensor2tensor.old_runs import is_old_model
from tests.support.old_models import DATA, STEP, copied, expected


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("old")
    copied("v3", folder / "model")
    shutil.copytree(DATA, folder / "data")
    lines = "".join(f"{line}\n" for line in expected("v3")[0]["sources"])
    (folder / "new.en").write_text(lines, encoding="utf-8")
    return folder


def flags(folder, **others):
    given = {
        "data_dir": folder / "data",
        "problem": "translate_golden",
        "model": "transformer",
        "output_dir": folder / "model",
    }
    return [f"--{name}={value}" for name, value in (given | others).items()]


def test_a_decoder_translates_with_the_imported_model(folder, capsys):
    translations = folder / "new.de"
    decoder = flags(
        folder,
        hparams_set="golden_v3",
        decode_hparams="beam_size=4,alpha=0.6",
        decode_from_file=folder / "new.en",
        decode_to_file=translations,
    )
    before = {path.name: path.read_bytes() for path in (folder / "model").iterdir()}
    assert run("t2t-decoder", decoder) == 0
    assert translations.read_text("utf-8").splitlines() == expected("v3")[0]["beam"]
    after = {path.name: path.read_bytes() for path in (folder / "model").iterdir()}
    assert after == before
    imported = folder / f"model-imported-{STEP}"
    assert not is_old_model(imported)
    assert "# first\n" in capsys.readouterr().err
    # The second time, the run is there.
    assert run("t2t-decoder", decoder) == 0
    assert "# first\n" not in capsys.readouterr().err


def test_each_checkpoint_has_an_import_of_its_own(folder, capsys):
    shutil.copytree(folder / "model", folder / "avg")
    own = folder / f"model-imported-avg-{STEP}"
    for place in (folder / "avg", folder / "avg" / f"model.ckpt-{STEP}"):
        lost = {"checkpoint_path": place, "data_dir": "nowhere"}
        assert run("t2t-decoder", flags(folder, **lost)) == 1
        assert f"its import is {own}" in capsys.readouterr().err
    assert run("t2t-decoder", flags(folder, checkpoint_path="nowhere")) == 1
    assert "received nowhere, expected a folder" in capsys.readouterr().err


def test_averaging_names_the_command_to_run(folder, capsys):
    assert run("t2t-avg-all", [f"--model_dir={folder / 'model'}"]) == 1
    assert "t2t import --from tensor2tensor" in capsys.readouterr().err
