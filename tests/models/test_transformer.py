from __future__ import annotations

import functools
from typing import Any, NamedTuple

import keras
import numpy as np
import pytest

from t2t_repro import catalogue
from t2t_repro.constants import PAD_ID
from t2t_repro.layers.attention import padding_mask
from t2t_repro.models.token_counters import TokenCounter, TokenCounters
from t2t_repro.models.transformer import Transformer
from t2t_repro.training.losses import SmoothedCrossentropy
from tests.support.numpy_transformer import NumpyTransformer
from tests.support.tiny_model import (
    VOCAB_SIZE,
    assert_cached_equals_whole,
    padded,
    random_sentences,
    tiny_arguments,
    tiny_transformer,
    weights_by_name,
)

SOURCES = random_sentences(1, [6, 1, 4])
TARGETS = random_sentences(2, [3, 7, 5])
BATCH = {"inputs": padded(SOURCES), "targets": padded(TARGETS)}

KINDS = {
    "the paper's": {},
    "pre-norm": {"norm": "pre"},
    "concatenated sinusoids": {"positions": "concatenated"},
    "learned positions, too few": {"positions": "learned", "max_positions": 5},
    "no positions": {"positions": "none"},
    "two vocabularies": {
        "tie_embeddings": False,
        "source_vocab_size": 17,
        "norm": "pre",
        "positions": "concatenated",
        "attention_key_channels": 6,
        "attention_value_channels": 10,
    },
    "Marian's": {
        "attention_bias": True,
        "ffn_activation": "swish",
        "logit_bias": True,
        "decoder_start": "pad",
        "positions": "halves",
        "norm_epsilon": 1e-5,
    },
    "every bias, two vocabularies": {
        "attention_bias": True,
        "attention_key_channels": 6,
        "attention_value_channels": 10,
        "encoder_input_bias": True,
        "ffn_activation": "gelu",
        "logit_bias": True,
        "tie_embeddings": False,
        "norm": "pre",
    },
    "another epsilon": {"norm_epsilon": 0.1},
    "many heads": {"num_heads": 8},
    "words": {
        "counters": TokenCounters(
            (TokenCounter((3, 6, 7, 10)),), (TokenCounter((2, 5, 8)),)
        )
    },
    "words and depth": {
        "counters": TokenCounters(
            (TokenCounter((3, 4)),),
            (TokenCounter((2, 5, 8)), TokenCounter((3, 6), (4, 7, 9))),
        )
    },
}


def reference_of(model: Transformer, options: dict) -> NumpyTransformer:
    return NumpyTransformer(
        weights_by_name(model),
        num_heads=options.get("num_heads", 2),
        num_layers=2,
        norm=options.get("norm", "post"),
        positions=options.get("positions", "interleaved"),
        epsilon=options.get("norm_epsilon", 1e-6),
        counters=options.get("counters", ((), ())),
        activation=options.get("ffn_activation", "relu"),
        decoder_start=options.get("decoder_start", "zeros"),
    )


def logits_of(model: Transformer, batch: dict, **options) -> np.ndarray:
    return keras.ops.convert_to_numpy(model(batch, **options))


# Other tests compare them with formulas; these test properties of every model. For
# other forms of branches, see tests/layers/test_branch_settings.py.
VARIANTS = {
    "restricted": {"self_attention_type": "restricted", "attention_neighbourhood": 3},
    "restricted by a mask": {
        "self_attention_type": "restricted_masked",
        "attention_neighbourhood": 5,
    },
    "additive": {
        "attention_compatibility": "additive",
        "self_attention_type": "restricted",
        "attention_neighbourhood": 3,
    },
    "unscaled": {"attention_compatibility": "dot_product"},
    "over parameters": {
        "ffn_layer": "parameter_attention",
        "parameter_attention_heads": 2,
        "parameter_attention_key_channels": 4,
        "parameter_attention_value_channels": 6,
    },
    "weighted": {"branched_attention": "split"},
    "weighted self-attention": {
        "branched_attention": "split",
        "branched_in_decoder": "self",
    },
    "weighted, a stream each": {
        "branched_attention": "split",
        "branch_residual": "per_branch",
    },
    "weighted, one stream": {
        "branched_attention": "split",
        "branch_residual": "shared",
        "branched_in_decoder": "self",
    },
}
ALL_KINDS = KINDS | VARIANTS


# For properties that the equality with the reference does not show already.
DISTINCT = ["the paper's", "Marian's", "two vocabularies", "words and depth", *VARIANTS]
SAVED = {name: ALL_KINDS[name] for name in DISTINCT} | {
    "single options": {
        "positions": "learned",
        "max_positions": 5,
        "attention_key_channels": 16,
        "attention_value_channels": 24,
        "norm_epsilon": 0.1,
        "num_heads": 8,
        "attention_compatibility": "dot_product",
    }
}
ONE_LAYER = {"num_encoder_layers": 1, "num_decoder_layers": 1}


