from __future__ import annotations

import dataclasses

import pytest

pytest.importorskip("scipy", reason="the extra `results` is not installed")

from results.form_runs import (
    CONTROL,
    PLAIN,
    WEIGHTED,
    Repeat,
    cpu_repeats,
    rows,
    scores_by_block,
    system_of,
)
from tests.support import form_runs as examples
from tests.support.measurement import MEASUREMENT


def test_cpu_repeats_are_read_from_the_table_of_their_differences():
    table = {
        "columns": [
            {"heading": heading, "format": ""}
            for heading in ("row of forms", "CPU seed", "nll, CPU", "both, CPU")
        ],
        "rows": [["`around`", 3, 2.5, 31.0]],
    }
    agreement = dataclasses.replace(MEASUREMENT, table=table)
    expected = {"nll (dev)": 2.5, "BLEU (dev+test)": 31.0}
    assert cpu_repeats(agreement) == [Repeat(examples.AROUND, 3, expected)]


def test_the_named_rows_are_rows_of_the_table():
    assert {PLAIN, CONTROL, WEIGHTED} < {row.name for row in rows()}
    assert system_of("around") == examples.AROUND


def test_a_block_is_a_seed_on_a_kind_of_hardware():
    accelerated = dataclasses.replace(examples.RESULTS[0], versions={"jax": "1"})
    repeat = Repeat(examples.PLAIN, 1, {"nll (dev)": 1.5})
    unknown = Repeat(examples.SHARED, 1, {"nll (dev)": 1.5})
    found = scores_by_block([accelerated], "nll (dev)", [repeat, unknown])
    assert found == {examples.PLAIN: {(True, 1): 2.0, (False, 1): 1.5}}
