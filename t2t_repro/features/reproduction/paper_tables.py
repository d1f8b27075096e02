"""The tables of the two papers: systems with their published numbers.

`data/papers.toml` holds the numbers, without any of our measurements. A row of Table 1
is a kind of layer, and is below.
"""

from __future__ import annotations

import dataclasses
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

from t2t_repro.errors import UsageError, unknown_name

# Shared subwords, English to German (Vaswani et al. 2017, section 5.1).
VOCAB_SIZE = 37_000
# Section 5.1: tokens per side and per training step.
TOKENS_PER_STEP = 25_000
# Section 5.2 and the footnote of section 6.1: the GPUs, and the operations per second
# that each is assumed to sustain in single precision.
NUM_GPUS = 8
P100_FLOPS = 9.5e12

# The public text of Ahmed et al. has no numbers.
TRANSLATED = "*"
TRANSLATION_NOTE = (
    f"{TRANSLATED}: the available text of Ahmed et al. has lost its numbers; these are "
    "from a complete translation."
)

Cell = float | int | str | None


@dataclass(frozen=True)
class Row:
    """A system of a table.

    Attributes:
        name: Name in `t2t reproduce TABLE/ROW`.
        label: Name in the paper.
        published: Printed value by column; None if the cell is empty.
        hparams_set: Set that builds the system; None if it is not ours.
        hparams: Changes to the set, in the form of `--hparams`.
        system_name: Name of the measured system if the set's name is not enough: the
            row changes the set, or the set is trained for several language pairs.
        train_steps: Number of updates in the paper; None if the paper does not say.
        train_hours: Training time in the paper, on 8 P100 GPUs; None if the paper
            does not say.
        branch_weights: Replacement of kappa and alpha at test time; one of
            `constants.BRANCH_WEIGHT_MODES`. Rows of a table that differ only in it
            share a training run.
        baseline_set: Set of a second system whose published value is in the row.
        average_last: Number of checkpoints that the paper averaged; 0 = none.
        vocab_sizes: Sizes of the source and target vocabulary.
        from_translation: Whether the scores come from a translation of the paper.
    """

    name: str
    label: str
    published: Mapping[str, Cell]
    hparams_set: str | None = None
    hparams: str = ""
    system_name: str = ""
    train_steps: int | None = None
    train_hours: float | None = None
    branch_weights: str = "learned"
    baseline_set: str | None = None
    average_last: int = 0
    vocab_sizes: tuple[int, int] = (VOCAB_SIZE, VOCAB_SIZE)
    from_translation: bool = False

    @property
    def mark(self) -> str:
        """`TRANSLATED` or nothing, to print after a published score."""
        return TRANSLATED if self.from_translation else ""

    @property
    def system(self) -> str | None:
        """Name of the measured system, which its result files have."""
        if self.system_name:
            return self.system_name
        if self.branch_weights == "learned":
            return self.hparams_set
        return f"{self.hparams_set}_{self.branch_weights}"


@dataclass(frozen=True)
class Table:
    """A table of a paper.

    Attributes:
        name: Name in `t2t reproduce`.
        title: Contents of the table, and the paper that prints it.
        columns: Names of the published columns, in order.
        rows: Its systems.
        notes: Remarks for the reader of the numbers.
        split: Split of WMT 2014 that the table reports: "dev" is newstest2013, "test"
            newstest2014.
        target_language: Language of the translations from English, "de" or "fr".
        task: "translation", "parsing", "layers" for a table whose rows are measured
            without training, or "text" for figures of the text.
    """

    name: str
    title: str
    columns: Sequence[str]
    rows: Sequence[Row]
    notes: Sequence[str] = ()
    split: str = "dev"
    target_language: str = "de"
    task: str = "translation"

    def text(self, scale: str) -> str:
        """Return the name of the text on which our systems learn at a scale."""
        if self.task == "parsing":
            return "CRAFT"
        corpus = "WMT 2014" if scale == "paper" else "Multi30k"
        return f"{corpus} en-{self.target_language}"

    def row(self, name: str) -> Row | None:
        """Return the row with a name, or None."""
        return next((row for row in self.rows if row.name == name), None)


def _table(name: str, title: str, columns: Sequence[str], **values: Any) -> Table:
    """Return a table of the file; `every_row` holds the defaults of its rows."""
    every_row = values.pop("every_row", {})
    rows = [_row(columns, **(every_row | row)) for row in values.pop("rows")]
    if any(row.from_translation for row in rows):
        values["notes"] = [*values.get("notes", ()), TRANSLATION_NOTE]
    return Table(name, title, columns, rows, **values)


def _row(
    columns: Sequence[str],
    published: Mapping[str, Cell],
    vocab_sizes: Sequence[int] = (VOCAB_SIZE, VOCAB_SIZE),
    **values: Any,
) -> Row:
    cells = {column: published.get(column) for column in columns}
    source, target = vocab_sizes
    return Row(published=cells, vocab_sizes=(source, target), **values)


