"""Lines of tensor2tensor's README and walkthrough run through the old names."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path

import pytest
import tensorflow as tf

from t2t_repro.cli import train
from t2t_repro.cli.main import main
from t2t_repro.features.tensor2tensor import command_bleu, command_main
from t2t_repro.features.tensor2tensor.command_main import run, translate
from t2t_repro.runs import run_training
from tests.support.command_lines import parsed

# The variables of the walkthrough are set by the fixture `walkthrough`.
DECODE = (
    "t2t-decoder --data_dir=$DATA_DIR --problem=$PROBLEM --model=$MODEL "
    "--hparams_set=$HPARAMS --output_dir=$TRAIN_DIR "
    '--decode_hparams="beam_size=$BEAM_SIZE,alpha=$ALPHA" '
    "--decode_from_file=$DECODE_FILE"
)
EXPORT = (
    "t2t-exporter --model=transformer --hparams_set=transformer_tiny "
    "--problem=translate_ende_wmt8k --data_dir=~/t2t/data --output_dir=$TRAIN_DIR"
)
TRAIN = (
    "t2t-trainer --data_dir=$DATA_DIR --problem=$PROBLEM --model=$MODEL "
    "--hparams_set=$HPARAMS --output_dir=$TRAIN_DIR"
)
# They download text, so that only their parsing is tested.
DOWNLOADING = {
    "t2t-datagen --data_dir=$DATA_DIR --tmp_dir=$TMP_DIR --problem=$PROBLEM": "datagen",
    TRAIN: "train",
    "t2t-trainer --generate_data --data_dir=~/t2t_data --problem=translate_ende_wmt32k "
    "--model=transformer --hparams_set=transformer_base_single_gpu "
    "--output_dir=~/t2t_train/base": "train",
    "t2t-datagen --data_dir=$DATA_DIR --tmp_dir=$TMP_DIR --num_shards=100 "
    "--problem=wmt_ende_tokens_32k": "datagen",
}


class Walkthrough:
    """A shell with the variables of tensor2tensor's walkthrough."""

    def __init__(self, folder, capsys):
        self.folder = folder
        self.capsys = capsys

    def words(self, line):
        """Split a line as a shell does, which leaves "~" after "=" as it is."""
        return shlex.split(os.path.expandvars(line))

    def run(self, line):
        command, *arguments = self.words(line)
        code = run(command, arguments)
        printed = self.capsys.readouterr()
        return code, printed.out, printed.err


@pytest.fixture
def walkthrough(trained, tmp_path, monkeypatch, capsys):
    shutil.copytree(trained.output_dir, tmp_path / "train")
    (tmp_path / "decode_this.txt").write_text("one times: the house is red .\n\n")
    (tmp_path / "ref-translation.de").write_text("ein mal: das Haus ist rot .\n\n")
    for name, value in (
        ("PROBLEM", "translate_ende_wmt32k"),
        ("MODEL", "transformer"),
        ("HPARAMS", "transformer_base_single_gpu"),
        ("DATA_DIR", tmp_path / "t2t_data"),
        ("TMP_DIR", tmp_path / "t2t_datagen"),
        ("TRAIN_DIR", tmp_path / "train"),
        ("DECODE_FILE", tmp_path / "decode_this.txt"),
        ("BEAM_SIZE", "4"),
        ("ALPHA", "0.6"),
        ("HOME", tmp_path),
    ):
        monkeypatch.setenv(name, str(value))
    monkeypatch.chdir(tmp_path)
    return Walkthrough(tmp_path, capsys)


@pytest.mark.parametrize("line", DOWNLOADING)
def test_a_line_that_downloads_becomes_a_valid_command(walkthrough, line):
    command, *arguments = walkthrough.words(line)
    translation = translate(command, arguments)
    assert translation.command == DOWNLOADING[line]
    flags = parsed(translation.command, translation.arguments[1:])
    assert flags.problem == "translate_ende_wmt14"
    assert flags.vocab_size == 32768


def test_the_registry_is_listed(walkthrough):
    code, out, err = walkthrough.run("t2t-trainer --registry_help")
    assert code == 0
    assert "transformer_base_v3" in out
    assert err == "t2t list  # t2t-trainer\n"


