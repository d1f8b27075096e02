"""The model hands values to its parts in the right places.

Its parts are replaced by functions that write down their arguments, so that the result
is the formula that the model computes.
"""

from __future__ import annotations

from types import MethodType, SimpleNamespace

import pytest

from t2t_repro.models import cached_decoding, transformer
from t2t_repro.models.transformer import Transformer


class Text(str):
    """A name of a tensor; sums and slices are names again."""

    def __add__(self, other):
        return Text(f"({self!s} + {other})")

    def __mul__(self, other):
        return Text(f"{self!s} * {other}")

    def __getitem__(self, index):
        parts = index if isinstance(index, tuple) else (index,)
        return Text(f"{self!s}[{', '.join(map(slice_text, parts))}]")

    @property
    def shape(self):
        return (f"rows of {self}", f"length of {self}")


def slice_text(part):
    if not isinstance(part, slice):
        return str(part)
    return ":".join("" if end is None else str(end) for end in (part.start, part.stop))


def written(name):
    """Return a function that writes down its name and its arguments."""

    def function(*args, **kwargs):
        named = (f"{key}={value}" for key, value in kwargs.items())
        return Text(f"{name}({', '.join([*map(str, args), *named])})")

    return function


class Part:
    """A part of the model whose methods write down their arguments."""

    def __init__(self, name):
        self.name = name

    def __call__(self, *args, **kwargs):
        return written(self.name)(*args, **kwargs)

    def __getattr__(self, method):
        return written(f"{self.name}.{method}")


PARTS = (
    *("source_embedding", "target_embedding", "softmax"),
    *("source_positions", "target_positions"),
    *("source_symbols", "target_symbols"),
    *("source_dropout", "target_dropout", "encoder", "decoder"),
)


@pytest.fixture
def model(monkeypatch):
    ops = SimpleNamespace(
        arange=written("arange"),
        shape=lambda x: x.shape,
        pad=written("pad"),
        reshape=written("reshape"),
    )
    for module in (transformer, cached_decoding):
        monkeypatch.setattr(module, "ops", ops)
        monkeypatch.setattr(module, "padding_mask", written("padding"))
    model = SimpleNamespace(**{name: Part(name) for name in PARTS})
    model.source_counted, model.target_counted = [], []
    methods = ("call", "encode", "decode", "initial_cache", "grow_cache", "decode_step")
    for name in methods:
        setattr(model, name, MethodType(getattr(Transformer, name), model))
    return model


def encoded(training):
    symbols = f"source_symbols(in, training={training})"
    x = f"(source_embedding({symbols}) + source_positions(arange(length of in)))"
    x = f"source_dropout({x}, training={training})"
    return f"encoder({x}, padding(in), training={training})"


def decoded(memory, mask, training):
    shifted = "pad(out[:, :-1], [[0, 0], [1, 0]], constant_values=0)"
    places = "target_positions(arange(length of out))"
    symbols = f"target_symbols({shifted}, training={training})"
    x = f"(target_embedding({symbols}) + {places})"
    x = f"target_dropout({x}, training={training})"
    x = f"decoder({x}, {memory}, {mask}, None, training={training})"
    return f"softmax.logits({x})"


def test_inputs_are_embedded_placed_dropped_and_encoded(model):
    assert model.encode(Text("in"), training="T") == encoded("T")


def test_targets_are_shifted_embedded_placed_dropped_and_decoded(model):
    found = model.decode(Text("out"), "memory", "mask", training="T")
    assert found == decoded("memory", "mask", "T")


def test_the_model_decodes_the_targets_with_the_memory_of_the_inputs(model):
    features = {"inputs": Text("in"), "targets": Text("out")}
    assert model.call(features, "T") == decoded(encoded("T"), "padding(in)", "T")


def test_a_cache_begins_with_the_encoded_inputs_and_their_padding(model):
    assert model.initial_cache(Text("in")) == {
        "layers": f"decoder.initial_cache({encoded(False)})",
        "memory_mask": "padding(in)",
    }


def test_a_cache_grows_and_keeps_its_mask(model):
    cache = {"layers": "layers", "memory_mask": "mask"}
    grown = model.grow_cache(cache, "slots")
    expected = {"layers": "decoder.grow_cache(layers, slots)", "memory_mask": "mask"}
    assert grown == expected


@pytest.mark.parametrize("append", [False, True])
def test_a_step_decodes_the_last_tokens_at_their_position(model, append):
    def step(*arguments, **named):
        return written("step")(*arguments, **named), "new layers"

    model.decoder = SimpleNamespace(step=step)
    cache = {"layers": "layers", "memory_mask": "mask"}
    place, history = Text("position"), Text("history")
    logits, after = model.decode_step(Text("ids"), place, history, cache, append)
    x = "(target_embedding(ids) + target_positions(reshape(position, (1,))))"
    slot, seen = "position * length of ids", "history[:, None, :, :]"
    given = f"{x}, layers, {slot}, {seen}, mask, append={append}"
    assert logits == f"softmax.logits(step({given}))"
    assert after == {"layers": "new layers", "memory_mask": "mask"}
    assert cache["layers"] == "layers"