def _tables() -> tuple[Table, ...]:
    folder = resources.files("t2t_repro.features.reproduction") / "data"
    found = tomllib.loads((folder / "papers.toml").read_text(encoding="utf-8"))
    return TABLE_1, *(_table(name, **values) for name, values in found.items())


LAYER_COLUMNS = ("complexity", "sequential", "path")


@dataclass(frozen=True)
class LayerOrders:
    """Orders of one kind of layer.

    Attributes:
        row: Name of its row in `t2t reproduce table1`.
        label: Name of the kind in Table 1.
        complexity: Operations per layer.
        sequential: Operations that must wait for each other.
        path: Longest path between two positions.
        derived: Names of the orders above that the paper does not print.
    """

    row: str
    label: str
    complexity: str
    sequential: str
    path: str
    derived: tuple[str, ...] = ()


SELF_ATTENTION = LayerOrders("self_attention", "Self-Attention", "n^2 d", "1", "1")
RECURRENT = LayerOrders("recurrent", "Recurrent", "n d^2", "n", "n")
CONVOLUTIONAL = LayerOrders(
    "convolutional", "Convolutional", "k n d^2", "1", "log_k(n)"
)
RESTRICTED = LayerOrders(
    "self_attention_restricted", "Self-Attention (restricted)", "r n d", "1", "n/r"
)

# Table 1 prints the path through dilated convolutions. Section 4 adds that a stack of
# n/k layers connects all positions if kernels have no gaps.
CONTIGUOUS = LayerOrders("convolutional", "Convolutional", "k n d^2", "1", "n/k")
# Section 4 prints only the complexity. The other orders are those of a kernel without
# gaps, because a separable convolution connects the same positions.
SEPARABLE = LayerOrders(
    *("convolutional", "Convolutional", "k n d + n d^2", "1", "n/k"),
    derived=("sequential", "path"),
)

_PRINTED = (SELF_ATTENTION, RECURRENT, CONVOLUTIONAL, RESTRICTED)

# Rows that the LaTeX source has in comments, by its first line that holds them. The
# paper does not print them. The second and third table of the source are comments as
# a whole; they repeat rows and call the kernel r.
COMMENTED = {
    19: LayerOrders("", "Convolutional (separable)", "k n d + n d^2", "1", "log_k(n)"),
    20: LayerOrders("", "Position-wise Feed-Forward", "n d^2", "1", "infinity"),
    21: LayerOrders("", "Fully Connected", "n^2 d^2", "1", "1"),
}


def _note_on_comments() -> str:
    """Return the rows of `COMMENTED` as a sentence."""
    rows = [
        f"{layer.label}: O({layer.complexity}), O({layer.sequential}), "
        + ("infinity" if layer.path == "infinity" else f"O({layer.path})")
        + f" (line {line})"
        for line, layer in COMMENTED.items()
    ]
    return f"Commented out in the LaTeX source, not printed: {'; '.join(rows)}."


TABLE_1 = Table(
    "table1",
    "Work, sequential operations, path length of layers (Vaswani et al., Table 1)",
    LAYER_COLUMNS,
    [
        Row(each.row, each.label, {c: getattr(each, c) for c in LAYER_COLUMNS})
        for each in _PRINTED
    ],
    notes=(_note_on_comments(),),
    task="layers",
)
TABLES: tuple[Table, ...] = _tables()

_HOW_TO_LIST = "`t2t reproduce` lists the tables."


def find_table(name: str) -> Table:
    """Return the table with a name.

    Raises:
        UsageError: If the name is unknown.
    """
    for table in TABLES:
        if table.name == name:
            return table
    raise unknown_name("table", name, [table.name for table in TABLES], _HOW_TO_LIST)


def find_row(name: str) -> tuple[Table, Row]:
    """Return the table and the row given by TABLE/ROW.

    Raises:
        UsageError: If there is no such row.
    """
    table_name, slash, row_name = name.partition("/")
    if not slash:
        raise UsageError(f"received {name!r}, expected TABLE/ROW. {_HOW_TO_LIST}")
    table = find_table(table_name)
    row = table.row(row_name)
    if row is None:
        names = [known.name for known in table.rows]
        how_to_list = f"`t2t reproduce {table_name}` shows them."
        raise unknown_name("row", row_name, names, how_to_list)
    return table, row


def select(name: str) -> Table:
    """Return a table given by TABLE, or with only one row, given by TABLE/ROW.

    Raises:
        UsageError: If there is no such table or row.
    """
    if "/" not in name:
        return find_table(name)
    table, row = find_row(name)
    return dataclasses.replace(table, rows=[row])
