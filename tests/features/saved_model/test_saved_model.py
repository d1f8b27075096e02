"""A SavedModel answers as the system in memory does, whatever it receives.

One module, so that one worker makes the export.
"""

from __future__ import annotations

import logging
import random
import re
import shlex
import sys

import numpy as np
import pytest
import tensorflow as tf

from t2t_repro.errors import UsageError
from t2t_repro.features.saved_model.served_translator import ServedTranslator
from t2t_repro.models.attention_weights import attention_weights
from t2t_repro.settings.decode_hparams import DecodeHParams
from tests.fuzz.fuzz_serving import fuzz
from tests.support.hard_text import KINDS, hard_text

SIGNATURES = ["serving_default", "n_best", "score", "attention"]
LONG = "horse " * 2000
TEXTS = ["we sleep .", "", "the old horse", "漢字 🙂", "a child today", " \t "]
TARGETS = ["wir", "", "a child", "x 🙂", "today", "we sleep ."]
LONGEST = "a " * 15  # tokens of a piece


def serve(system, name, texts, targets=None):
    inputs = {"inputs": tf.constant(texts, tf.string)}
    if name in ("score", "attention"):
        given = texts if targets is None else targets
        inputs["targets"] = tf.constant(given, tf.string)
    return system.signatures[name](**inputs)


def as_text(strings):
    return [text.decode() for text in np.ravel(strings)]


@pytest.fixture(scope="module")
def expected(subword_system):
    return subword_system.translator.translate(TEXTS)


@pytest.fixture(scope="module")
def best(expected):
    texts = [hypotheses[0].text for hypotheses in expected]
    assert len(set(texts)) == len(texts) - 1  # Two are empty.
    return texts


def test_signatures_have_the_promised_types(subword_system):
    assert set(subword_system.signatures) == {*SIGNATURES}
    signature = subword_system.signatures["serving_default"]
    outputs = signature.structured_outputs
    assert outputs["outputs"].dtype == tf.string
    assert outputs["outputs"].shape.rank == 1
    assert outputs["scores"].dtype == tf.float32
    (inputs,) = signature.structured_input_signature[1].values()
    assert (inputs.name, inputs.dtype) == ("inputs", tf.string)


def test_translations_and_scores_are_those_in_memory(subword_system, expected, best):
    found = serve(subword_system, "serving_default", TEXTS)
    assert as_text(found["outputs"]) == best
    scores = [hypotheses[0].score for hypotheses in expected]
    np.testing.assert_allclose(found["scores"], scores, atol=1e-4)


def test_n_best_gives_every_hypothesis_best_first(subword_system, expected):
    found = serve(subword_system, "n_best", TEXTS)
    for texts, scores, hypotheses in zip(
        found["outputs"].numpy(), found["scores"].numpy(), expected, strict=True
    ):
        missing = 2 - len(hypotheses)
        assert as_text(texts) == [h.text for h in hypotheses] + [""] * missing
        assert (np.diff(scores) <= 0).all()


def batch_of(system, text):
    ids = [*system.tokenizer.encode(text), 1]
    return tf.constant([ids if len(ids) > 1 else [*ids, 0]])


def log_prob(system, source, ids):
    pair = {"inputs": batch_of(system, source), "targets": tf.constant([[*ids, 0]])}
    logits = system.model(pair).numpy()[0, : len(ids)].astype(np.float64)
    normalizers = np.log(np.exp(logits).sum(-1))
    return sum(logits[t, token] - normalizers[t] for t, token in enumerate(ids))


def test_a_score_is_the_log_probability_of_the_target(subword_system):
    found = serve(subword_system, "score", TEXTS, TARGETS)
    for row, (source, target) in enumerate(zip(TEXTS, TARGETS, strict=True)):
        ids = [*subword_system.tokenizer.encode(target), 1]
        score = log_prob(subword_system, source, ids)
        assert found["scores"][row].numpy() == pytest.approx(score, abs=1e-4)
        assert found["tokens"][row].numpy() == len(ids)


def test_attention_equals_that_of_the_model(subword_system):
    found = serve(subword_system, "attention", TEXTS, TARGETS)
    maps = ("encoder_self", "decoder_self", "memory")
    assert set(found) == {
        *("scores", "tokens", "truncated", "input_tokens", "target_tokens", *maps)
    }
    tokenizer = subword_system.tokenizer
    for name, texts in (("input_tokens", TEXTS), ("target_tokens", TARGETS)):
        for tokens, text in zip(found[name].numpy(), texts, strict=True):
            pieces = [*tokenizer.pieces(tokenizer.encode(text)), "</s>"]
            assert as_text(tokens)[: len(pieces)] == pieces
            assert {*as_text(tokens)[len(pieces) :]} <= {"<pad>"}
    for row, (source, target) in enumerate(zip(TEXTS, TARGETS, strict=True)):
        pair = {
            "inputs": batch_of(subword_system, source),
            "targets": batch_of(subword_system, target),
        }
        expected = attention_weights(subword_system.model, pair)
        for name in maps:
            weights = getattr(expected, name)[0].numpy()
            queries, keys = weights.shape[2:]
            served = found[name][row, :, :, :queries, :keys].numpy()
            np.testing.assert_allclose(served, weights, atol=1e-5)


