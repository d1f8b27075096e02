from __future__ import annotations

import json

import pytest

from t2t_repro import catalogue
from t2t_repro.errors import UsageError, UserError
from t2t_repro.settings.decode_hparams import DecodeHParams
from t2t_repro.settings.hparams import HParams


@pytest.fixture(scope="module")
def base() -> HParams:
    return catalogue.hparams("transformer_base")


def test_no_model_value_has_a_default():
    with pytest.raises(TypeError, match="hidden_size"):
        HParams()  # type: ignore[call-arg]


def test_parsed_values_have_their_fields_types(base):
    hparams = base.parse(
        "hidden_size=256, pos=emb,label_smoothing=0,"
        "shared_embedding_and_softmax_weights=False"
    )
    parsed = (
        hparams.hidden_size,
        hparams.pos,
        hparams.label_smoothing,
        hparams.shared_embedding_and_softmax_weights,
    )
    assert repr(parsed) == "(256, 'emb', 0.0, False)"


@pytest.mark.parametrize(
    ("text", "value"),
    [("true", True), ("1", True), ("True", True), ("false", False), ("0", False)],
)
def test_a_truth_value_is_written_as_a_word_or_a_digit(base, text, value):
    name = "shared_embedding_and_softmax_weights"
    assert getattr(base.parse(f"{name}={text}"), name) is value


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hidden_size=wide", "hidden_size: received 'wide', expected a whole number"),
        ("hidden_size=2.5", "hidden_size: received '2.5', expected a whole number"),
        ("label_smoothing=much", "received 'much', expected a number"),
        ("label_smoothing=1", "received 1.0, expected less than 1"),
        ("label_smoothing=nan", "received nan, expected a finite number"),
        ("num_heads=0", "received 0, expected at least 1"),
        ("length_bucket_step=1", "received 1.0, expected more than 1"),
        (
            "pos=sine",
            "'sine', expected one of timing, timing_concat, timing_halves, emb, "
            "emb_large, none",
        ),
        (
            "shared_embedding_and_softmax_weights=yes",
            "received 'yes', expected true or false",
        ),
        ("hidden_size", "received 'hidden_size', expected name=value"),
        ("hidden_size=8,", "received '', expected name=value"),
        ("hidden_size=8,hidden_size=8", "hidden_size is given twice"),
        ("hiden_size=8", "Did you mean hidden_size"),
        ("num_heads=7", "must divide hidden_size: received num_heads=7, hidden_size=5"),
        ("attention_key_channels=12", "must divide attention_key_channels"),
        ("attention_value_channels=12", "must divide attention_value_channels"),
        (
            "self_attention_type=restrictd",
            "unknown self_attention_type 'restrictd'.\nDid you mean restricted",
        ),
        ("self_attention_type=restricted", "needs an odd attention_neighbourhood"),
        (
            "self_attention_type=restricted_masked,attention_neighbourhood=4",
            "needs an odd attention_neighbourhood: received attention_neighbourhood=4",
        ),
        ("attention_neighbourhood=3", "needs self_attention_type=restricted: received"),
        (
            "ffn_layer=parameter_attention,parameter_attention_heads=3",
            "parameter_attention_heads must divide hidden_size: received param",
        ),
        (
            "ffn_layer=parameter_attention,parameter_attention_value_channels=9",
            "num_heads must divide parameter_attention_value_channels: received",
        ),
        (
            "branched_attention=split,ffn_layer=parameter_attention",
            "branched_attention contains the feed-forward network",
        ),
        (
            "branched_attention=split,self_attention_type=restricted,"
            "attention_neighbourhood=3",
            "branched_attention needs self_attention_type=dot_product",
        ),
        (
            "branched_attention=split,filter_size=2047",
            "must divide filter_size if branches split it",
        ),
        ("branched_attention=shared,branch_top_k=9", "must not exceed num_heads"),
        (
            "branched_attention=shared,branch_residual=shared",
            "alpha has no effect",
        ),
        (
            "branched_attention=shared,branch_residual=per_branch,branch_gain=unit",
            "an average of whole networks already",
        ),
        ("packed_length=63,max_length=64", "packed_length must be at least max_length"),
        (
            "packed_length=256,packed_source_length=257",
            "packed_source_length must not exceed packed_length: received",
        ),
        (
            "packed_length=256,self_attention_type=restricted,"
            "attention_neighbourhood=3",
            "use restricted_masked, which computes the same function",
        ),
        ("branch_learning_rate_constant=-1", "expected at least 0"),
        ("attention_compatibility=cosine", "expected one of scaled_dot_product, dot_"),
        ("hidden_size=513,num_heads=1", "pos=timing needs an even hidden_size"),
        ("layer_preprocess_sequence=n", "expected none/dan or n/da"),
        ("learning_rate_schedule=constant*noam", "received 'constant\\*noam'"),
        ("learning_rate_schedule=constant*constant", "at most once"),
    ],
)
def test_a_bad_override_names_the_received_and_the_expected_value(base, text, message):
    with pytest.raises(UsageError, match=message):
        base.parse(text)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "learning_rate_schedule=constant,learning_rate_warmup_steps=10",
            "no factor linear_warmup or rsqrt_decay",
        ),
        (
            "learning_rate_schedule=rsqrt_decay,learning_rate_constant=2",
            "no factor constant",
        ),
        (
            "num_encoder_layers=2,num_decoder_layers=2,num_hidden_layers=4",
            "are both set",
        ),
        ("min_length_bucket=256,length_bucket_step=2", "there is one bucket"),
        ("layer_prepostprocess_dropout=0,rdrop_weight=5", "there is no dropout"),
        ("rdrop_after_steps=5", "rdrop_weight=0, so no update has two passes"),
        (
            "ffn_layer=parameter_attention,relu_dropout=0.1",
            "ffn_layer=parameter_attention",
        ),
        (
            "ffn_layer=parameter_attention,layer_prepostprocess_dropout=0,"
            "rdrop_weight=5",
            "there is no dropout",
        ),
        ("packed_source_length=5", "packed_length=0, so no rows are packed"),
    ],
)
def test_an_override_without_effect_is_refused(base, text, reason):
    with pytest.raises(UsageError, match=f"would have no effect.*{reason}"):
        base.parse(text)


