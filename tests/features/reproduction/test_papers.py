"""Compare every published number with the papers.

`tests/golden/papers.json` holds the figures of "Attention Is All You Need"; the script
`make_papers.py` reads them from its LaTeX source. The available text of the Weighted
Transformer paper has no figures, so this module repeats them.
"""

from __future__ import annotations

import json
import re

import pytest

from t2t_repro import catalogue
from t2t_repro.features.reproduction import paper_tables
from t2t_repro.features.reproduction.paper_tables import find_row
from t2t_repro.features.reproduction.paper_tables import find_table as table
from t2t_repro.models.estimates import wall_time_flops
from t2t_repro.registry import hparams_sets
from tests.golden import make_papers

GOLDEN = json.loads(make_papers.RESULT.read_text(encoding="utf-8"))
TEXT = GOLDEN["text"]


@pytest.fixture
def latex(repository):
    path = repository.parent / "shared/papers/attention-is-all-you-need.tex"
    if not path.exists():
        pytest.skip(f"{path} is not there: the paper's LaTeX source")
    return path.read_text(encoding="utf-8")


def test_the_script_writes_the_golden_file(latex):
    assert make_papers.golden_text(latex) == make_papers.RESULT.read_text()


def published(name, *columns):
    """Return the published cells of a table's rows, label first."""
    return [
        (row.label, *(row.published.get(column) for column in columns))
        for row in table(name).rows
    ]


def printed(name, *columns):
    return [tuple(row[column] for column in columns) for row in GOLDEN[name]]


def test_table_1():
    columns = ("complexity", "sequential", "path")
    assert published("table1", *columns) == printed("table1", "layer", *columns)


def test_the_commented_rows_of_table_1_are_not_among_the_printed_ones():
    """The source has them in lines 19 to 24, each twice."""
    commented = {
        str(line): [row.label, row.complexity, row.sequential, row.path]
        for line, row in paper_tables.COMMENTED.items()
    }
    golden = GOLDEN["table1 commented"]
    golden["20"][-1] = golden["20"][-1].removeprefix("\\").replace("infty", "infinity")
    assert commented == golden
    labels = {row.label for row in table("table1").rows}
    assert labels.isdisjoint(row.label for row in paper_tables.COMMENTED.values())
    (note,) = table("table1").notes
    assert "Fully Connected: O(n^2 d^2), O(1), O(1) (line 21)" in note
    assert "not printed" in note


def test_figures_of_the_text():
    figures = {row.name: row.published["published"] for row in table("text").rows}
    base, big = TEXT["step seconds"]
    ende, enfr = TEXT["millions of pairs"]
    longer = TEXT["% longer steps of attention over parameters"]
    assert figures == {
        "base_step_seconds": f"{base} s",
        "big_step_seconds": f"{big} s",
        "pairs_ende": f"{ende}M",
        "pairs_enfr": f"{enfr}M",
        "big_enfr_bleu": TEXT["BLEU en-fr, big"],
        "aop_step_time": f"+{longer} %",
        # The Weighted Transformer's text has no figures.
        "added_weights": "192",
        "fewer_iterations": "15 to 40 % fewer",
        "branch_weight_spread": "up to 2",
    }


def test_the_lines_of_the_figures_are_those_of_the_latex_source(latex):
    lines = latex.splitlines()
    phrases = {
        "base_step_seconds": "took about 0.4 seconds",
        "big_step_seconds": "step time was 1.0 seconds",
        "pairs_ende": "4.5 million sentence pairs",
        "pairs_enfr": "36M sentences",
        "big_enfr_bleu": "BLEU score of $41.0$",
        "aop_step_time": "about 30\\% longer",
    }
    for name, phrase in phrases.items():
        (line,) = re.findall(r"line (\d+)", table("text").row(name).published["source"])
        assert phrase in lines[int(line) - 1]
    assert "41.8 after" in lines[93 - 1]
    assert "41.8" in lines[49 - 1]


