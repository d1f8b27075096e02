import pytest

from benchmarks.training.arithmetic import (
    Batch,
    Round,
    Shape,
    matmul_share,
    median_ratio,
    padding_share,
    update_flops,
)
from t2t_repro.catalogue import hparams, load
from t2t_repro.models.sizes import training_flops

SHAPE = Shape(layers=3, width=16, filter=40, heads=2)


def test_padding_is_the_share_of_positions_of_both_sides_without_a_token():
    batches = [Batch(10, 7, 8, 61, 73), Batch(5, 20, 12, 90, 50)]
    # 150 + 160 positions, 134 + 140 tokens
    assert padding_share(batches) == pytest.approx(36 / 310)


def test_only_real_target_tokens_count_for_speed():
    batches = (Batch(10, 7, 8, 61, 73), Batch(5, 20, 12, 90, 50))
    assert Round(4.0, batches).tokens_per_second == (73 + 50) / 4


def test_an_answer_of_a_worker_is_read():
    answer = {"seconds": 2.5, "batches": [[1, 2, 3, 4, 5]], "gigabytes": 1.0}
    assert Round.from_answer(answer) == Round(2.5, (Batch(1, 2, 3, 4, 5),))


def test_the_ratio_compares_turns_of_the_same_round():
    # The machine is ten times slower in the second round.
    assert median_ratio([300, 30, 100], [100, 20, 80]) == 1.5


def test_operations_equal_those_of_the_models_own_count_if_both_sides_are_as_long():
    load()
    changes = "hidden_size=16,filter_size=40,num_heads=2,num_hidden_layers=3"
    values = hparams("transformer_base").parse(changes)
    batch = Batch(
        rows=4, source_length=9, target_length=9, source_tokens=1, target_tokens=1
    )
    assert update_flops(SHAPE, 50, batch) == training_flops(values, 50, 4 * 9, 9)


def test_operations_of_the_two_sides_are_counted_apart():
    shape = Shape(layers=1, width=2, filter=3, heads=1)
    batch = Batch(
        rows=1, source_length=5, target_length=7, source_tokens=5, target_tokens=7
    )
    encoder = 5 * (4 * 4 + 2 * 2 * 3) + 2 * 2 * 5 * 5
    decoder = 7 * (4 * 4 + 2 * 2 * 3) + 2 * 2 * 7 * 7
    # queries and outputs, keys and values, their two products
    between = 7 * 2 * 4 + 5 * 2 * 4 + 2 * 2 * 5 * 7
    softmax = 7 * 2 * 11
    total = encoder + decoder + between + softmax
    assert update_flops(shape, 11, batch) == 6 * total


def test_the_share_of_the_matmul_rate_is_measured_in_each_round():
    batch = Batch(2, 6, 5, 12, 10)
    flops = update_flops(SHAPE, 50, batch)
    rounds = [Round(seconds, (batch, batch)) for seconds in (1.0, 2.0, 4.0)]
    rates = [flops * factor for factor in (8, 2, 4)]
    # 2/8, 2/4, 2/16
    assert matmul_share(rounds, rates, SHAPE, 50) == pytest.approx(1 / 4)
