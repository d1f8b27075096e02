"""CTranslate2 computes the same numbers as an independent Transformer in NumPy."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from t2t_repro.constants import EOS_ID, PAD_ID, UNK_ID
from t2t_repro.features.ctranslate2.ctranslate2_translator import load_engine
from t2t_repro.text import SymbolTokenizer
from t2t_repro.text.tokenizer import distinct_entries
from tests.support.numpy_transformer import NumpyTransformer
from tests.support.tiny_model import (
    padded,
    random_sentences,
    tiny_transformer,
    weights_by_name,
)

pytest.importorskip("ctranslate2", reason="needs the package ctranslate2")

from t2t_repro.features.ctranslate2.ctranslate2_spec import (
    PAD_BIAS,
    model_spec,
    write_model,
)

DIGITS = SymbolTokenizer([str(digit) for digit in range(8)])
LETTERS = SymbolTokenizer(list("abcdefghijkl"))
POSITIONS = 40
SOURCES = random_sentences(1, [4, 9, 1, 6])
TARGETS = random_sentences(2, [5, 3, 7, 1])
VARIANTS = [
    {"norm": "post"},
    {"norm": "pre", "positions": "concatenated"},
    {"positions": "learned", "max_positions": POSITIONS, "tie_embeddings": False},
    {"positions": "none", "num_heads": 4},
    {"num_heads": 1, "filter_size": 20, "hidden_size": 12, "norm_epsilon": 0.05},
    {"attention_key_channels": 8, "attention_value_channels": 12},
    {"attention_key_channels": 6, "attention_value_channels": 4},
    {
        "attention_bias": True,
        "ffn_activation": "swish",
        "logit_bias": True,
        "decoder_start": "pad",
        "positions": "halves",
        "norm_epsilon": 1e-5,
    },
    {
        "attention_bias": True,
        "attention_key_channels": 6,
        "attention_value_channels": 10,
        "ffn_activation": "gelu",
        "encoder_input_bias": True,
    },
    {"encoder_input_bias": True, "positions": "none"},
]


def written(model, folder, quantization="float32", tokenizers=(DIGITS, DIGITS)):
    folder.mkdir()
    write_model(model_spec(model, *tokenizers, POSITIONS), str(folder), quantization)
    return folder


def loaded(folder, quantization="float32"):
    return load_engine(folder, quantization)


def scored(engine, sources=SOURCES, targets=TARGETS, tokenizers=(DIGITS, DIGITS)):
    """Return CTranslate2's log-probabilities of targets, whose EOS it appends."""
    results = engine.score_batch(
        [tokenizers[0].pieces(ids) for ids in sources],
        [tokenizers[1].pieces(ids[:-1]) for ids in targets],
        max_input_length=0,
    )
    return [np.array(result.log_probs) for result in results]


def log_probs_without_pad(logits, target):
    logits = np.array(logits, np.float64)[: len(target)]
    logits[:, PAD_ID] = -np.inf
    normalizers = np.log(np.exp(logits).sum(-1))
    return logits[np.arange(len(target)), target] - normalizers


def batch_of(ids):
    return padded([ids], max(len(ids), 2))


def keras_log_probs(model, sources=SOURCES, targets=TARGETS):
    return [
        log_probs_without_pad(
            model({"inputs": batch_of(source), "targets": batch_of(target)})[0], target
        )
        for source, target in zip(sources, targets, strict=True)
    ]


def assert_equal(found, expected, tolerance=2e-5):
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, atol=tolerance)


@pytest.mark.parametrize("changes", VARIANTS, ids=str)
def test_every_variant_has_the_log_probabilities_of_the_papers_equations(
    changes, tmp_path
):
    model = tiny_transformer(seed=3, **changes)
    options = model.options
    numpy = NumpyTransformer(
        weights_by_name(model),
        options.num_heads,
        2,
        options.norm,
        model.positions,
        options.norm_epsilon,
        activation=options.ffn_activation,
        decoder_start=model.decoder_start,
    )
    expected = [
        log_probs_without_pad(numpy.logits(source, target), target)
        for source, target in zip(SOURCES, TARGETS, strict=True)
    ]
    assert_equal(scored(loaded(written(model, tmp_path / "model"))), expected)


@pytest.mark.parametrize(
    "changes",
    [
        {"attention_compatibility": "dot_product", "num_decoder_layers": 1},
        {"positions": "learned", "max_positions": 4, "num_encoder_layers": 1},
    ],
    ids=str,
)
def test_further_variants_have_the_log_probabilities_of_the_keras_model(
    changes, tmp_path
):
    model = tiny_transformer(seed=4, **changes)
    found = scored(loaded(written(model, tmp_path / "model")))
    assert_equal(found, keras_log_probs(model))


