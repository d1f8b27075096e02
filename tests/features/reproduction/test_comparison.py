from __future__ import annotations

import dataclasses

import pytest

from t2t_repro import catalogue
from t2t_repro.features.reproduction.comparison_report import (
    Line,
    compare,
)
from t2t_repro.features.reproduction.paper_tables import Row, Table

ROW = Row(
    "name",
    "label",
    {"BLEU": 1.5},
    hparams_set="own",
    train_steps=7,
    train_hours=3,
    vocab_sizes=(1_000, 50),
)


def lines(row, results=()):
    table = Table("t", "title", ("BLEU",), [row])
    asked = []

    def hparams_of(name):
        asked.append(name)
        return catalogue.hparams("transformer_base")

    return compare(table, hparams_of, results), asked


def test_parameters_and_operations_are_those_of_the_rows_set_and_vocabulary():
    (line,), asked = lines(ROW)
    assert asked == ["own"]
    # Six layers of each stack; the network has two matrices of 512 x 2048.
    network = 2 * 512 * 2048
    matrices = 6 * (4 * 512**2 + network) + 6 * (8 * 512**2 + network)
    # 12 self-attentions and 6 to the source, of 30 positions, for keys and values.
    attention = 18 * 30 * 2 * 512
    multiplications = matrices + 512 * 50 + attention
    assert line.flops_by_formula == 3 * 2 * 7 * 25_000 * multiplications
    assert line.flops_by_hours == pytest.approx(3 * 3600 * 8 * 9.5e12)
    biases, norms = 12 * (2048 + 512), 2 * 512 * (6 * 2 + 6 * 3)
    assert line.full_size_parameters == matrices + biases + norms + 512 * 50


def test_a_rows_changes_to_its_set_are_counted():
    (plain,), _ = lines(ROW)
    row = dataclasses.replace(ROW, hparams="attention_key_channels=1024")
    (line,), _ = lines(row)
    # Queries and keys of 18 attentions have twice 512 channels.
    added = line.full_size_parameters - plain.full_size_parameters
    assert added == 18 * 2 * 512 * 512
    assert (line.hparams_set, line.hparams) == ("own", "attention_key_channels=1024")


def test_a_system_of_others_has_published_values_only():
    (line,), asked = lines(Row("name", "label", {"BLEU": 1.5}))
    assert line == Line("name", "label", {"BLEU": 1.5})
    assert asked == []
