from __future__ import annotations

import dataclasses
import math

import pytest

pytest.importorskip("scipy", reason="the extra `results` is not installed")

from results.derived import PLAIN
from results.noise import (
    directions,
    noise,
    table3_order,
)
from tests.support.result import RESULT


def test_the_noise_is_that_of_all_systems_with_several_seeds():
    """Student's t of 4 degrees has 95 % between -2.776 and 2.776."""
    results = [
        dataclasses.replace(
            RESULT,
            system=system,
            scale=scale,
            seed=seed,
            scores={"BLEU (dev)": bleu, "perplexity (dev)": perplexity},
        )
        for system, scale, seed, bleu, perplexity in [
            ("a", "small", 1, 20.0, 10.0),
            ("a", "small", 2, 22.0, 10.0),
            ("b", "small", 1, 30.0, 10.0),
            ("b", "small", 2, 31.0, 10.0),
            ("b", "small", 3, 32.0, 10.0),
            ("c", "small", 1, 24.0, 10.0),
            ("c", "small", 2, 26.0, 11.0),
            ("d", "small", 1, 90.0, 90.0),
            ("a", "long", 1, 70.0, 70.0),
        ]
    ]
    results += [
        dataclasses.replace(
            RESULT, system="a_random", scale="small", seed=n, scores={"BLEU (dev)": n}
        )
        for n in (1, 2)
    ]
    found = noise(results)
    assert (found["systems"], found["seeds"]) == (3, 7)
    deviation = ((1 + 1 + 1 + 1 + 1 + 1) / 4) ** 0.5
    assert found["dev_deviation"] == pytest.approx(deviation)
    assert found["dev_threshold"] == pytest.approx(2.776 * 2**0.5 * deviation, rel=1e-3)
    percent = 100 * math.log(1.1) * 0.5**0.5 / 2
    assert found["perplexity_deviation"] == pytest.approx(percent)
    named = [
        dataclasses.replace(x, system=x.system.replace("b", PLAIN)) for x in results
    ]
    assert noise(named)["dev_base_threshold"] == pytest.approx(
        2.776 * (4 / 3) ** 0.5 * deviation, rel=1e-3
    )


def perplexities(**values: tuple[float, ...]):
    """Return results of rows of Table 3, a seed per value, with a noise of 1 %."""
    plain = {1: 10.0, 2: 10.0 * math.exp(0.01), 3: 10.0 * math.exp(-0.01)}
    runs = [(PLAIN, seed, value) for seed, value in plain.items()]
    runs += [
        (f"{PLAIN}_{row}", seed, value)
        for row, found in values.items()
        for seed, value in enumerate(found)
    ]
    return [
        dataclasses.replace(
            RESULT,
            system=system,
            scale="small",
            seed=seed,
            scores={"perplexity (dev)": value, "BLEU (dev)": 30.0},
        )
        for system, seed, value in runs
    ]


def test_rows_beyond_the_noise_are_counted_by_their_direction():
    """4.303 * 1 % * (1 + 1/3)^0.5 is 4.97 %. In the paper, only c_n4 is worse."""
    results = perplexities(
        c_n4=(10.0 * math.exp(0.0505),), c_dff4096=(10.5 * math.exp(0.0505),)
    )
    found = directions(results, "small")
    assert (found["published"], found["opposite"]) == ("`c_n4`", "`c_dff4096`")
    assert (found["agreeing"], found["beyond"]) == (1, 2)
    long = [dataclasses.replace(x, scale="long") for x in results]
    assert directions(long, "long") == found


def test_rows_within_the_noise_or_near_base_s_published_value_do_not_count():
    within = perplexities(
        c_n4=(10.0 * math.exp(0.0485),), e_learned=(90.0,), c_n8=(90.0,)
    )
    assert directions(within, "small")["beyond"] == 0


def test_systems_that_are_unlike_the_others_do_not_raise_the_noise():
    noisy = perplexities(c_n4=(10.0 * math.exp(0.0505),), big=(9.0, 30.0))
    assert directions(noisy, "small")["beyond"] == 0
    found = directions(noisy, "small", [f"{PLAIN}_big"])
    assert found["published"] == "`c_n4`"


def test_more_seeds_of_a_row_reduce_the_noise_of_its_mean():
    difference = 10.0 * math.exp(0.04)
    assert directions(perplexities(c_n4=(difference,)), "small")["beyond"] == 0
    repeated = perplexities(c_n4=(difference,) * 3)
    assert directions(repeated, "small")["published"] == "`c_n4`"


def test_the_order_of_table_3_is_that_of_the_last_checkpoints():
    """The paper: base has 4.92 and 25.8, c_n2 6.11 and 23.7, c_n4 5.19 and 25.3."""
    scores = {
        PLAIN: {"nll (dev)": 1.8, "BLEU (dev+test)": 30.0},
        f"{PLAIN}_c_n2": {"nll (dev)": 1.9, "BLEU (dev+test)": 32.0},
        f"{PLAIN}_c_n4": {"nll (dev)": 2.0, "BLEU (dev+test)": 31.0},
        "weighted_transformer_base": {"nll (dev)": 9.0},
    }
    results = [
        dataclasses.replace(RESULT, system=system, scale="long", scores=own)
        for system, own in scores.items()
    ]
    rows = ["base", "a_h1", "c_n2", "c_n4"]
    found = table3_order(results, "long", rows)
    assert found["rows"] == 3
    assert (found["ppl_same"], found["ppl_pairs"]) == (2, 3)
    assert (found["bleu_same"], found["bleu_pairs"]) == (0, 3)
    assert found["bleu_p"] == "p = 1.000"
    two = table3_order(results, "long", ["base", "c_n2"])
    assert (two["ppl_same"], two["ppl_pairs"]) == (1, 1)
    assert table3_order(results, "small", rows) == {"rows": 0}
