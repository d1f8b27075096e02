"""A user's package registers an attention; the code is that of docs/extending.md."""

from __future__ import annotations

import re
import sys

import keras
import numpy as np
import pytest

from t2t_repro import catalogue, registry
from t2t_repro.errors import UsageError, UserError
from t2t_repro.layers import MultiHeadAttention
from t2t_repro.models.transformer import Transformer
from t2t_repro.registry import register_attention
from t2t_repro.settings.hparams import HParams
from tests.support.tiny_model import (
    VOCAB_SIZE,
    assert_cached_equals_whole,
    padded,
    random_sentences,
    randomize,
)

BATCH = {
    "inputs": padded(random_sentences(1, [6, 1, 4])),
    "targets": padded(random_sentences(2, [7, 7, 7])),
}
SMALL = {"hidden_size": 8, "filter_size": 12, "num_heads": 2}


@pytest.fixture(autouse=True)
def nothing_stays_registered():
    catalogue.load()
    with registry.attentions.isolated(), registry.hparams_sets.isolated():
        yield
    for name in ("my_variants", "my_function"):
        sys.modules.pop(name, None)


@pytest.fixture
def examples(repository):
    page = (repository / "docs" / "extending.md").read_text(encoding="utf-8")
    _, _, section = page.partition("\n## An attention layer\n")
    return re.findall(r"```python\n(.*?)```", section, flags=re.DOTALL)


@pytest.fixture
def load_example(examples, tmp_path):
    def load(number: int, name: str) -> None:
        package = tmp_path / name
        package.mkdir()
        (package / "__init__.py").write_text(examples[number], encoding="utf-8")
        catalogue.load(package)

    return load


def random_model(hparams: HParams) -> Transformer:
    model = Transformer.from_hparams(hparams, VOCAB_SIZE, VOCAB_SIZE)
    randomize(model, seed=3)
    return model


def test_a_package_registers_an_attention_and_a_set_that_uses_it(load_example):
    load_example(0, "my_variants")
    model = random_model(catalogue.hparams("transformer_tiny_cosine").replace(**SMALL))
    classes = [
        type(attention).__name__
        for layer in (model.encoder.layers[0], model.decoder.layers[1])
        for attention in (layer.self_attention, getattr(layer, "memory_attention", 0))
    ]
    cosine, plain = "CosineAttention", "MultiHeadAttention"
    assert classes == [cosine, "int", cosine, plain]
    assert_cached_equals_whole(model, BATCH)


def test_the_check_of_the_page_finds_an_attention_that_decodes_otherwise(
    load_example, examples, tmp_path, monkeypatch
):
    load_example(0, "my_variants")
    monkeypatch.chdir(tmp_path)
    exec(examples[1], {})
    cosine = registry.attentions.get("cosine")
    monkeypatch.setattr(cosine, "visible_history", lambda *_: False)
    with pytest.raises(AssertionError, match="Not equal to tolerance"):
        exec(examples[1], {})


def test_the_attention_of_a_package_computes_its_formula(load_example):
    load_example(0, "my_variants")
    model = random_model(catalogue.hparams("transformer_tiny_cosine").replace(**SMALL))
    attention = model.decoder.layers[0].self_attention
    query, key = np.random.default_rng(4).normal(size=(2, 1, 2, 3, 4)).astype("float32")
    logits = keras.ops.convert_to_numpy(attention.logits(query, key))
    for n, t, s in np.ndindex(2, 3, 3):
        q, k = query[0, n, t], key[0, n, s]
        cosine = q @ k / np.linalg.norm(q) / np.linalg.norm(k)
        expected = float(attention.scale[n, 0, 0]) * cosine
        assert logits[0, n, t, s] == pytest.approx(expected, abs=1e-5)


def test_an_override_accepts_a_registered_name_and_refuses_others(load_example):
    tiny = catalogue.hparams("transformer_tiny")
    with pytest.raises(UsageError, match="unknown self_attention_type 'cosine'"):
        tiny.parse("self_attention_type=cosine")
    load_example(0, "my_variants")
    assert tiny.parse("self_attention_type=cosine").self_attention_type == "cosine"
    with pytest.raises(UsageError, match="Did you mean cosine"):
        tiny.parse("self_attention_type=cosin")


def test_a_function_chooses_by_role(load_example):
    load_example(2, "my_function")
    hparams = catalogue.hparams("transformer_tiny").replace(
        self_attention_type="narrow_encoder", **SMALL
    )
    model = random_model(hparams)
    assert model.encoder.layers[0].self_attention.attention_neighbourhood == 5
    assert model.decoder.layers[0].self_attention.attention_neighbourhood == 0
    assert_cached_equals_whole(model, BATCH)


def test_an_attention_may_read_the_neighbourhood_if_it_is_odd():
    register_attention("mine")(MultiHeadAttention)
    tiny = catalogue.hparams("transformer_tiny").replace(**SMALL)
    near = tiny.replace(self_attention_type="mine", attention_neighbourhood=3)
    assert (
        random_model(near).encoder.layers[0].self_attention.attention_neighbourhood == 3
    )
    with pytest.raises(UserError, match="mine needs an odd attention_neighbourhood"):
        tiny.replace(self_attention_type="mine", attention_neighbourhood=4)


def test_branches_take_the_place_of_a_registered_attention():
    register_attention("mine")(MultiHeadAttention)
    with pytest.raises(UserError, match="needs self_attention_type=dot_product"):
        catalogue.hparams("transformer_tiny").replace(
            self_attention_type="mine", branched_attention="split"
        )


def test_a_run_is_read_before_its_package_and_built_after_it(load_example):
    tiny = catalogue.hparams("transformer_tiny").replace(**SMALL)
    written = tiny.to_dict() | {"self_attention_type": "cosine"}
    read = HParams.from_dict(written)
    with pytest.raises(UsageError, match="unknown self_attention_type 'cosine'"):
        Transformer.from_hparams(read, VOCAB_SIZE, VOCAB_SIZE)
    load_example(0, "my_variants")
    random_model(read)


# Keras 3.15 reads TensorFlow variables in a way that NumPy 2 warns of.
@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
def test_a_model_with_a_registered_attention_is_saved_by_its_name(
    load_example, tmp_path
):
    load_example(0, "my_variants")
    model = random_model(catalogue.hparams("transformer_tiny_cosine").replace(**SMALL))
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(loaded(BATCH), model(BATCH))


def test_a_name_is_registered_once():
    class Mine(MultiHeadAttention):
        pass

    with pytest.raises(UserError, match="'restricted' is registered twice"):
        register_attention("restricted")(Mine)
