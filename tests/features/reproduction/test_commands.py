"""The commands that result files record for users, written out."""

from __future__ import annotations

import dataclasses
import re

import pytest

from benchmarks.accelerator.rows.results import commands as accelerator_commands
from t2t_repro.features.reproduction.paper_tables import TABLES, Row, find_row
from t2t_repro.features.reproduction.result_files import shipped_results
from t2t_repro.features.reproduction.row_plan import plan_of


def commands(row, scale, seed):
    return plan_of(*find_row(row), scale, seed).commands()


def test_an_averaged_system_at_the_papers_scale():
    assert commands("table2/transformer_big", "paper", 7) == [
        "t2t train --problem translate_ende_wmt14 --hparams_set transformer_big "
        "--data_dir DATA --output_dir OUT --random_seed 7 --train_steps 300000 "
        "--average_last 20 --save_checkpoints_secs 600 --no_final_score",
        "t2t evaluate --output_dir OUT --split test --decode_to_file "
        "OUT/test.transformer_big.txt --checkpoint_path averaged",
    ]


def test_a_system_of_the_last_checkpoint_at_the_papers_scale():
    assert commands("weighted/weighted_transformer_small", "paper", 0) == [
        "t2t train --problem translate_ende_wmt14 --hparams_set "
        "weighted_transformer_base --data_dir DATA --output_dir OUT --random_seed 0 "
        "--train_steps 60000 --average_last 0 --no_final_score",
        "t2t evaluate --output_dir OUT --split test --decode_to_file "
        "OUT/test.weighted_transformer_base.txt",
    ]


def test_rows_of_one_set_share_a_training_only_if_branch_weights_differ():
    names = [
        [row.name for row in plan_of(*find_row(name)).rows]
        for name in ("table3/a_h1", "randomisation/uniform")
    ]
    assert names == [["a_h1"], ["learned", "random", "uniform"]]
    other = Row("other", "label", {}, hparams_set="weighted_transformer_n4")
    table, row = find_row("randomisation/random")
    wider = dataclasses.replace(table, rows=[*table.rows, other])
    assert plan_of(wider, row).rows == tuple(table.rows)


# The commands of results from older recipes, before --no_final_score and 50 steps
# between checkpoints, have the same remaining flags.
LATER_FLAGS = (" --no_final_score", " --save_checkpoints_steps 50")


ON_CPU = [x for x in shipped_results() if "jax" not in x.versions]
ON_ACCELERATOR = [x for x in shipped_results() if "jax" in x.versions]


def rows_of(system):
    return [
        f"{table.name}/{row.name}"
        for table in TABLES
        for row in table.rows
        if row.system == system
    ]


def without_later_flags(lines):
    for flag in LATER_FLAGS:
        lines = [line.replace(flag, "") for line in lines]
    return lines


@pytest.mark.parametrize("result", ON_CPU, ids=lambda r: r.file_name)
def test_a_shipped_result_was_made_by_the_commands_of_its_row(result):
    theirs = without_later_flags(result.commands)
    rows = [
        without_later_flags(commands(row, result.scale, result.seed))
        for row in rows_of(result.system)
    ]
    assert any(theirs[0] == ours[0] and {*theirs} <= {*ours} for ours in rows)


@pytest.mark.parametrize("result", ON_ACCELERATOR, ids=lambda r: r.file_name)
def test_a_result_of_an_accelerator_was_made_by_the_programs_of_its_row(result):
    count = int(re.search(r", (\d+) seeds?\b", result.hardware)[1])
    given = re.search(r"--first_seed (\d+)", result.commands[0])
    first = int(given[1]) if given else 1
    seeds = range(first, first + count)
    recorded = result.commands
    if not result.signature:  # Parsers were scored by another program.
        *before, score = recorded
        score = score.replace("rows.parsers", "rows.results")
        recorded = (*before, score.replace("--to PARSERS", "--curve_dir CURVES"))
    assert recorded in [
        accelerator_commands(row, result.scale, seeds, "tensorfloat32")
        for row in rows_of(result.system)
    ]
    assert result.seed in seeds
