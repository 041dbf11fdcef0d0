"""A declared schema that was changed: what a plan can tell without Spark is what the run will refuse."""

from __future__ import annotations

import json

import pytest

from resources.sources.files.changed_schema import find_change_without_spark
from resources.sources.files.pinned import PinnedSchema

_COLUMNS = {
    "id": "long",
    "price": "decimal(10,2)",
    "who": {"type": "struct", "fields": [{"name": "age", "type": "long", "nullable": True}]},
    "day": "string",
}
_PINNED = PinnedSchema(
    json.dumps(
        {
            "type": "struct",
            "fields": [{"name": name, "type": kind, "nullable": True} for name, kind in _COLUMNS.items()],
        }
    ),
    ("day",),
    "id long, price decimal(10,2), who struct<age: long>",
)


@pytest.mark.parametrize(
    ("declared", "differences"),
    [
        ("id long, price decimal(10,2), who struct<age: long>", None),
        ("id bigint, price numeric(10, 2), who struct<age: bigint>", None),
        ("id long NOT NULL, price dec(10,2), who struct<age: int>", None),
        ("id int, price decimal(10,2), who struct<age: long>", "id int"),
        ("id long, price decimal, who struct<age: long>", "price decimal(10,0)"),
        ("id long, price decimal(10,2), who string", "who string"),
        (
            "id long, price decimal(10,2), who struct<age: long>, day date, more string",
            "day date, more string",
        ),
        ("id long, price decimal(10,2)", "no who"),
        ("price decimal(10,2), id long, who struct<age: long>", "another order"),
    ],
)
def test_a_declared_schema_that_differs_from_the_pinned_one_is_told(
    declared: str, differences: str | None
) -> None:
    error = find_change_without_spark(declared, _PINNED, "flow")
    if differences is None:
        assert error is None
    else:
        assert error is not None
        assert f"found a different one ({differences})" in error.message
        assert error.choices == ("strandline state reset flow --replace --reason TEXT",)
