from __future__ import annotations

import io

import pytest

from t2t_repro.data import problem
from t2t_repro.data.file_problem import TextPairProblem
from t2t_repro.data.prepare import open_or_prepare, prepare
from t2t_repro.data.problem import counted
from t2t_repro.settings.prepare_settings import PrepareSettings
from tests.support.recorder import spy


@pytest.mark.parametrize("count", [0, 1, 1_000, 2_345])
def test_every_pair_is_yielded_and_counted(monkeypatch, count):
    bars = spy(monkeypatch, problem, "Progress")
    advances = []
    monkeypatch.setattr(
        "t2t_repro.progress.Progress.advance",
        lambda self, number=1: advances.append(number),
    )
    pairs = counted(range(count), 2_400)
    assert [*pairs] == list(range(count))
    assert sum(advances) == count
    assert len(advances) == count // 1_000 + 1
    assert bars.call["total"] == 2_400


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize("draws", [True, False])
@pytest.mark.parametrize("function", [prepare, open_or_prepare])
def test_preparing_draws_bars_only_if_asked(tmp_path, monkeypatch, draws, function):
    lines = [f"a b {number}" for number in range(40)]
    problem = TextPairProblem.from_lists(lines, lines)
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    given = {"vocab_size": 290, "num_shards": 1}
    if function is prepare:
        prepare(problem, tmp_path, None, PrepareSettings(**given), show_progress=draws)
    else:
        open_or_prepare(problem, tmp_path, given, show_progress=draws)
    assert ("pair/s" in terminal.getvalue()) == draws
