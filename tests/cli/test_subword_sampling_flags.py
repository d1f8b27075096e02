from __future__ import annotations

import pytest

from t2t_repro.cli.main import main


def datagen(folder, *flags: str) -> int:
    source, target = folder / "source.txt", folder / "target.txt"
    source.write_text("".join(f"the houses {n}\n" for n in range(60)))
    target.write_text("".join(f"die Häuser {n}\n" for n in range(60)))
    files = ["--train_source", str(source), "--train_target", str(target)]
    data_dir = ["--data_dir", str(folder / "data")]
    return main(["datagen", "--problem", "text_pairs", *data_dir, *files, *flags])


def test_the_summary_counts_pairs_and_copies(tmp_path, capsys):
    flags = ("--subword_copies", "3", "--subword_sampling", "0.2")
    assert datagen(tmp_path, *flags, "--vocab_size", "300") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[2].split()[:3] == ["train", "57", "171"]
    assert "train: written 171 copies of 57 pair(s)" in lines


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--subword_copies", "3"], "expected subword_sampling above 0, such as 0.1"),
        (["--subword_copies", "0"], "at least 1"),
        (["--subword_sampling", "1.5"], "at least 0 and at most 1"),
        (["--subword_sampling", "nan"], "at least 0 and at most 1"),
    ],
)
def test_wrong_values_are_refused_before_anything_is_written(
    tmp_path, capsys, flags, message
):
    assert datagen(tmp_path, *flags) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "data").exists()


def test_a_problem_of_symbols_refuses_the_flags(tmp_path, capsys):
    flags = ("--data_dir", str(tmp_path), "--subword_sampling", "0.1")
    assert main(["datagen", "--problem", "algorithmic_reverse", *flags]) == 2
    message = capsys.readouterr().err
    assert "subword_sampling=0.1 for problem algorithmic_reverse, whose voc" in message
