from __future__ import annotations

from types import SimpleNamespace

import pytest

from t2t_repro.data.problem import Problem
from t2t_repro.errors import UsageError
from t2t_repro.runs import System
from t2t_repro.runs import system as system_module
from t2t_repro.settings.decode_hparams import DecodeHParams


class Slow(Problem):
    """A problem that prefers other settings than the defaults."""

    decode_defaults = {"beam_size": 9, "alpha": 0.3, "extra_length": 7}  # noqa: RUF012


@pytest.fixture
def system():
    run = SimpleNamespace(hparams=SimpleNamespace(max_length=32))
    return System(run, Slow(), None, (None, None), "checkpoint")


def test_the_problems_defaults_hold_for_settings_that_are_not_given(system):
    settings = system.with_problem_defaults(DecodeHParams())
    assert (settings.beam_size, settings.alpha, settings.extra_length) == (9, 0.3, 7)


@pytest.mark.parametrize(
    "given", [DecodeHParams(beam_size=2), DecodeHParams().parse("beam_size=2")]
)
def test_settings_given_in_code_or_as_text_win(system, given):
    settings = system.with_problem_defaults(given)
    assert (settings.beam_size, settings.alpha) == (2, 0.3)


def test_a_default_that_is_given_as_text_wins(system):
    settings = system.with_problem_defaults(DecodeHParams().parse("beam_size=4"))
    assert settings.beam_size == 4


@pytest.mark.parametrize(
    "given", [DecodeHParams(batch_size=5), DecodeHParams().parse("batch_size=5")]
)
def test_a_batch_too_small_for_the_longest_source_is_refused(system, given):
    with pytest.raises(UsageError, match="received batch_size=5, expected at least 32"):
        system.with_problem_defaults(given)


def test_the_problem_normalizes_sources_and_finishes_outputs(system, monkeypatch):
    made = []
    monkeypatch.setattr(
        system_module, "Translator", lambda *values, **forms: made.append(forms)
    )
    system.translator()
    assert made == [{"problem": system.problem}]
