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
    links,
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
NOTHING = FigureData((), {}, ())


def test_figures_without_numbers_are_not_yet_measured():
    assert all(text.endswith(": not yet measured.") for text in links(NOTHING).values())
    for name, text in links(EVERYTHING).items():
        title = FIGURES[name].title
        assert text == f"![{title}](figures/{name}.svg)\n\n*{title}.*"


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


def test_a_training_without_branches_draws_no_branch_weights():
    data = dataclasses.replace(
        EVERYTHING, curves=(dataclasses.replace(SHARED, branches={}),)
    )
    assert links(data)["branches"].endswith("not yet measured.")
    assert links(data)["learning_curves"].startswith("![")


def test_every_figure_is_drawn_and_drawn_again_alike(tmp_path):
    pytest.importorskip("matplotlib", reason="the extra `results` is not installed")
    paths = draw_figures(EVERYTHING, tmp_path)
    assert [path.name for path in paths] == [f"{name}.svg" for name in FIGURES]
    texts = {path.name: path.read_text(encoding="utf-8") for path in paths}
    assert "shared (2 seeds)" in texts["learning_curves.svg"]
    assert "dev nll per token" in texts["multi30k.svg"]
    assert "dev BLEU" in texts["multi30k_ensemble.svg"]
    assert "encoder/layer_1/kappa" in texts["branches.svg"]
    assert "base (1 seed)" in texts["table3_curves.svg"]
    for name in ("bleu_parameters", "long_bleu_parameters"):
        assert "c_d1024" in texts[f"{name}.svg"]
    assert all(
        kind in texts["attention_functions.svg"] for kind in ("scaled", "unscaled")
    )
    lengths = texts["f1_by_length.svg"]
    assert lengths.index("1 to 10 words") < lengths.index("11 to 20 words")
    assert "over 40" not in lengths
    (tmp_path / "again").mkdir()
    assert draw_figures(NOTHING, tmp_path / "again") == []
    curves = dataclasses.replace(EVERYTHING, results=())
    again = draw_figures(curves, tmp_path / "again")
    assert len(again) == 6
    for path in again:
        assert path.read_text(encoding="utf-8") == texts[path.name]
