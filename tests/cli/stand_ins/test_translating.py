"""Commands around a system that a stand-in plays: errors, order and output."""

from __future__ import annotations

import contextlib
import json
import logging
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from t2t_repro import runs
from t2t_repro.cli import decode as decode_command
from t2t_repro.cli import evaluate as evaluate_command
from t2t_repro.cli import loading
from t2t_repro.cli.main import main
from t2t_repro.data.prepared import PreparedData
from t2t_repro.features.ensembles import members
from t2t_repro.features.ensembles.members import EnsembleFolder, member_folders
from t2t_repro.features.scores import command_compare
from t2t_repro.runs.run import Run
from t2t_repro.settings.decode_hparams import DecodeHParams
from tests.support.recorder import Recorder, record


def loaded_call(stage):
    return {
        "run": Run.load_existing(stage.run),
        "output_dir": stage.run,
        "checkpoint": f"{stage.run}/best/model.ckpt-60",
    }


def decode(stage, *more, hparams="beam_size=3,alpha=0.9"):
    source = stage.file("source", "a", "b", "c")
    flags = ["--decode_from_file", source, "--decode_hparams", hparams]
    return main(["decode", *stage.flags, *flags, *more])


def set_threads(monkeypatch) -> Recorder:
    return record(monkeypatch, loading, "_use_one_thread_per_operation", None)


def test_a_terminal_has_all_threads_for_its_sentence(stage, monkeypatch):
    one_thread = set_threads(monkeypatch)
    live = SimpleNamespace(is_terminal=True, must_wait=False, chunks=lambda size: [])
    monkeypatch.setattr(decode_command, "open_inputs", lambda names: [live])
    decode(stage)
    assert one_thread.calls == []
    live.is_terminal = False
    decode(stage)
    assert len(one_thread.calls) == 1


def test_decode_wants_a_prefix_per_line(stage, capsys):
    prefixes = stage.file("prefixes", "x")
    assert decode(stage, "--target_prefix", prefixes) == 1
    errors = capsys.readouterr().err
    assert "received 3 lines in the text to translate and 1 in" in errors
    assert f"--target_prefix {prefixes}, expected equal numbers" in errors
    assert stage.system.calls == []


def text_of(stage, command):
    source = stage.file("source", "a")
    pairs = ["--source", source, "--target", stage.file("target", "b")]
    return {"decode": ["--decode_from_file", source], "score": pairs}.get(command, [])


@pytest.mark.parametrize("command", ["decode", "evaluate", "score"])
@pytest.mark.parametrize("checkpoints", ["", "best", "best,{run}/model.ckpt-40"])
def test_several_checkpoints_and_the_folder_of_several_runs_are_ensembles(
    stage, splits, monkeypatch, command, checkpoints
):
    ensemble = stage.folder / "ensemble"
    ensemble.mkdir()
    EnsembleFolder(2).save(ensemble)
    for member in member_folders(ensemble):
        shutil.copytree(stage.run, member)
    folder = stage.run if "," in checkpoints else str(ensemble)
    names = checkpoints.format(run=stage.run)
    loaded = record(monkeypatch, members, "load_ensemble", stage.system)
    flags = ["--output_dir", folder, "--t2t_usr_dir", stage.package]
    flags += ["--checkpoint_path", names] if names else []
    assert main([command, *flags, *text_of(stage, command)]) == 0
    assert loaded.call == {
        "output_dir": folder,
        "checkpoints": names.split(",") if names else [],
        "t2t_usr_dir": stage.package,
    }
    assert stage.loaded.calls == []


def test_a_missing_checkpoint_of_an_ensemble_is_reported(stage, capsys):
    assert decode(stage, "--checkpoint_path", "best,none") == 1
    assert "received checkpoint path 'none'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("hparams", "line"),
    [
        ("return_beams=true", "best a\tsecond a"),
        ("write_beam_scores=true", "best a\t-1.5000\tsecond a\t-2.5000"),
        (
            "return_beams=true,write_beam_scores=true",
            "best a\t-1.5000\tsecond a\t-2.5000",
        ),
    ],
)
def test_decode_writes_columns_on_request(stage, capsys, hparams, line):
    decode(stage, hparams=hparams)
    assert capsys.readouterr().out.splitlines()[0] == line


