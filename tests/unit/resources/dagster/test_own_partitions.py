"""Which rows belong to a partition of a user's own asset: by zone, type of the column and dimension."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import pytest
from dagster import (
    DailyPartitionsDefinition,
    MonthlyPartitionsDefinition,
    MultiPartitionsDefinition,
    PartitionsDefinition,
    StaticPartitionsDefinition,
)

from partitions.predicate import NOTHING, matches
from partitions.unit_values import ValueType
from resources.dagster.own_partitions import OwnPartitions

BERLIN = DailyPartitionsDefinition("2026-03-01", timezone="Europe/Berlin")
BOTH = MultiPartitionsDefinition(
    {"month": MonthlyPartitionsDefinition("2026-01-01"), "shop": StaticPartitionsDefinition(["1", "2"])}
)


def _local(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _inside(
    definition: PartitionsDefinition[str],
    units: Any,
    keys: list[str],
    types: dict[str, ValueType],
    **row: Any,
) -> bool:
    partitions = OwnPartitions.of(definition, "at", units, "asset a/b")
    return matches(partitions.rows_of(keys, types), row)


@pytest.mark.parametrize(
    ("value_type", "inside", "outside"),
    [
        # The clocks go forward on this day, which has 23 hours.
        ("instant", (datetime(2026, 3, 28, 23, tzinfo=UTC), datetime(2026, 3, 29, 21, 59, 59, tzinfo=UTC)),
         (datetime(2026, 3, 28, 22, 59, 59, tzinfo=UTC), datetime(2026, 3, 29, 22, tzinfo=UTC))),
        ("local", (_local("2026-03-29"), _local("2026-03-29T23:59:59.999999")),
         (_local("2026-03-28T23:59:59"), _local("2026-03-30"))),
        ("day", (date(2026, 3, 29),), (date(2026, 3, 28), date(2026, 3, 30), None)),
    ],
)  # fmt: skip
def test_a_day_is_that_of_the_zone_of_the_partitions(
    value_type: ValueType, inside: tuple[Any, ...], outside: tuple[Any, ...]
) -> None:
    key, types = ["2026-03-29"], {"at": value_type}
    assert all(_inside(BERLIN, None, key, types, at=value) for value in inside)
    assert not any(_inside(BERLIN, None, key, types, at=value) for value in outside)


def test_two_dimensions_are_compared_each_by_its_column() -> None:
    types: dict[str, ValueType] = {"at": "day", "shop_id": "whole"}
    keys = ["2026-02-01|1", "2026-03-01|2"]

    def inside(day: date, shop: int | None) -> bool:
        return _inside(BOTH, {"shop": "shop_id"}, keys, types, at=day, shop_id=shop)

    assert inside(date(2026, 2, 28), 1)
    assert inside(date(2026, 3, 31), 2)
    assert not inside(date(2026, 2, 28), 2)
    assert not inside(date(2026, 3, 1), 1)
    assert not inside(date(2026, 2, 28), None)


def test_no_row_belongs_to_no_partition() -> None:
    partitions = OwnPartitions.of(BERLIN, "at", None, "asset a/b")
    assert partitions.rows_of([], {"at": "day"}) == NOTHING