def test_the_walkthrough_decodes_and_scores(walkthrough):
    code, out, err = walkthrough.run(f"{DECODE} --decode_to_file=translation.en")
    assert (code, out) == (0, "")
    assert (walkthrough.folder / "translation.en").read_text().count("\n") == 2
    assert "--problem=translate_ende_wmt32k" in err.splitlines()[0]
    assert err.count("using checkpoint") == 1
    folder = walkthrough.folder
    assert err.splitlines()[1] == (
        f"t2t decode --output_dir {folder}/train --decode_from_file "
        f"{folder}/decode_this.txt --decode_to_file translation.en --decode_hparams "
        "beam_size=4,alpha=0.6  # t2t-decoder"
    )
    code, out, _ = walkthrough.run(
        "t2t-bleu --translation=translation.en --reference=ref-translation.de"
    )
    assert code == 0
    names = [line.split(" = ")[0] for line in out.splitlines()]
    assert names == ["BLEU_uncased", "BLEU_cased"]


def test_pairs_are_scored_as_by_t2t_score(walkthrough):
    folder = walkthrough.folder
    (folder / "pairs.tsv").write_text(
        "one times: the house is red .\t ein mal: das Haus ist rot . \n"
        "two times: the book is green .\tzwei mal: das Buch ist rot .\n"
    )
    code, out, err = walkthrough.run(
        "t2t-decoder --data_dir=$DATA_DIR --problem=$PROBLEM --model=$MODEL "
        "--hparams_set=$HPARAMS --output_dir=$TRAIN_DIR --score_file=pairs.tsv "
        "--decode_to_file=scores.txt"
    )
    assert (code, out) == (0, "")
    assert (folder / "scores.txt.inputs").read_text() == (
        "one times: the house is red .\ntwo times: the book is green .\n"
    )
    assert (folder / "scores.txt.targets").read_text() == (
        "ein mal: das Haus ist rot .\nzwei mal: das Buch ist rot .\n"
    )
    (line,) = [line for line in err.splitlines() if line.startswith("t2t score")]
    arguments = shlex.split(line.partition("  #")[0])[1:]
    arguments[arguments.index("--scores_to_file") + 1] = "again.txt"
    assert main(arguments) == 0
    scores = (folder / "scores.txt").read_text()
    assert scores == (folder / "again.txt").read_text()
    assert [len(row.split("\t")) for row in scores.splitlines()] == [3, 3]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a\tb\nno tab\n", "pairs.tsv:2: received 1 column(s), expected 2"),
        ("a\tb\tc\n", "pairs.tsv:1: received 3 column(s), expected 2"),
        (None, "expected a file that can be read"),
    ],
)
def test_a_file_without_pairs_is_answered_before_it_is_scored(
    walkthrough, text, message
):
    if text:
        (walkthrough.folder / "pairs.tsv").write_text(text)
    code, out, err = walkthrough.run(
        "t2t-decoder --output_dir=$TRAIN_DIR --score_file=pairs.tsv"
    )
    assert (code, out) == (1, "")
    assert message in err
    assert not (walkthrough.folder / "pairs.tsv.inputs").exists()


def test_the_model_is_averaged_and_exported(walkthrough, monkeypatch):
    """Nothing is traced, which takes many seconds."""

    def save(served, folder, signatures):
        (Path(folder) / "saved_model.pb").write_bytes(b"")

    monkeypatch.setattr(tf.saved_model, "save", save)
    code, out, _ = walkthrough.run(
        "t2t-avg-all --model_dir $TRAIN_DIR --output_dir avg --n 2"
    )
    assert (code, out) == (0, f"{walkthrough.folder}/train/averaged/model.ckpt-60\n")
    assert walkthrough.run(EXPORT)[0] == 0
    assert (walkthrough.folder / "train" / "export" / "saved_model.pb").exists()