def test_decode_reports_repairs_of_the_best_translations(stage, capsys):
    stage.system.repaired = ("a", "c")
    decode(stage)
    assert "repaired 2 of 3: 2 x cut\n" in capsys.readouterr().err
    stage.system.repaired = ()
    decode(stage)
    assert "repaired" not in capsys.readouterr().err


def test_decode_weighs_sentences_in_the_order_of_translation(stage, monkeypatch):
    monkeypatch.setattr(decode_command, "CHUNK_SIZE", 2)
    done = []
    progress = contextlib.nullcontext(SimpleNamespace(advance=done.append))
    shown = record(monkeypatch, decode_command, "Progress", progress)
    first = stage.file("first", "a", "bcd", "ef")
    second = stage.file("second", "ghij")
    files = ["--decode_from_file", first, second]
    outputs = ["--decode_to_file", f"{first}.out", f"{second}.out"]
    assert main(["decode", *stage.flags, *files, *outputs]) == 0
    assert (shown.call["total"], shown.call["unit"]) == (4, "sentence")
    assert shown.call["weights"] == [4, 2, 3, 5]
    assert sum(done) == 4


def test_decode_loads_one_system_for_several_files(stage, capsys):
    first, second = stage.file("first", "a", "b"), stage.file("second", "c")
    outputs = [stage.folder / "1", stage.folder / "2"]
    files = ["--decode_from_file", first, "--decode_from_file", second]
    targets = ["--decode_to_file", *map(str, outputs)]
    assert main(["decode", *stage.flags, *files, *targets]) == 0
    assert [path.read_text() for path in outputs] == ["best a\nbest b\n", "best c\n"]
    assert stage.loaded.call == loaded_call(stage)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("target", ["none/2", "."])
def test_decode_checks_every_output_before_the_model_is_loaded(stage, capsys, target):
    files = ["--decode_from_file", stage.file("a", "a"), stage.file("b", "b")]
    targets = ["--decode_to_file", str(stage.folder / "1"), target]
    assert main(["decode", *stage.flags, *files, *targets]) == 1
    answer = f"received --decode_to_file {target}, expected a file in an existing"
    assert answer in capsys.readouterr().err
    assert stage.loaded.calls == []


def test_decode_numbers_the_lines_of_a_stream_as_those_of_a_file(stage, monkeypatch):
    chunks = iter([["a"], ["b", "c"], ["d"]])
    stream = SimpleNamespace(
        is_terminal=False, must_wait=False, chunks=lambda size: chunks
    )
    monkeypatch.setattr(decode_command, "open_inputs", lambda names: [stream])
    assert main(["decode", *stage.flags]) == 0
    assert stage.system.firsts == [0, 1, 3]


def test_decode_names_a_folder_that_is_missing(stage, capsys):
    files = ["--decode_from_file", stage.file("a", "a"), "--translations_dir", "none"]
    assert main(["decode", *stage.flags, *files]) == 1
    assert "received --translations_dir none, expected an" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("flags", "answer"),
    [
        (["-", "-"], "received - as several inputs, expected it once"),
        (["a", "b"], "received 2 --decode_from_file and 0 --decode_to_file"),
        (["a", "b", "--decode_to_file", "c", "c"], "2 inputs whose translations"),
        (["a", "b", "--decode_to_file", "c", "./c"], "2 inputs whose translations"),
        (["a", "--decode_to_file", "c", "--translations_dir", "."], "give either"),
        (["a", "--translations_dir", "."], "--translations_dir a, which is also an"),
        (["a", "--target_prefix", "p", "--decode_to_file", "p"], "p, which is also an"),
        (["-", "--target_prefix", "-"], "received - as several inputs"),
        (["a", "--decode_to_file", "./a"], "./a, which is also an input"),
        (["a", "b", "--decode_to_file", "c", "a"], "--decode_to_file a, which is also"),
        (["-", "--translations_dir", "."], "standard input has no name"),
        (["x/a", "y/a", "--translations_dir", "."], "2 inputs whose translations"),
    ],
)
def test_decode_refuses_files_that_do_not_fit(stage, capsys, flags, answer):
    assert main(["decode", *stage.flags, "--decode_from_file", *flags]) == 2
    assert answer in capsys.readouterr().err
    assert stage.loaded.calls == []


