from __future__ import annotations

import dataclasses
import json

import pytest

from t2t_repro import catalogue
from t2t_repro.features.reproduction.comparison_report import (
    NOT_MEASURED,
    compare,
    comparison_report,
)
from t2t_repro.features.reproduction.paper_tables import TABLES, Row, Table, find_table
from t2t_repro.features.reproduction.report_writer import (
    FORMATS,
    MAX_WIDTH,
    write_report,
)
from t2t_repro.features.reproduction.result_files import SCALES, shipped_results
from t2t_repro.models.estimates import parameter_count, training_flops
from tests.support.result import RESULT

PUBLISHED, OURS, COSTS = range(3)  # blocks of a report


def report(name, results=()):
    return comparison_report(find_table(name), catalogue.hparams, results)


def cells(name, results=(), block=0):
    headings, *rows = report(name, results).blocks[block].rows
    return [dict(zip(headings, row, strict=True)) for row in rows]


def row_of(name, row, results=(), block=0):
    (found,) = [line for line in cells(name, results, block) if line["row"] == row]
    return found


def results_of(system, scale="small", **scores):
    """Return one result per value, with seeds 11, 12, ..."""
    (count,) = {len(values) for values in scores.values()}
    names = {"ppl": "perplexity (dev)", "dev": "BLEU (dev)", "test": "BLEU (test)"}
    return [
        dataclasses.replace(
            RESULT,
            system=system,
            scale=scale,
            seed=11 + index,
            scores={names[key]: values[index] for key, values in scores.items()},
        )
        for index in range(count)
    ]


@pytest.mark.parametrize("name", [table.name for table in TABLES])
def test_every_published_cell_is_printed(name):
    shown = write_report(report(name))
    for row in find_table(name).rows:
        values = [v for v in row.published.values() if v is not None]
        texts = [f"{v:g}" for v in values if isinstance(v, float) and v < 1e6]
        texts += [v for v in values if isinstance(v, str)]
        lines = [x for x in shown.splitlines() if x.startswith(row.name)]
        assert any(all(text in line for text in texts) for line in lines), row.name


def test_published_values_are_written_as_in_the_papers():
    row = row_of("table3", "a_h4")
    assert (row["PPL"], row["BLEU"], row["steps"]) == ("5.00", "25.5", "100,000")
    assert row_of("table2", "gnmt_rl")["FLOPs en-de"] == "2.3e+19"
    assert row_of("table2", "convs2s")["en-fr"] == "40.46"
    assert row_of("aop", "aop1")["hours"] == "16"
    assert row_of("table4", "luong_et_al_2015_multi_task")["F1"] == "93.0"


def test_sizes_and_costs_are_those_of_the_sets():
    costs = row_of("table3", "c_n2", block=COSTS)
    assert costs["params at full size"] == "33,644,544"
    assert costs["hparams set"] == "transformer_base_c_n2"
    assert (costs["FLOPs by formula"], costs["by hours"]) == ("5.1e+17", "")
    changed = row_of("attention", "unscaled_dk16", block=COSTS)["hparams set"]
    assert changed == "transformer_base_b_dk16, changed"
    # 12 hours of 8 GPUs at 9.5e12.
    assert row_of("table3", "base", block=COSTS)["by hours"] == "3.3e+18"


def test_costs_are_those_of_a_rows_changes_and_of_the_targets_vocabulary():
    sizes = {"train_steps": 7, "vocab_sizes": (1_000, 50)}
    changes = {
        "hparams_set": "transformer_base",
        "hparams": "num_heads=4,filter_size=64",
    }
    row = Row("name", "label", {}, **changes, **sizes)
    (line,) = compare(Table("t", "title", ("BLEU",), [row]), catalogue.hparams)
    hparams = catalogue.hparams("transformer_base").parse(row.hparams)
    assert line.flops_by_formula == training_flops(hparams, 50, 7 * 25_000, 30)
    assert line.full_size_parameters == parameter_count(hparams, 1_000, 50)


def test_our_scores_name_the_text_and_the_size_of_the_trained_model():
    results = shipped_results()
    for table, row, text, size in (
        ("table2", "transformer_base_model", "Multi30k en-de", "1,895,936"),
        ("enfr", "transformer_base_model", "Multi30k en-fr", "1,895,936"),
        ("table4", "transformer_4_layers_wsj_only", "CRAFT", "6,308,864"),
    ):
        first, *_ = cells(table, results, OURS)
        found = (first["row"], first["our text"], first["our params"])
        assert found == (row, text, size)
    title = report("table2", results).blocks[OURS].title
    assert "a quarter of the widths, half the layers, Multi30k en-de" in title
    assert "not with the published scores" in title


def test_perplexity_and_both_bleus_have_separate_columns():
    results = results_of("transformer_base_a_h1", ppl=[8.0], dev=[31.0], test=[32.5])
    row = row_of("table3", "a_h1", results, OURS)
    found = [row[name] for name in ("our dev PPL", "our dev BLEU", "our test BLEU")]
    assert [*found, row["runs"]] == ["8.00", "31.00", "32.50", "1 small"]
    costs = row_of("table3", "a_h1", results, COSTS)
    found = (costs["our steps"], costs["minutes"], costs["seeds"])
    assert found == ("3,000", "10", "11")
    assert row_of("table3", "a_h4", results, OURS)["runs"] == NOT_MEASURED