def test_a_value_without_effect_is_fine_unless_it_is_overridden(base):
    assert base.parse("learning_rate_schedule=rsqrt_decay").learning_rate_constant == 1


def test_a_whole_number_given_in_code_becomes_its_fields_number(base):
    assert type(base.replace(learning_rate_constant=2).learning_rate_constant) is float


def test_a_truth_value_is_not_a_whole_number(base):
    with pytest.raises(UserError, match="received True, expected a whole number"):
        base.replace(num_heads=True)


def test_replacing_an_unknown_name_is_refused(base):
    with pytest.raises(UserError, match="Did you mean hidden_size"):
        base.replace(hiden_size=8)


def test_values_remember_the_set_they_come_from():
    big = catalogue.hparams("transformer_big")
    assert (big.origins["hidden_size"], big.origins["pos"]) == (
        "transformer_big",
        "transformer_base",
    )


def test_an_override_remembers_the_flag(base):
    assert base.parse("hidden_size=256").origins["hidden_size"] == "--hparams"


def test_an_overridden_zero_stays_an_override_when_it_is_resolved():
    """A run must find it again, or its folder could not be resumed."""
    narrow = catalogue.hparams("transformer_base_b_dk16")
    resolved = narrow.parse("attention_key_channels=0").resolved()
    assert resolved.attention_key_channels == 512
    assert resolved.given() == {"attention_key_channels": 0}
    assert narrow.resolved().given() == {}
    assert narrow.resolved().origins["num_encoder_layers"] == "derived"


def test_the_overrides_of_resolved_settings_can_be_parsed_again(base):
    """Otherwise "num_hidden_layers would have no effect", and no run could resume."""
    text = "num_hidden_layers=1,num_encoder_layers=0,num_decoder_layers=2"
    resolved = base.parse(text).resolved()
    again = ",".join(f"{name}={value}" for name, value in resolved.given().items())
    assert base.parse(again).resolved() == resolved
    assert HParams.from_dict(resolved.to_dict()).given() == resolved.given()


def test_origins_do_not_count_in_comparisons(base):
    assert base.parse("hidden_size=512") == base


