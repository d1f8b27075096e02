from __future__ import annotations

import dataclasses

import pytest

from t2t_repro import catalogue
from t2t_repro.reproduction import render as rendering
from t2t_repro.reproduction.render import render
from t2t_repro.reproduction.tables import TABLES, table
from tests.support.result import RESULT


@pytest.mark.parametrize("name", [t.name for t in TABLES])
def test_every_published_cell_is_printed(name):
    shown = render(table(name), catalogue.hparams)
    for row in table(name).rows:
        values = [v for v in row.published.values() if v is not None]
        texts = [f"{v:g}" for v in values if isinstance(v, float) and v < 1e6]
        texts += [v for v in values if isinstance(v, str)]
        lines = [x for x in shown.splitlines() if x.startswith(row.name)]
        assert any(all(text in line for text in texts) for line in lines), row.name


def test_perplexities_have_two_decimals_as_in_the_paper():
    (line,) = [
        x
        for x in render(table("table3"), catalogue.hparams).splitlines()
        if x.startswith("a_h4 ")
    ]
    assert " 5.00  25.5 " in line


def test_sizes_are_those_of_the_sets():
    shown = render(table("table3"), catalogue.hparams)
    (line,) = [x for x in shown.splitlines() if x.startswith("c_n2 ")]
    assert "transformer_base_c_n2" in line
    assert "33,644,544" in line
    assert rendering.NOT_MEASURED in line


def test_systems_of_others_are_published_only():
    shown = render(table("table2"), catalogue.hparams)
    (line,) = [x for x in shown.splitlines() if x.startswith("convs2s ")]
    assert "published only" in line
    assert rendering.NOT_MEASURED not in line


@pytest.mark.parametrize(
    ("seeds", "shown"),
    [
        ((1,), "small: BLEU (dev) 31.00, perplexity (dev) 8.00"),
        ((1, 2, 3), "small: BLEU (dev) 32.00 ± 1.00, perplexity (dev) 8.00 ± 0.00"),
    ],
)
def test_measured_scores_stand_beside_with_their_spread(seeds, shown):
    results = [
        dataclasses.replace(
            RESULT,
            seed=seed,
            scores={"BLEU (dev)": 30.0 + seed, "perplexity (dev)": 8.0},
        )
        for seed in seeds
    ]
    lines = render(table("table3"), catalogue.hparams, results).splitlines()
    (line,) = [x for x in lines if x.startswith("a_h1 ")]
    assert shown in line
    assert "3,000 steps, 10 min" in line


def test_a_system_is_measured_once_for_all_the_tables_that_it_stands_in():
    measured = {"transformer_base_c_n2": 30.0, "weighted_transformer_n2": 31.0}
    results = [
        dataclasses.replace(RESULT, system=system, scores={"BLEU (dev)": score})
        for system, score in measured.items()
    ]
    tables = {
        name: render(table(name), catalogue.hparams, results).splitlines()
        for name in ("table3", "sensitivity", "randomisation")
    }
    (line,) = [x for x in tables["sensitivity"] if x.startswith("n2 ")]
    assert "Transformer: small: BLEU (dev) 30.00" in line
    assert "Weighted: small: BLEU (dev) 31.00" in line
    (line,) = [x for x in tables["table3"] if x.startswith("c_n2 ")]
    assert "small: BLEU (dev) 30.00" in line
    learned, random, uniform = tables["randomisation"][2:5]
    assert "small: BLEU (dev) 31.00" in learned
    assert rendering.NOT_MEASURED in random
    assert rendering.NOT_MEASURED in uniform


def test_parsers_are_sized_with_the_papers_subwords_and_few_symbols():
    lines = render(table("table4"), catalogue.hparams).splitlines()
    wsj, semi = (
        next(x for x in lines if x.startswith(f"transformer_4_layers_{data}"))
        for data in ("wsj_only", "semi_supervised")
    )
    # Projections and d_ff = 2048: 8 squares of the width in a layer of the encoder.
    matrices = 4 * (8 + 12) * 1024**2
    biases = 8 * (2048 + 1024)
    normalisations = 4 * (2 + 3) * 2 * 1024
    embeddings = 1024 * (16_000 + 2 * 56)
    parameters = matrices + biases + normalisations + embeddings
    assert f" {parameters:,} " in wsj
    assert f" {parameters + 1024 * 16_000:,} " in semi
