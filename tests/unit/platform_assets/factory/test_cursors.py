"""Cursors of sensors: whatever stands there, edited by hand or written by another version, a sensor goes on."""

from __future__ import annotations

import json

import pytest

from partitions.alerts.changes import REPORTED
from partitions.alerts.delivery import DeliveryState
from partitions.pauses import RetryBackoff
from platform_assets.factory import alerts
from platform_assets.factory.cursor import SensorCursor
from platform_assets.factory.in_flight import ObservedLease
from platform_assets.factory.sensor_groups import _Cursors

FULL = SensorCursor(
    RetryBackoff("1", "a", 5, 2, 7.5, True), 3, ObservedLease("b", 1.5), "c", "d", ("e", "f"), "g"
)
NO_TEXTS = ["x", "[]", "null", "5", '{"resume": 5}', '{"resume": null}']


def test_a_cursor_is_read_as_it_was_written() -> None:
    assert SensorCursor.read(FULL.write()) == FULL
    known = alerts.AlertCursor(
        {"orders:failed": REPORTED, "visits:late": REPORTED}, "orders", DeliveryState(5.0, 2)
    )
    assert alerts.AlertCursor.read(known.write()) == known
    group = _Cursors({"orders": FULL.write()}, "orders")
    assert _Cursors.read(group.write()) == group


@pytest.mark.parametrize("text", NO_TEXTS)
def test_a_text_that_is_no_cursor_is_an_empty_one(text: str) -> None:
    assert SensorCursor.read(text) == SensorCursor()
    assert alerts.AlertCursor.read(text) == alerts.AlertCursor()
    assert _Cursors.read(text) == _Cursors()


@pytest.mark.parametrize("name", list(json.loads(FULL.write())))
def test_a_value_of_another_type_makes_an_empty_cursor(name: str) -> None:
    assert (
        SensorCursor.read(json.dumps(json.loads(FULL.write()) | {name: {"count": [], "text": {}}}))
        == SensorCursor()
    )


@pytest.mark.parametrize("known", [5, {"told": 5}, {"told": ["orders"]}, {"told": [5]}, ["orders:failed"]])
def test_alerts_that_are_none_are_not_taken_as_known(known: object) -> None:
    assert alerts.AlertCursor.read(json.dumps({"known": known})) == alerts.AlertCursor()


@pytest.mark.parametrize("of", [5, {"orders": 5}, ["orders"]])
def test_cursors_of_a_group_that_are_none_are_not_taken(of: object) -> None:
    assert _Cursors.read(json.dumps({"of": of})) == _Cursors()