def decoded_json(stage, capsys, hparams):
    decode(stage, "--output_format", "json", hparams=hparams)
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_decode_writes_an_object_with_ranked_hypotheses_per_line(stage, capsys):
    lines = decoded_json(stage, capsys, "beam_size=2,return_beams=true,alpha=0.9")
    assert [line["line"] for line in lines] == [1, 2, 3]
    # The stand-in's problem has its own alpha; these hypotheses have 2 and 3 tokens.
    assert lines[0]["hypotheses"] == [
        {
            "rank": 1,
            "text": "best a",
            "score": -1.5,
            "log_prob": round(-1.5 * (7 / 6) ** 0.9, 6),
            "tokens": 2,
        },
        {
            "rank": 2,
            "text": "second a",
            "score": -2.5,
            "log_prob": round(-2.5 * (8 / 6) ** 0.9, 6),
            "tokens": 3,
        },
    ]


def test_decode_tells_where_the_search_found_fewer_hypotheses(stage, capsys):
    decode(stage, hparams="beam_size=3,return_beams=true")
    err = capsys.readouterr().err
    assert "3 of 3 lines have fewer than 3 hypotheses" in err
    decode(stage, hparams="beam_size=2,return_beams=true")
    assert "fewer" not in capsys.readouterr().err


def test_decode_refuses_a_column_of_scores_in_json(stage, capsys):
    hparams = "write_beam_scores=true"
    assert decode(stage, "--output_format=json", hparams=hparams) == 2
    assert "leave one out" in capsys.readouterr().err


def score(stage, *more):
    files = ["--source", stage.file("source", "a", "b")]
    files += ["--target", stage.file("target", "c", "d")]
    hparams = ["--decode_hparams", "alpha=0.9,batch_size=77"]
    return main(["score", *stage.flags, *files, *hparams, *more])


def test_score_scores_the_pairs_of_the_files(stage, capsys):
    assert score(stage) == 0
    assert stage.loaded.call == loaded_call(stage)
    ((_, *texts, hparams, _),) = stage.system.calls
    assert texts == [["a", "b"], ["c", "d"]]
    assert hparams == DecodeHParams(alpha=0.9, batch_size=77)
    captured = capsys.readouterr()
    assert captured.out == "-1.250000\t-0.750000\t3\n" * 2
    assert "2 pairs, 6 tokens: -0.4167 nats per token, perplexity 1.52" in captured.err


def test_score_writes_tokens_to_the_named_file(stage, capsys):
    target = stage.folder / "scores"
    score(stage, "--per_token", "--scores_to_file", str(target))
    assert target.read_text().splitlines()[1] == (
        "-1.250000\t-0.750000\t3\tb d </s>\t-0.250000 -1.000000 0.000000"
    )
    assert capsys.readouterr().out == ""


def test_score_writes_an_object_per_pair(stage, capsys):
    score(stage, "--per_token", "--output_format", "json")
    second = json.loads(capsys.readouterr().out.splitlines()[1])
    assert second == {
        "line": 2,
        "log_prob": -1.25,
        "score": -0.75,
        "tokens": 3,
        "pieces": ["b", "d", "</s>"],
        "token_log_probs": [-0.25, -1.0, 0.0],
    }
    score(stage, "--output_format", "json")
    assert "pieces" not in capsys.readouterr().out


def test_score_reads_standard_input_once(stage, capsys):
    assert score(stage, "--source", "-", "--target", "-") == 2
    assert "received - as several inputs" in capsys.readouterr().err
    assert stage.loaded.calls == []


def test_score_refuses_files_of_different_lengths(stage, capsys):
    short = stage.file("short", "c")
    assert score(stage, "--target", short) == 1
    err = capsys.readouterr().err
    assert "received 2 lines in" in err
    assert f"1 in {short}" in err
    assert stage.loaded.calls == []


def evaluate(stage, *more):
    hparams = ["--decode_hparams", "beam_size=3,alpha=0.9"]
    return main(["evaluate", *stage.flags, *hparams, *more])


