from __future__ import annotations

import dataclasses
import json

import pytest

from results.curves import curve_of, curves_in, recorded_curves
from t2t_repro import catalogue
from t2t_repro.errors import UsageError, UserError
from t2t_repro.runs import Run

catalogue.load()
DESCRIPTION = Run(
    problem="text_pairs",
    model="weighted_transformer",
    hparams_set="weighted_transformer_base",
    hparams=catalogue.hparams("weighted_transformer_base").parse(
        "hidden_size=128,branch_gain=unit"
    ),
    random_seed=7,
    num_replicas=1,
    data_dir="data",
    data_digest="d1",
    usr_dir=None,
    tokenizers={"inputs": "vocab", "targets": "vocab"},
    training={"train_steps": 20},
    versions={"keras": "3.15"},
)
KAPPA, ALPHA = "encoder/layer_0/kappa/0", "decoder/layer_1/alpha/3"
RECORDS = [
    {"split": "train", "step": 5, "steps_per_second": 2.0, "nll": 9.0},
    {"split": "branches", "step": 5, "time": 1.0, KAPPA: 0.5, ALPHA: 0.25},
    {"split": "train", "step": 10, "steps_per_second": 5.0, "nll": 8.5},
    {"split": "branches", "step": 10, "time": 1.0, KAPPA: 0.4, ALPHA: 0.2},
    {"split": "eval", "step": 10, "nll": 9.0},
    # Resumed from an earlier checkpoint: step 10 is trained again.
    {"split": "train", "step": 10, "steps_per_second": 2.5, "nll": 8.0},
    {"split": "branches", "step": 10, "time": 2.0, KAPPA: 0.375, ALPHA: 0.125},
    {"split": "eval", "step": 10, "nll": 3.1234567},
    {"split": "train", "step": 20, "steps_per_second": 4.0, "nll": 7.0},
    {"split": "branches", "step": 20, "time": 3.0, KAPPA: 0.3, ALPHA: 0.75},
    {"split": "eval", "step": 20, "nll": 2.5},
]


def run(folder, records=RECORDS, description=DESCRIPTION):
    lines = "".join(json.dumps(record) + "\n" for record in records)
    (folder / "metrics.jsonl").write_text(lines)
    description.save(folder)
    return folder


def test_the_course_of_a_training_is_taken_from_its_folder(tmp_path):
    curve = curve_of(run(tmp_path), "shared_unit")
    assert (curve.name, curve.seed) == ("shared_unit", 7)
    assert curve.problem == "text_pairs"
    assert curve.hparams_set == "weighted_transformer_base"
    assert curve.settings == {"hidden_size": 128, "branch_gain": "unit"}
    assert curve.data_digest == "d1"
    assert curve.versions == {"keras": "3.15"}
    assert curve.steps == [10, 20]
    assert curve.nll == [3.12346, 2.5]
    assert curve.training_nll == [8.5, 7.0]
    assert curve.branches == {KAPPA: [0.375, 0.3], ALPHA: [0.125, 0.75]}
    # 5 steps at 2 per second, 5 at 2.5 and 10 at 4.
    assert curve.seconds == 2.5 + 2.0 + 2.5


def test_a_curve_is_read_as_it_was_written(tmp_path):
    curve = curve_of(run(tmp_path), "shared_unit")
    folder = tmp_path / "curves"
    folder.mkdir()
    assert curve.save(folder) == folder / "shared_unit-7.json"
    assert curves_in(folder) == (curve,)


def test_a_curve_needs_an_existing_folder(tmp_path):
    curve = curve_of(run(tmp_path), "shared_unit")
    with pytest.raises(UserError, match="result_dir=nowhere"):
        curve.save("nowhere")


@pytest.mark.parametrize("name", ["a/b", "", ".hidden"])
def test_a_name_that_no_file_can_have_is_refused(tmp_path, name):
    with pytest.raises(UsageError, match="received name="):
        curve_of(run(tmp_path), name)


def test_branch_weights_are_grouped_by_layer_and_kind(tmp_path):
    layer = ALPHA.rpartition("/")[0]
    curve = dataclasses.replace(
        curve_of(run(tmp_path), "shared_unit"),
        branches={KAPPA: (0.375, 0.3), ALPHA: (0.1, 0.2), f"{layer}/9": (0.3, 0.4)},
    )
    assert curve.branches_by_layer() == {
        KAPPA.rpartition("/")[0]: [(0.375, 0.3)],
        layer: [(0.1, 0.2), (0.3, 0.4)],
    }


def test_a_transformer_has_no_branch_weights(tmp_path):
    records = [record for record in RECORDS if record["split"] != "branches"]
    assert curve_of(run(tmp_path, records), "plain").branches == {}


def test_an_unfinished_training_is_refused(tmp_path):
    with pytest.raises(UserError, match="last evaluation is of step 10, not 20"):
        curve_of(run(tmp_path, RECORDS[:8]), "plain")


def stopped_after(bleu, patience):
    records = [
        {"split": "eval", "step": 5 * (number + 1), "nll": 3.0, "bleu": value}
        for number, value in enumerate(bleu)
    ]
    training = {
        "train_steps": 100,
        "local_eval_frequency": 5,
        "early_stopping_patience": patience,
    }
    return records, dataclasses.replace(DESCRIPTION, training=training)


def test_a_training_that_stopped_early_is_finished(tmp_path):
    bleu = [1.0, 9.0, 8.0, 8.5]
    folder = run(tmp_path, *stopped_after(bleu, patience=2))
    assert curve_of(folder, "plain").steps == [5, 10, 15, 20]
    for patience in (0, 3):  # It may go on.
        folder = run(tmp_path, *stopped_after(bleu, patience))
        with pytest.raises(UserError, match="last evaluation is of step 20, not 100"):
            curve_of(folder, "plain")


def test_a_line_of_metrics_that_was_cut_short_is_left_out(tmp_path):
    folder = run(tmp_path)
    with (folder / "metrics.jsonl").open("a") as file:
        file.write('{"split": "ev')
    assert curve_of(folder, "plain").steps == [10, 20]


def test_a_folder_without_a_training_is_refused(tmp_path):
    with pytest.raises(
        UserError, match=r"expected the folder of a run with hparams\.json"
    ):
        curve_of(tmp_path, "plain")


def test_branch_weights_are_needed_at_every_evaluation(tmp_path):
    records = [x for x in RECORDS if (x["split"], x["step"]) != ("branches", 10)]
    with pytest.raises(UserError, match="without branch weights at step 10"):
        curve_of(run(tmp_path, records), "plain")


@pytest.mark.parametrize("curve", recorded_curves(), ids=lambda curve: curve.file_name)
def test_a_shipped_curve_has_a_value_per_step(curve):
    assert len(curve.nll) == len(curve.steps) > 1
    assert all(len(values) == len(curve.steps) for values in curve.branches.values())
    assert [*curve.steps] == sorted(set(curve.steps))


def test_seeds_of_a_setting_share_everything_else():
    settings = {}
    for curve in recorded_curves():
        same = (curve.problem, curve.hparams_set, curve.settings, curve.data_digest)
        assert settings.setdefault(curve.name, (*same, curve.steps)) == (
            *same,
            curve.steps,
        )
