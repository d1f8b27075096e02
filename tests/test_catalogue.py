from __future__ import annotations

import importlib
import json
import sys
import textwrap

import pytest

from t2t_repro import catalogue, registry
from t2t_repro.errors import UsageError, UserError
from t2t_repro.user_packages import located_error

PACKAGE = """
    from t2t_repro.data.problem import Problem
    from t2t_repro.registry import register_hparams, register_problem
    from t2t_repro import catalogue

    @register_problem
    class CopyMyNotes(Problem):
        "Copies my notes."

    @register_hparams
    def transformer_mine():
        "Mine."
        return catalogue.hparams("transformer_base").replace(hidden_size=64)
"""


@pytest.fixture(autouse=True)
def nothing_stays_registered():
    catalogue.load()
    modules = set(sys.modules)
    with registry.problems.isolated(), registry.hparams_sets.isolated():
        yield
    for name in set(sys.modules) - modules:
        if name.startswith("users_"):
            del sys.modules[name]


@pytest.fixture
def users_package(tmp_path):
    folder = tmp_path / "users_package"
    folder.mkdir()
    (folder / "__init__.py").write_text("from . import registrations\n")
    (folder / "registrations.py").write_text(textwrap.dedent(PACKAGE))
    return folder


def test_every_problem_is_registered_under_its_own_name():
    names = registry.problems.names()
    assert {"text_pairs", "translate_ende_wmt14", "algorithmic_sort"} <= set(names)
    assert [catalogue.problem(name).name for name in names] == list(names)


def test_a_name_with_rev_gives_the_problem_with_sides_swapped():
    reversed_problem = catalogue.problem("translate_ende_synthetic_rev")
    assert reversed_problem.was_reversed
    assert reversed_problem.file_prefix == "translate_ende_synthetic"


@pytest.mark.parametrize(
    ("find", "name", "answer"),
    [
        (catalogue.problem, "translate_ende_wmt41", "translate_ende_wmt14"),
        (catalogue.problem, "translate_ende_wmt41_rev", "translate_ende_wmt14"),
        (catalogue.hparams, "transformer_bas", "transformer_base"),
        (catalogue.model, "transfomer", "Did you mean transformer"),
    ],
)
def test_an_unknown_name_is_answered_with_the_closest_one(find, name, answer):
    with pytest.raises(UsageError, match=answer):
        find(name)


def test_every_declared_model_is_registered_by_its_module():
    for name in catalogue.MODELS:
        assert isinstance(catalogue.model(name), type)


def test_the_users_registrations_count(users_package):
    catalogue.load(users_package)
    catalogue.load(f"{users_package}/")  # again, which changes nothing
    assert catalogue.problem("copy_my_notes").name == "copy_my_notes"
    assert registry.problems.entry("copy_my_notes").summary == "Copies my notes."
    assert catalogue.hparams("transformer_mine").hidden_size == 64


def test_a_users_folder_without_init_file_is_refused(tmp_path):
    with pytest.raises(UsageError, match=r"with an __init__\.py"):
        catalogue.load(tmp_path)


def test_a_users_folder_that_hides_another_module_is_refused(tmp_path):
    folder = tmp_path / "json"
    folder.mkdir()
    (folder / "__init__.py").touch()
    with pytest.raises(UsageError, match="rename the folder"):
        catalogue.load(folder)


@pytest.mark.parametrize(
    ("code", "line", "message"),
    [
        (
            "import no_such_module_anywhere",
            1,
            "ModuleNotFoundError: No module named 'no_such_module_anywhere'",
        ),
        ("x = 1\n\ndef f(:", 3, "SyntaxError: invalid syntax"),
        (
            "def f():\n    return {}['key']\n\nf()",
            2,
            "KeyError: 'key'",
        ),
        (
            "from t2t_repro import catalogue\ncatalogue.hparams('transformer_bas')",
            2,
            "unknown hparams set 'transformer_bas'.\nDid you mean transformer_base",
        ),
    ],
)
def test_an_error_in_the_users_package_is_given_its_file_and_line(
    users_package, code, line, message
):
    file = users_package / "registrations.py"
    file.write_text(code)
    with pytest.raises(UserError) as caught:
        catalogue.load(users_package)
    assert str(caught.value).startswith(f"{file}:{line}: {message}")
    assert caught.value.__cause__ is not None
    assert users_package.name not in sys.modules


def test_an_interrupt_in_the_users_package_stays_one(users_package):
    (users_package / "registrations.py").write_text("raise KeyboardInterrupt")
    with pytest.raises(KeyboardInterrupt):
        catalogue.load(users_package)


def test_an_error_outside_of_the_users_package_is_not_located(users_package):
    catalogue.load(users_package)
    with pytest.raises(ValueError, match="Expecting") as caught:
        json.loads("{")
    assert located_error(caught.value) is None


@pytest.mark.parametrize("name", ["problems", "hparams"])
def test_a_catalogue_cannot_be_imported_under_its_short_name(name, repository):
    source = (repository / name / "__init__.py").read_text()
    with pytest.raises(ImportError, match=rf"as t2t_repro\.{name}"):
        exec(compile(source, name, "exec"), {"__name__": name})


@pytest.mark.parametrize("name", ["problems", "hparams"])
def test_a_checkout_uses_its_own_catalogues(name, repository):
    # Even if another checkout has an editable install.
    package = importlib.import_module(f"t2t_repro.{name}")
    assert package.__file__ == str(repository / name / "__init__.py")
