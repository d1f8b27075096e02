from __future__ import annotations

import importlib.util

import pytest

from results.request import PACKAGES, check_page
from t2t_repro.errors import UsageError, UserError


@pytest.mark.parametrize("name", ["page.txt", "page"])
def test_a_page_is_a_markdown_file(tmp_path, name):
    with pytest.raises(UsageError, match=r"expected a file name in \.md"):
        check_page(str(tmp_path / name))


def test_a_page_needs_an_existing_folder(tmp_path):
    with pytest.raises(UserError, match="expected a file in an existing folder"):
        check_page(str(tmp_path / "nowhere" / "page.md"))


@pytest.mark.parametrize("missing", [PACKAGES, PACKAGES[:1], PACKAGES[1:]])
def test_a_missing_package_is_named_with_how_to_install_it(
    monkeypatch, tmp_path, missing
):
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name in missing else name
    )
    expected = rf"need {' and '.join(missing)}: pip install -e '\.\[results\]'"
    with pytest.raises(UsageError, match=expected):
        check_page(str(tmp_path / "page.md"))