def test_every_checkpoint_translates_and_is_scored(walkthrough):
    line = (
        "t2t-translate-all --source=$DECODE_FILE --model_dir=$TRAIN_DIR "
        "--translations_dir=my-translations --problem=$PROBLEM --data_dir=$DATA_DIR "
        "--hparams_set=transformer_base --beam_size=2 --alpha=0.5 --min_steps=40"
    )
    code, _, err = walkthrough.run(line)
    assert code == 0
    made = walkthrough.folder / "my-translations"
    names = {f"translate_ende_wmt32k-{step}" for step in (40, 60)}
    assert {path.name for path in made.iterdir()} == names
    index = walkthrough.folder / "train" / "model.ckpt-40.index"
    written_at = (made / "translate_ende_wmt32k-40").stat().st_mtime
    assert written_at == pytest.approx(index.stat().st_mtime)
    lines = [line for line in err.splitlines() if line.startswith("t2t decode")]
    assert len(lines) == 2
    assert "--decode_hparams beam_size=2,alpha=0.5" in lines[0]
    # A second call finds the translations.
    code, _, err = walkthrough.run(line)
    assert code == 0
    assert err.count("exists already") == 2
    code, out, _ = walkthrough.run(
        "t2t-bleu --translations_dir=my-translations --reference=ref-translation.de "
        "--event_dir=events"
    )
    assert code == 0
    assert len(out.splitlines()) == 4


@pytest.mark.usefixtures("eager")
def test_a_model_is_trained_and_resumed(walkthrough, trained, monkeypatch):
    # Other tests look at evaluations and at the report.
    monkeypatch.setattr(run_training, "make_evaluators", lambda *given: [])
    monkeypatch.setattr(train, "print_report", lambda *given, **named: None)
    line = (
        f"t2t-trainer --problem=text_pairs --data_dir={trained.data_dir} "
        "--model=transformer --hparams_set=transformer_test --hparams=batch_size=512,"
        "max_length=32,min_length_bucket=32,num_hidden_layers=1 --output_dir=new "
        "--local_eval_frequency=1 --keep_checkpoint_max=5 --worker_gpu=1 "
        "--schedule=continuous_train_and_eval --eval_steps=1"
    )
    assert walkthrough.run(f"{line} --train_steps=1")[0] == 0
    code, _, err = walkthrough.run(f"{line} --train_steps=2")
    assert code == 0
    assert (walkthrough.folder / "new" / "model.ckpt-2.index").exists()
    assert "--worker_gpu=1: not needed" in err


@pytest.mark.parametrize(
    "flags", ["--registry_help", "--problem=my_problem --output_dir=o --data_dir=d"]
)
def test_a_package_that_cannot_run_is_answered(walkthrough, flags):
    package = walkthrough.folder / "usr" / "t2t_usr"
    package.mkdir(parents=True)
    code = "from tensor2tensor.rl import ppo\nppo.run()\n"
    (package / "__init__.py").write_text(code)
    code, out, err = walkthrough.run(f"t2t-trainer --t2t_usr_dir=~/usr/t2t_usr {flags}")
    assert (code, out) == (1, "")
    assert err.endswith(
        f"t2t-trainer: {package}/__init__.py:2: tensor2tensor.rl.ppo.run is not here: "
        "there is no such module here\n"
    )


@pytest.mark.parametrize("command", ["t2t-trainer", "t2t-bleu", "t2t-translate-all"])
def test_help_says_what_became_of_every_flag(command, capsys):
    assert run(command, ["--help"]) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"usage: {command} --FLAG=VALUE")
    assert ("--worker_gpu " in out) == (command == "t2t-trainer")


def test_a_decoder_that_fails_ends_the_loop(walkthrough, monkeypatch):
    monkeypatch.setattr(command_bleu, "run_command", lambda arguments: 7)
    assert (
        walkthrough.run("t2t-translate-all --source=s --model_dir=$TRAIN_DIR")[0] == 7
    )


def test_every_entry_point_runs_its_command(monkeypatch):
    import tomllib

    project = Path(__file__).parents[3] / "pyproject.toml"
    scripts = tomllib.loads(project.read_text())["project"]["scripts"]
    del scripts["t2t"]
    called = []
    monkeypatch.setattr(command_main, "run", lambda *given: called.append(given) or 0)
    for name, target in scripts.items():
        assert target == f"{command_main.__name__}:main"
        monkeypatch.setattr(sys, "argv", [f"/a/folder/{name}", "--flag"])
        assert command_main.main() == 0
        assert called.pop() == (name, ["--flag"])
    assert set(scripts) == set(command_main.COMMANDS)


@pytest.mark.parametrize("arguments", [[], ["t2t-blue"]])
def test_the_module_needs_the_name_of_a_command(capsys, arguments):
    assert command_main.run_named(arguments) == 2
    assert "expected one of t2t-trainer, " in capsys.readouterr().err
    assert command_main.run_named(["t2t-bleu", "--help"]) == 0
