from __future__ import annotations

import json

import pytest
import sacrebleu

from t2t_repro.cli.main import main
from tests.support.trained_system import printed_by, train_arguments

GREEDY = ["--decode_hparams", "beam_size=1"]


def evaluate_arguments(trained, *arguments):
    return ["evaluate", "--output_dir", str(trained.output_dir), *GREEDY, *arguments]


def files(trained, split):
    source, reference = (
        str(trained.text[split, side]) for side in ("source", "target")
    )
    return ["--source", source, "--reference", reference]


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


def test_the_same_text_given_as_files_has_the_same_scores(trained, on_test):
    arguments = evaluate_arguments(trained, *files(trained, "test"))
    scores = json.loads(printed_by(arguments))
    assert scores["bleu"] == on_test[0]["bleu"]
    assert scores["data"] == str(trained.text["test", "source"])


def test_another_split_and_checkpoint_can_be_chosen(trained):
    arguments = evaluate_arguments(
        trained, "--split", "dev", "--checkpoint_path", "averaged"
    )
    scores = json.loads(printed_by(arguments))
    dev = trained.text["dev", "source"].read_text().splitlines()
    assert (scores["data"], scores["sentences"]) == ("dev", len(dev))
    assert "averaged" in scores["checkpoint"]


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