def printed(capsys):
    return json.loads(capsys.readouterr().out)


@pytest.fixture
def splits(monkeypatch):
    """Put a text in place of prepared data, and record where it is read."""

    def raw_text(split):
        return [f"{split} source"], [f"{split} reference"]

    prepared = SimpleNamespace(raw_text=raw_text, splits=("train", "dev", "test"))
    monkeypatch.setattr(
        PreparedData, "load", Recorder(PreparedData.load, prepared), raising=True
    )
    return PreparedData.load


@pytest.mark.parametrize(
    ("flags", "split"), [([], "test"), (["--split", "dev"], "dev")]
)
def test_evaluate_scores_a_split_of_the_runs_data(stage, splits, capsys, flags, split):
    problem = stage.system.problem
    evaluate(stage, *flags)
    assert splits.call == {"folder": str(stage.folder / "data"), "problem": problem}
    report = printed(capsys)
    assert report["hypotheses"] == [f"best {split} source"]
    assert report["references"] == [f"{split} reference"]
    assert report["data"] == split


def test_evaluate_searches_as_asked_completed_by_the_problem(stage, splits, capsys):
    evaluate(stage)
    *_, hparams, _ = stage.system.calls[-1]
    expected = DecodeHParams(beam_size=3, alpha=0.9, extra_length=17)
    assert hparams.values() == expected.values()
    report = printed(capsys)
    read = [n for n in hparams.names() if "evaluate" in hparams.about(n).read_by]
    assert report["decode_hparams"] == {name: hparams.values()[name] for name in read}
    assert report["problem"] == "algorithmic_reverse"
    assert report["checkpoint"] == "path of the checkpoint"


def test_evaluate_replaces_branch_weights_before_it_translates(stage, splits, capsys):
    for mode in ("uniform", "learned"):
        stage.system.calls.clear()
        evaluate(stage, "--branch_weights", mode)
        assert [name for name, *_ in stage.system.calls] == [
            "branch weights",
            "evaluate",
        ]
        assert printed(capsys).get("branch_weights", "learned") == mode


def test_evaluate_scores_files_instead_of_a_split(stage, splits, capsys):
    source, reference = stage.file("s", "a", "b"), stage.file("r", "x", "y")
    evaluate(stage, "--source", source, "--reference", reference)
    report = printed(capsys)
    assert report["hypotheses"] == ["best a", "best b"]
    assert report["references"] == ["x", "y"]
    assert report["data"] == source
    assert splits.calls == []
    assert stage.system.other_references == []
    other = stage.file("other", "u", "v")
    evaluate(stage, "--source", source, "--reference", reference, other)
    assert printed(capsys)["references"] == ["x", "y"]
    assert stage.system.other_references == [["u", "v"]]


def test_evaluate_needs_one_reference_per_source(stage, capsys):
    source, reference = stage.file("s", "a", "b"), stage.file("r", "x")
    assert evaluate(stage, "--source", source, "--reference", reference) == 1
    expected = f"received 2 lines in {source} and 1 in {reference}, expected equal"
    assert expected in capsys.readouterr().err
    assert stage.loaded.calls == []


@pytest.mark.parametrize("repaired", [(), ("cut", "closed")])
def test_evaluate_reports_repairs_if_there_are_any(stage, splits, capsys, repaired):
    stage.system.repaired = repaired
    evaluate(stage)
    report = printed(capsys)
    expected = {"repaired": 2, "repairs": {"cut": 5, "closed": 5}} if repaired else {}
    assert {n: report[n] for n in ("repaired", "repairs") if n in report} == expected


def test_evaluate_names_the_data_if_nobody_says_where_it_is(stage, capsys):
    stage.system.data_dir = None
    assert evaluate(stage) == 2
    assert "--data_dir is missing" in capsys.readouterr().err


