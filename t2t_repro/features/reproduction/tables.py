"""The contents of a table of a paper, and of its rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

# Shared subwords, English to German (Vaswani et al. 2017, section 5.1).
VOCAB_SIZE = 37_000

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
