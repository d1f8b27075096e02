"""Hparams sets of packages that were written for tensor2tensor."""

from __future__ import annotations

import pytest

from t2t_repro import catalogue, registry
from t2t_repro.errors import UserError
from t2t_repro.features.tensor2tensor.old_names import SETS
from t2t_repro.features.tensor2tensor.package_hparams import frozen, set_functions
from tests.support.old_packages import old_packages

KNOWN = [name for name, old in SETS.items() if old.base]


@pytest.fixture
def load(tmp_path):
    with old_packages(tmp_path) as loader:
        yield loader


@pytest.mark.parametrize("name", KNOWN)
def test_a_set_has_the_values_of_its_flags(name):
    # The table of the flags, and tensor2tensor's own values of all hparams.
    flags = ",".join(f"{key}={value}" for key, value in SETS[name].changes.items())
    assert frozen(name, set_functions()[name]()) == catalogue.hparams(
        SETS[name].base
    ).parse(flags)


@pytest.mark.parametrize("name", sorted(SETS.keys() - {*KNOWN} - {"transformer_clean"}))
def test_a_set_without_equal_here_is_refused_or_is_another_network(name):
    if "parameter_attention" in name:
        made = frozen(name, set_functions()[name]())
        assert made.ffn_layer == "parameter_attention"
        return
    with pytest.raises(UserError, match="values that cannot be followed here:\n"):
        frozen(name, set_functions()[name]())


def test_values_are_changed_in_place_in_all_ways(load):
    load("""
        @registry.register_hparams
        def transformer_own():
            "Mine."
            hparams = transformer.transformer_tiny()
            hparams.num_heads *= 2
            hparams.add_hparam("my_switch", True)
            hparams.set_hparam("attention_dropout", 0)
            hparams.parse("num_hidden_layers=3,shared_embedding_and_softmax_weights=0")
            hparams.override_from_dict({"filter_size": 96})
            hparams.summarize_vars = True
            hparams.dropout = hparams.values()["dropout"] + hparams.get("no", 0.5)
            assert "my_switch" in hparams and "no" not in hparams
            return hparams

        @registry.register_hparams("own_second")
        def second():
            hparams = registry.hparams("transformer_own")
            hparams.batch_size = 777
            hparams.del_hparam("my_switch")
            return hparams
    """)
    expected = catalogue.hparams("transformer_base_v3").replace(
        hidden_size=128,
        num_heads=8,
        attention_dropout=0.0,
        num_hidden_layers=3,
        shared_embedding_and_softmax_weights=False,
        filter_size=96,
    )
    made = catalogue.hparams("transformer_own")
    assert made == expected
    assert made.origins["hidden_size"] == "transformer_own"
    assert registry.hparams_sets.entry("transformer_own").summary == "Mine."
    assert catalogue.hparams("own_second") == expected.replace(batch_size=777)


def test_the_learning_rate_of_the_old_schedule_counts(load):
    load("""
        @registry.register_hparams
        def slow():
            hparams = transformer.transformer_base_v1()
            hparams.learning_rate = 0.05
            return hparams
    """)
    assert catalogue.hparams("slow").learning_rate_constant == 0.5


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("weight_decay = 0.1", r"weight_decay=0\.1: there is no weight decay"),
        ("optimizer = 'Adafactor'", "optimizer=Adafactor: Adam is the only"),
        ("proximity_bias = True", "proximity_bias=True: there is none"),
        ("max_area_width = 3", "max_area_width=3: there is no such setting here"),
        ("self_attention_type = 'dot_product_relative'", "dot_product_relative"),
        ("ffn_layer = 'conv_relu_conv'", "set 'own'.*ffn_layer.*conv_relu_conv"),
        ("hidden_size = '64'", "set 'own'.*hidden_size"),
        (
            "learning_rate_schedule = 'legacy'; h.learning_rate_decay_scheme='none'",
            "sch",
        ),
        ("del_hparam('num_heads')", "no num_heads, which the Transformer needs"),
    ],
)
def test_a_value_that_nothing_here_follows_is_refused_by_name(load, change, message):
    load(f"""
        @registry.register_hparams
        def own():
            h = transformer.transformer_base()
            h.{change}
            return h
    """)
    with pytest.raises(UserError, match=message):
        catalogue.hparams("own")


@pytest.mark.parametrize(
    "line",
    [
        "h.add_hparam('num_heads', 3)",
        "h.set_hparam('num_heads', 'x')",
        "h.parse('nothing=3')",
    ],
)
def test_an_error_of_tensor2tensor_is_one_here(line):
    with pytest.raises(ValueError, match=r"reserved|Could not cast|Unknown"):
        eval(line, {"h": set_functions()["transformer_base"]()})


def test_a_set_that_is_no_transformer_is_refused_only_if_asked_for(load):
    load("""
        from tensor2tensor.layers import common_hparams
        @registry.register_hparams
        def basic():
            hparams = common_hparams.basic_params1()
            hparams.add_hparam("filter_size", 2048)
            return hparams
    """)
    with pytest.raises(UserError, match=r"no num_heads, .* start from models\.transfo"):
        catalogue.hparams("basic")
