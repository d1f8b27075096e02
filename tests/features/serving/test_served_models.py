"""A run, its SavedModel and its CTranslate2 model answer alike, as the system does."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from t2t_repro.errors import UsageError, UserError
from t2t_repro.features.serving.served_models import (
    ATTENTION,
    N_BEST,
    SCORE,
    TRANSLATE,
    ServedExport,
    ServedSystem,
    languages_in,
)
from t2t_repro.runs import CTranslate2System, System
from t2t_repro.settings.decode_hparams import DecodeHParams
from tests.support.served import serving

SENTENCES = ["one times: the house is red .", "", "two times: the ship is white ."]
PAIRS = [(SENTENCES[0], "eins mal: das Haus ist rot ."), (SENTENCES[2], "zwei")]


@pytest.fixture(scope="module")
def system(trained):
    return System.load(trained.output_dir)


@pytest.fixture(scope="module")
def run(system):
    return ServedSystem("en-de", system, system.with_problem_defaults(DecodeHParams()))


@pytest.fixture(scope="module")
def export(system, tmp_path_factory):
    folder = tmp_path_factory.mktemp("export") / "saved_model"
    return ServedExport("en-de", system.export(folder))


def test_the_run_and_its_saved_model_have_the_same_answers(system, run, export):
    assert run.signatures == export.signatures == (TRANSLATE, N_BEST, SCORE, ATTENTION)
    for returns_beams in (False, True):
        hparams = DecodeHParams(return_beams=returns_beams)
        expected = system.translator(hparams).translate(SENTENCES)
        for model in (run, export):
            found = model.translate(SENTENCES, model.settings(hparams))
            for ours, theirs in zip(found, expected, strict=True):
                texts = [[h.text for h in hypotheses] for hypotheses in (ours, theirs)]
                assert texts[0][: len(texts[1])] == texts[1]
                scores = [h.score for h in ours][: len(theirs)]
                np.testing.assert_allclose(scores, [h.score for h in theirs], atol=1e-5)
    for signature in (SCORE, ATTENTION):
        ours, theirs = (model.pairs(signature, PAIRS) for model in (run, export))
        assert ours.keys() == theirs.keys()
        for name, values in ours.items():
            if values.dtype.kind in "fib":
                np.testing.assert_allclose(values, theirs[name], atol=1e-5)
            else:
                assert values.tolist() == theirs[name].tolist()


def test_the_engine_ctranslate2_translates_as_the_run_does(trained, run):
    pytest.importorskip("ctranslate2")
    system = CTranslate2System.load(trained.output_dir)
    model = ServedSystem("en-de", system, DecodeHParams())
    assert (model.engine, model.signatures) == ("ctranslate2", (TRANSLATE, N_BEST))
    assert not model.shows_attention
    greedy = DecodeHParams(beam_size=1)
    found = [m.translate(SENTENCES, m.settings(greedy)) for m in (model, run)]
    texts = [[hypotheses[0].text for hypotheses in one] for one in found]
    assert texts[0] == texts[1]
    with pytest.raises(UsageError, match="min_length not supported"):
        model.settings(DecodeHParams(min_length=3))


def test_a_model_of_ctranslate2_is_described_without_tensorflow():
    program = (
        "import sys; from types import SimpleNamespace as Space; "
        "from t2t_repro.features.serving.served_models import ServedSystem; "
        "from t2t_repro.settings.decode_hparams import DecodeHParams; "
        "problem = Space(source_language='en', target_language='de'); "
        "system = Space(problem=problem, engine_report={'engine': 'ctranslate2'}); "
        "model = ServedSystem('en-de', system, DecodeHParams()); "
        "assert not model.shows_attention and model.signatures; "
        "assert not {'tensorflow', 'keras'} & sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_a_saved_model_refuses_another_search(export):
    with pytest.raises(UsageError, match="beam_size, but the search of a SavedModel"):
        export.settings(DecodeHParams(beam_size=2))
    with pytest.raises(UsageError, match="target prefixes"):
        export.translate(["one"], DecodeHParams(), ["x"])


def test_a_folder_that_is_no_saved_model_of_t2t_export_is_refused(tmp_path):
    (tmp_path / "saved_model.pb").write_bytes(b"nonsense")
    with pytest.raises(UserError, match="TensorFlow cannot load"):
        ServedExport("en-de", tmp_path)


def test_the_view_of_attention_gets_its_document(run):
    document = run.attention_document(SENTENCES[0], None)
    assert document["sequences"]["source"]["text"] == SENTENCES[0]
    assert [found["kind"] for found in document["maps"]][2] == "memory"


def test_requests_reach_the_run(run, system):
    with serving(run) as client:
        body = {"model": "en-de", "q": SENTENCES[0], "alternatives": 2}
        found = client.ask("/translate", body).json
        hparams = DecodeHParams(return_beams=True)
        expected = system.translator(hparams).translate(SENTENCES[:1])[0]
        texts = [hypothesis.text for hypothesis in expected]
        assert [found["translatedText"], *found["alternatives"]] == texts[:3]
        too_long = {"inputs": {"inputs": ["x " * 500], "targets": ["y"]}}
        scored = {"signature_name": SCORE, **too_long}
        answer = client.ask("/v1/models/en-de:predict", scored).json
        assert answer["outputs"]["truncated"] == [True]
        prefix = {"model": "en-de", "q": SENTENCES[0], "target_prefix": "zwei"}
        answer = client.ask("/translate", prefix).json
        assert answer["translatedText"].startswith("zwei")
        answer = client.ask("/attention", {"model": "en-de", "q": " "})
        assert (answer.status, "without words" in answer.error) == (400, True)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("en-de", ("en", "de")),
        ("zh-Hans-en", ("zh-Hans", "en")),
        ("my-model", (None, None)),
        ("default", (None, None)),
        ("en-de-v2", (None, None)),
    ],
)
def test_a_name_may_give_the_languages(name, expected):
    assert languages_in(name) == expected
