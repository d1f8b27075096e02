"""The comparison finds differences, and refuses those that a format cannot explain."""

from __future__ import annotations

import dataclasses
import functools
import json

import numpy as np
import pytest

from t2t_repro import catalogue
from t2t_repro.data.problem import Problem
from t2t_repro.errors import UserError
from t2t_repro.features.ctranslate2.ctranslate2_limits import QUANTIZATIONS
from t2t_repro.features.ctranslate2.ctranslate2_parity import Parity, SearchParity
from t2t_repro.runs import System
from t2t_repro.settings.decode_hparams import DecodeHParams
from t2t_repro.text import SymbolTokenizer
from tests.runs.test_run import make_run
from tests.support.tiny_model import tiny_transformer

pytestmark = pytest.mark.usefixtures("shared_searches")
LONGEST = 9
DIGITS = SymbolTokenizer([str(digit) for digit in range(8)])
SENTENCES = ["1 2 3", "", "7 7", "0 1 2 3 4 5", "5 5 5", "1 2 3 4 5 6 7 0 1", "2 4"]
FIGURES = Parity(
    sentences=40,
    tokens=500,
    mean_difference=1e-6,
    largest_difference=1e-5,
    pad_log_probability=1e-3,
    searches=(SearchParity(1, 40, 2e-6, 3e-5), SearchParity(4, 38, 4e-6, 5e-5)),
)


def with_equal(count):
    greedy = dataclasses.replace(FIGURES.searches[0], equal=count)
    return dataclasses.replace(FIGURES, searches=(greedy, FIGURES.searches[1]))


def test_the_figures_are_text():
    assert FIGURES.lines() == [
        "log-probabilities of 500 tokens: differ by 1.0e-06 on average, 1.0e-05 at "
        "most",
        "greedy search: 40 of 40 translations equal, scores differ by 2.0e-06 on "
        "average, 3.0e-05 at most",
        "beam of 4: 38 of 40 translations equal, scores differ by 4.0e-06 on average, "
        "5.0e-05 at most",
    ]


@pytest.mark.parametrize("quantization", QUANTIZATIONS)
def test_every_limit_of_a_format_is_checked(quantization):
    limits = QUANTIZATIONS[quantization]
    FIGURES.check(quantization)
    least = int(limits.equal * 40)
    with_equal(least).check(quantization)
    for worse, message in [
        (dataclasses.replace(FIGURES, mean_difference=1.1 * limits.mean), "on average"),
        (
            dataclasses.replace(FIGURES, largest_difference=1.1 * limits.largest),
            "of a token differs by",
        ),
        (with_equal(least - 1), f"{least - 1} of 40 greedy translations are equal"),
        (dataclasses.replace(FIGURES, mean_difference=float("nan")), "differ by nan"),
    ]:
        with pytest.raises(UserError, match=message) as caught:
            worse.check(quantization)
        assert f"with {quantization} weights" in str(caught.value)
        assert "nothing was written" in str(caught.value)


@functools.lru_cache(maxsize=1)
def make_model(**changes):
    layers = {"num_encoder_layers": 1, "num_decoder_layers": 1}
    return tiny_transformer(seed=12, norm="pre", **layers, **changes)


@pytest.fixture
def make_system(tmp_path):
    """Return a function that makes a system with a checkpoint of 70 updates."""
    pytest.importorskip("ctranslate2", reason="needs the package ctranslate2")
    (tmp_path / "model.ckpt-70.index").write_bytes(b"index")
    hparams = catalogue.hparams("transformer_tiny").parse(f"max_length={LONGEST}")
    run = make_run(hparams=hparams, hparams_set="a set", problem="a problem")

    def make(checkpoint="model.ckpt-70", **changes):
        model, path = make_model(**changes), str(tmp_path / checkpoint)
        return System(run, Problem(), model, (DIGITS, DIGITS), path)

    return make


def export(system, folder, sentences=SENTENCES, **settings):
    """Export; every beam size besides 1 is traced and compared, too."""
    settings = {"beam_size": 1, "extra_length": 4, "batch_size": 64} | settings
    hparams = DecodeHParams(**settings)
    return system.export_ctranslate2(folder, hparams, sentences=sentences)