@pytest.mark.parametrize("name", ["score", "attention"])
def test_a_pair_that_is_too_long_is_marked(subword_system, name):
    inputs = ["a", f"{LONGEST} we", "a", LONGEST]
    targets = ["a", "a", f"{LONGEST} we", LONGEST]
    found = serve(subword_system, name, inputs, targets)
    assert found["truncated"].numpy().tolist() == [False, True, True, False]
    assert found["tokens"].numpy().tolist() == [2, 2, 16, 16]


def test_the_score_of_a_long_pair_is_that_of_its_beginning(subword_system):
    """The source leaves room for EOS; the target does without."""
    long = [LONGEST, f"{LONGEST} we"]
    whole, cut = serve(subword_system, "score", long, ["wir"] * 2)["scores"].numpy()
    assert whole == pytest.approx(cut, abs=1e-5)
    target = f"{LONGEST} we sleep ."
    found = serve(subword_system, "score", ["we"], [target])["scores"].numpy()
    ids = subword_system.tokenizer.encode(target)[:16]
    assert found[0] == pytest.approx(log_prob(subword_system, "we", ids), abs=1e-4)


def test_pairs_in_several_groups_have_the_scores_of_pairs_alone(subword_system):
    # More than 128 tokens.
    found = serve(subword_system, "score", TEXTS * 9, TARGETS * 9)["scores"]
    alone = [
        serve(subword_system, "score", [source], [target])["scores"][0]
        for source, target in zip(TEXTS, TARGETS, strict=True)
    ]
    np.testing.assert_allclose(found, np.tile(alone, 9), atol=1e-5)


@pytest.mark.parametrize("name", SIGNATURES)
def test_a_batch_of_no_or_empty_texts_is_answered(subword_system, name):
    found = serve(subword_system, name, [])
    assert {len(value) for value in found.values()} == {0}
    found = serve(subword_system, name, ["", "\u00a0\u200b"])
    scores = found["scores"].numpy().tolist()
    assert np.isfinite(scores).all()
    assert scores[0] == scores[1]
    assert found["truncated"].numpy().tolist() == [False, False]
    if "outputs" in found:
        assert not any(as_text(found["outputs"]))
        assert not np.any(scores)


@pytest.mark.parametrize("name", SIGNATURES)
def test_hard_texts_are_answered(subword_system, name):
    source = random.Random(5)
    texts = [hard_text(kind, source) for kind in KINDS for _ in range(4)]
    found = serve(subword_system, name, ["we sleep .", *texts])
    assert {len(value) for value in found.values()} == {1 + len(texts)}
    as_text(found.get("outputs", []))


@pytest.mark.parametrize("name", SIGNATURES)
def test_a_text_that_is_too_long_is_marked_and_does_not_change_others(
    subword_system, name
):
    mixed = serve(subword_system, name, ["we sleep .", LONG, "wir", "🙂" * 10_000])
    alone = serve(subword_system, name, ["we sleep .", "wir"])
    assert mixed["truncated"].numpy().tolist() == [False, True, False, True]
    scores = mixed["scores"].numpy()[::2]
    np.testing.assert_allclose(scores, alone["scores"], atol=1e-4)
    if "outputs" in mixed:
        outputs = mixed["outputs"].numpy()[::2].tolist()
        assert outputs == alone["outputs"].numpy().tolist()


def test_a_source_is_cut_after_the_piece_with_the_last_token(subword_system):
    assert len(subword_system.tokenizer.encode("a a a")) == 3
    found = serve(subword_system, "serving_default", ["a " * 105, "a " * 106, LONG])
    assert found["truncated"].numpy().tolist() == [False, True, True]
    served = found["outputs"].numpy()[2].decode()
    whole = subword_system.translator.translate([LONG])[0][0].text
    assert served
    assert whole.startswith(f"{served} ")


def test_bytes_that_are_not_utf8_are_read_as_replacement_characters(subword_system):
    wrong = b"we \xf0\x9f sleep \xed\xa0\x80 ."
    found = serve(subword_system, "n_best", [wrong, wrong.decode("utf-8", "replace")])
    first, second = found["outputs"].numpy().tolist()
    assert first == second