def test_diff_has_only_the_differences_with_both_values(base):
    assert base.diff(base.replace(num_heads=4)) == {"num_heads": (8, 4)}


@pytest.mark.parametrize("name", ["transformer_base", "transformer_big_v3"])
def test_json_round_trip_keeps_values_and_origins(name):
    hparams = catalogue.hparams(name)
    returned = HParams.from_dict(json.loads(json.dumps(hparams.to_dict())))
    assert (returned, returned.origins) == (hparams, hparams.origins)


def test_json_of_another_version_names_the_missing_settings(base):
    values = base.to_dict()
    del values["pos"]
    with pytest.raises(UserError, match="without pos"):
        HParams.from_dict(values)


def test_json_with_an_unknown_name_is_refused(base):
    with pytest.raises(UserError, match="unknown hparams name 'postion'"):
        HParams.from_dict({**base.to_dict(), "postion": "emb"})


RESOLVED = (
    "num_encoder_layers",
    "num_decoder_layers",
    "attention_key_channels",
    "attention_value_channels",
    "parameter_attention_heads",
    "parameter_attention_key_channels",
    "parameter_attention_value_channels",
)


def test_resolving_replaces_every_zero_that_means_another_value(base):
    resolved = base.resolved()
    found = [getattr(resolved, name) for name in RESOLVED]
    assert found == [6, 6, 512, 512, 8, 512, 512]


def test_resolving_keeps_every_value_that_is_given(base):
    given = dict(zip(RESOLVED, [1, 2, 8, 16, 4, 24, 32], strict=True))
    resolved = base.replace(ffn_layer="parameter_attention", **given).resolved()
    assert {name: getattr(resolved, name) for name in RESOLVED} == given


def test_every_name_has_a_line_of_help():
    names = [*map(HParams.about, HParams.names())]
    names += map(DecodeHParams.about, DecodeHParams.names())
    assert all(about.help for about in names)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # CTranslate2 overflows at 200; at a million, every score is -0.0000.
        ("alpha=200", "alpha: received 200.0, expected at most 5."),
        ("extra_length=99999999999", "expected at most 10000."),
        ("min_length=99999999999", "expected at most 10000."),
        ("no_repeat_ngram_size=99999999999", "expected at most 10000."),
        ("beam_size=1000000", "expected at most 1000."),
        ("batch_size=99999999999", "expected at most 2147483647."),
    ],
)
def test_sizes_of_the_search_that_no_machine_has_are_refused(text, expected):
    with pytest.raises(UsageError) as refused:
        DecodeHParams().parse(text)
    assert expected in str(refused.value)


def test_decoding_defaults_are_the_papers():
    decoding = DecodeHParams()
    assert (decoding.beam_size, decoding.alpha, decoding.extra_length) == (4, 0.6, 50)


def test_decoding_overrides_are_parsed():
    decoding = DecodeHParams().parse("beam_size=8,alpha=1,return_beams=true")
    assert decoding == DecodeHParams(beam_size=8, alpha=1.0, return_beams=True)


@pytest.mark.parametrize(
    ("name", "value"),
    [("return_beams", "true"), ("prefer_unrepaired", "true"), ("mbr_scale", "1")],
)
def test_asking_a_greedy_search_for_more_than_one_hypothesis_is_refused(name, value):
    with pytest.raises(UsageError, match=f"{name} would have no effect: beam_size=1"):
        DecodeHParams().parse(f"beam_size=1,{name}={value}")


def test_a_consensus_needs_weights_and_is_one_output():
    with pytest.raises(UserError, match="expected a scale above 0"):
        DecodeHParams().parse("mbr_consensus=true")
    with pytest.raises(UserError, match="expected a scale above 0"):
        DecodeHParams(mbr_consensus=True)
    for name, reason in [
        ("return_beams", "a consensus is one output"),
        ("write_beam_scores", "a consensus has no score"),
    ]:
        with pytest.raises(UserError, match=reason):
            DecodeHParams().parse(f"mbr_scale=1,mbr_consensus=true,{name}=true")
    assert DecodeHParams().parse("mbr_scale=1,mbr_consensus=true").num_hypotheses == 4