def test_an_export_is_compared_and_described(make_system, tmp_path):
    system = make_system()
    parity = export(system, tmp_path / "export", beam_size=3)
    # The empty one and the one of two pieces are left out.
    assert parity.sentences == len(SENTENCES) - 2
    assert parity.searches[0].equal == parity.sentences
    assert [search.beam_size for search in parity.searches] == [1, 3]
    assert 0 < parity.largest_difference < 1e-5
    assert parity.searches[1].largest_score_difference < 1e-4
    assert parity.pad_log_probability > 1e-3
    written = json.loads((tmp_path / "export" / "t2t_repro.json").read_text())
    assert written["parity"] == json.loads(json.dumps(dataclasses.asdict(parity)))
    expected = {
        "problem": "a problem",
        "hparams_set": "a set",
        "checkpoint": system.checkpoint,
        "step": 70,
        "quantization": "float32",
        "positions": 1024,
        "max_input_length": LONGEST,
        "tokenizers": {"inputs": "shared.symbols", "targets": "shared.symbols"},
        "decode_hparams": {"beam_size": 3, "alpha": 0.6, "extra_length": 4},
        "format": 1,
    }
    assert {name: written[name] for name in expected} == expected
    assert set(written["versions"]) == {"t2t_repro", "ctranslate2"}
    names = {path.name for path in (tmp_path / "export").iterdir()}
    assert names == {
        *("model.bin", "config.json", "shared_vocabulary.json"),
        *("shared.symbols", "t2t_repro.json"),
    }


def test_a_choice_among_hypotheses_does_not_change_what_is_compared(
    make_system, tmp_path
):
    system = make_system()
    system.problem = catalogue.problem("parsing_ptb")  # which combines outputs
    expected = export(system, tmp_path / "beam", beam_size=3)
    consensus = {"mbr_scale": 1.0, "mbr_consensus": True}
    found = export(system, tmp_path / "consensus", beam_size=3, **consensus)
    assert found == expected


def test_a_renamed_checkpoint_is_exported_without_a_step(make_system, tmp_path):
    (tmp_path / "final.index").write_bytes(b"index")
    export(make_system("final"), tmp_path / "export")
    written = json.loads((tmp_path / "export" / "t2t_repro.json").read_text())
    assert written["step"] is None


@pytest.mark.parametrize(
    "damage",
    ["encoder position", "gain", "projection"],
)
def test_a_wrong_weight_is_found_and_nothing_is_written(
    make_system, tmp_path, monkeypatch, damage
):
    from t2t_repro.features.ctranslate2 import ctranslate2_spec

    specify = ctranslate2_spec.model_spec

    def damaged(*args):
        spec = specify(*args)
        encoder, decoder = spec.encoder, spec.decoder
        if damage == "encoder position":
            table = encoder.position_encodings.encodings
            encoder.position_encodings.encodings = np.roll(table, 1, axis=0)
        elif damage == "gain":
            decoder.layer_norm.gamma[0] *= 1.01
        else:
            decoder.projection.weight[5] *= 1.001
        return spec

    monkeypatch.setattr(ctranslate2_spec, "model_spec", damaged)
    with pytest.raises(UserError, match="differs too much from the trained model"):
        export(make_system(tie_embeddings=False), tmp_path / "export")
    assert not [path for path in tmp_path.iterdir() if path.name.startswith("export")]


def test_without_a_usable_sentence_nothing_is_written(make_system, tmp_path):
    with pytest.raises(UserError, match=r"received 2 sentences .* of 1 to 8 tokens"):
        export(make_system(), tmp_path / "export", ["", "1 2 3 4 5 6 7 0 1"])
    assert not (tmp_path / "export").exists()


def test_a_folder_that_cannot_be_written_is_one_line(make_system, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match=r"cannot write .*file/export: Not a directory"):
        export(make_system(), tmp_path / "file" / "export")


def test_a_model_that_computes_in_16_bits_is_compared_in_32(make_system, tmp_path):
    parity = export(make_system(dtype="mixed_bfloat16"), tmp_path / "export")
    assert parity.largest_difference < 1e-5