class Known(NamedTuple):
    """A model that no test changes, and its logits of `BATCH`."""

    model: Transformer
    options: dict[str, Any]
    logits: np.ndarray


@functools.cache
def known_model(kind: str) -> Known:
    options = (ALL_KINDS | SAVED)[kind]
    model = tiny_transformer(seed=3, **options)
    return Known(model, options, logits_of(model, BATCH))


@pytest.fixture
def known(request):
    return known_model(request.param)


@pytest.mark.parametrize("known", KINDS, indirect=True)
def test_the_model_equals_the_numpy_reference(known):
    reference = reference_of(known.model, known.options)
    for row, source, target in zip(known.logits, SOURCES, TARGETS, strict=True):
        expected = reference.logits(source, target)
        np.testing.assert_allclose(row[: len(target)], expected, rtol=0, atol=1e-5)


def test_matrices_begin_as_glorot_uniform_and_embeddings_as_normal():
    keras.utils.set_random_seed(1)
    hparams = catalogue.hparams("transformer_tiny")
    model = Transformer.from_hparams(hparams, 1_000, 1_000)
    kernels = [v for v in model.weights if v.name == "kernel"]
    assert len(kernels) == 2 * (4 + 2) + 2 * (8 + 2)
    for kernel in kernels:
        limit = np.sqrt(6 / sum(kernel.shape))
        values = kernel.numpy()
        assert 0.98 * limit < np.abs(values).max() <= limit, kernel.path
        assert values.std() == pytest.approx(limit / np.sqrt(3), rel=0.05), kernel.path
    (table,) = (v for v in model.weights if v.name == "table")
    assert table.numpy().std() == pytest.approx(128**-0.5, rel=0.02)


@pytest.mark.parametrize("known", DISTINCT, indirect=True)
def test_padding_never_changes_unpadded_outputs(known):
    more = {name: np.pad(ids, [(0, 0), (0, 4)]) for name, ids in BATCH.items()}
    length = BATCH["targets"].shape[1]
    np.testing.assert_allclose(
        logits_of(known.model, more)[:, :length], known.logits, atol=2e-6
    )


@pytest.mark.parametrize("known", DISTINCT, indirect=True)
def test_the_future_never_changes_the_past(known):
    targets = padded(random_sentences(7, [7, 7, 7]))
    # One batch of the targets and of the same targets changed from each position on.
    together = [targets]
    for position in range(1, 7):
        changed = targets.copy()
        changed[:, position:] = (changed[:, position:] + 3) % 8 + 2
        together.append(changed)
    inputs = np.tile(BATCH["inputs"], (7, 1))
    batch = {"inputs": inputs, "targets": np.concatenate(together)}
    logits, *all_others = np.split(logits_of(known.model, batch), 7)
    for position, others in enumerate(all_others, start=1):
        past = slice(0, position + 1)
        # Another row of a matrix product is rounded differently.
        np.testing.assert_allclose(others[:, past], logits[:, past], atol=2e-6)
        if position < 6:
            later = slice(position + 1, None)
            assert not np.allclose(others[:, later], logits[:, later], atol=1e-3)


# Keras warns of the first position, which sees only itself.
@pytest.mark.filterwarnings("ignore:You are using a softmax over axis")
@pytest.mark.parametrize("append", [False, True])
@pytest.mark.parametrize(
    "known", [*DISTINCT, "learned positions, too few"], indirect=True
)
def test_cached_decoding_equals_the_whole_pass(known, append):
    batch = BATCH | {"targets": padded(random_sentences(10, [6, 6, 6]))}
    assert_cached_equals_whole(known.model, batch, append)


@pytest.mark.parametrize("append", [False, True])
@pytest.mark.parametrize("kind", ["paper", "restricted", "weighted"])
def test_cached_decoding_follows_hypotheses_that_change_places(kind, append):
    model = tiny_transformer(seed=11, **({} if kind == "paper" else VARIANTS[kind]))
    random = np.random.default_rng(12)
    inputs, batch, beam, length = BATCH["inputs"], 3, 3, 6
    rows = np.arange(batch)[:, None]
    cache = model.initial_cache(inputs)
    if not append:
        cache = model.grow_cache(cache, length * beam)
    history = np.zeros((batch, beam, length * beam), bool)
    tokens = np.zeros((batch, beam, 0), np.int32)
    step_logits, prefixes = [], []
    for position in range(length):
        # Every hypothesis extends a random one of the previous step.
        parents = random.integers(0, beam, (batch, beam))
        history, tokens = history[rows, parents], tokens[rows, parents]
        history[:, range(beam), position * beam + np.arange(beam)] = True
        last = tokens[:, :, -1] if position else np.zeros((batch, beam), np.int32)
        seen = history[:, :, : (position + 1) * beam] if append else history
        place = np.int32(position)
        logits, cache = model.decode_step(last, place, seen, cache, append)
        new = random.integers(2, VOCAB_SIZE, (batch, beam, 1), dtype=np.int32)
        tokens = np.concatenate([tokens, new], axis=-1)
        step_logits.append(logits)
        prefixes.append(padded(list(tokens.reshape(batch * beam, -1)), length))
    # All prefixes of all steps in one pass.
    whole = logits_of(
        model,
        {
            "inputs": np.tile(np.repeat(inputs, beam, axis=0), (length, 1)),
            "targets": np.concatenate(prefixes),
        },
    ).reshape(length, batch, beam, length, VOCAB_SIZE)
    for position, logits in enumerate(step_logits):
        expected = whole[position, :, :, position]
        np.testing.assert_allclose(logits, expected, atol=1e-5)


