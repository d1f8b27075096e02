from __future__ import annotations

import json

import pytest

from t2t_repro.cli.main import main
from t2t_repro.reproduction import small_scale
from tests.cli.conftest import sentence_pairs


def test_without_a_table_all_are_named(capsys):
    assert main(["reproduce"]) == 0
    names = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert names == [
        *("table1", "table2", "table3", "table4"),
        *("aop", "weighted", "sensitivity", "randomisation"),
    ]


def test_a_row_alone_is_shown(capsys):
    assert main(["reproduce", "table3/a_h1"]) == 0
    printed = capsys.readouterr().out
    assert "5.29" in printed
    assert "5.00" not in printed


@pytest.mark.parametrize(
    ("what", "answer"),
    [
        ("table33", "Did you mean table3"),
        ("table3/a_h2", "Did you mean a_h"),
        ("weigthed", "Did you mean weighted"),
    ],
)
def test_a_mistyped_name_is_answered_with_the_closest(what, answer, capsys):
    assert main(["reproduce", what]) == 2
    assert answer in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "answer"),
    [
        (["--run", "table3"], "expected TABLE/ROW"),
        (["--run", "table2/bytenet"], "published only"),
        (["--run", "table3/a_h1"], "--text_dir is missing"),
        # What they would train is not what the row shows.
        (["--run", "randomisation/random"], "cannot be run yet"),
        (["--run", "table4/transformer_4_layers_wsj_only"], "cannot be run yet"),
    ],
)
def test_a_run_that_cannot_be_is_refused(arguments, answer, capsys):
    assert main(["reproduce", *arguments]) == 2
    assert answer in capsys.readouterr().err


@pytest.mark.parametrize(
    ("row", "hparams_set", "steps"),
    [
        ("table3/a_h1", "transformer_base_a_h1", 100_000),
        ("table2/transformer_big", "transformer_big", 300_000),
        ("weighted/weighted_transformer_small", "weighted_transformer_base", 60_000),
        ("sensitivity/big", "weighted_transformer_big", 250_000),
    ],
)
def test_the_papers_recipe_is_what_to_type(row, hparams_set, steps, capsys):
    assert main(["reproduce", "--run", row, "--scale", "paper"]) == 0
    printed = capsys.readouterr().out
    assert f"--hparams_set {hparams_set} " in printed
    assert f"--train_steps {steps} " in printed


def test_a_small_run_leaves_a_result_file(tmp_path, monkeypatch, capsys):
    pairs = sentence_pairs()
    for name, own in (
        ("train", pairs * 4),
        ("val", pairs[::9]),
        ("test2016", pairs[4::9]),
    ):
        for side, suffix in enumerate(("en", "de")):
            text = "".join(f"{pair[side]}\n" for pair in own)
            (tmp_path / f"{name}.{suffix}").write_text(text)
    monkeypatch.setattr(small_scale, "TRAIN_STEPS", 2)
    monkeypatch.setattr(small_scale, "VOCAB_SIZE", 350)
    places = [f"--{p}={tmp_path / p}" for p in ("data_dir", "output_dir")]
    command = [
        "reproduce",
        "--run",
        "sensitivity/n2",
        f"--text_dir={tmp_path}",
        *places,
    ]
    assert main([*command, "--seed", "3"]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    result = json.loads((tmp_path / "output_dir" / line.split("/")[-1]).read_text())
    assert (result["row"], result["seed"], result["scale"]) == ("n2", 3, "small")
    assert set(result["scores"]) == {"perplexity (dev)", "BLEU (dev)", "BLEU (test)"}
    assert "tok:13a" in result["signature"]
    assert "--hparams_set weighted_transformer_n2" in result["commands"][0]
    assert str(tmp_path) not in json.dumps(result)
    assert len(result["data"]["train.en"]) == 64
