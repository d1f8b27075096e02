from __future__ import annotations

import os
import shlex
import subprocess
import sys

import pytest

from t2t_repro import catalogue, registry
from t2t_repro.cli import main as cli
from t2t_repro.cli.main import main
from t2t_repro.errors import UserError
from tests.support.command_lines import answers_without_tensorflow

LISTINGS = {
    "": 2,
    "--help": 0,
    "--version": 0,
    "list": 0,
    "list --help": 0,
    "show transformer_base": 0,
    "show translate_ende_synthetic": 0,
    "show transformer": 0,
    "show transfomer_base": 2,
    "lsit": 2,
    "list --prblem": 2,
}
ERRORS = {
    "datagen --problem text_pairs --train_source a": 2,
    "decode --output_dir no/such/folder": 1,
    "evaluate --output_dir no/such/folder": 1,
    "average --output_dir no/such/folder": 1,
    "export --output_dir no/such/folder --export_dir out": 1,
}


@pytest.mark.parametrize(
    ("codes", "others"), [(LISTINGS, ["numpy"]), (ERRORS, [])], ids=["list", "errors"]
)
def test_help_listings_and_errors_need_no_tensorflow(tmp_path, codes, others):
    answers = answers_without_tensorflow(map(str.split, codes), tmp_path, *others)
    assert dict(zip(codes, (code for code, *_ in answers), strict=True)) == codes
    for command, (*_, errors) in zip(codes, answers, strict=True):
        if "no/such/folder" in command:
            assert "expected the folder of a run" in errors


def test_list_of_one_kind_has_one_name_and_summary_per_line(capsys):
    main(["list", "models"])
    name, _, summary = capsys.readouterr().out.partition("  ")
    assert name == "transformer"
    assert summary.strip() == catalogue.MODELS["transformer"][1]


def test_attentions_are_listed_and_a_package_adds_its_own(tmp_path, capsys):
    package = tmp_path / "my_listed_attention"
    package.mkdir()
    (package / "__init__.py").write_text(
        "from t2t_repro.registry import register_attention\n"
        "@register_attention\n"
        "def no_attention(options, role, **kwargs):\n"
        '    """Attend to nothing."""\n'
    )
    flag = f"--t2t_usr_dir={package}"
    with registry.attentions.isolated():
        assert main(["list", "attentions", flag]) == 0
        rows = [line.split(None, 1) for line in capsys.readouterr().out.splitlines()]
        assert main(["show", "no_attention", flag]) == 0
        shown = capsys.readouterr().out
    assert ["no_attention", "Attend to nothing."] in rows
    assert [name for name, _ in rows] == [
        *("dot_product", "no_attention", "restricted", "restricted_masked")
    ]
    assert "attention no_attention" in shown
    assert "Attend to nothing." in shown
    assert "my_listed_attention" in shown
    assert "--hparams self_attention_type=no_attention" in shown


def test_an_unknown_attention_is_answered_with_where_they_are_listed(capsys):
    command = ["train", "--output_dir", "o", "--data_dir", "d", "--problem"]
    command += ["algorithmic_sort", "--hparams_set", "transformer_tiny"]
    assert main([*command, "--hparams", "self_attention_type=dot_produkt"]) == 2
    answer = capsys.readouterr().err
    assert "Did you mean dot_product" in answer
    assert "`t2t list attentions`" in answer


def test_show_prints_value_unit_origin_and_meaning(capsys):
    main(["show", "transformer_big"])
    lines = capsys.readouterr().out.splitlines()
    rows = [line.split(None, 4) for line in lines if line.startswith("hidden_size ")]
    assert rows == [
        [
            "hidden_size",
            "1024",
            "units",
            "transformer_big",
            "width of embeddings and of every sublayer (d_model)",
        ]
    ]


def test_show_diff_prints_only_what_differs(capsys):
    main(["show", "transformer_base", "--diff", "transformer_big_enfr"])
    lines = capsys.readouterr().out.splitlines()[1:]
    assert [line.split()[:3] for line in lines] == [
        ["hidden_size", "512", "1024"],
        ["filter_size", "2048", "4096"],
        ["num_heads", "8", "16"],
    ]


