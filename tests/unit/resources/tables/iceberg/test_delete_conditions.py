"""DELETE statements name NULL, which Iceberg takes for the smallest value of a partition column."""

from __future__ import annotations

import pytest

from partitions.predicate import Among, AnyOf, Between, Predicate, SqlCondition
from resources.tables.iceberg.delete_conditions import delete_conditions

UP_TO_5 = Between("c", None, 5)


@pytest.mark.parametrize(
    ("where", "conditions"),
    [
        (UP_TO_5, ["`c` IS NOT NULL AND `c` < 5"]),
        (
            AnyOf((UP_TO_5, Among("d", (1, None)))),
            ["(`c` IS NOT NULL AND `c` < 5) OR (((`d` = 1) OR (`d` IS NULL)))"],
        ),
        (
            SqlCondition("c <> 7 OR d", ("c", "d")),
            [
                "`c` IS NOT NULL AND `d` IS NOT NULL AND ((c <> 7 OR d))",
                "(`c` IS NULL OR `d` IS NULL) AND coalesce(((c <> 7 OR d)), false)",
            ],
        ),
        (SqlCondition("s NOT LIKE 'z%'", ("s",)), ["coalesce(((s NOT LIKE 'z%')), false)"]),
        (SqlCondition("true", ()), ["coalesce(((true)), false)"]),
    ],
)
def test_only_rows_with_a_value_meet_a_range(where: Predicate, conditions: list[str]) -> None:
    assert delete_conditions(where) == conditions
