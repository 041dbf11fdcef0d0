"""Write the conditions of DELETE statements on an Iceberg table.

Iceberg takes NULL for the smallest value of a partition column. So ``c < 5`` and ``c <> 7`` would drop
whole files whose partition value is NULL, and ``s NOT LIKE 'z%'`` would fail on them.
"""

from __future__ import annotations

import re

from partitions.predicate import (
    AllOf,
    AnyOf,
    Between,
    HasValue,
    Predicate,
    SqlCondition,
    columns_of,
)
from resources.dialects.predicates import predicate_sql
from resources.dialects.spark import SPARK

_PREFIX = re.compile("like|startswith", re.IGNORECASE)


def delete_conditions(where: Predicate) -> list[str]:
    """Return conditions whose DELETEs, one after another, delete exactly the predicate's rows.

    Whole files still go by their partition values. A condition in SQL may be true for rows with NULL. Spark
    evaluates it for these rows, and reads only files that have NULL in one of its columns. A condition on
    the beginning of a text reads all files.
    """
    condition = predicate_sql(_with_values(where), SPARK)
    if not _has_sql(where):
        return [condition]
    is_true = f"coalesce(({condition}), false)"  # Iceberg cannot evaluate it
    names = [SPARK.name(column) for column in columns_of(where)]
    if not names or _PREFIX.search(condition):
        return [is_true]
    all_have_values = " AND ".join(f"{name} IS NOT NULL" for name in names)
    some_is_null = " OR ".join(f"{name} IS NULL" for name in names)
    return [f"{all_have_values} AND ({condition})", f"({some_is_null}) AND {is_true}"]


def _with_values(predicate: Predicate) -> Predicate:
    """Return the same predicate, whose ranges say that their column is not NULL."""
    match predicate:
        case Between(column):
            return AllOf((HasValue(column), predicate))
        case AllOf(parts) | AnyOf(parts):
            return type(predicate)(tuple(_with_values(part) for part in parts))
        case _:
            return predicate


def _has_sql(predicate: Predicate) -> bool:
    if isinstance(predicate, AllOf | AnyOf):
        return any(_has_sql(part) for part in predicate.parts)
    return isinstance(predicate, SqlCondition)
