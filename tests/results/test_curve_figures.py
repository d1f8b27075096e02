from __future__ import annotations

import dataclasses

import pytest

from results.curve_figures import (
    BRANCH_CURVE,
    draw_branch_weights,
    draw_learning_curves,
    long_curves,
    shared_points,
)
from t2t_repro.features.reproduction.paper_tables import find_table
from tests.support.curve import CURVE

SHARED = dataclasses.replace(CURVE, name="weighted_transformer_base_shared-long")


@pytest.fixture
def canvas():
    pytest.importorskip("matplotlib", reason="the extra `results` is not installed")
    from matplotlib.figure import Figure

    return Figure()


def test_a_line_per_setting_is_in_the_order_of_the_ends(canvas):
    lower = dataclasses.replace(CURVE, name="transformer_base-long", nll=(3.0, 2.0))
    second = dataclasses.replace(SHARED, seed=2, nll=(3.0, 2.75))
    draw_learning_curves(canvas, [lower, SHARED, second])
    (axes,) = canvas.axes
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert labels == ["shared (2 seeds)", "transformer (1 seed)"]
    assert [list(line.get_ydata()) for line in axes.lines] == [[3, 2.625], [3, 2]]


def test_more_settings_than_colours_have_another_line(canvas):
    names = [f"{row.system}-long" for row in find_table("forms").rows[:13]]
    curves = [dataclasses.replace(CURVE, name=name) for name in names]
    draw_learning_curves(canvas, curves)
    drawn = {(x.get_color(), x.get_linestyle()) for x in canvas.axes[0].lines}
    assert len(drawn) == 13


def test_a_figure_has_the_rows_of_the_long_scale_alone():
    plain = dataclasses.replace(CURVE, name="transformer_base-long")
    small = dataclasses.replace(CURVE, name="transformer_base-small")
    head = dataclasses.replace(CURVE, name="transformer_base_a_h1-long")
    assert long_curves([plain, head, SHARED, small]) == {
        "transformer": [plain],
        "shared": [SHARED],
    }


def test_a_line_begins_after_a_tenth_of_the_run(canvas):
    steps, nll = (10, 99, 100, 1000), (6.0, 5.0, 4.0, 3.0)
    draw_learning_curves(canvas, [dataclasses.replace(SHARED, steps=steps, nll=nll)])
    assert list(canvas.axes[0].lines[0].get_xdata()) == [100, 1000]


def test_the_branches_of_the_second_layers_have_a_line_each(canvas):
    layers = {
        name.replace("layer_0", layer): values
        for name, values in CURVE.branches.items()
        for layer in ("layer_0", "layer_1")
    }
    own = dataclasses.replace(CURVE, name=BRANCH_CURVE, branches=layers)
    draw_branch_weights(canvas, [CURVE, own])
    assert [axes.get_title() for axes in canvas.axes] == [
        "encoder/layer_1/kappa",
        "encoder/layer_1/alpha",
    ]
    assert [len(axes.lines) for axes in canvas.axes] == [2, 2]


def test_seeds_are_averaged_at_the_steps_that_all_of_them_have():
    shorter = dataclasses.replace(CURVE, steps=(10, 20, 40), nll=(3.0, 2.5, 2.0))
    other = dataclasses.replace(CURVE, seed=2, steps=(5, 20, 40), nll=(9.0, 3.5, 2.25))
    assert shared_points([shorter, other]) == {20: [2.5, 3.5], 40: [2.0, 2.25]}
    longer = dataclasses.replace(CURVE, seed=3, steps=(20,), nll=(1.5,))
    assert shared_points([shorter, other, longer]) == {20: [2.5, 3.5, 1.5]}
    assert shared_points([CURVE]) == {10: [3.0], 20: [2.5]}
