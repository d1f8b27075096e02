from __future__ import annotations

import dataclasses

import pytest

pytest.importorskip("scipy", reason="the extra `results` is not installed")

from results.curve_figures import BRANCH_CURVE
from results.figures import (
    FIGURES,
    FigureData,
    attention_points,
    draw_figures,
)
from results.measurements import recorded_measurements
from t2t_repro.features.reproduction.result_files import shipped_results
from tests.support.curve import CURVE
from tests.support.result import RESULT

PARSED = dataclasses.replace(
    RESULT,
    system="transformer_parsing_wsj",
    scores={
        "F1 (dev)": 80.0,
        "F1, 11 to 20 words (dev)": 80.25,
        "F1, 1 to 10 words (dev)": 91.5,
        "F1, over 40 words (test)": 50.0,
    },
)
TRANSLATIONS = [r for r in shipped_results() if "parsing" not in r.system]
SHARED = dataclasses.replace(CURVE, name="weighted_transformer_base_shared-long")
EVERYTHING = FigureData(
    (*TRANSLATIONS, PARSED),
    recorded_measurements(),
    (
        SHARED,
        dataclasses.replace(SHARED, seed=2, steps=(5, 10, 20), nll=(4, 3.25, 2.75)),
        dataclasses.replace(CURVE, name="transformer_base-long"),
        dataclasses.replace(
            CURVE,
            name=BRANCH_CURVE,
            branches={"encoder/layer_1/kappa/0": (0.5, 0.25)},
        ),
        dataclasses.replace(
            CURVE, name="weighted_transformer_base-long-cpu", training_nll=(3.5, 3.0)
        ),
    ),
)


def test_attention_functions_are_compared_at_the_depth_that_was_trained():
    results = [
        dataclasses.replace(
            RESULT, system=system, seed=seed, scores={"perplexity (dev)": perplexity}
        )
        for system, seed, perplexity in [
            ("transformer_base", 1, 10.0),
            ("transformer_base", 2, 11.0),
            ("transformer_base_unscaled_dk16", 1, 16.0),
            ("transformer_base_restricted_r15", 1, 12.0),
        ]
    ]
    assert attention_points(results) == {"scaled": {16: 10.5}, "unscaled": {4: 16.0}}


def test_every_figure_is_drawn_and_drawn_again_alike(tmp_path):
    pytest.importorskip("matplotlib", reason="the extra `results` is not installed")
    paths = draw_figures(EVERYTHING, tmp_path)
    assert [path.name for path in paths] == [f"{name}.svg" for name in FIGURES]
    texts = {path.name: path.read_text(encoding="utf-8") for path in paths}
    assert "shared (2 seeds)" in texts["learning_curves.svg"]
    assert "dev BLEU" in texts["multi30k_ensemble.svg"]
    assert "encoder/layer_1/kappa" in texts["branches.svg"]
    assert "c_d1024" in texts["bleu_parameters.svg"]
    assert all(
        kind in texts["attention_functions.svg"] for kind in ("scaled", "unscaled")
    )
    lengths = texts["f1_by_length.svg"]
    assert lengths.index("1 to 10 words") < lengths.index("11 to 20 words")
    assert "over 40" not in lengths
    for path in draw_figures(EVERYTHING, tmp_path):
        assert path.read_text(encoding="utf-8") == texts[path.name]
