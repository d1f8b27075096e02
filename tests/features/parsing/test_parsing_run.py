"""A parser from end to end: trees to data, training, parsing, scores."""

from __future__ import annotations

import json

import pytest
import tensorflow as tf

from t2t_repro.cli.main import main
from t2t_repro.features.parsing.trees import read_trees, treebank_words
from t2t_repro.features.saved_model import saved_model_export
from t2t_repro.runs import DecodeHParams, System
from tests.support.eager import train_eagerly
from tests.support.recorder import record
from tests.support.trained_system import HPARAMS, printed_by

pytestmark = pytest.mark.usefixtures("shared_translators")
GREEDY = ["--decode_hparams", "beam_size=1,extra_length=20"]
COUNTING = (
    "shared_embedding_and_softmax_weights=false,word_positions=true,"
    "depth_positions=true"
)
NAMES = ("John", "Mary", "Ann", "Bob")
VERBS = ("runs", "sleeps", "reads")


def treebank():
    simple = [f"(S (NP (NNP {n})) (VP (VBZ {v})) (. .))" for n in NAMES for v in VERBS]
    asked = [f"(SQ (VBZ Is) (NP (NNP {n})) (ADJP (JJ ill)) (. ?))" for n in NAMES]
    return [f"( {tree} )\n" for tree in (*simple, *asked)]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("parsing")
    (folder / "train.mrg").write_text("".join(treebank() * 20))
    (folder / "dev.mrg").write_text("".join(treebank()))
    command = [
        *("train", "--problem", "parsing_ptb", "--hparams_set", "transformer_tiny"),
        *("--train_trees", str(folder / "train.mrg")),
        *("--dev_trees", str(folder / "dev.mrg"), "--vocab_size", "300"),
        *("--hparams", f"{HPARAMS},{COUNTING}"),
        *("--data_dir", str(folder / "data"), "--output_dir", str(folder / "run")),
        *("--train_steps", "2", "--local_eval_frequency", "2", "--xla", "off"),
        *("--attention_samples", "0", "--decode_hparams", "extra_length=20"),
    ]
    with pytest.MonkeyPatch.context() as patch:
        train_eagerly(patch)
        return folder, printed_by(command)


def test_training_evaluates_f1_and_prints_it_at_the_end(trained):
    folder, printed = trained
    assert "F1 on dev (16 sentences, beam 21, alpha 0.3)" in printed
    lines = (folder / "run" / "metrics.jsonl").read_text().splitlines()
    evaluation = json.loads(lines[-1])
    assert 0 <= evaluation["f1"] <= 100
    assert "bleu" not in evaluation


def test_any_input_becomes_a_tree_over_its_words(trained):
    folder, _ = trained
    lines = ["John runs .", "", "Is (he) a\u00a0b ?", "unheard words " * 5]
    source = folder / "new.txt"
    source.write_text("".join(f"{line}\n" for line in lines))
    command = ["decode", "--output_dir", str(folder / "run"), *GREEDY]
    printed = printed_by([*command, "--decode_from_file", str(source)]).splitlines()
    assert printed[1] == "(TOP)"
    for line, tree in zip(lines, printed, strict=True):
        assert list(next(read_trees([tree]))[1].words) == treebank_words(line)


def test_scores_are_labelled_bracketing_and_repairs_are_counted(trained):
    folder, _ = trained
    command = ["evaluate", "--output_dir", str(folder / "run"), "--split", "dev"]
    scores = json.loads(printed_by([*command, *GREEDY]))
    assert {"f1", "precision", "recall", "complete_match"} <= set(scores)
    assert scores["sentences"] == 16
    search = {"alpha": 0.3, "constrain": "none", "prefer_unrepaired": True}
    assert search.items() <= scores["decode_hparams"].items()
    assert scores.get("repaired", 0) <= 16


def test_only_trees_are_written_where_the_grammar_is_requested(trained):
    folder, _ = trained
    command = ["evaluate", "--output_dir", str(folder / "run"), "--split", "dev"]
    asked = "beam_size=3,constrain=tree,mbr_scale=1,mbr_consensus=true,extra_length=20"
    scores = json.loads(printed_by([*command, "--decode_hparams", asked]))
    assert scores["decode_hparams"]["constrain"] == "tree"
    assert scores.get("repaired", 0) == 0


def check_served(serve, system, search):
    sentences = ["John runs .", "Is Bob ill ?", "Mary Ann reads sleeps ."]
    written = serve(tf.constant(sentences))["outputs"].numpy()
    found = [
        system.problem.postprocess(sentence, symbols.decode()).text
        for sentence, symbols in zip(sentences, written, strict=True)
    ]
    assert found == system.translate(sentences, search)
    for empty in ([" ", ""], []):
        outputs = serve(tf.constant(empty, tf.string))["outputs"]
        assert outputs.numpy().tolist() == [b""] * len(empty)


def test_a_served_parser_counts_words_and_brackets(trained, monkeypatch):
    folder, _ = trained
    exported = record(monkeypatch, saved_model_export, "export_saved_model")
    system = System.load(folder / "run")
    counters = system.model.counters
    assert [len(side) for side in counters] == [1, 2]
    assert all(counter.plus for side in counters for counter in side)
    search = DecodeHParams().parse("beam_size=2,extra_length=20,constrain=tree")
    system.export("export", search)
    check_served(exported.call["served"].translate, system, search)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["constrain=tree", "prefer_unrepaired=false"])
def test_an_export_that_is_loaded_writes_the_same_trees(trained, tmp_path, how):
    folder, _ = trained
    system = System.load(folder / "run")
    search = DecodeHParams().parse(f"beam_size=2,extra_length=20,{how}")
    system.export(tmp_path / "export", search)
    loaded = tf.saved_model.load(str(tmp_path / "export"))
    check_served(loaded.signatures["serving_default"], system, search)


@pytest.mark.parametrize(
    ("problem", "flags", "message"),
    [
        ("text_pairs", ["--train_trees"], "received trees for problem text_pairs"),
        ("parsing_ptb", ["--train_tsv"], "received pairs for problem parsing_ptb"),
        ("parsing_synthetic", ["--train_trees"], "which has its own text"),
        ("parsing_ptb", ["--train_trees", "--test_tsv"], "received pairs for problem"),
    ],
)
def test_files_of_another_kind_are_refused(tmp_path, capsys, problem, flags, message):
    command = ["datagen", "--problem", problem, "--data_dir", str(tmp_path)]
    for flag in flags:
        command += [flag, "file"]
    assert main(command) == 2
    assert message in capsys.readouterr().err


def test_a_parser_shares_no_vocabulary(tmp_path, capsys):
    command = ["datagen", "--problem", "parsing_synthetic", "--data_dir", str(tmp_path)]
    assert main([*command, "--separate_vocabularies"]) == 2
    assert "whose targets are the symbols of trees" in capsys.readouterr().err
