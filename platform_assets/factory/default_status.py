"""Sensors and schedules are on when a code location first loads, unless ``dev --paused`` started it."""

from __future__ import annotations

import os

from dagster import DefaultScheduleStatus, DefaultSensorStatus

from platform_assets.dagster_home import PAUSED


def default_sensor_status() -> DefaultSensorStatus:
    """Return the status of a sensor that nobody has turned on or off."""
    return DefaultSensorStatus.STOPPED if os.environ.get(PAUSED) else DefaultSensorStatus.RUNNING


def default_schedule_status() -> DefaultScheduleStatus:
    """Return the status of a schedule that nobody has turned on or off."""
    return DefaultScheduleStatus.STOPPED if os.environ.get(PAUSED) else DefaultScheduleStatus.RUNNING
