"""Outputs of layers with branches on the backend that Keras uses, and in NumPy.

`BranchReference` is written from the equations, independently of the layers, one branch
at a time: no batch, no product of matrices computed ahead, no common code for the
places of residual connections.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any

import numpy as np
from keras import ops

from t2t_repro.layers import DecoderLayer, EncoderLayer
from tests.support.tiny_model import randomize

RANDOM = np.random.default_rng(0)
X, MEMORY = RANDOM.normal(size=(3, 5, 8)), RANDOM.normal(size=(3, 7, 8))
SIZES: dict[str, Any] = {
    "hidden_size": 8,
    "filter_size": 12,
    "num_heads": 3,
    "attention_key_channels": 6,
    "attention_value_channels": 9,
    "norm_epsilon": 1e-4,
}
SELF, PRE = {"branched_in_decoder": "self"}, {"norm": "pre"}
SHARED = {"branched_attention": "shared"}
MERGED = {"branch_merged": True}
CHANGES: dict[str, dict[str, Any]] = {}
for _residual in ("around", "inside", "per_branch", "shared"):
    CHANGES |= {
        f"{_residual}{name}": {"branch_residual": _residual, **changes}
        for name, changes in {
            "": {},
            ", pre-norm, self": PRE | SELF,
            ", unit gain, top 2 by softmax": {
                "branch_gain": "unit",
                "branch_top_k": 2,
                "branch_normalization": "softmax",
            },
        }.items()
    }
CHANGES |= {
    "around, one network": {
        **SHARED,
        "branch_residual": "around",
        "branch_gain": "unit",
    },
    "around, merged": {"branch_residual": "around", **MERGED},
    "per_branch, merged": {"branch_residual": "per_branch", **MERGED},
    "shared, merged, unit gain": {
        "branch_residual": "shared",
        "branch_gain": "unit",
        **MERGED,
    },
    "inside, one network": {**SHARED, "branch_residual": "inside"},
    "per_branch, one network": {**SHARED, "branch_residual": "per_branch"},
}
CASES = {
    name: SIZES | {"branched_attention": "split"} | changes
    for name, changes in CHANGES.items()
}


Weights = dict[str, np.ndarray]


def normalized(x: np.ndarray, gamma, beta, epsilon: float) -> np.ndarray:
    centred = x - x.mean(axis=-1, keepdims=True)
    return centred / np.sqrt(x.var(axis=-1, keepdims=True) + epsilon) * gamma + beta


class BranchReference:
    """One layer."""

    def __init__(self, weights: Weights, options: dict[str, Any]) -> None:
        self.w = {path: np.asarray(value, "float64") for path, value in weights.items()}
        self.o = options
        self.M = options["num_heads"]
        self.pre = options.get("norm") == "pre"

    def norm(self, name: str, x: np.ndarray) -> np.ndarray:
        gamma, beta = (
            self.w[f"{name}_residual/normalization/{part}"]
            for part in ("gamma", "beta")
        )
        return normalized(x, gamma, beta, self.o["norm_epsilon"])

    def heads(self, name: str, x, memory, *, causal: bool) -> list[np.ndarray]:
        """Return head_i W_i^O of every branch."""
        query, key, value = (
            inputs @ self.w[f"{name}/{kind}/kernel"]
            for inputs, kind in ((x, "query"), (memory, "key"), (memory, "value"))
        )
        output = self.w[f"{name}/output/kernel"]
        dk, dv = query.shape[1] // self.M, value.shape[1] // self.M
        found = []
        for i in range(self.M):
            keys, values = slice(i * dk, (i + 1) * dk), slice(i * dv, (i + 1) * dv)
            logits = query[:, keys] @ key[:, keys].T / np.sqrt(dk)
            if causal:
                logits = np.where(np.tri(len(x)) > 0, logits, -1e9)
            shares = np.exp(logits - logits.max(axis=1, keepdims=True))
            shares /= shares.sum(axis=1, keepdims=True)
            found.append(shares @ value[:, values] @ output[values])
        return found

    def branch_weights(self, kappa_of: str, alpha_of: str) -> tuple[list, list]:
        alpha = self.w[f"{alpha_of}/alpha"]
        kappa = self.w.get(f"{kappa_of}/kappa", np.full(self.M, 1 / self.factor))
        if self.o.get("branch_normalization") == "softmax":
            kappa, alpha = (np.exp(w) / np.exp(w).sum() for w in (kappa, alpha))
        kept = np.argsort(-alpha)[: self.o.get("branch_top_k") or self.M]
        return list(kappa), [alpha[i] if i in kept else 0.0 for i in range(self.M)]

    @property
    def factor(self) -> int:
        return self.M if self.o.get("branch_gain") == "unit" else 1

    def network(self, name: str, i: int, x: np.ndarray) -> np.ndarray:
        """Return FFN_i(x) without its output bias."""
        n = 0 if self.o["branched_attention"] == "shared" else i
        first, bias, second = (
            self.w[f"{name}/{part}"][n]
            for part in ("filter_kernel", "filter_bias", "feed_forward_kernel")
        )
        return np.maximum(x @ first + bias, 0) @ second

    def one_sublayer(self, name: str, x, memory, *, causal=False) -> np.ndarray:
        """Return the sublayer of "around" and "inside", with its connection."""
        inputs = self.norm(name, x) if self.pre else x
        memory = inputs if memory is None else memory
        kappa, alpha = self.branch_weights(name, name)
        g, bias = self.factor, self.w[f"{name}/feed_forward_bias"]
        total = np.zeros_like(x)
        for i, head in enumerate(self.heads(name, inputs, memory, causal=causal)):
            branch = g * kappa[i] * head
            if self.o.get("branch_residual") == "inside":
                n = 0 if self.o["branched_attention"] == "shared" else i
                gamma, beta = self.w[f"{name}/gamma"][n], self.w[f"{name}/beta"][n]
                sum_ = branch + self.network(name, i, branch) + bias
                sum_ = normalized(sum_, gamma, beta, self.o["norm_epsilon"])
                total += g * alpha[i] * sum_
            else:
                total += g * alpha[i] * self.network(name, i, branch) + alpha[i] * bias
        return x + total if self.pre else self.norm(name, x + total)

    def per_branch(self, name: str, x, memory, *, causal=False) -> np.ndarray:
        """Return y = LN2(sum alpha_i (u_i + FFN_i(u_i))), u_i = LN1(x + head_i)."""
        inputs = self.norm(name, x) if self.pre else x
        memory = inputs if memory is None else memory
        kappa, alpha = self.branch_weights(name, "feed_forward")
        total = np.zeros_like(x)
        for i, head in enumerate(self.heads(name, inputs, memory, causal=causal)):
            u = x + self.factor * kappa[i] * head
            u = u if self.pre else self.norm(name, u)
            v = self.norm("feed_forward", u) if self.pre else u
            network = self.factor * self.network("feed_forward", i, v)
            bias = self.w["feed_forward/feed_forward_bias"]
            total += alpha[i] * (u + network + bias)
        return total if self.pre else self.norm("feed_forward", total)

    def shared_attention(self, name: str, x, memory, *, causal=False) -> np.ndarray:
        inputs = self.norm(name, x) if self.pre else x
        memory = inputs if memory is None else memory
        kappa, _ = self.branch_weights(name, "feed_forward")
        heads = self.heads(name, inputs, memory, causal=causal)
        u = x + sum(
            self.factor * k * head for k, head in zip(kappa, heads, strict=True)
        )
        return u if self.pre else self.norm(name, u)

    def shared_network(self, kappa_of: str, u: np.ndarray) -> np.ndarray:
        _, alpha = self.branch_weights(kappa_of, "feed_forward")
        v = self.norm("feed_forward", u) if self.pre else u
        first, bias, second, last = (
            self.w[f"feed_forward/{part}"]
            for part in ("filter/kernel", "filter/bias", "output/kernel", "output/bias")
        )
        y, width = u + last, self.o["filter_size"] // self.M
        for i in range(self.M):
            units = slice(i * width, (i + 1) * width)
            hidden = np.maximum(v @ first[:, units] + bias[units], 0)
            y = y + self.factor * alpha[i] * hidden @ second[units]
        return y if self.pre else self.norm("feed_forward", y)

    def plain_attention(self, name: str, x, memory, *, causal=False) -> np.ndarray:
        inputs = self.norm(name, x) if self.pre else x
        memory = inputs if memory is None else memory
        y = x + sum(self.heads(name, inputs, memory, causal=causal))
        return y if self.pre else self.norm(name, y)

    def encoder_layer(self, x: np.ndarray) -> np.ndarray:
        """Return the output of an `EncoderLayer`, `[length, hidden_size]`."""
        residual = self.o.get("branch_residual", "around")
        if residual == "per_branch":
            return self.per_branch("self_attention", x, None)
        if residual == "shared":
            u = self.shared_attention("self_attention", x, None)
            return self.shared_network("self_attention", u)
        return self.one_sublayer("self_attention", x, None)

    def decoder_layer(self, x: np.ndarray, memory: np.ndarray) -> np.ndarray:
        """Return the output of a `DecoderLayer`, `[length, hidden_size]`."""
        residual = self.o.get("branch_residual", "around")
        first, second = "self_attention", "memory_attention"
        sublayer = self.per_branch if residual == "per_branch" else self.one_sublayer
        if self.o.get("branched_in_decoder") == "self":
            if residual == "shared":
                x = self.shared_attention(first, x, None, causal=True)
                x = self.plain_attention(second, x, memory)
                return self.shared_network(first, x)
            x = sublayer(first, x, None, causal=True)
            return self.plain_attention(second, x, memory)
        x = self.plain_attention(first, x, None, causal=True)
        if residual == "shared":
            x = self.shared_attention(second, x, memory)
            return self.shared_network(second, x)
        return sublayer(second, x, memory)


def made(layer_class: type, name: str, seed: int) -> Any:
    """Make a layer with random weights, kappa and alpha."""
    layer = layer_class(**CASES[name])
    layer.build()
    randomize(layer, seed)
    on_simplex = CASES[name].get("branch_normalization") != "softmax"
    for number, weight in enumerate(layer.weights):
        if weight.name in ("kappa", "alpha") and on_simplex:
            draw = np.random.default_rng(number).uniform(0.1, 1.0, 3)
            weight.assign(draw / draw.sum())
    return layer


def weights_of(layer: Any) -> dict[str, np.ndarray]:
    return {weight.path.partition("/")[2]: weight.numpy() for weight in layer.weights}


def results(names: Iterable[str] = CASES) -> dict[str, np.ndarray]:
    x, memory = X.astype("float32"), MEMORY.astype("float32")
    found = {}
    for name in names:
        found[f"encoder: {name}"] = made(EncoderLayer, name, 1)(x)
        found[f"decoder: {name}"] = made(DecoderLayer, name, 2)(x, memory)
    return {name: ops.convert_to_numpy(array) for name, array in found.items()}


@functools.cache
def reference_outputs(name: str) -> dict[str, np.ndarray]:
    """Return the outputs of both layers of a case in NumPy, named as in `results`."""
    encoder, decoder = (
        BranchReference(weights_of(made(layer, name, seed)), CASES[name])
        for layer, seed in ((EncoderLayer, 1), (DecoderLayer, 2))
    )
    pairs = zip(X, MEMORY, strict=True)
    return {
        f"encoder: {name}": np.stack([encoder.encoder_layer(x) for x in X]),
        f"decoder: {name}": np.stack([decoder.decoder_layer(x, m) for x, m in pairs]),
    }