def test_section_4_on_kernels_without_gaps_and_on_separable_ones():
    """An order that the paper does not print is marked as derived."""
    section = GOLDEN["section4"]
    convolution = next(x for x in GOLDEN["table1"] if x["layer"] == "Convolutional")
    assert convolution["path"] == section["dilated path"]
    contiguous, separable = paper_tables.CONTIGUOUS, paper_tables.SEPARABLE
    assert contiguous.path == section["contiguous path"]
    assert contiguous.complexity == convolution["complexity"]
    assert contiguous.sequential == convolution["sequential"]
    assert contiguous.derived == ()
    assert separable.complexity == section["separable complexity"]
    assert (separable.sequential, separable.path) == (
        contiguous.sequential,
        contiguous.path,
    )
    assert separable.derived == ("sequential", "path")


def test_table_2():
    columns = ("en-de", "en-fr", "FLOPs en-de", "FLOPs en-fr")
    assert published("table2", *columns) == printed("table2", "system", *columns)


def test_the_rows_to_french_are_the_column_of_both_papers():
    transformer = [cells[1] for cells in printed("table2", "system", "en-fr")][-2:]
    assert [(row.name, row.published["BLEU"]) for row in table("enfr").rows] == [
        ("transformer_base_model", transformer[0]),
        ("transformer_big", transformer[1]),
        ("weighted_transformer_small", 38.9),
        ("weighted_transformer_large", 41.4),
    ]


def test_table_3():
    columns = ("PPL", "BLEU", "params")
    rows = [cells for _, *cells in published("table3", *columns)]
    assert rows == [list(cells) for cells in printed("table3", *columns)]


def test_table_3_prints_steps_for_two_rows_and_the_others_share_the_base_models():
    base = GOLDEN["table3"][0]["steps"]
    steps = [row["steps"] or base for row in GOLDEN["table3"]]
    assert [row.published["steps"] for row in table("table3").rows] == steps
    assert [row.train_steps for row in table("table3").rows] == steps


def test_attention_over_parameters():
    """The table prints training times and no steps."""
    columns = ("PPL", "BLEU", "params", "hours")
    assert tuple(table("aop").columns) == columns
    rows = [cells for _, *cells in published("aop", *columns)]
    printed_rows = printed("attention_over_parameters", *columns)
    assert rows == [list(cells) for cells in printed_rows]
    assert {*table("aop").rows[0].published} == {*columns}
    hours = [row["hours"] for row in GOLDEN["attention_over_parameters"]]
    assert [row.train_hours for row in table("aop").rows] == hours == [12, 16, 16]


def test_table_4():
    rows = published("table4", "training", "F1")
    # The paper has "el al." once.
    assert rows == [
        (system.replace("el al", "et al").replace(" and ", " & "), *cells)
        for system, *cells in printed("table4", "system", "training", "F1")
    ]


# Column of Table 3, or of the one on attention over parameters -> hparam.
NAMES = {
    "N": "num_hidden_layers",
    "d_model": "hidden_size",
    "d_ff": "filter_size",
    "h": "num_heads",
    "P_drop": "layer_prepostprocess_dropout",
    "eps_ls": "label_smoothing",
    "h_p": "parameter_attention_heads",
    "n_p": "filter_size",
    "d_k": "attention_key_channels",
    "d_v": "attention_value_channels",
    "d_pk": "parameter_attention_key_channels",
    "d_pv": "parameter_attention_value_channels",
}
DEPTHS = ("d_k", "d_v", "d_pk", "d_pv")  # of one head


def described(hparams, cell):
    """Return the value of an hparams set for a cell of the tables."""
    hparams = hparams.resolved()
    heads = hparams.parameter_attention_heads if "p" in cell else hparams.num_heads
    value = getattr(hparams, NAMES[cell])
    return value / heads if cell in DEPTHS else value


@pytest.mark.parametrize(
    ("row", "cells"),
    [
        pytest.param(row, printed_row["cells"], id=f"{name}/{row.name}")
        for name, golden in (("table3", "table3"), ("aop", "attention_over_parameters"))
        for row, printed_row in zip(table(name).rows, GOLDEN[golden], strict=True)
    ],
)
def test_a_rows_hparams_set_has_the_values_that_the_row_prints(row, cells):
    hparams = catalogue.hparams(row.hparams_set)
    assert {cell: described(hparams, cell) for cell in cells} == cells
    if not cells:
        assert (row.name, hparams.pos) == ("e_learned", "emb")


