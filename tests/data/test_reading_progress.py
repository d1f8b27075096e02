from __future__ import annotations

import pytest

from t2t_repro.data import reading_progress
from t2t_repro.data.reading_progress import counted
from tests.support.recorder import spy


@pytest.mark.parametrize("count", [0, 1, 1_000, 2_345])
def test_every_pair_is_yielded_and_counted(monkeypatch, count):
    bars = spy(monkeypatch, reading_progress, "Progress")
    advances = []
    monkeypatch.setattr(
        "t2t_repro.progress.Progress.advance",
        lambda self, number=1: advances.append(number),
    )
    pairs = counted(range(count), 2_400, show_progress=False)
    assert [*pairs] == list(range(count))
    assert sum(advances) == count
    assert len(advances) == count // 1_000 + 1
    assert (bars.call["total"], bars.call["draw_bar"]) == (2_400, False)
