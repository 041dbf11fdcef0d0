"""Reads the cases: a test marked ``cases(file, section)`` runs once for each case of the section."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

_LONG = dict.fromkeys(("sw-03-window-update", "sw-22-policy-from-checkpoint"), pytest.mark.full)
"""Half a minute of Spark's own streams each."""


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker."""
    config.addinivalue_line("markers", "cases(file, section): run once for each case of a section")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give a marked test its cases, each under its id; none where the file or the section is missing."""
    marker = metafunc.definition.get_closest_marker("cases")
    if marker is not None:
        file, section = marker.args
        cases = sections(metafunc.config.getoption("--cases"), file).get(section, [])
        parameters = [pytest.param(case, id=case["id"], marks=_LONG.get(case["id"], ())) for case in cases]
        metafunc.parametrize("case", parameters)


def sections(directory: Path, file: str) -> dict[str, list[dict[str, Any]]]:
    """Return the sections of a file; none if it is missing or empty."""
    path = directory / f"{file}.json"
    text = path.read_text(encoding="utf-8").strip() if path.exists() else ""
    content: dict[str, list[dict[str, Any]]] = json.loads(text) if text else {}
    return {name: cases or [] for name, cases in content.items()}


@pytest.fixture
def directory(request: pytest.FixtureRequest) -> Path:
    """Return the folder of the cases."""
    chosen: Path = request.config.getoption("--cases")
    return chosen