@pytest.mark.parametrize(
    "rate",
    [
        "layer_prepostprocess_dropout",
        "attention_dropout",
        "relu_dropout",
        "symbol_dropout",
    ],
)
def test_dropout_is_active_only_in_training(rate):
    model = tiny_transformer(seed=13, **ONE_LAYER, **{rate: 0.5})
    without = logits_of(tiny_transformer(seed=13, **ONE_LAYER), BATCH)
    np.testing.assert_array_equal(logits_of(model, BATCH), without)
    np.testing.assert_array_equal(logits_of(model, BATCH, training=False), without)
    assert not np.allclose(logits_of(model, BATCH, training=True), without, atol=0.01)


@pytest.mark.parametrize("rate", ["layer_prepostprocess_dropout", "symbol_dropout"])
def test_embeddings_and_symbols_of_both_sides_are_dropped_in_training(rate):
    no_layers = {"num_encoder_layers": 0, "num_decoder_layers": 0}
    model = tiny_transformer(seed=13, **no_layers, **{rate: 0.5})
    for run in (
        lambda training: model.encode(BATCH["inputs"], training=training),
        lambda training: model(BATCH, training=training),
    ):
        whole, dropped = np.array(run(False)), np.array(run(True))
        changed = np.any(whole != dropped, axis=-1)
        assert changed.any()
        if rate == "symbol_dropout":
            assert not changed.all()


def test_a_dropped_symbol_has_no_embedding_but_is_seen():
    """Compare with padding in its place, which the other positions do not see."""
    model = tiny_transformer(seed=13, symbol_dropout=0.5, **ONE_LAYER)
    inputs = BATCH["inputs"]
    model.source_symbols.call = lambda ids, training: np.where(ids == 10, PAD_ID, ids)
    assert 10 in inputs
    dropped = model.encode(inputs, training=True)
    x = model.source_embedding(np.where(inputs == 10, PAD_ID, inputs))
    x = x + model.source_positions(np.arange(inputs.shape[1]))
    expected = model.encoder(x, padding_mask(inputs))
    np.testing.assert_array_equal(dropped, expected)
    unseen = model.encoder(x, padding_mask(np.where(inputs == 10, PAD_ID, inputs)))
    assert not np.allclose(dropped, unseen)


# Keras 3.15 reads TensorFlow variables in a way that NumPy 2 warns of.
@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
@pytest.mark.parametrize("known", SAVED, indirect=True)
def test_a_saved_model_gives_the_same_logits(tmp_path, known):
    known.model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert loaded.get_config() == known.model.get_config()
    np.testing.assert_array_equal(logits_of(loaded, BATCH), known.logits)


@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
@pytest.mark.parametrize("norm", ["post", "pre"])
def test_mixed_precision_keeps_variables_and_logits_in_float32(policy, norm):
    exact = tiny_transformer(seed=15, norm=norm, **ONE_LAYER)
    mixed = tiny_transformer(seed=15, norm=norm, dtype=policy, **ONE_LAYER)
    assert mixed.encode(BATCH["inputs"]).dtype == policy.removeprefix("mixed_")
    assert {variable.dtype for variable in mixed.trainable_variables} == {"float32"}
    logits = logits_of(mixed, BATCH)
    assert logits.dtype == np.float32
    np.testing.assert_allclose(logits, logits_of(exact, BATCH), atol=0.15)


def test_compile_and_fit_learn():
    keras.utils.set_random_seed(16)
    wider = {
        "hidden_size": 16,
        "attention_key_channels": 16,
        "attention_value_channels": 16,
    }
    model = Transformer(**tiny_arguments(**wider, **ONE_LAYER))
    model.compile(
        optimizer=keras.optimizers.Adam(0.01),
        loss=SmoothedCrossentropy(0.1),
        jit_compile=False,
    )
    # To copy four symbols.
    pairs = padded(random_sentences(16, [5] * 128))
    batch = {"inputs": pairs, "targets": pairs}
    losses = model.fit(batch, pairs, epochs=15, verbose=0).history["loss"]
    assert losses[-1] < losses[0] - 0.7


def test_one_matrix_cannot_serve_two_vocabularies():
    with pytest.raises(ValueError, match="source_vocab_size=12"):
        tiny_transformer(source_vocab_size=12)
