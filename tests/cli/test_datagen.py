from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from t2t_repro import registry
from t2t_repro.cli.data_flags import add_data_flags, problem_and_settings
from t2t_repro.cli.main import main
from t2t_repro.data.request import PairCorpora, PairFiles, TreeFile


def text_files(folder: Path) -> list[str]:
    source, target = folder / "source.txt", folder / "target.txt"
    source.write_text("".join(f"the house {n}\n" for n in range(100)))
    target.write_text("".join(f"das Haus {n}\n" for n in range(100)))
    return ["--train_source", str(source), "--train_target", str(target)]


def datagen(*arguments: str) -> int:
    return main(["datagen", *arguments])


def parsed(*arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_data_flags(parser)
    return parser.parse_args(arguments)


def test_the_summary_counts_pairs_and_copies(tmp_path, capsys):
    place = ["--problem", "text_pairs", "--data_dir", f"{tmp_path}/data"]
    flags = ["--subword_copies", "3", "--subword_sampling", "0.2"]
    assert datagen(*place, *text_files(tmp_path), *flags, "--vocab_size", "300") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"text_pairs in {tmp_path}/data: vocabulary of ")
    counts = [["train", "95", "285"], ["dev", "5", "5"]]
    assert [line.split()[:3] for line in lines[2:4]] == counts
    assert "train: written 285 copies of 95 pair(s)" in lines


def test_dropped_pairs_are_printed_by_reason(tmp_path, capsys):
    source, target = tmp_path / "a", tmp_path / "b"
    source.write_text("x\nx\n\n" + "".join(f"{n}\n" for n in range(40)))
    target.write_text("y\ny\nz\n" + "".join(f"{n}\n" for n in range(40)))
    files = ["--train_source", str(source), "--train_target", str(target)]
    dev = ["--dev_source", str(source), "--dev_target", str(target)]
    datagen("--problem", "text_pairs", "--data_dir", f"{tmp_path}/d", *files, *dev)
    printed = capsys.readouterr().out
    assert "train: left out 1 pair(s): empty side" in printed
    assert "train: left out 1 pair(s): exact repeat" in printed
    assert "dev: left out 1 pair(s): empty side" in printed
    assert "also in the dev or test text" in printed


def test_the_same_command_again_finds_the_data(tmp_path, capsys):
    command = ["--problem", "algorithmic_sort", "--data_dir", str(tmp_path)]
    assert datagen(*command) == 0
    first = capsys.readouterr()
    assert datagen(*command) == 0
    second = capsys.readouterr()
    assert second.out == first.out
    assert "already prepared in" in second.err


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("", "received no --problem"),
        ("text_pairs", "received no --data_dir"),
        ("text_pears", "Did you mean text_pairs"),
        ("text_pairs --data_dir d", "received no training text"),
        ("text_pairs --train_source a", "without --train_target"),
        ("text_pairs --train_target a", "without --train_source"),
        ("text_pairs --dev_tsv a", "without training text"),
        ("text_pairs --train_tsv a --train_source b", "either one TSV or two files"),
        ("algorithmic_sort --train_tsv a", "its own text"),
        ("algorithmic_sort --vocab_size 9", "its 10 symbols"),
        (
            "text_pairs --source_model m --vocab_type bpe",
            "source_model=m and model_type=bpe",
        ),
        ("text_pairs --train_weights 1", "without training text"),
        (
            "text_pairs --train_source a,b --train_target c",
            "received 2 file(s) in --train_source and 1 in --train_target",
        ),
        (
            "text_pairs --train_tsv a,b --train_weights 1",
            "received --train_weights 1, expected 2 whole number(s)",
        ),
        (
            "text_pairs --train_tsv a --train_weights 0",
            "received --train_weights 0, expected 1 whole number(s)",
        ),
        ("text_pairs --tfds a", "received tfds for problem"),
        ("translate_tfds --tfds a --train_tsv b", "received --tfds beside text files"),
        ("text_pairs --train_tsv a --train_target b", "received --train_tsv beside"),
        (
            "text_pairs --train_trees a --train_tsv b",
            "received --train_trees beside pairs",
        ),
        (
            "algorithmic_reverse --subword_sampling 0.1",
            "subword_sampling=0.1 for problem algorithmic_reverse, whose voc",
        ),
        (
            "text_pairs --subword_copies 3",
            "expected subword_sampling above 0, such as 0.1",
        ),
        ("text_pairs --subword_copies 0", "at least 1"),
        ("text_pairs --subword_sampling 1.5", "at least 0 and at most 1"),
        ("text_pairs --subword_sampling nan", "at least 0 and at most 1"),
        ("text_pairs --num_workers 0", "at least 1"),
        ("text_pairs --vocab_size many", "'many', expected a whole number"),
        ("text_pairs --max_pair_length 1", "at least 2"),
        ("text_pairs --character_coverage 0.9", "at least 0.98 and at most 1"),
        ("text_pairs --max_length_ratio nan", "at least 0"),
        ("text_pairs --num_shards 0", "at least 1"),
        ("text_pairs --drop_duplicates --keep_duplicates", "not allowed with"),
    ],
)
def test_usage_errors_say_what_was_expected(capsys, flags, message):
    problem = ["--problem"] if flags else []
    assert datagen(*problem, *flags.split()) == 2
    assert message in capsys.readouterr().err


