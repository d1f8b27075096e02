"""tensor2tensor's names of a Transformer's variables, and their places here.

Source: tensor2tensor 1.15.7, models/transformer.py, layers/modalities.py and
layers/common_attention.py. No matrix is transposed. A symbol table is cut into shards,
`weights_0`, `weights_1`, ..., which follow each other in the order of their numbers.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator, Mapping

import numpy as np

from t2t_repro.errors import UserError

MODEL = "transformer"
Shapes = Mapping[str, tuple[int, ...]]

_SLOTS = {"means": "Adam", "squares": "Adam_1"}
_OPTIMIZER = "training/"
BETA_POWERS = ("training/beta1_power", "training/beta2_power")
GLOBAL_STEP = "global_step"
_COUNTERS = re.compile(rf"{GLOBAL_STEP}|(train_stats|losses_avg)/.*")
TARGET_SPACES = f"{MODEL}/body/target_space_embedding/kernel"
# Name of the weight that is added to every position of the encoder's input.
INPUT_BIAS = f"{MODEL}/encoder_input_bias"
_SHARD = re.compile(
    rf"{MODEL}/symbol_modality_(?P<vocab>\d+)_(?P<width>\d+)/"
    r"(?P<table>shared|input_emb|target_emb|softmax)/weights_(?P<number>\d+)"
)
_MODALITY = re.compile(rf"{MODEL}/(?P<name>\w*modality\w*)/")
_LAYER = re.compile(
    rf"{MODEL}/body/(?P<stack>encoder|decoder)/layer_(?P<number>\d+)/"
    r"(?P<sublayer>self_attention|encdec_attention|ffn)/(?P<rest>.+)"
)
_SUBLAYERS = {
    "self_attention": "self_attention",
    "encdec_attention": "memory_attention",
    "ffn": "feed_forward",
}
_PROJECTIONS = {
    "q": "query",
    "k": "key",
    "v": "value",
    "output_transform": "output",
    "conv1": "filter",
    "conv2": "output",
}
_PROJECTION = re.compile(
    r"(multihead_attention/(?P<attention>q|k|v|output_transform)/kernel"
    # Old versions wrote convolutions of width 1.
    r"|(conv_hidden_relu/)?(?P<network>conv[12])/(?P<kind>kernel|bias))"
)
_NORM = re.compile(
    r"layer_(prepostprocess|postprocess)/layer_norm/layer_norm_(?P<kind>scale|bias)"
)
_FINAL_NORM = re.compile(
    rf"{MODEL}/body/(?P<stack>encoder|decoder)/"
    r"layer_prepostprocess/layer_norm/layer_norm_(?P<kind>scale|bias)"
)
_NORM_WEIGHTS = {"scale": "gamma", "bias": "beta"}
_POSITIONS = {
    f"{MODEL}/body/inputs_positional_embedding": "source_positions",
    f"{MODEL}/body/targets_positional_embedding": "target_positions",
}


@dataclasses.dataclass(frozen=True)
class Source:
    """Where the value of one weight of this package comes from.

    Attributes:
        names: Names of the variables that are joined along their first axis.
        row: Row of the joined matrix that is the weight; None for all of it.
    """

    names: tuple[str, ...]
    row: int | None = None

    def value(self, of: Callable[[str], np.ndarray]) -> np.ndarray:
        """Return the weight from a function that returns a variable by its name."""
        parts = [_without_kernel_axes(of(name)) for name in self.names]
        joined = parts[0] if len(parts) == 1 else np.concatenate(parts)
        return joined if self.row is None else joined[self.row]


def _without_kernel_axes(value: np.ndarray) -> np.ndarray:
    """Return the matrix of a convolution of width 1, `[1, ..., in, out]`."""
    while value.ndim > 2 and value.shape[0] == 1:
        value = value[0]
    return value


@dataclasses.dataclass(frozen=True)
class Tables:
    """The symbol tables of a model.

    Attributes:
        shards: Names of the shards of each table, in order, by the table's name:
            "shared", "input_emb", "target_emb" or "softmax".
        sizes: Number of rows of each table.
    """

    shards: Mapping[str, tuple[str, ...]]
    sizes: Mapping[str, int]

    def _table(self, own: str) -> str:
        return own if own in self.shards else "shared"

    @property
    def source_size(self) -> int:
        """Number of rows of the source embedding."""
        return self.sizes[self._table("input_emb")]

    @property
    def target_size(self) -> int:
        """Number of rows of the target embedding and of the softmax."""
        return self.sizes[self._table("softmax")]

    @property
    def are_tied(self) -> bool:
        """Whether one matrix is both embeddings and the softmax."""
        return list(self.shards) == ["shared"]

    def sources(self, *, tied: bool) -> Iterator[tuple[str, Source]]:
        """Yield the path and the source of each table here.

        Args:
            tied: Whether the model here shares one matrix.
        """
        if tied:
            yield f"{MODEL}/shared_embedding/table", Source(self.shards["shared"])
            return
        own = {
            "source_embedding": "input_emb",
            "target_embedding": "target_emb",
            "softmax": "softmax",
        }
        for layer, table in own.items():
            yield f"{MODEL}/{layer}/table", Source(self.shards[self._table(table)])


def symbol_tables(shapes: Shapes) -> Tables:
    """Return the symbol tables of a checkpoint.

    Raises:
        UserError: If one is missing, or has a shard too few.
    """
    found: dict[str, dict[int, str]] = {}
    sizes: dict[str, int] = {}
    for name in shapes:
        if match := _SHARD.fullmatch(name):
            table = match["table"]
            found.setdefault(table, {})[int(match["number"])] = name
            sizes[table] = int(match["vocab"])
    shards = {
        table: tuple(by_number[number] for number in sorted(by_number))
        for table, by_number in found.items()
    }
    for table, names in shards.items():
        rows = sum(shapes[name][0] for name in names)
        if rows != sizes[table]:
            raise UserError(
                f"received a checkpoint whose table {names[0].rpartition('/')[0]} has "
                f"{rows:,} rows in {len(names)} shards, expected {sizes[table]:,}: a "
                "shard is missing."
            )
    needed = {"shared"} if "shared" in shards else {"input_emb", "target_emb"}
    needed |= {"softmax"} if "shared" not in shards else set()
    missing = sorted(needed - shards.keys())
    if missing:
        raise UserError(
            "received a checkpoint without the symbol table "
            f"{MODEL}/symbol_modality_*/{missing[0]}, expected a model that translates "
            "text: both embeddings and the softmax, shared or not."
        )
    return Tables(shards, sizes)


def check_variables(shapes: Shapes) -> None:
    """Refuse a checkpoint of another model, or with a variable that is unknown.

    Raises:
        UserError: If it is refused; the message names the model or the variable.
    """
    names = [name for name in shapes if not _is_training(name)]
    scopes = sorted({name.partition("/")[0] for name in names})
    if MODEL not in scopes:
        found = ", ".join(scopes[:3]) or "no variables of a model"
        raise UserError(
            f"received a checkpoint of {found}, expected tensor2tensor's model "
            f"{MODEL}: no other can be imported."
        )
    for name in sorted(names):
        if _place(name) is None and not _SHARD.fullmatch(name):
            modality = _MODALITY.match(name)
            what = (
                f"modality {modality['name']}, expected symbol_modality"
                if modality
                else f"variable {name}, which the {MODEL} here does not have"
            )
            raise UserError(
                f"received a checkpoint with the {what}: it computes something else."
            )


def _is_training(name: str) -> bool:
    return name.startswith(_OPTIMIZER) or bool(_COUNTERS.fullmatch(name))


def _place(name: str) -> str | None:
    """Return the path of a variable here; None if it is unknown or a symbol table."""
    if name == TARGET_SPACES:
        return INPUT_BIAS
    if name in _POSITIONS:
        return f"{MODEL}/{_POSITIONS[name]}/table"
    if final := _FINAL_NORM.fullmatch(name):
        kind = _NORM_WEIGHTS[final["kind"]]
        return f"{MODEL}/{final['stack']}/final_normalization/{kind}"
    layer = _LAYER.fullmatch(name)
    if layer is None:
        return None
    place = f"{MODEL}/{layer['stack']}/layer_{layer['number']}"
    sublayer = f"{place}/{_SUBLAYERS[layer['sublayer']]}"
    if norm := _NORM.fullmatch(layer["rest"]):
        return f"{sublayer}_residual/normalization/{_NORM_WEIGHTS[norm['kind']]}"
    projection = _PROJECTION.fullmatch(layer["rest"])
    is_network = layer["sublayer"] == "ffn"
    if projection is None or is_network != bool(projection["network"]):
        return None
    kind = projection["kind"] or "kernel"
    part = projection["attention"] or projection["network"]
    return f"{sublayer}/{_PROJECTIONS[part]}/{kind}"


def weight_sources(
    shapes: Shapes, *, tied: bool, target_space_id: int
) -> dict[str, Source]:
    """Return the source of each weight here by the path of the weight.

    Args:
        shapes: Shape of each variable of a checkpoint that `check_variables` accepts.
        tied: Whether the model here shares one matrix for all symbol tables.
        target_space_id: Row of the embedding of target spaces.
    """
    found = dict(symbol_tables(shapes).sources(tied=tied))
    for name in shapes:
        path = None if _is_training(name) else _place(name)
        if path is not None:
            row = target_space_id if name == TARGET_SPACES else None
            found[path] = Source((name,), row)
    return found


def slot_name(kind: str, name: str) -> str:
    """Return the name of Adam's memory of a variable, "means" or "squares"."""
    return f"{_OPTIMIZER}{name}/{_SLOTS[kind]}"
