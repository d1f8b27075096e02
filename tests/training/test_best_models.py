"""Models are kept by their scores, and training ends when scores do not rise."""

from __future__ import annotations

import itertools
import json
import logging
import signal

import pytest

from t2t_repro.errors import UserError
from t2t_repro.training.checkpoint_paths import (
    all_checkpoints,
    best_checkpoints,
    recorded_scores,
    step_of,
)
from t2t_repro.training.checkpoints import model_variables, restore
from t2t_repro.training.evaluations import BestModels, is_exhausted
from tests.support.tiny_training import (
    Bigrams,
    fill,
    losses_of,
    metrics_of,
    one_value,
    saved_steps,
    train,
    weights_of,
)

SCORES = {2: 3.0, 4: 9.0, 6: 5.0, 8: 7.0, 10: 7.0, 12: 6.0, 14: 1.0}


def scored(step, log):
    return {"bleu": SCORES.get(step, 2.0)}


def test_the_models_with_the_highest_scores_are_kept(tmp_path):
    model = Bigrams(0.0)
    best = BestModels(tmp_path, model, keep=3)
    kept = {}
    for step, score in SCORES.items():
        fill(model, float(step))
        kept[step] = best.offer(step, score)
    # Of the equal scores of 8 and 10, both have a place.
    assert saved_steps(tmp_path / "best_models") == [4, 8, 10]
    assert recorded_scores(tmp_path) == {4: 9.0, 8: 7.0, 10: 7.0}
    assert [step for step, yes in kept.items() if yes] == [2, 4, 6, 8, 10]
    for path in all_checkpoints(best.folder):
        restore(model_variables(model), path)
        assert one_value(model) == step_of(path)
    assert [step_of(path) for path in best_checkpoints(tmp_path, 2)] == [4, 8]
    with pytest.raises(UserError, match=r"best=4, but .* keeps 3 model"):
        best_checkpoints(tmp_path, 4)


def test_a_lower_score_of_the_same_step_does_not_replace_a_higher_one(tmp_path):
    """Training that went back to a checkpoint comes to a step again."""
    model = Bigrams(0.0)
    best = BestModels(tmp_path, model, keep=2)
    fill(model, 1.0)
    best.offer(2, 9.0)
    fill(model, 5.0)
    best.offer(2, 3.0)
    assert recorded_scores(tmp_path) == {2: 9.0}
    restore(model_variables(model), all_checkpoints(best.folder)[0])
    assert one_value(model) == 1.0


@pytest.mark.parametrize("order", [*itertools.permutations((2, 4, 6))])
def test_of_equal_scores_the_earlier_steps_are_kept_in_any_order(tmp_path, order):
    model = Bigrams(0.0)
    best = BestModels(tmp_path, model, keep=2)
    for step in order:
        fill(model, float(step))
        assert best.offer(step, 7.0) == (step != 6 or 6 in order[:2])
    assert recorded_scores(tmp_path) == {2: 7.0, 4: 7.0}
    assert saved_steps(tmp_path / "best_models") == [2, 4]


def test_weights_without_a_recorded_score_are_removed_with_the_next_offer(tmp_path):
    # A process was killed after it wrote the weights.
    model = Bigrams(0.0)
    best = BestModels(tmp_path, model, keep=2)
    best.offer(2, 3.0)
    best.offer(4, 9.0)
    recorded = {"2": 3.0}
    (best.folder / "scores.json").write_text(json.dumps(recorded))
    assert [step_of(p) for p in best_checkpoints(tmp_path, 1)] == [2]
    best.offer(6, 5.0)
    assert saved_steps(tmp_path / "best_models") == [2, 6]


