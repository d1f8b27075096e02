from __future__ import annotations

import inspect

import pytest

from t2t_repro import registry
from t2t_repro.data.problem import Problem
from t2t_repro.errors import UsageError, UserError
from t2t_repro.registry import Registry, register_hparams, register_problem, snake_case
from t2t_repro.settings.hparams import HParams


@pytest.fixture
def words() -> Registry:
    return Registry("word", "`list words` names them all.")


@pytest.fixture(autouse=True)
def nothing_stays_registered():
    with registry.problems.isolated(), registry.hparams_sets.isolated():
        yield


@pytest.mark.parametrize(
    ("class_name", "expected"),
    [
        ("TranslateEndeWmt14", "translate_ende_wmt14"),
        ("Foo8kBar", "foo8k_bar"),
        ("HTMLPage", "html_page"),
        ("transformer_base", "transformer_base"),
    ],
)
def test_default_names_are_tensor2tensors_snake_case(class_name, expected):
    assert snake_case(class_name) == expected


@pytest.mark.parametrize("decorator", [register_problem, register_problem()])
def test_a_decorator_without_a_name_takes_that_of_the_class(decorator):
    @decorator
    class CopyLettersTwice(Problem):
        """Copies."""

    assert registry.problems.get("copy_letters_twice") is CopyLettersTwice


def test_a_name_given_to_the_decorator_reaches_the_problem():
    @register_problem("copying")
    class CopyLettersTwice(Problem):
        """Copies."""

    assert registry.problems.get("copying")().name == "copying"


def test_the_summary_is_the_first_line_of_the_docstring():
    @register_problem
    class Copying(Problem):
        """Copies letters.

        And more.
        """

    assert registry.problems.entry("copying").summary == "Copies letters."


def test_a_duplicate_is_refused_with_both_places():
    def first():
        @register_problem("copying")
        class Copying(Problem):
            """Copies."""

    def second():
        @register_problem("copying")
        class Copying(Problem):
            """Copies."""

    first()
    with pytest.raises(UserError) as refusal:
        second()
    for place in (first, second):
        line = inspect.getsourcelines(place)[1] + 1
        assert f"{__file__}:{line}" in str(refusal.value)
    assert registry.problems.get("copying").__qualname__.startswith(first.__qualname__)


def test_an_unknown_name_is_answered_with_the_closest_ones(words):
    words.add("transformer_base", int)
    words.add("transformer_big", int)
    with pytest.raises(UsageError, match="transformer_base") as refused:
        words.get("transfomer_base")
    assert "`list words` names them all" in str(refused.value)


def test_a_problem_must_not_end_in_rev():
    with pytest.raises(UserError, match="does not end in _rev"):

        @register_problem
        class CopyRev(Problem):
            """Copies."""


@pytest.mark.parametrize("name", ["Upper", "two words", "a/b", "", "1st"])
def test_names_that_cannot_begin_a_file_are_refused(words, name):
    with pytest.raises(UserError, match="lower-case letters"):
        words.add(name, int)


def test_a_name_registered_before_its_declaration_is_listed_with_its_summary(words):
    words.add("model", Problem)
    words.declare("model", module=Problem.__module__, summary="A model.")
    assert words.entry("model").summary == "A model."
    assert words.get("model") is Problem


def test_registration_completes_a_declaration(words):
    words.declare("model", module=Problem.__module__, summary="A model.")
    assert words.entry("model").summary == "A model."
    words.add("model", Problem)
    assert words.get("model") is Problem


def test_another_module_cannot_complete_a_declaration(words):
    words.declare("model", module="no.such.module", summary="A model.")
    with pytest.raises(UserError, match="registered twice"):
        words.add("model", Problem)


def test_isolation_removes_the_registrations_of_the_block(words):
    with words.isolated():
        words.add("passing", int)
    assert "passing" not in words


def test_a_set_that_returns_nothing_is_refused():
    @register_hparams
    def forgetful() -> HParams:
        """Forgets to return."""
        return None  # type: ignore[return-value]

    with pytest.raises(UserError, match="returned None, expected HParams"):
        forgetful()
