"""Score the translations of a run, or existing ones, with and without a card."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import sacrebleu

from t2t_repro.cli.main import main
from tests.support.trained_system import printed_by, train_arguments

GREEDY = ["--decode_hparams", "beam_size=1"]


def evaluate_arguments(trained, *arguments):
    return ["evaluate", "--output_dir", str(trained.output_dir), *GREEDY, *arguments]


@pytest.fixture(scope="module")
def on_test(trained, tmp_path_factory):
    """Return the scores of the test split, and the file of its translations."""
    path = tmp_path_factory.mktemp("evaluate") / "translations"
    printed = printed_by(evaluate_arguments(trained, "--decode_to_file", str(path)))
    return json.loads(printed), path


def test_the_report_has_every_score_and_names_what_it_scores(trained, on_test):
    scores, path = on_test
    for name in ("bleu", "bleu_lowercase", "chrf"):
        assert 0 <= scores[name]["value"] <= 100
        assert "version:" in scores[name]["signature"]
    assert scores["length_ratio"] > 0
    references = trained.text["test", "target"].read_text().splitlines()
    expected = sacrebleu.corpus_bleu(path.read_text().splitlines(), [references])
    assert scores["bleu"]["value"] == pytest.approx(expected.score)
    assert scores["sentences"] == len(references)
    assert (scores["problem"], scores["data"]) == ("text_pairs", "test")
    assert scores["checkpoint"].endswith("model.ckpt-60")
    assert scores["decode_hparams"]["beam_size"] == 1


def test_written_translations_are_those_of_decode(trained, on_test):
    decode = ["decode", "--output_dir", str(trained.output_dir), *GREEDY]
    source = str(trained.text["test", "source"])
    printed = printed_by([*decode, "--decode_from_file", source])
    assert printed == on_test[1].read_text()


def test_data_without_the_default_split_is_reported(trained, tmp_path, capsys):
    data_dir = ["--data_dir", str(tmp_path / "data")]
    text = {key: path for key, path in trained.text.items() if key[0] != "test"}
    arguments = train_arguments(text, tmp_path / "data", tmp_path / "run")
    flags = arguments[: arguments.index("--hparams_set")]
    assert main(["datagen", *flags, *data_dir]) == 0
    assert main(evaluate_arguments(trained, *data_dir)) == 1
    assert "has no test split" in capsys.readouterr().err


def test_empty_files_are_reported(trained, tmp_path, capsys):
    (tmp_path / "empty").write_text("")
    empty = str(tmp_path / "empty")
    arguments = ["--source", empty, "--reference", empty]
    assert main(evaluate_arguments(trained, *arguments)) == 1
    assert "received 0 translations" in capsys.readouterr().err


SOURCES = ["The cat sleeps .", "A dog runs fast .", "We see the old house ."]
REFERENCES = ["Die Katze schläft .", "Ein Hund läuft schnell .", "Wir sehen das Haus ."]
HYPOTHESES = ["Die Katze schläft .", "A dog runs fast .", "Wir sehen ein Haus ."]


@pytest.fixture
def files(tmp_path) -> dict[str, str]:
    texts = {"source": SOURCES, "reference": REFERENCES, "hypothesis": HYPOTHESES}
    for name, lines in texts.items():
        (tmp_path / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return {f"--{name}": str(tmp_path / name) for name in texts}


def evaluate(*flags: str, **named: str) -> int:
    return main(["evaluate", *(x for pair in named.items() for x in pair), *flags])


def test_a_perfect_score_is_100_in_json_and_the_equal_files_are_reported(files, capsys):
    del files["--source"]
    assert evaluate(**files | {"--hypothesis": files["--reference"]}) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["bleu"]["value"] == 100
    assert captured.out.count("100.0,") >= 2
    assert "have the same lines" in captured.err
    assert files["--reference"] in captured.err


def test_a_hypothesis_that_is_the_source_is_reported(files, capsys):
    assert evaluate("--card", **files | {"--hypothesis": files["--source"]}) == 0
    errors = capsys.readouterr().err
    assert f"--source {files['--source']} have the same lines" in errors


def test_several_references_score_as_in_sacrebleu(files, capsys, tmp_path):
    other = tmp_path / "other"
    other.write_text(
        "\n".join(HYPOTHESES[:1] + REFERENCES[1:]) + "\n", encoding="utf-8"
    )
    del files["--source"]
    flags = ["--hypothesis", files["--hypothesis"], "--reference"]
    assert main(["evaluate", *flags, files["--reference"], str(other)]) == 0
    report = json.loads(capsys.readouterr().out)
    streams = [REFERENCES, HYPOTHESES[:1] + REFERENCES[1:]]
    assert report["bleu"]["value"] == pytest.approx(
        sacrebleu.corpus_bleu(HYPOTHESES, streams).score, abs=1e-6
    )
    assert report["chrf"]["value"] == pytest.approx(
        sacrebleu.corpus_chrf(HYPOTHESES, streams).score, abs=1e-6
    )
    assert "nrefs:2" in report["bleu"]["signature"]
    assert report["reference"] == [files["--reference"], str(other)]
    card = ["evaluate", *flags, files["--reference"], str(other), "--card"]
    assert main(card) == 2
    assert "received 2 references and a score card" in capsys.readouterr().err


def test_every_reference_has_as_many_lines_as_the_hypotheses(files, capsys, tmp_path):
    short = tmp_path / "short"
    short.write_text("nur eine Zeile\n")
    flags = ["--hypothesis", files["--hypothesis"], "--reference"]
    assert main(["evaluate", *flags, files["--reference"], str(short)]) == 1
    assert f"1 in {short}" in capsys.readouterr().err


def test_the_tokenizer_can_be_chosen(files, capsys):
    del files["--source"]
    assert evaluate("--bleu_tokenizer", "char", **files) == 0
    assert "tok:char" in json.loads(capsys.readouterr().out)["bleu"]["signature"]


def test_a_terminal_gets_a_table(files, capsys, monkeypatch):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    del files["--source"]
    assert evaluate(**files) == 0
    rows = capsys.readouterr().out.splitlines()
    score = sacrebleu.corpus_bleu(HYPOTHESES, [REFERENCES]).score
    assert rows[0].split()[:2] == ["BLEU", f"{score:.2f}"]
    assert rows[0].endswith("version:" + sacrebleu.__version__)
    assert ["sentences", "3"] in [row.split() for row in rows]
    assert rows[-1].split() == ["reference", files["--reference"]]


def test_a_card_of_existing_translations_counts_copies_of_the_source(files, capsys):
    assert evaluate("--card", "json", **files) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["hypothesis"] == files["--hypothesis"]
    assert report["card"]["sentences"] == 3
    assert report["card"]["faults"]["copies"] == 1


def test_a_card_names_its_file_and_reports_no_different_files(files, capsys):
    assert evaluate("--card", **files) == 0
    captured = capsys.readouterr()
    title = captured.out.splitlines()[0]
    assert title == f"Score card: {files['--hypothesis']}"
    assert "the same lines" not in captured.err


def test_a_source_without_a_card_has_no_effect_and_is_refused(files, capsys):
    assert evaluate(**files) == 2
    answer = "which only a report reads: add --card or --card_html"
    assert answer in capsys.readouterr().err


@pytest.mark.parametrize("flag", ["--reference", "--source"])
def test_unequal_numbers_of_lines_are_named(files, capsys, flag):
    Path(files[flag]).write_text("one line\n", encoding="utf-8")
    assert evaluate("--card", **files) == 1
    error = capsys.readouterr().err
    assert f"received 3 lines in {files['--hypothesis']}" in error
    assert f"1 in {files[flag]}" in error


def test_an_empty_reference_keeps_its_place(files, tmp_path, capsys):
    del files["--source"]
    lines = [HYPOTHESES[0], "", HYPOTHESES[2]]
    for flag in files.values():
        Path(flag).write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert evaluate(**files) == 0
    assert json.loads(capsys.readouterr().out)["bleu"]["value"] == 100