@pytest.mark.parametrize(
    ("values", "patience", "exhausted"),
    [
        ([], 1, False),
        ([2.0, 2.0], 1, True),
        ([2.0, 1.0, 1.5], 3, False),
        ([2.0, 1.0, 1.5, 1.9], 3, True),
        ([2.0, 1.0, 1.5, 2.1], 3, False),
        ([2.0, 1.0], 0, False),
        ([0.0, 0.0, 0.0, 0.0], 3, False),
        ([0.0, 1.0, 0.0, 0.0], 2, True),
    ],
)
def test_patience_counts_evaluations_after_the_highest(values, patience, exhausted):
    assert is_exhausted(values, patience) is exhausted


def early(folder, shards, **options):
    given = {
        "local_eval_frequency": 2,
        "save_checkpoints_steps": 5,
        "early_stopping_patience": 3,
    }
    given |= {"train_steps": 14, "evaluators": [scored], "keep_best": 2}
    return train(folder, shards, **(given | options))


def test_training_stops_early_saves_and_says_so(tmp_path, shards, caplog):
    caplog.set_level(logging.INFO, "t2t_repro")
    trainer = early(tmp_path, shards)
    assert (trainer.step, trainer.stopped_early) == (10, True)
    (line,) = [line for line in caplog.messages if "stopping early" in line]
    assert line == (
        "stopping early at step 10: 3 evaluations without a higher bleu than 9 of "
        "step 4"
    )
    assert saved_steps(tmp_path) == [5, 10]
    assert saved_steps(tmp_path / "best_models") == [4, 8]
    # The same command again trains no further.
    again = early(tmp_path, shards)
    assert (again.step, again.stopped_early) == (10, True)
    assert len(metrics_of(tmp_path)) == 10


@pytest.mark.parametrize("keep_best", [1, 2])
def test_a_score_of_0_ends_and_keeps_nothing(tmp_path, shards, caplog, keep_best):
    caplog.set_level(logging.INFO, "t2t_repro")
    options = {"keep_best": keep_best, "early_stopping_patience": 1}
    options["evaluators"] = [lambda step, log: {"bleu": 7.0 if step == 8 else 0.0}]
    trainer = early(tmp_path, shards, train_steps=6, **options)
    assert (trainer.step, trainer.stopped_early) == (6, False)
    assert not (tmp_path / "best").exists()
    assert saved_steps(tmp_path / "best_models") == []
    assert "no model is kept as the best one until bleu is above 0" in caplog.text
    early(tmp_path, shards, **options)
    assert saved_steps(tmp_path / "best") == [8]


def test_more_patience_resumes_as_if_training_had_not_stopped(tmp_path, shards):
    early(tmp_path / "stopped", shards)
    resumed = early(tmp_path / "stopped", shards, early_stopping_patience=5)
    straight = early(tmp_path / "straight", shards, early_stopping_patience=5)
    assert resumed.step == straight.step == 14
    assert losses_of(tmp_path / "stopped") == losses_of(tmp_path / "straight")
    left, right = weights_of(resumed.model), weights_of(straight.model)
    assert all(left[name].tobytes() == right[name].tobytes() for name in left)


def test_patience_does_not_count_the_end_of_an_extended_training(tmp_path, shards):
    early(tmp_path, shards, train_steps=5)
    assert [line["step"] for line in metrics_of(tmp_path, "eval")] == [2, 4, 5]
    extended = early(tmp_path, shards)
    # The same step as in `test_training_stops_early_saves_and_says_so`
    assert (extended.step, extended.stopped_early) == (10, True)


def test_a_stopped_process_decides_as_one_that_went_through(tmp_path, shards):
    def stop(step, log):
        if step == 7:
            signal.raise_signal(signal.SIGTERM)

    assert early(tmp_path / "run", shards, monitors=[stop]).step < 10
    resumed = early(tmp_path / "run", shards)
    straight = early(tmp_path / "straight", shards)
    assert (resumed.step, resumed.stopped_early) == (10, True)
    assert recorded_scores(tmp_path / "run") == recorded_scores(tmp_path / "straight")
    left, right = weights_of(resumed.model), weights_of(straight.model)
    assert all(left[name].tobytes() == right[name].tobytes() for name in left)
