"""Models that CTranslate2 cannot compute are refused by name, and no others."""

from __future__ import annotations

import pytest

from t2t_repro import catalogue
from t2t_repro.errors import UsageError, UserError
from t2t_repro.features.ctranslate2.ctranslate2_limits import (
    QUANTIZATIONS,
    check_expressible,
    check_quantization,
)

BASE = "transformer_base"


def hparams(text):
    catalogue.load()
    return catalogue.hparams(BASE).parse(text).resolved()


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("branched_attention=split", "branched_attention=split (the Weighted"),
        ("ffn_layer=parameter_attention", "ffn_layer=parameter_attention attends to"),
        (
            "self_attention_type=restricted,attention_neighbourhood=7",
            "self_attention_type=restricted attends to a neighbourhood of 7",
        ),
        ("attention_compatibility=additive", "attention_compatibility=additive adds"),
        ("word_positions=true", "word_positions=True also encodes positions"),
        ("depth_positions=true", "depth_positions=True also encodes the number"),
    ],
)
def test_a_model_is_refused_with_the_name_of_what_cannot_be_computed(text, named):
    with pytest.raises(UserError) as caught:
        check_expressible("transformer", hparams(text))
    assert str(caught.value).startswith("CTranslate2 cannot compute this model: ")
    assert named in str(caught.value)
    assert "Export it as a SavedModel" in str(caught.value)


def test_the_attention_of_a_users_package_is_refused():
    mine = hparams("").replace(self_attention_type="mine")
    with pytest.raises(UserError, match="self_attention_type=mine is the attention of"):
        check_expressible("transformer", mine)


def test_the_model_of_a_users_package_is_refused():
    with pytest.raises(UserError, match="model=mine is not transformer"):
        check_expressible("mine", hparams(""))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "attention_key_channels=128,attention_value_channels=256",
        "num_encoder_layers=3,num_decoder_layers=1",
        "pos=timing_concat",
        "layer_preprocess_sequence=n,layer_postprocess_sequence=da",
        "shared_embedding_and_softmax_weights=false",
        "attention_compatibility=dot_product",
        "activation_dtype=bfloat16",
    ],
)
def test_other_variants_are_accepted(text):
    check_expressible("transformer", hparams(text))


def test_the_exact_format_has_the_tightest_tolerance():
    with pytest.raises(UsageError, match="'int4', expected one of float32, "):
        check_quantization("int4")
    exact = QUANTIZATIONS["float32"]
    for name, other in QUANTIZATIONS.items():
        check_quantization(name)
        if name != "float32":
            assert (exact.mean, exact.largest) < (other.mean, other.largest)
            assert exact.equal > other.equal