def test_several_seeds_give_a_mean_with_its_deviation():
    results = results_of(
        *("transformer_base_a_h1",), ppl=[8.0] * 3, dev=[31.0, 32.0, 33.0]
    )
    row = row_of("table3", "a_h1", results, OURS)
    found = [row[name] for name in ("our dev PPL", "our dev BLEU", "our test BLEU")]
    assert [*found, row["runs"]] == ["8.00 ± 0.00", "32.00 ± 1.00", "", "3 small"]
    assert row_of("table3", "a_h1", results, COSTS)["seeds"] == "11, 12, 13"


def test_every_scale_has_a_line():
    results = [
        *results_of("transformer_base_a_h1", "small", dev=[31.0]),
        *results_of("transformer_base_a_h1", "paper", dev=[24.0]),
    ]
    lines = [x for x in cells("table3", results, OURS) if x["row"] == "a_h1"]
    assert [line["runs"] for line in lines] == ["1 paper", "1 small"]
    assert [line["our dev BLEU"] for line in lines] == ["24.00", "31.00"]
    assert [line["our text"] for line in lines] == ["WMT 2014 en-de", "Multi30k en-de"]
    assert row_of("table3", "a_h1", results)["PPL"] == "5.29"


def test_parsers_have_columns_for_f1_and_repairs():
    scores = {
        "F1 (dev)": 74.0,
        "F1 up to 40 words (dev)": 81.5,
        "% repaired (dev)": 12.25,
    }
    result = dataclasses.replace(
        RESULT, system="transformer_parsing_wsj", scores=scores
    )
    row = row_of("table4", "transformer_4_layers_wsj_only", [result], OURS)
    found = [row[name] for name in ("our dev F1", "up to 40 words", "% repaired")]
    assert found == ["74.00", "81.50", "12.25"]


def test_one_measurement_serves_all_tables_of_a_system():
    results = [
        *results_of("transformer_base_c_n2", dev=[30.0]),
        *results_of("weighted_transformer_n2", dev=[31.0]),
    ]
    weighted, plain = [
        x for x in cells("sensitivity", results, OURS) if x["row"] == "n2"
    ]
    assert (weighted["system"], weighted["our dev BLEU"]) == ("(C) N=2", "31.00")
    assert plain["system"] == "plain Transformer"
    assert plain["our dev BLEU"] == "30.00"
    costs = [x for x in cells("sensitivity", results, COSTS) if x["row"] == "n2"]
    assert [x["hparams set"] for x in costs] == [
        "weighted_transformer_n2",
        "transformer_base_c_n2",
    ]
    assert costs[1]["params at full size"] == "33,644,544"
    assert row_of("table3", "c_n2", results, OURS)["our dev BLEU"] == "30.00"
    learned, random, uniform = cells("randomisation", results, OURS)
    assert learned["our dev BLEU"] == "31.00"
    assert random["runs"] == uniform["runs"] == NOT_MEASURED


def test_parsers_are_sized_with_the_papers_subwords_and_few_symbols():
    wsj, semi = cells("table4", block=COSTS)
    # Projections and d_ff = 2048: 8 squares of the width in a layer of the encoder.
    matrices = 4 * (8 + 12) * 1024**2
    biases = 8 * (2048 + 1024)
    normalizations = 4 * (2 + 3) * 2 * 1024
    embeddings = 1024 * (16_000 + 2 * 56)
    parameters = matrices + biases + normalizations + embeddings
    assert wsj["params at full size"] == f"{parameters:,}"
    assert semi["params at full size"] == f"{parameters + 1024 * 16_000:,}"


def many_results():
    names = {
        "parsing": ("F1 (dev)", "F1 up to 40 words (dev)", "% repaired (dev)"),
        "translation": ("perplexity (dev)", "BLEU (dev)", "BLEU (test)"),
    }
    systems = {
        system: names[table.task]
        for table in TABLES
        for row in table.rows
        for system in (row.system, row.baseline_set)
        if system is not None
    }
    last = ("nll (dev)", "BLEU (dev+test)")
    long = (*last, *(f"{name}, averaged" for name in last))
    return [
        dataclasses.replace(
            RESULT,
            system=system,
            scale=scale,
            seed=seed,
            scores=dict.fromkeys((*scores, *long), 20.0 + 10 * seed),
        )
        for system, scores in systems.items()
        for scale in SCALES
        for seed in range(1, 6)
    ]


@pytest.mark.parametrize("name", [table.name for table in TABLES])
def test_a_report_names_every_row_in_lines_of_at_most_160_characters(name):
    for results in ((), shipped_results(), many_results()):
        lines = write_report(report(name, results)).splitlines()
        assert max(map(len, lines)) <= MAX_WIDTH == 160
    for form in FORMATS:
        text = write_report(report(name, shipped_results()), form)
        assert all(row.name in text for row in find_table(name).rows)


def test_json_has_numbers_and_every_seed():
    results = results_of("transformer_base_a_h1", ppl=[8.0, 9.0], dev=[31.0, 31.5])
    data = json.loads(write_report(report("table3", results), "json"))
    assert (data["table"], data["split"]) == ("table3", "dev")
    (line,) = [line for line in data["lines"] if line["row"] == "a_h1"]
    published = {"PPL": 5.29, "BLEU": 24.9, "params": None, "steps": 100_000}
    assert line["published"] == published
    assert line["hparams_set"] == "transformer_base_a_h1"
    assert line["full_size_parameters"] == 63_045_632
    assert line["measured"] == {
        "scale": "small",
        "text": "Multi30k en-de",
        "parameters": RESULT.parameters,
        "seeds": [11, 12],
        "steps": 3_000,
        "minutes": 10.0,
        "scores": {"perplexity (dev)": [8.0, 9.0], "BLEU (dev)": [31.0, 31.5]},
    }
    (other,) = [line for line in data["lines"] if line["row"] == "a_h4"]
    assert other["measured"] is None
    assert data["notes"]
