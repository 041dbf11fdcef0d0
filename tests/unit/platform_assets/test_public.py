"""What ``import strandline`` gives: each name has a docstring, and stands on the page of the Python API."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

from platform_assets import public
from platform_assets.installation import installed_version

PAGE = (Path(__file__).parents[3] / "docs/reference/api.md").read_text()
NAMES = sorted(set(public.__all__) - {"__version__"})


@pytest.mark.parametrize("name", NAMES)
def test_a_public_name_and_its_public_methods_have_docstrings(name: str) -> None:
    value = getattr(public, name)
    assert inspect.getdoc(value)
    own = vars(value).items() if isinstance(value, type) else ()
    methods = [method for method, member in own if callable(member) and not method.startswith("_")]
    assert [method for method in methods if not inspect.getdoc(getattr(value, method))] == []


def test_the_page_of_the_python_api_has_each_public_name_and_no_other() -> None:
    shown = re.findall(r"^::: platform_assets\.(\S+)$", PAGE, re.M)
    modules = {name: public._MODULES[name] for name in NAMES}
    assert {entry.rpartition(".")[2]: entry.rpartition(".")[0] for entry in shown} == modules
    assert "`strandline.__version__`" in PAGE


def test_the_version_is_that_of_the_installation() -> None:
    assert public.__version__ == installed_version()
    assert re.match(r"\d+\.\d+\.\d+", public.__version__)
