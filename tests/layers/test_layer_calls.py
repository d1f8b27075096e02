"""Encoder and decoder hand values to their sublayers in the right places.

Sublayers are replaced by functions that write down their arguments, so that the result
of a layer is the formula that it computes.
"""

from __future__ import annotations

from types import MethodType, SimpleNamespace

import pytest

from t2t_repro.layers import AttentionRole, Decoder, Encoder
from t2t_repro.layers import decoder_layer as decoder_module
from t2t_repro.layers.decoder_layer import DecoderLayer
from t2t_repro.layers.encoder import EncoderLayer


def written(name):
    """Return a function that writes down its name and its arguments."""

    def function(*args, **kwargs):
        named = (f"{key}={value}" for key, value in kwargs.items())
        return f"{name}({', '.join([*map(str, args), *named])})"

    return function


class Sublayer:
    """A sublayer whose methods write down their arguments."""

    def __init__(self, name):
        self.name = name

    def __call__(self, *args, **kwargs):
        return written(self.name)(*args, **kwargs)

    def prepare(self, x):
        return f"{self.name}.prepare({x})"

    def project_memory(self, memory):
        arguments = f"{self.name}, {memory}"
        return f"key({arguments})", f"value({arguments})"

    def visible_history(self, history, first_slot):
        return f"{self.name}.visible({history}, {first_slot})"

    def attend(self, *arguments):
        return written(f"{self.name}.attend")(*arguments)


def stand_in(layer_class, *, feed_forward=True, after=AttentionRole.MEMORY):
    """Make a layer of sublayers that write down their arguments."""
    names = {
        "self_attention": "self",
        "self_attention_residual": "self+",
        "memory_attention": "memory",
        "memory_attention_residual": "memory+",
        "feed_forward": "network",
        "feed_forward_residual": "network+",
    }
    layer = SimpleNamespace(**{name: Sublayer(short) for name, short in names.items()})
    layer.network_role = after
    if not feed_forward:
        layer.feed_forward = None
    for name in ("call", "step", "initial_cache", "_after"):
        if hasattr(layer_class, name):
            setattr(layer, name, MethodType(getattr(layer_class, name), layer))
    return layer


def residual(name, x, output):
    return f"{name}({x}, {output}, training=T)"


def test_an_encoder_layer_attends_to_itself_and_applies_the_network():
    prepared = "self+.prepare(x)"
    x = residual("self+", "x", f"self({prepared}, {prepared}, mask, training=T)")
    y = residual("network+", x, f"network(network+.prepare({x}), training=T)")
    assert stand_in(EncoderLayer).call("x", "mask", "T") == y
    assert stand_in(EncoderLayer, feed_forward=False).call("x", "mask", "T") == x


def test_a_decoder_layer_attends_to_itself_then_to_the_memory():
    prepared = "self+.prepare(x)"
    x = residual("self+", "x", f"self({prepared}, {prepared}, own, training=T)")
    attended = f"memory(memory+.prepare({x}), source, mask, training=T)"
    x = residual("memory+", x, attended)
    y = residual("network+", x, f"network(network+.prepare({x}), training=T)")
    layer = stand_in(DecoderLayer)
    assert layer.call("x", "source", "mask", "own", "T") == y
    layer = stand_in(DecoderLayer, feed_forward=False)
    assert layer.call("x", "source", "mask", "own", "T") == x


def test_the_network_of_a_decoder_layer_may_follow_its_self_attention():
    prepared = "self+.prepare(x)"
    x = residual("self+", "x", f"self({prepared}, {prepared}, own, training=T)")
    x = residual("network+", x, f"network(network+.prepare({x}), training=T)")
    attended = f"memory(memory+.prepare({x}), source, mask, training=T)"
    layer = stand_in(DecoderLayer, after=AttentionRole.DECODER_SELF)
    y = layer.call("x", "source", "mask", "own", "T")
    assert y == residual("memory+", x, attended)


class Tensor(str):
    """A name whose slice without positions is another name."""

    def __getitem__(self, index):
        assert index == (slice(None), slice(None, 0))
        return f"{self}[no positions]"


def test_a_cache_begins_with_the_memory_and_no_positions():
    cache = stand_in(DecoderLayer).initial_cache(Tensor("source"))
    assert cache == {
        "self_key": "key(self, source[no positions])",
        "self_value": "value(self, source[no positions])",
        "memory_key": "key(memory, source)",
        "memory_value": "value(memory, source)",
    }


CACHE = {
    "self_key": "K",
    "self_value": "V",
    "memory_key": "memory K",
    "memory_value": "memory V",
}


