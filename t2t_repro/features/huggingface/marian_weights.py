"""The weights of a MarianMT model, by their names here and there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from t2t_repro.errors import UserError
from t2t_repro.features.huggingface.marian_config import MarianConfig
from t2t_repro.features.huggingface.tensor_files import Tensors

_ROOT = "transformer"
SHARED = "model.shared.weight"
SOURCE = "model.encoder.embed_tokens.weight"
TARGET = "model.decoder.embed_tokens.weight"
SOFTMAX = "lm_head.weight"
BIAS = "final_logits_bias"
_TABLES = (SHARED, SOURCE, TARGET, SOFTMAX)
_SINUSOIDS = tuple(
    f"model.{side}.embed_positions.weight" for side in ("encoder", "decoder")
)
# Of sinusoids that are stored in 16 bits
_SINUSOID_TOLERANCE = 4e-3


class Pair(NamedTuple):
    """A weight here and there.

    Attributes:
        ours: Its path in the model.
        theirs: Its name in the file of weights.
        shape: Its sizes there: D hidden_size, F filter_size. A matrix is transposed.
    """

    ours: str
    theirs: str
    shape: str

    @property
    def is_transposed(self) -> bool:
        """Whether it is a matrix."""
        return len(self.shape) == 2


def layer_pairs(encoder_layers: int, decoder_layers: int) -> Iterator[Pair]:
    """Yield the weights of all layers."""
    for side, count in (("encoder", encoder_layers), ("decoder", decoder_layers)):
        for number in range(count):
            ours = f"{_ROOT}/{side}/layer_{number}"
            theirs = f"model.{side}.layers.{number}"
            yield from _attention(f"{ours}/self_attention", f"{theirs}.self_attn")
            if side == "decoder":
                memory = f"{ours}/memory_attention"
                yield from _attention(memory, f"{theirs}.encoder_attn")
            network = f"{ours}/feed_forward"
            yield from _dense(f"{network}/filter", f"{theirs}.fc1", "FD")
            yield from _dense(f"{network}/output", f"{theirs}.fc2", "DF")
            yield from _norm(network, f"{theirs}.final_layer_norm")


def _attention(ours: str, theirs: str) -> Iterator[Pair]:
    for part, name in (("query", "q"), ("key", "k"), ("value", "v"), ("output", "out")):
        yield from _dense(f"{ours}/{part}", f"{theirs}.{name}_proj", "DD")
    yield from _norm(ours, f"{theirs}_layer_norm")


def _dense(ours: str, theirs: str, shape: str) -> Iterator[Pair]:
    yield Pair(f"{ours}/kernel", f"{theirs}.weight", shape)
    yield Pair(f"{ours}/bias", f"{theirs}.bias", shape[0])


def _norm(ours: str, theirs: str) -> Iterator[Pair]:
    yield Pair(f"{ours}_residual/normalization/gamma", f"{theirs}.weight", "D")
    yield Pair(f"{ours}_residual/normalization/beta", f"{theirs}.bias", "D")


def weights_from(
    tensors: Tensors, config: MarianConfig, orders: tuple[list[int], list[int]]
) -> Tensors:
    """Return the weights of a model by path.

    Args:
        tensors: The tensors of the file.
        config: The model's settings.
        orders: Marian's id of each of our ids, of the source and of the target.

    Raises:
        UserError: If a tensor is missing, has no place or another size.
    """
    pairs = [*layer_pairs(config.encoder_layers, config.decoder_layers)]
    _check_names(tensors, {pair.theirs for pair in pairs})
    sizes = {"D": config.hidden_size, "F": config.filter_size}
    values = {}
    for pair in pairs:
        value = _named(tensors, pair.theirs)
        _check_shape(pair.theirs, value, tuple(sizes[name] for name in pair.shape))
        values[pair.ours] = value.T if pair.is_transposed else value
    source, target, softmax = _tables(tensors, config)
    _check_rows(source, config.vocab_size, orders[0])
    _check_rows(target, config.target_vocab_size, orders[1])
    _check_rows(softmax, config.target_vocab_size, orders[1])
    for table in (source, target, softmax):
        _check_shape("embeddings", table, (len(table), config.hidden_size))
    bias = tensors.get(BIAS, np.zeros(config.target_vocab_size, np.float32)).reshape(-1)
    _check_rows(bias, config.target_vocab_size, orders[1])
    if config.shares_embeddings and config.ties_softmax:
        values[f"{_ROOT}/shared_embedding/table"] = softmax[orders[1]]
        values[f"{_ROOT}/shared_embedding/bias"] = bias[orders[1]]
        return values
    values[f"{_ROOT}/source_embedding/table"] = source[orders[0]]
    values[f"{_ROOT}/target_embedding/table"] = target[orders[1]]
    values[f"{_ROOT}/softmax/table"] = softmax[orders[1]]
    values[f"{_ROOT}/softmax/bias"] = bias[orders[1]]
    return values


def _named(tensors: Tensors, *names: str) -> np.ndarray:
    for name in names:
        if name in tensors:
            return tensors[name]
    raise UserError(f"the weights lack {names[0]}: they are of another model or cut")


def _check_shape(name: str, value: np.ndarray, expected: tuple[int, ...]) -> None:
    if value.shape != expected:
        raise UserError(
            f"the weights have {name} of shape {value.shape}, expected {expected}: "
            "they are not those of config.json"
        )


def _check_names(tensors: Tensors, names: set[str]) -> None:
    """Refuse tensors without a place, NaN, and positions that are no sinusoids."""
    unknown = sorted(set(tensors) - names - {*_TABLES, *_SINUSOIDS, BIAS})
    if unknown:
        raise UserError(
            f"the weights have {unknown[0]!a:.99}, which no MarianMT model of this "
            "size has"
        )
    for name, value in tensors.items():
        if not np.isfinite(value).all():
            raise UserError(
                f"the weights have values of {name} that are no finite numbers: they "
                "are damaged"
            )
    for name in _SINUSOIDS:
        if name in tensors and not _is_sinusoidal(tensors[name]):
            raise UserError(f"{name} are not the sinusoids of MarianMT")


def _is_sinusoidal(table: np.ndarray) -> bool:
    if table.ndim != 2 or not table.size or table.shape[1] % 2:
        return False
    half = table.shape[1] // 2
    frequencies = 10_000.0 ** (-np.arange(half) / half)
    angles = np.arange(len(table))[:, None] * frequencies
    expected = np.concatenate([np.sin(angles), np.cos(angles)], axis=1)
    return bool(np.abs(table - expected).max(initial=0) < _SINUSOID_TOLERANCE)


def _tables(
    tensors: Tensors, config: MarianConfig
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the embeddings of the source and the target, and the softmax."""
    if config.shares_embeddings:
        source = target = _named(tensors, SHARED, SOURCE, TARGET, SOFTMAX)
    else:
        source, target = _named(tensors, SOURCE), _named(tensors, TARGET, SOFTMAX)
    return source, target, target if config.ties_softmax else _named(tensors, SOFTMAX)


