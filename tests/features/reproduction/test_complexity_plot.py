from __future__ import annotations

import pytest

from t2t_repro.features.reproduction.layer_complexity import Measured


def test_a_plot_is_a_png(tmp_path):
    pytest.importorskip("matplotlib", reason="plots need the extra `plot`")
    from t2t_repro.features.reproduction.complexity_plot import plot_complexity

    seconds = {64: 0.01, 128: 0.02}
    measured = Measured(seconds, seconds, 1.0, 1.0, {8: 3}, {9: 1})
    plot_complexity({"convolution": measured}, str(tmp_path / "table1.png"))
    assert (tmp_path / "table1.png").read_bytes().startswith(b"\x89PNG")