@pytest.mark.parametrize("is_terminal", [True, False])
def test_evaluate_warms_up_on_a_terminal(stage, splits, monkeypatch, is_terminal):
    progress = contextlib.nullcontext(SimpleNamespace(advance=print))
    shown = record(monkeypatch, evaluate_command, "Progress", progress)
    one_thread = set_threads(monkeypatch)
    monkeypatch.setattr("sys.stderr.isatty", lambda: is_terminal, raising=False)
    evaluate(stage)
    _, *warmed, (name, *_, hparams, _) = stage.system.calls
    assert warmed == ([("warm up", hparams)] if is_terminal else [])
    assert (hparams.beam_size, hparams.extra_length) == (3, 17)
    assert (name, len(one_thread.calls)) == ("evaluate", 1)
    assert shown.call["warm"] == is_terminal
    assert (shown.call["total"], shown.call["unit"]) == (1, "sentence")


@pytest.mark.parametrize(
    ("flags", "answer"),
    [
        (["--source", "a"], "--source and --reference go together"),
        (["--reference", "a"], "--source and --reference go together"),
        (["--source", "a", "--reference", "b", "--split", "dev"], "not both"),
        (["--source", "-", "--reference", "-"], "received - as several inputs"),
        (
            ["--source", "a", "--reference", "b", "--data_dir", "c"],
            "received --data_dir with --source",
        ),
        (["--decode_to_file", "-"], "expected a file"),
        (["--branch_seed", "3"], "--branch_seed needs --branch_weights random"),
        (
            ["--branch_seed", "3", "--branch_weights", "uniform"],
            "--branch_seed needs --branch_weights random",
        ),
    ],
)
def test_evaluate_refuses_contradictory_flags(stage, capsys, flags, answer):
    assert evaluate(stage, *flags) == 2
    assert answer in capsys.readouterr().err
    assert stage.loaded.calls == []


@pytest.mark.parametrize(
    ("flag", "lost"),
    [
        *(("decode_to_file", lost) for lost in ("source", "reference")),
        *(("card_html", lost) for lost in ("source", "reference", "decode_to_file")),
    ],
)
def test_evaluate_refuses_to_replace_another_file(stage, capsys, flag, lost):
    files = {name: stage.file(name, "a") for name in ("source", "reference")}
    files["decode_to_file"] = str(stage.folder / "translations")
    files[flag] = files[lost]
    assert evaluate(stage, *(f"--{name}={path}" for name, path in files.items())) == 2
    assert f"received --{flag} " in capsys.readouterr().err
    assert stage.loaded.calls == []
    assert {Path(files[x]).read_text() for x in ("source", "reference")} == {"a\n"}


def test_evaluate_refuses_a_file_that_cannot_be_written(stage, capsys):
    assert evaluate(stage, "--decode_to_file", "nowhere/file") == 1
    assert "--decode_to_file nowhere/file" in capsys.readouterr().err


@pytest.fixture
def averaged(monkeypatch):
    recorder = Recorder(runs.average, "path of the average")
    monkeypatch.setattr(runs, "average", recorder)
    return recorder


def test_average_reads_the_best_models_if_asked(stage, averaged):
    folder = Path(stage.run) / "best_models"
    folder.mkdir()
    (folder / "scores.json").write_text('{"7": 1.5, "8": 2.5, "9": 0.5}')
    for step in (7, 8, 9):
        (folder / f"model.ckpt-{step}.index").touch()
    assert main(["average", "--output_dir", stage.run, "--best", "3"]) == 0
    assert averaged.call["best"] == 3
    assert main(["average", "--output_dir", stage.run, "--best", "4"]) == 1


def test_commands_leave_the_log_as_it_was(stage, averaged):
    logger = logging.getLogger("t2t_repro")
    before = logger.level, logger.propagate, [*logger.handlers]
    main(["average", "--output_dir", stage.run, "--last", "1"])
    assert (logger.level, logger.propagate, [*logger.handlers]) == before


RANDOMIZATION = "approximate_randomization"


def test_compare_has_its_flags(stage, monkeypatch):
    compared = record(monkeypatch, command_compare, "compare_translations", [])
    a, b, reference = (stage.file(name, f"line of {name}") for name in "abr")
    flags = ["--test", RANDOMIZATION, "--samples", "17", "--bleu_tokenizer", "intl"]
    assert main(["compare", a, b, "--reference", reference, *flags]) == 0
    systems = {a: ["line of a"], b: ["line of b"]}
    given = [systems, ["line of r"], RANDOMIZATION, 17, "intl", []]
    assert [*compared.call.values()] == given