def _check_rows(table: np.ndarray, rows: int, order: list[int]) -> None:
    there = table.shape[0] if table.ndim else 0
    if there != rows or len(order) != rows:
        raise UserError(
            f"the weights have {there:,} rows of embeddings, config.json a vocabulary "
            f"of {rows:,} and vocab.json {len(order):,} entries, expected the same "
            "number"
        )


def tensors_of(
    weights: Mapping[str, np.ndarray],
    layers: tuple[int, int],
    orders: tuple[list[int], list[int]],
) -> Tensors:
    """Return the tensors of a file of weights.

    Args:
        weights: The weights of a model by path.
        layers: Numbers of encoder and decoder layers.
        orders: Marian's id of each of our ids, of the source and of the target.
    """
    tensors = {}
    for pair in layer_pairs(*layers):
        value = weights.get(pair.ours)
        if value is None:  # attention without biases
            kernel = weights[pair.ours.removesuffix("bias") + "kernel"]
            value = np.zeros(kernel.shape[1], np.float32)
        tensors[pair.theirs] = value.T if pair.is_transposed else value
    softmax = "shared_embedding"
    if f"{_ROOT}/{softmax}/table" in weights:
        tensors[SHARED] = _placed(weights[f"{_ROOT}/{softmax}/table"], orders[1])
    else:
        softmax = "softmax"
        for name, part, order in (
            (SOURCE, "source_embedding", orders[0]),
            (TARGET, "target_embedding", orders[1]),
            (SOFTMAX, softmax, orders[1]),
        ):
            tensors[name] = _placed(weights[f"{_ROOT}/{part}/table"], order)
    zeros = np.zeros(len(orders[1]), np.float32)
    bias = weights.get(f"{_ROOT}/{softmax}/bias", zeros)
    tensors[BIAS] = _placed(bias, orders[1])[None]
    return tensors


def _placed(rows: np.ndarray, order: list[int]) -> np.ndarray:
    placed = np.empty_like(rows)
    placed[order] = rows
    return placed
