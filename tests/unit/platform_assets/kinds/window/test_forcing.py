"""Windows that a user has read again: the shapes of ``--force`` and ``--unit``."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from partitions.errors import ConfigurationError
from partitions.instants import milliseconds
from platform_assets.kinds.window.forcing import ForcesWindows
from platform_assets.platform import build_platform
from platform_assets.project import load_project
from tests.support.projects import project_of

NOW = datetime(2026, 1, 10, tzinfo=UTC)
FLOW = """\
source: {type: files, path: './landing/{start:%Y-%m-%d}/{unit.airport}', format: ndjson, schema: id long, missing: empty}
watermark:
  type: window
  definition:
    - {name: day, type: datetime, range: {from: '2026-01-01', to: '-'}}
    - {name: airport, type: unit, units: [EWR, JFK]}
  window: daily
target: {load: merge_overwrite, replace_by_watermark: true}
"""
JFK = '{"airport":"JFK"}'


def forced(folder: Path, force: str, unit: str | None = None) -> tuple[int, int, frozenset[str] | None]:
    project = load_project(folder)
    request = ForcesWindows().forced_request(
        build_platform(project), project.dataflows["flow"], force, unit, NOW
    )
    assert request.of.ranges is not None
    ((lower, upper),) = request.of.ranges
    assert request.of.units is None or isinstance(request.of.units, frozenset)
    return lower, upper, request.of.units


def day(number: int) -> int:
    return milliseconds(datetime(2026, 1, number, tzinfo=UTC))


@pytest.mark.parametrize(
    ("force", "unit", "end", "units"),
    [
        ("2026-01-03", None, 4, None),
        ("2026-01-03..2026-01-05", None, 5, None),
        ("[2026-01-03...2026-01-05]", None, 6, None),
        ("2026-01-03/JFK", None, 4, {JFK}),
        ("JFK|2026-01-03", None, 4, {JFK}),
        ("2026-01-03..2026-01-05/JFK", None, 5, {JFK}),
        ("2026-01-03", "JFK", 4, {JFK}),
        ("2026-01-03", '{"airport": "JFK"}', 4, {JFK}),
        ("2026-01-03T00:00:00+00:00..2026-01-04T00:00", "airport JFK", 4, {JFK}),
    ],
)
def test_windows_and_units_are_spelled_as_for_why(
    tmp_path: Path, force: str, unit: str | None, end: int, units: set[str] | None
) -> None:
    assert forced(project_of(tmp_path, flow=FLOW), force, unit) == (day(3), day(end), units)


@pytest.mark.parametrize(("force", "unit"), [("2026-01-03/JKF", None), ("2026-01-03", "JKF"), ("JKF", None)])
def test_an_unknown_unit_has_one_error(tmp_path: Path, force: str, unit: str | None) -> None:
    with pytest.raises(ConfigurationError) as refused:
        forced(project_of(tmp_path, flow=FLOW), force, unit)
    assert str(refused.value) == (
        "dataflow flow: expected windows such as 2026-01-03 or 2026-01-01..2026-01-03, windows of a unit such as"
        " 2026-01-03/EWR, or a unit; did you mean JFK?, found 'JKF'"
    )
