"""Sections that the product does not have yet: expected failures, each with its reason. None is left out."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance.conftest import sections

_READ = {
    "api": ("api_watermark_format", "api_ranges", "api_exclusive_offset", "api_timezone"),
    "paths": (
        "path_parse",
        "path_compare",
        "naming",
        "partition_prefixes",
        "list_above",
        "partition_extract",
    ),
    "state": ("watermark_serialise", "is_empty", "watermark_state"),
    "lookback": ("backward", "backward_config"),
    "predicates": ("window", "window_delete", "window_validation", "row_filter", "next_watermark"),
    "schema": ("schema_evolution",),
    "streams": ("watermark_filter", "merger", "sort", "scaling", "spark_watermark"),
    "units": ("unit_watermark", "bad_input"),
    "windows": ("duration_parse", "partitions", "cutoff", "execute", "multi_run"),
}

_NOT_YET = {
    "replay": ("replay", "replay_chunks", "replay_run"),
}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One expected failure for each case of each such section."""
    if metafunc.function is test_section:
        directory = metafunc.config.getoption("--cases")
        metafunc.parametrize("case", [
            pytest.param(case, id=f"{section}-{case['id']}", marks=pytest.mark.xfail(reason=f"{what}: not built yet", run=False))
            for file, (what, *names) in _NOT_YET.items()
            for section in names
            for case in sections(directory, file).get(section, [])
        ])  # fmt: skip


def test_section(case: object) -> None:
    raise NotImplementedError


def test_every_file_and_section_is_known_to_the_adapter(directory: Path) -> None:
    known = {file: (*_READ.get(file, ()), *_NOT_YET.get(file, ("",))[1:]) for file in _READ | _NOT_YET}
    unknown = [
        f"{path.stem}/{section}"
        for path in sorted(directory.glob("*.json"))
        for section in sections(directory, path.stem)
        if section not in known.get(path.stem, ())
    ]
    assert unknown == []
