"""The Transformer of the paper in NumPy, one sentence pair at a time.

Written from the equations of "Attention Is All You Need" (sections and equations are
cited below), independently of the layers that it checks. Sentences have no padding and
there are no masks: a position receives the positions that it may see. All arithmetic
is float64.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence

import numpy as np

Array = np.ndarray
PAD = 0


def softmax(x: Array) -> Array:
    exponentials = np.exp(x - x.max(axis=-1, keepdims=True))
    return exponentials / exponentials.sum(axis=-1, keepdims=True)


def sinusoid(position: int, width: int, form: str) -> Array:
    """Return a row of section 3.5, of tensor2tensor's encodings, or of Marian's."""
    encoding = np.zeros(width)
    for i in range(width // 2):
        if form == "interleaved":
            angle = position / 10000.0 ** (2 * i / width)
            encoding[2 * i], encoding[2 * i + 1] = np.sin(angle), np.cos(angle)
        else:
            exponent = 2 * i / width if form == "halves" else i / (width // 2 - 1)
            angle = position / 10000.0**exponent
            encoding[i], encoding[width // 2 + i] = np.sin(angle), np.cos(angle)
    return encoding


def activated(x: Array, activation: str) -> Array:
    if activation == "swish":
        return x / (1 + np.exp(-x))
    if activation == "gelu":
        return x * (1 + np.vectorize(math.erf)(x / math.sqrt(2))) / 2
    return np.maximum(0.0, x)


@dataclasses.dataclass(frozen=True)
class NumpyTransformer:
    """The model as a function of its weights.

    Attributes:
        weights: Arrays by name, such as "encoder/layer_0/self_attention/query/kernel".
            Matrices are `[in, out]`.
        num_heads: Number of heads (h).
        num_layers: Number of layers of each stack (N).
        norm: "post" (LayerNorm(x + Sublayer(x)), section 3.1) or "pre".
        positions: "interleaved", "concatenated", "halves", "learned" or "none".
        epsilon: Added to the variance in layer normalization.
        counters: For the source and for the target, up to two counters. Each is a pair:
            the tokens that add one, and the tokens that subtract one.
        activation: "relu" (equation (2)), "swish" or "gelu".
        decoder_start: First input of the decoder, "zeros", or "pad": the row of PAD.
        attention_weights: Filled by every attention of the last sentence pair: name of
            the layer to its weights, `[query][head]`, over the keys that query sees.
    """

    weights: Mapping[str, Array]
    num_heads: int
    num_layers: int
    norm: str
    positions: str
    epsilon: float = 1e-6
    counters: Sequence[Sequence[tuple[Sequence[int], Sequence[int]]]] = ((), ())
    activation: str = "relu"
    decoder_start: str = "zeros"
    attention_weights: dict[str, list[Array]] = dataclasses.field(default_factory=dict)

    def weight(self, name: str) -> Array:
        return np.asarray(self.weights[name], np.float64)

    def bias(self, name: str) -> Array:
        """Return a bias, 0 if the model has none."""
        return self.weight(name) if name in self.weights else np.zeros(())

    def table(self, *names: str) -> Array:
        """Return the first of these matrices that the model has."""
        return self.weight(next(n for n in names if n in self.weights))

    def layer_norm(self, x: Array, name: str) -> Array:
        """Apply equation 4 of Ba et al. 2016."""
        mean = x.mean(axis=-1, keepdims=True)
        variance = ((x - mean) ** 2).mean(axis=-1, keepdims=True)
        normal = (x - mean) / np.sqrt(variance + self.epsilon)
        return normal * self.weight(f"{name}/gamma") + self.weight(f"{name}/beta")

    def attention(self, queries: Array, seen: Sequence[Array], name: str) -> Array:
        """Apply section 3.2.2; row t of `queries` attends to the rows of `seen[t]`."""
        w_q, w_k, w_v, w_o = (
            self.weight(f"{name}/{part}/kernel")
            for part in ("query", "key", "value", "output")
        )
        b_q, b_k, b_v, b_o = (
            np.broadcast_to(self.bias(f"{name}/{part}/bias"), (w.shape[1],))
            for part, w in zip(
                ("query", "key", "value", "output"), (w_q, w_k, w_v, w_o), strict=True
            )
        )
        rows = []
        self.attention_weights[name] = []
        for x, memory in zip(queries, seen, strict=True):
            heads, weights = [], []
            for q, k, v, c, d, e in zip(
                *(np.split(w, self.num_heads, axis=1) for w in (w_q, w_k, w_v)),
                *(np.split(b, self.num_heads) for b in (b_q, b_k, b_v)),
                strict=True,
            ):
                keys, query = memory @ k + d, x @ q + c
                logits = keys @ query / np.sqrt(q.shape[1])  # equation (1)
                weights.append(softmax(logits))
                heads.append(weights[-1] @ (memory @ v + e))
            self.attention_weights[name].append(np.stack(weights))
            rows.append(np.concatenate(heads) @ w_o + b_o)
        return np.stack(rows)

    def feed_forward(self, x: Array, name: str) -> Array:
        """Apply equation (2) of section 3.3."""
        inner = x @ self.weight(f"{name}/filter/kernel")
        inner = activated(inner + self.weight(f"{name}/filter/bias"), self.activation)
        outer = inner @ self.weight(f"{name}/output/kernel")
        return outer + self.weight(f"{name}/output/bias")

    def sublayer(self, x: Array, function, name: str) -> Array:
        normalization = f"{name}_residual/normalization"
        if self.norm == "pre":
            return x + function(self.layer_norm(x, normalization))
        return self.layer_norm(x + function(x), normalization)

    def self_attention(self, x: Array, name: str, *, causal: bool) -> Array:
        def function(y: Array) -> Array:
            seen = [y[: t + 1] if causal else y for t in range(len(y))]
            return self.attention(y, seen, f"{name}/self_attention")

        return self.sublayer(x, function, f"{name}/self_attention")

    def memory_attention(self, x: Array, memory: Array, name: str) -> Array:
        def function(y: Array) -> Array:
            return self.attention(y, [memory] * len(y), f"{name}/memory_attention")

        return self.sublayer(x, function, f"{name}/memory_attention")

    def position_wise(self, x: Array, name: str) -> Array:
        return self.sublayer(
            x,
            lambda y: self.feed_forward(y, f"{name}/feed_forward"),
            f"{name}/feed_forward",
        )

    def embed(self, ids: Sequence[int], side: str) -> Array:
        """Apply sections 3.4 and 3.5; PAD is a zero vector, or the start of a target.

        A bias of the encoder's input is added at every position.
        """
        table = self.table("shared_embedding/table", f"{side}_embedding/table")
        width = table.shape[1]
        rows = []
        for position, token in enumerate(ids):
            row = table[token] * np.sqrt(width)
            if token == PAD and not (self.decoder_start == "pad" and position == 0):
                row = np.zeros(width)
            if side == "source":
                row = row + self.bias("encoder_input_bias")
            row = row + self.position(position, width, side)
            rows.append(row + self.counted(ids[: position + 1], width, side))
        return np.stack(rows)

    def position(self, position: int, width: int, side: str) -> Array:
        if self.positions == "none":
            return np.zeros(width)
        if self.positions == "learned":
            table = self.weight(f"{side}_positions/table")
            return table[position] if position < len(table) else np.zeros(width)
        return sinusoid(position, width, self.positions)

    def counted(self, ids: Sequence[int], width: int, side: str) -> Array:
        """Encode the numbers after the last token; in the source, less one."""
        encoding = np.zeros(width)
        orders = (lambda x: x[::-1], lambda x: np.roll(x, width // 2))
        for place, (plus, minus) in enumerate(self.counters[side == "target"]):
            number = sum((token in plus) - (token in minus) for token in ids)
            number = number if side == "target" else max(number - 1, 0)
            encoding += orders[place](sinusoid(number, width, "interleaved"))
        return encoding

    def stack_output(self, x: Array, stack: str) -> Array:
        if self.norm == "pre":
            return self.layer_norm(x, f"{stack}/final_normalization")
        return x

    def encode(self, inputs: Sequence[int]) -> Array:
        """Return `[source_length, d_model]` for a sentence without padding."""
        x = self.embed(inputs, "source")
        for n in range(self.num_layers):
            name = f"encoder/layer_{n}"
            x = self.self_attention(x, name, causal=False)
            x = self.position_wise(x, name)
        return self.stack_output(x, "encoder")

    def logits(self, inputs: Sequence[int], targets: Sequence[int]) -> Array:
        """Return `[target_length, V]`; row t predicts target t from earlier ones."""
        memory = self.encode(inputs)
        x = self.embed([PAD, *targets[:-1]], "target")
        for n in range(self.num_layers):
            name = f"decoder/layer_{n}"
            x = self.self_attention(x, name, causal=True)
            x = self.memory_attention(x, memory, name)
            x = self.position_wise(x, name)
        x = self.stack_output(x, "decoder")
        bias = self.bias("shared_embedding/bias") + self.bias("softmax/bias")
        return x @ self.table("shared_embedding/table", "softmax/table").T + bias


def smoothed_cross_entropy(
    logits: Array, targets: Sequence[int], smoothing: float
) -> Array:
    """Return the losses of section 5.4, `[target_length]`.

    The target has probability 1 - smoothing; the other entries share the rest evenly.
    """
    vocab_size = logits.shape[-1]
    losses = []
    for row, target in zip(logits, targets, strict=True):
        wanted = np.full(vocab_size, smoothing / (vocab_size - 1))
        wanted[target] = 1.0 - smoothing
        losses.append(-(wanted * np.log(softmax(row))).sum())
    return np.array(losses)