def test_a_cache_grows_in_the_slots_of_the_target(monkeypatch):
    ops = SimpleNamespace(
        shape=lambda x: ("batch", f"heads of {x}", 3, f"depth of {x}"),
        zeros=lambda shape, dtype: (shape, dtype),
        concatenate=lambda parts, axis: (parts, axis),
    )
    monkeypatch.setattr(decoder_module, "ops", ops)

    class Named(str):
        @property
        def dtype(self):
            return f"dtype of {self}"

    cache = {name: Named(value) for name, value in CACHE.items()}

    def grown(x):
        zeros = (("batch", f"heads of {x}", 5, f"depth of {x}"), f"dtype of {x}")
        return ([x, zeros], 2)

    assert DecoderLayer.grow_cache(cache, 8) == {
        "self_key": grown("K"),
        "self_value": grown("V"),
        "memory_key": "memory K",
        "memory_value": "memory V",
    }


@pytest.mark.parametrize("feed_forward", [True, False])
def test_a_step_writes_its_slots_and_attends_to_the_history(monkeypatch, feed_forward):
    ops = SimpleNamespace(
        slice_update=lambda cache, start, new: f"{cache}[{start[2]}:]={new}"
    )
    monkeypatch.setattr(decoder_module, "ops", ops)
    layer = stand_in(DecoderLayer, feed_forward=feed_forward)
    y, cache = layer.step("x", CACHE, "slot", "history", "mask")
    prepared = "self+.prepare(x)"
    key, value = f"K[slot:]=key(self, {prepared})", f"V[slot:]=value(self, {prepared})"
    seen = "self.visible(history, slot)"
    x = f"self+(x, self.attend({prepared}, {key}, {value}, {seen}))"
    query = f"memory+.prepare({x})"
    x = f"memory+({x}, memory.attend({query}, memory K, memory V, mask))"
    network = f"network+({x}, network(network+.prepare({x}), training=None), "
    assert y == (f"{network}training=None)" if feed_forward else x)
    assert cache == CACHE | {"self_key": key, "self_value": value}


def test_a_step_that_appends_puts_its_slots_after_the_others(monkeypatch):
    ops = SimpleNamespace(concatenate=lambda parts, axis: (*parts, axis))
    monkeypatch.setattr(decoder_module, "ops", ops)
    layer = stand_in(DecoderLayer, feed_forward=False)
    _, cache = layer.step("x", CACHE, "slot", "history", "mask", append=True)
    prepared = "self+.prepare(x)"
    assert cache == CACHE | {
        "self_key": ("K", f"key(self, {prepared})", 2),
        "self_value": ("V", f"value(self, {prepared})", 2),
    }


def stack(*names):
    """Make a stack of layers that write down their arguments."""
    layers = [Sublayer(name) for name in names]
    return SimpleNamespace(layers=layers, normalize=written("normalize"))


def test_an_encoder_applies_its_layers_in_order_and_normalizes_once():
    encoder = stack("a", "b")
    a = "a(x, attention_mask=mask, training=T)"
    expected = f"normalize(b({a}, attention_mask=mask, training=T))"
    assert Encoder.call(encoder, "x", "mask", "T") == expected


def test_a_decoder_applies_its_layers_in_order_and_normalizes_once():
    decoder = stack("a", "b")
    others = "source, memory_attention_mask=mask, self_attention_mask=own, training=T"
    expected = f"normalize(b(a(x, {others}), {others}))"
    assert Decoder.call(decoder, "x", "source", "mask", "own", "T") == expected


def test_every_layer_of_a_decoder_steps_with_its_own_cache():
    decoder = stack("a", "b")
    for layer in decoder.layers:
        name = layer.name
        layer.initial_cache = written(f"{name}.cache")
        layer.grow_cache = written(f"{name}.grow")
        layer.step = lambda *given, name=name: (
            written(f"{name}.step")(*given),
            f"new cache of {name}",
        )
    assert Decoder.initial_cache(decoder, "source") == [
        "a.cache(source)",
        "b.cache(source)",
    ]
    grown = Decoder.grow_cache(decoder, ["A", "B"], "slots")
    assert grown == ["a.grow(A, slots)", "b.grow(B, slots)"]
    given = ("slot", "history", "mask", "append")
    y, caches = Decoder.step(decoder, "x", ["A", "B"], *given)
    a = "a.step(x, A, slot, history, mask, append)"
    assert y == f"normalize(b.step({a}, B, slot, history, mask, append))"
    assert caches == ["new cache of a", "new cache of b"]
