from __future__ import annotations

from t2t_repro.training.metrics_file import by_step, training_seconds


def test_the_last_record_of_a_step_counts():
    records = [
        {"split": "eval", "step": 10, "nll": 3.0},
        {"split": "train", "step": 10, "loss": 5.0},
        {"split": "eval", "step": 10, "nll": 2.0},
    ]
    assert by_step(records, "eval") == {10: records[2]}


def test_pauses_do_not_count_as_training():
    records = [
        {"split": "train", "step": 100, "time": 0.0, "steps_per_second": 4.0},
        {"split": "eval", "step": 100, "time": 500.0},
        {"split": "train", "step": 300, "time": 9_000.0, "steps_per_second": 10.0},
    ]
    assert training_seconds(records) == 45.0


def test_first_updates_count_with_their_own_time_only():
    records = [
        {"split": "train", "step": 1, "compile_seconds": 16.0, "compiled_updates": 1},
        {
            "split": "train",
            "step": 11,
            "steps_per_second": 0.5,
            "compile_seconds": 50.0,
            "compiled_updates": 3,
        },
    ]
    # The first update, seven at half a step per second, and the three others.
    assert training_seconds(records) == 16.0 + 7 / 0.5 + 50.0
    # An earlier version did not write their number.
    for record in records:
        del record["compiled_updates"]
    assert training_seconds(records) == 16.0 + 10 / 0.5 + 50.0
