"""The own commits build on internals of deltalake and pyiceberg, which were tried with one minor version each."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest

import resources
from resources.tables.tested_versions import DELTALAKE, PYICEBERG

_ROOT = Path(resources.__file__).parent
_TO_LOOK_AT = {
    "deltalake": (
        DELTALAKE,
        re.compile(r"create_write_transaction|create_table_with_add_actions|get_add_actions|_MISTAKEN"),
        "paths in adds and removes (own_limits), flattened statistics, max_commit_retries, the checkpoint hook",
        "tests/integration/test_own_commits.py tests/integration/test_delta_own_commits.py tests/integration/test_crashes.py tests/integration/test_delta_statistics.py",
    ),
    "pyiceberg": (
        PYICEBERG,
        re.compile(
            r"write_manifest|read_manifest_list|ManifestEntry|compute_statistics_plan|data_file_statistics_from|parquet_path_to_id|commit_table"
        ),
        "the numbers that a list of manifests gives, bounds and NaN in statistics, requirements of commits",
        "tests/integration/test_own_commits.py tests/integration/test_iceberg_own_commits.py tests/integration/test_crash_places.py tests/integration/test_iceberg_catalogs.py",
    ),
}


@pytest.mark.parametrize("library", _TO_LOOK_AT)
def test_own_commits_use_the_version_of_a_library_that_they_were_tried_with(library: str) -> None:
    tried, internals, what, tests = _TO_LOOK_AT[library]
    minor = ".".join(version(library).split(".")[:2])
    users = sorted(
        module.relative_to(_ROOT).as_posix()
        for module in (_ROOT / "tables").rglob("*.py")
        if internals.search(module.read_text())
    )
    assert minor == tried, (
        f"{library} {minor}, tried with {tried}: look at {what} in {', '.join(users)}; run {tests}; then set resources/tables/tested_versions.py"
        " and the pin in pyproject.toml"
    )


@pytest.mark.parametrize("library", _TO_LOOK_AT)
def test_a_library_of_own_commits_is_pinned_to_the_minor_version_that_was_tried(library: str) -> None:
    tried = _TO_LOOK_AT[library][0]
    major, minor = map(int, tried.split("."))
    project = tomllib.loads((_ROOT.parent / "pyproject.toml").read_text())["project"]
    assert f"{library}>={tried},<{major}.{minor + 1}" in project["dependencies"]
