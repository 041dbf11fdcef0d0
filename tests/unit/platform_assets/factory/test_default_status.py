"""Sensors and schedules are on from the start, unless the location is started paused."""

from __future__ import annotations

from pathlib import Path

import pytest

from platform_assets.build import build_definitions
from platform_assets.dagster_home import PAUSED

SETTINGS = "alerts: {webhook: {env: HOOK}}\n"
FLOW = """\
source: {type: files, path: ./landing, format: ndjson}
watermark: {type: path}
target: {load: append}
maintenance: {optimize: P1D}
"""


@pytest.mark.parametrize(("paused", "status"), [("", "RUNNING"), ("1", "STOPPED")])
def test_a_paused_location_starts_nothing_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, paused: str, status: str
) -> None:
    (tmp_path / "dataflows").mkdir()
    (tmp_path / "platform.yaml").write_text(SETTINGS)
    (tmp_path / "dataflows/orders.yaml").write_text(FLOW)
    monkeypatch.setenv(PAUSED, paused)
    repository = build_definitions(tmp_path).get_repository_def()
    by_name = {sensor.name: sensor.default_status.name for sensor in repository.sensor_defs}
    by_name |= {schedule.name: schedule.default_status.name for schedule in repository.schedule_defs}
    assert "strandline_alerts" in by_name
    assert len(by_name) >= 4
    assert set(by_name.values()) == {status}, by_name
