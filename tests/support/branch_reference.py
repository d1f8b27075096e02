"""Encoder and decoder layers with branches in float64 NumPy, one branch at a time.

Written from the equations, independently of the layers: no batch, no product of
matrices computed ahead, no common code for the places of residual connections.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Weights = dict[str, np.ndarray]


def normalized(x: np.ndarray, gamma, beta, epsilon: float) -> np.ndarray:
    centred = x - x.mean(axis=-1, keepdims=True)
    return centred / np.sqrt(x.var(axis=-1, keepdims=True) + epsilon) * gamma + beta


class BranchReference:
    """One layer.

    Args:
        weights: Arrays by their path below the layer.
        options: Arguments of the layer without their defaults.
    """

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
        kappa, alpha = self.w[f"{kappa_of}/kappa"], self.w[f"{alpha_of}/alpha"]
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