def test_two_vocabularies_keep_their_order_and_their_matrices(tmp_path):
    model = tiny_transformer(
        seed=5, tie_embeddings=False, target_vocab_size=LETTERS.vocab_size
    )
    folder = written(model, tmp_path / "model", tokenizers=(DIGITS, LETTERS))
    targets = random_sentences(3, [5, 3, 7, 1], LETTERS.vocab_size)
    found = scored(loaded(folder), targets=targets, tokenizers=(DIGITS, LETTERS))
    assert_equal(found, keras_log_probs(model, targets=targets))
    names = {"source_vocabulary.json": DIGITS, "target_vocabulary.json": LETTERS}
    for name, tokenizer in names.items():
        assert json.loads((folder / name).read_text()) == distinct_entries(tokenizer)


def test_one_vocabulary_and_a_tied_matrix_are_stored_once(tmp_path):
    tied, untied = (
        written(tiny_transformer(tie_embeddings=tie), tmp_path / str(tie))
        for tie in (True, False)
    )
    assert (tied / "shared_vocabulary.json").exists()
    sizes = [(folder / "model.bin").stat().st_size for folder in (tied, untied)]
    assert sizes[1] - sizes[0] > 2 * 11 * 8 * 4 - 100


def test_an_unknown_symbol_is_read_and_scored(tmp_path):
    model = tiny_transformer(seed=6)
    sources, targets = [[UNK_ID, 4, EOS_ID]], [[5, UNK_ID, EOS_ID]]
    found = scored(loaded(written(model, tmp_path / "model")), sources, targets)
    assert_equal(found, keras_log_probs(model, sources, targets))


def test_the_last_position_is_that_of_the_table_and_the_next_one_fails(tmp_path):
    model = tiny_transformer(seed=7)
    engine = loaded(written(model, tmp_path / "model"))
    sources = random_sentences(4, [POSITIONS])
    targets = random_sentences(5, [POSITIONS])
    found = scored(engine, sources, targets)
    assert_equal(found, keras_log_probs(model, sources, targets))
    with pytest.raises(RuntimeError, match="position"):
        scored(engine, random_sentences(4, [POSITIONS + 1]), targets)


@pytest.fixture(scope="module")
def quantized(tmp_path_factory):
    """Return a model, and its log-probabilities by Keras and by exact CTranslate2."""
    model = tiny_transformer(seed=8)
    folder = tmp_path_factory.mktemp("exact") / "model"
    return model, keras_log_probs(model), scored(loaded(written(model, folder)))


@pytest.mark.parametrize(
    ("quantization", "tolerance"),
    [
        ("float16", 5e-3),
        ("int16", 1e-2),
        ("int8", 0.05),
        ("int8_bfloat16", 0.05),
    ],
)
def test_quantized_weights_are_near_and_the_models_own_are_untouched(
    quantized, quantization, tolerance, tmp_path
):
    model, expected, exact = quantized
    before = [np.array(weight) for weight in model.get_weights()]
    folder = written(model, tmp_path / "model", quantization)
    for weight, old in zip(model.get_weights(), before, strict=True):
        np.testing.assert_array_equal(weight, old)
    # In float32: the products of 8-bit integers saturate on processors without VNNI
    # (docs/serving.md), which is the engine's error and not the file's.
    found = scored(loaded(folder, "float32"))
    assert_equal(found, expected, tolerance)
    assert max(abs(a - b).max() for a, b in zip(found, exact, strict=True)) > 1e-5


@pytest.mark.parametrize("quantization", ["int8", "int8_float16"])
def test_8_bit_arithmetic_is_near_the_models_own(quantized, quantization, tmp_path):
    model, expected, _ = quantized
    engine = loaded(written(model, tmp_path / "model", quantization), quantization)
    assert engine.compute_type == "int8_float32"
    # Without VNNI, sums of two products saturate (docs/serving.md).
    cpuinfo = Path("/proc/cpuinfo")
    has_vnni = cpuinfo.exists() and "vnni" in cpuinfo.read_text()
    assert_equal(scored(engine), expected, 0.5 if has_vnni else 1.0)


def test_the_configuration_names_tokens_and_epsilon_of_the_model(tmp_path):
    model = tiny_transformer(norm_epsilon=3e-6)
    folder = written(model, tmp_path / "model")
    config = json.loads((folder / "config.json").read_text())
    assert config["layer_norm_epsilon"] == 3e-6
    assert config["unk_token"] == "<unk>"
    assert config["eos_token"] == "</s>"
    # A token outside the vocabulary would get an id past the table.
    tokens = {value for name, value in config.items() if name.endswith("_token")}
    assert tokens <= set(distinct_entries(DIGITS))
    assert not config["add_source_eos"]


def test_the_bias_of_pad_is_finite_in_float16_and_its_probability_is_zero():
    assert np.isfinite(np.float16(PAD_BIAS))
    assert np.exp(np.float32(PAD_BIAS)) == 0


def test_a_specification_shares_no_memory_with_the_model():
    model = tiny_transformer()
    spec = model_spec(model, DIGITS, DIGITS, POSITIONS)
    spec.encoder.embeddings[0].weight[:] = 17
    spec.decoder.layer[0].ffn.linear_0.weight[:] = 17
    spec.encoder.layer[0].self_attention.linear[0].weight[:] = 17
    assert all((weight != 17).all() for weight in model.get_weights())