def test_a_broken_text_is_refused_before_anything_is_written(tmp_path, capsys):
    files = text_files(tmp_path)
    Path(files[1]).write_bytes(b"good\nb\xe4d\n")
    code = datagen("--problem", "text_pairs", "--data_dir", f"{tmp_path}/data", *files)
    assert code == 1
    assert "source.txt:2: received byte 0xE4" in capsys.readouterr().err
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("command", ["datagen", "train"])
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("--seed", ("--shuffle_seed orders", "--random_seed of t2t train seeds")),
        ("--max_length", ("--max_pair_length limits", "--hparams max_length=N")),
    ],
)
def test_an_ambiguous_flag_is_answered_with_both_meanings(capsys, command, old, new):
    assert main([command, "--problem", "text_pairs", old, "70"]) == 2
    message = capsys.readouterr().err
    assert message.startswith(f"t2t {command}: received {old}: ")
    assert all(name in message for name in new)


@pytest.mark.parametrize("command", ["datagen", "train"])
def test_old_names_of_flags_are_neither_shown_nor_suggested(capsys, command):
    assert main([command, "--help"]) == 0
    shown = capsys.readouterr().out.split()
    assert "--shuffle_seed" in shown
    assert not {"--seed", "--max_length"} & set(shown)
    assert main([command, "--sed", "1"]) == 2
    assert "--seed" not in capsys.readouterr().err.split()


def test_tensor2tensors_schedule_is_not_mistaken_for_a_seed(capsys):
    assert main(["train", "--schedule", "continuous_train_and_eval"]) == 2
    message = capsys.readouterr().err
    assert "`t2t train` always trains, evaluates and saves" in message
    assert "seed" not in message


def test_a_model_that_cannot_be_read_is_refused(tmp_path, capsys):
    place = ["--problem", "text_pairs", "--data_dir", f"{tmp_path}/d"]
    model = ["--source_model", f"{tmp_path}/none.model"]
    assert datagen(*place, *model, *text_files(tmp_path)) == 1
    assert "none.model" in capsys.readouterr().err


def test_an_error_in_the_users_problem_has_its_file_and_line(tmp_path, capsys):
    package = tmp_path / "own_datagen_package"
    package.mkdir()
    file = package / "__init__.py"
    file.write_text(
        "from t2t_repro.data.problem import Problem\n"
        "from t2t_repro.registry import register_problem\n"
        "@register_problem\n"
        "class CopyOwn(Problem):\n"
        "    def pairs(self, split, tmp_dir):\n"
        "        yield {}['key']\n"
    )
    flags = [f"--t2t_usr_dir={package}", f"--data_dir={tmp_path}/data"]
    with registry.problems.isolated():
        assert datagen("--problem=copy_own", *flags) == 1
    error = capsys.readouterr().err
    assert error.endswith(f"\nt2t datagen: {file}:6: KeyError: 'key'\n")
    assert "Traceback" not in error


def test_tables_and_trees_are_one_file_per_split():
    problem, _ = problem_and_settings(
        parsed("--problem=text_pairs", "--train_tsv=a", "--dev_tsv=b")
    )
    tables = {"train": PairFiles(Path("a"), None), "dev": PairFiles(Path("b"), None)}
    assert problem._files == tables
    problem, _ = problem_and_settings(
        parsed("--problem=parsing_ptb", "--train_trees=a", "--test_trees=b")
    )
    trees = {"train": TreeFile(Path("a")), "test": TreeFile(Path("b"))}
    assert problem._files == trees


def test_several_corpora_are_read_with_their_weights(tmp_path):
    for name in ("a", "b,c"):
        for side in ("en", "de"):
            (tmp_path / f"{name}.{side}").write_text("x\n")
    source, target = f"{tmp_path}/a.en,{tmp_path}/a.en", f"{tmp_path}/a.de,b.de"
    weighted = ["--train_source", source, "--train_target", target]
    problem, _ = problem_and_settings(
        parsed("--problem", "text_pairs", *weighted, "--train_weights", "1,3")
    )
    a = PairFiles(tmp_path / "a.en", tmp_path / "a.de")
    b = PairFiles(tmp_path / "a.en", Path("b.de"))
    assert problem._files == {"train": PairCorpora((a, b), (1, 3))}
    problem, _ = problem_and_settings(parsed("--problem", "text_pairs", *weighted))
    assert problem._files == {"train": PairCorpora((a, b), (1, 1))}
    comma = [f"--train_source={tmp_path}/b,c.en", f"--train_target={tmp_path}/b,c.de"]
    problem, _ = problem_and_settings(parsed("--problem", "text_pairs", *comma))
    files = PairFiles(tmp_path / "b,c.en", tmp_path / "b,c.de")
    assert problem._files == {"train": files}