def test_random_texts_are_translated_as_in_memory(subword_system):
    report = fuzz(subword_system.signatures, subword_system.translator, 150, seed=7)
    assert report.failures == []
    assert report.inputs >= 150
    assert len(report.ties) <= 2


def test_a_limit_without_tokens_is_refused():
    with pytest.raises(UsageError, match="max_source_tokens=0, expected at least 1"):
        ServedTranslator(None, None, None, DecodeHParams(), 16, max_source_tokens=0)


@pytest.fixture
def run_documented(subword_system, repository, tmp_path, monkeypatch, capsys):
    """Return a function that runs the program of the page, TensorFlow's own tool.

    It runs in this process, which has imported TensorFlow already.
    """
    page = (repository / "docs" / "serving.md").read_text(encoding="utf-8")
    (line,) = re.findall(r"^python -c .*saved_model_cli.*$", page, re.MULTILINE)
    _, option, program, *documented = shlex.split(line)
    (tmp_path / "translator").symlink_to(subword_system.folder)
    monkeypatch.chdir(tmp_path)
    # The program adds a handler of absl, which would print the logs of later tests.
    monkeypatch.setattr(logging.root, "handlers", [*logging.root.handlers])
    monkeypatch.setattr(logging.root, "level", logging.root.level)

    def run(*arguments):
        given = arguments or documented
        monkeypatch.setattr(sys, "argv", [option, *given])
        with pytest.raises(SystemExit) as ended:
            exec(program, {})
        assert not ended.value.code
        return capsys.readouterr().out

    return run


def test_the_documented_command_translates(run_documented, subword_system):
    printed = run_documented()
    expected = subword_system.translator.translate(["A dog runs."])[0][0].text
    assert f"Result for output key outputs:\n{[expected.encode()]}" in printed
    assert "Result for output key truncated:\n[False]" in printed


def test_the_documented_program_shows_all_signatures(run_documented):
    printed = run_documented("show", "--dir", "translator", "--all")
    for name in SIGNATURES:
        assert f"signature_def['{name}']" in printed
    assert "could not be listed" not in printed


@pytest.fixture(scope="module")
def server(subword_system):
    reason = "needs the messages of tensorflow-serving-api"
    pytest.importorskip("tensorflow_serving.apis.predict_pb2", reason=reason)
    from tests.support.model_server import ModelServer

    return ModelServer(str(subword_system.folder))


def predicted(server, name, request):
    from tests.support.model_server import predict_request

    response = server.predict(predict_request(name, request))
    return {key: tf.make_ndarray(value) for key, value in response.outputs.items()}


def test_a_grpc_request_is_answered_in_order(server, best):
    found = predicted(server, "", {"inputs": TEXTS})
    assert as_text(found["outputs"]) == best
    assert set(found) == {"outputs", "scores", "truncated"}
    assert (found["scores"].dtype, found["scores"].shape) == (np.float32, (6,))
    assert (found["truncated"].dtype, found["truncated"].shape) == (np.bool_, (6,))
    found = predicted(server, "n_best", {"inputs": []})
    assert found["outputs"].shape == (0, 2)


def test_a_grpc_request_for_scores_names_both_sides(server, subword_system):
    found = predicted(server, "score", {"inputs": TEXTS, "targets": TARGETS})
    scores = serve(subword_system, "score", TEXTS, TARGETS)["scores"]
    np.testing.assert_allclose(found["scores"], scores, rtol=1e-5)
    assert found["tokens"].dtype == np.int32


def test_every_output_of_every_signature_has_one_row_per_input(server):
    # Otherwise the server can neither batch requests nor answer REST requests by row.
    for name in SIGNATURES:
        texts = {"inputs": TEXTS, "targets": TEXTS}
        if name in ("serving_default", "n_best"):
            del texts["targets"]
        found = predicted(server, name, texts)
        assert {len(value) for value in found.values()} == {len(TEXTS)}


def test_an_export_has_one_answerable_warm_up_request_per_signature(
    server, subword_system
):
    from tensorflow_serving.apis.prediction_log_pb2 import PredictionLog

    file = subword_system.folder / "assets.extra" / "tf_serving_warmup_requests"
    names = []
    for record_bytes in tf.data.TFRecordDataset(str(file)).as_numpy_iterator():
        request = PredictionLog.FromString(record_bytes).predict_log.request
        names.append(request.model_spec.signature_name)
        assert server.predict(request).outputs["scores"].tensor_shape.dim[0].size == 3
    assert names == SIGNATURES