def test_a_variations_card_prints_its_published_scores():
    catalogue.load()
    for row in (*table("table3").rows, *table("aop").rows):
        if row.name not in {"base", "big"}:
            card = " ".join(hparams_sets.get(row.hparams_set).__doc__.split())
            perplexity, bleu = row.published["PPL"], row.published["BLEU"]
            assert f"perplexity {perplexity} per subword, BLEU {bleu} (beam 4," in card
            assert "100,000 steps)" in card


@pytest.mark.parametrize(
    "name",
    [
        *("table2/transformer_base_model", "table2/transformer_big"),
        *("enfr/transformer_base_model", "enfr/transformer_big"),
        *("table3/base", "table3/big", "aop/base"),
        *("weighted/transformer_small", "weighted/transformer_large"),
    ],
)
def test_steps_hours_and_averaging_are_those_of_sections_5_and_6(name):
    found_table, found = find_row(name)
    model = "big" if found.hparams_set.startswith("transformer_big") else "base"
    name = found_table.name
    assert found.train_steps == TEXT[model]["steps"]
    # The Weighted Transformer's authors trained on other GPUs.
    hours = None if name == "weighted" else TEXT[model]["hours"]
    assert found.train_hours == hours
    # Section 6.2: the variations are not averaged.
    averaged = TEXT["averaged"][model] if name in ("table2", "weighted", "enfr") else 0
    assert found.average_last == averaged


def test_vocabularies_are_those_of_sections_5_and_6():
    assert table("table3").rows[0].vocab_sizes == (TEXT["vocabulary"],) * 2
    sizes = {
        row.published["training"].partition(",")[0]: row.vocab_sizes[0]
        for row in table("table4").rows
        if row.hparams_set
    }
    assert sizes == TEXT["parsing vocabularies"]


def test_the_papers_estimate_of_its_training_cost():
    """12 hours, or 3.5 days, on 8 GPUs of 9.5 TFLOPS sustained (`by hours`)."""
    assert TEXT["GPUs"] == paper_tables.NUM_GPUS
    assert 1e12 * TEXT["TFLOPS"]["P100"] == paper_tables.P100_FLOPS
    assert TEXT["tokens per batch"] == [paper_tables.TOKENS_PER_STEP] * 2
    for row in table("table2").rows[-2:]:
        flops = wall_time_flops(row.train_hours, 8, 9.5e12)
        assert row.published["FLOPs en-de"] == pytest.approx(flops, rel=0.01)


def test_the_weighted_transformers_results():
    assert published("weighted", "en-de", "en-fr") == [
        ("Transformer (small)", 27.3, 38.1),
        ("Weighted Transformer (small)", 28.4, 38.9),
        ("Transformer (large)", 28.4, 41.0),
        ("Weighted Transformer (large)", 28.9, 41.4),
        ("ByteNet", 23.7, None),
        ("Deep-Att + PosUnk", None, 39.2),
        ("GNMT + RL", 24.6, 39.9),
        ("ConvS2S", 25.2, 40.5),
        ("MoE", 26.0, 40.6),
    ]


def test_the_weighted_transformers_sensitivity_analysis():
    columns = ("d_ff", "h", "P_drop", "Transformer", "Weighted", "params")
    assert published("sensitivity", *columns) == [
        ("(C) N=2", 2048, 8, 0.1, 23.7, 24.8, 36),
        ("N=4", 2048, 8, 0.1, 25.3, 26.2, 50),
        ("(A) N=6", 2048, 8, 0.1, 25.8, 26.5, 65),
        ("N=8", 2048, 8, 0.3, 25.5, 25.6, 80),
        ("(B) big, N=6", 4096, 16, 0.3, 26.4, 27.2, 213),
    ]


def test_a_weighted_set_has_the_values_that_its_row_prints():
    for row in table("sensitivity").rows:
        hparams = catalogue.hparams(row.hparams_set)
        for cell in ("d_ff", "h", "P_drop"):
            assert row.published[cell] == described(hparams, cell)