def test_show_diff_of_a_problem_is_refused(capsys):
    assert main(["show", "text_pairs", "--diff", "transformer_base"]) == 2
    assert "--diff compares hparams sets" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("translate_ende_wmt14", "37000 subwords"),
        ("algorithmic_reverse", "symbols"),
        ("translate_ende_wmt14_rev", "inputs and targets"),
        ("transformer", "t2t_repro.models.transformer"),
        ("transformer_base", "Measured: "),  # of its card
        ("transformer_base --diff transformer_base", "hold the same values"),
    ],
)
def test_show_explains_problems_models_and_sets(name, expected, capsys):
    assert main(["show", *name.split()]) == 0
    assert expected in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "answer"),
    [
        (["shwo"], "t2t: unknown command 'shwo'.\nDid you mean show"),
        (["show", "transformer_bas"], "t2t show: unknown name 'transformer_bas'."),
        (["show", "dot_produkt"], "name 'dot_produkt'.\nDid you mean dot_product"),
        (["show"], "the following arguments are required: NAME"),
        (["show", "x", "--dif", "y"], "unknown flag '--dif'.\nDid you mean --diff"),
        (["train", "--no-xla"], "unknown flag '--no-xla'.\nDid you mean --xla or"),
        (["list", "hparam"], "invalid choice: 'hparam'"),
        (["list", "models", "two"], "unexpected argument 'two'"),
        (["--bad"], "unrecognized arguments: --bad"),
    ],
)
def test_a_mistake_gets_two_lines_on_stderr_and_exit_code_2(arguments, answer, capsys):
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert answer in captured.err
    assert captured.err.count("\n") == 2
    assert captured.out == ""


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (UserError("received a, expected b."), 1, "t2t list: received a, expected b."),
        (KeyboardInterrupt(), 130, "t2t list: interrupted"),
        (PermissionError(13, "Permission denied", "f"), 1, "f: Permission denied"),
    ],
)
def test_an_error_of_a_command_is_one_line(error, code, message, monkeypatch, capsys):
    def fail(*_):
        raise error

    monkeypatch.setattr(cli, "run_command", fail)
    assert main(["list"]) == code
    assert message in capsys.readouterr().err


def test_a_fault_of_the_program_keeps_its_traceback(monkeypatch):
    def fail(*_):
        raise ZeroDivisionError

    monkeypatch.setattr(cli, "run_command", fail)
    with pytest.raises(ZeroDivisionError):
        main(["list"])


T2T = f"{shlex.quote(sys.executable)} -m t2t_repro.cli.main"


def shell(line, **options):
    return subprocess.run(["sh", "-c", line], capture_output=True, text=True, **options)


def test_closing_standard_output_early_is_no_error():
    assert shell(f"{T2T} show transformer_base | head -c 1").stderr == ""


def test_every_command_of_the_table_explains_its_flags(capsys):
    for command in cli.COMMANDS:
        assert main([command, "--help"]) == 0
        assert f"usage: t2t {command}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("command", "code", "answer"),
    [
        ("list >&-", 0, ""),
        ("list 2>&-", 0, ""),
        (
            "list models >/dev/full",
            1,
            "t2t list: cannot write standard output: No space",
        ),
        ("lsit >&- 2>&-", 2, ""),
        ("decode --output_dir run <&-", 1, "t2t decode: standard input is closed"),
        ("decode --output_dir run >&-", 1, "t2t decode: standard output is closed"),
    ],
)
def test_a_closed_stream_is_no_traceback(command, code, answer):
    # A buffer is written after the command's own prints.
    buffered = {k: v for k, v in os.environ.items() if k != "PYTHONUNBUFFERED"}
    ended = shell(f"{T2T} {command}", env=buffered)
    assert ended.returncode == code, ended.stderr
    assert ended.stderr.startswith(answer)
    assert ended.stderr.count("\n") == bool(answer)


def test_messages_to_a_closed_stream_are_not_among_the_results(tmp_path):
    for name in ("hypothesis", "reference"):
        (tmp_path / name).write_text("a b c d e\n")
    bleu = T2T.replace("cli.main", "features.tensor2tensor t2t-bleu")
    files = "--translation hypothesis --reference reference"
    ended = shell(f"{bleu} {files} 2>&-", cwd=tmp_path)
    assert ended.returncode == 0
    assert ended.stdout.count("\n") == 2
    assert "sacrebleu" not in ended.stdout


def test_a_character_that_stdout_lacks_is_written_as_an_escape():
    program = (
        "from t2t_repro.cli.main import run_reported\n"
        "run_reported('t2t', lambda: print('\u201eja'))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )
    assert (ended.stdout, ended.stderr) == ("\\u201eja\n", "")


def test_a_lack_of_memory_is_reported_in_plain_words(capsys):
    class ResourceExhaustedError(Exception):
        pass

    def allocate():
        raise ResourceExhaustedError("OOM when allocating a tensor\nmore lines")

    assert cli.run_reported("t2t train", allocate) == 1
    assert capsys.readouterr().err.splitlines() == [
        "t2t train: out of memory: lower batch_size of `--hparams` to train or time, "
        "or of `--decode_hparams` to translate.",
        "TensorFlow: OOM when allocating a tensor",
    ]


def test_commands_use_tensorflow_whatever_backend_keras_has(monkeypatch, capsys):
    monkeypatch.setenv("KERAS_BACKEND", "jax")
    assert main(["list", "hparams"]) == 0
    assert os.environ["KERAS_BACKEND"] == "tensorflow"


@pytest.mark.parametrize(
    "command",
    ["list", "list hparams", "show transformer_base", "show translate_ende_synthetic"],
)
def test_only_a_terminal_gets_lines_of_its_width(command, capsys, monkeypatch):
    main(command.split())
    piped = capsys.readouterr().out
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    main(command.split())
    assert capsys.readouterr().out == piped
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setattr("sys.stderr.isatty", lambda: False)
    main(command.split())
    shown = capsys.readouterr().out
    assert max(map(len, shown.splitlines())) <= 60 < max(map(len, piped.splitlines()))
    assert "".join(shown.split()) == "".join(piped.split())
