"""tensor2tensor's Transformer in NumPy, by the checkpoint's own names and settings.

It checks an import, so it shares nothing with the model and the mapping that it checks.

Source: tensor2tensor 1.15.7, models/transformer.py, layers/transformer_layers.py,
layers/modalities.py, layers/common_attention.py and layers/common_layers.py.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

Array = np.ndarray
PAD = 0
_BODY = "transformer/body"
_HIDDEN = -1e9  # what is added to the logits of a key that a query must not see


class NumpyForward:
    """A trained model as a function from ids to logits.

    Args:
        variables: Values of the model's variables by their names.
        settings: Settings in tensor2tensor's names and values.
        target_space_id: Row of the embedding of target spaces.
        dtype: Dtype of the activations.
    """

    def __init__(
        self,
        variables: Mapping[str, Array],
        settings: Mapping[str, Any],
        target_space_id: int,
        dtype: type[np.floating] = np.float64,
    ) -> None:
        self._variables = variables
        self._settings = settings
        self._target_space_id = target_space_id
        self._dtype = dtype

    def logits(self, inputs: Array, targets: Array) -> Array:
        """Return the logits of target ids, each from the earlier ones.

        Args:
            inputs: Ids, int `[batch, source_length]`, padded with 0.
            targets: Ids, int `[batch, target_length]`, padded with 0.

        Returns:
            `[batch, target_length, V]`.
        """
        hidden_keys = np.where(inputs == PAD, self._dtype(_HIDDEN), self._dtype(0))
        hidden_keys = hidden_keys[:, None, None, :]
        memory = self._encode(inputs, hidden_keys)
        x = self._embed(targets, ("target_emb", "shared"))
        # The first position sees a zero vector.
        x = np.pad(x, ((0, 0), (1, 0), (0, 0)))[:, :-1]
        x = self._with_positions(x, "targets")
        length = targets.shape[1]
        later = np.triu(np.full((length, length), _HIDDEN, self._dtype), 1)
        for layer in self._layers("decoder"):
            x = self._sublayer(
                x,
                f"{layer}/self_attention",
                lambda y, at: self._attend(y, y, later, at),
            )
            x = self._sublayer(
                x,
                f"{layer}/encdec_attention",
                lambda y, at: self._attend(y, memory, hidden_keys, at),
            )
            x = self._sublayer(x, f"{layer}/ffn", self._feed_forward)
        x = self._preprocess(x, f"{_BODY}/decoder")
        return x @ self._table("softmax", "shared").T

    def _encode(self, inputs: Array, hidden_keys: Array) -> Array:
        x = self._embed(inputs, ("input_emb", "shared"))
        spaces = self._variables.get(f"{_BODY}/target_space_embedding/kernel")
        if spaces is not None:
            x = x + spaces[self._target_space_id]
        x = self._with_positions(x, "inputs")
        for layer in self._layers("encoder"):
            x = self._sublayer(
                x,
                f"{layer}/self_attention",
                lambda y, at: self._attend(y, y, hidden_keys, at),
            )
            x = self._sublayer(x, f"{layer}/ffn", self._feed_forward)
        return self._preprocess(x, f"{_BODY}/encoder")

    def _layers(self, stack: str) -> list[str]:
        number = self._settings.get(f"num_{stack}_layers")
        count = number or self._settings["num_hidden_layers"]
        return [f"{_BODY}/{stack}/layer_{layer}" for layer in range(count)]

    def _embed(self, ids: Array, names: tuple[str, ...]) -> Array:
        table = self._table(*names)
        rows = table[ids] * math.sqrt(table.shape[1])
        return rows * (ids != PAD)[..., None]

    def _table(self, *names: str) -> Array:
        """Return the first table that the model has, its shards joined in order."""
        for name in names:
            pattern = re.compile(
                rf"transformer/symbol_modality_\d+_\d+/{name}/weights_"
            )
            shards = [key for key in self._variables if pattern.match(key)]
            if shards:
                shards.sort(key=lambda key: int(key.rpartition("_")[2]))
                joined = np.concatenate([self._variables[key] for key in shards])
                return joined.astype(self._dtype)
        raise KeyError(names[0])

    def _with_positions(self, x: Array, side: str) -> Array:
        kind = self._settings.get("pos", "timing")
        length, width = x.shape[1:]
        if kind == "timing":
            return x + _timing_signal(length, width).astype(self._dtype)
        if kind == "emb":
            table = self._variables[f"{_BODY}/{side}_positional_embedding"]
            rows = table[:length]
            return x + np.pad(rows, ((0, length - len(rows)), (0, 0)))
        return x

    def _sublayer(
        self, x: Array, name: str, function: Callable[[Array, str], Array]
    ) -> Array:
        """Apply a sublayer with what is before and after it."""
        y = function(self._preprocess(x, name), name)
        for operation in self._settings["layer_postprocess_sequence"]:
            if operation == "a":
                y = y + x
            elif operation == "n":
                y = self._normalize(y, f"{name}/layer_postprocess")
        return y

    def _preprocess(self, x: Array, name: str) -> Array:
        if "n" in self._settings["layer_preprocess_sequence"].replace("none", ""):
            return self._normalize(x, f"{name}/layer_prepostprocess")
        return x

    def _normalize(self, x: Array, name: str) -> Array:
        scale = self._variables[f"{name}/layer_norm/layer_norm_scale"]
        bias = self._variables[f"{name}/layer_norm/layer_norm_bias"]
        mean = x.mean(axis=-1, keepdims=True)
        variance = np.square(x - mean).mean(axis=-1, keepdims=True)
        epsilon = self._settings.get("norm_epsilon") or 1e-6
        return (x - mean) / np.sqrt(variance + epsilon) * scale + bias

    def _attend(self, x: Array, memory: Array, bias: Array, name: str) -> Array:
        def projected(value: Array, part: str) -> Array:
            kernel = self._variables[f"{name}/multihead_attention/{part}/kernel"]
            heads = self._settings["num_heads"]
            rows = value @ kernel
            split = rows.reshape(*rows.shape[:2], heads, rows.shape[2] // heads)
            return split.transpose(0, 2, 1, 3)

        query, key, value = (
            projected(of, part) for of, part in ((x, "q"), (memory, "k"), (memory, "v"))
        )
        query = query * query.shape[-1] ** -0.5
        weights = _softmax(query @ key.transpose(0, 1, 3, 2) + bias)
        heads = (weights @ value).transpose(0, 2, 1, 3)
        joined = heads.reshape(*heads.shape[:2], -1)
        return (
            joined
            @ self._variables[f"{name}/multihead_attention/output_transform/kernel"]
        )

    def _feed_forward(self, x: Array, name: str) -> Array:
        old = f"{name}/conv_hidden_relu"
        scope = old if f"{old}/conv1/kernel" in self._variables else name
        for part in ("conv1", "conv2"):
            kernel = self._variables[f"{scope}/{part}/kernel"]
            x = x @ kernel.reshape(kernel.shape[-2:])
            x = x + self._variables[f"{scope}/{part}/bias"]
            x = np.maximum(x, 0.0) if part == "conv1" else x
        return x


def _softmax(logits: Array) -> Array:
    exponentials = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return exponentials / exponentials.sum(axis=-1, keepdims=True)


def _timing_signal(length: int, width: int) -> Array:
    """Return `get_timing_signal_1d`, `[length, width]`: all sines, then all cosines."""
    scales = width // 2
    step = math.log(10_000.0) / max(scales - 1, 1)
    angles = np.arange(length)[:, None] * np.exp(-step * np.arange(scales))
    signal = np.concatenate([np.sin(angles), np.cos(angles)], axis=1)
    return np.pad(signal, ((0, 0), (0, width % 2)))
