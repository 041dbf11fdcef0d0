"""Check that the table above has one row of each key whose update or delete is applied.

An update or a delete means the row of a key. If the table above has several, it would take the others with it.
See docs/reference/offsets.md, Loads by keys.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from partitions.offset.changes import CHANGE_COLUMNS
from partitions.target import HELPER_PREFIX
from resources.sql import quoted
from resources.tables.contract.commit_log import DELETE, INSERT

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_CHANGE_TYPE, _COMMIT_VERSION, _ = CHANGE_COLUMNS
_LAST, _EXPECTED, _ROWS, _KEY, _TABLE = (
    f"{HELPER_PREFIX}{name}" for name in ("last", "expected", "rows", "key_", "table_")
)
_MAX_BROADCAST = 1_000_000
"""The most keys that every task of a scan gets."""


def has_several_rows(rows: DataFrame, table: DataFrame, keys: tuple[str, ...]) -> bool:
    """Return whether the table has a row too many of a key that was updated or deleted.

    The table is read only if there is such a key, and of it only the keys.

    Args:
        rows: rows of commits, with the columns of changes; read twice.
        table: all rows of the table after these commits.
        keys: columns that identify a row.
    """
    from pyspark.sql import functions as F

    is_insert, is_delete = (F.col(_CHANGE_TYPE) == change for change in (INSERT, DELETE))
    last = F.max(F.struct(F.col(_COMMIT_VERSION).alias("commit"), is_insert.alias("inserts")))
    names = [f"{_KEY}{number}" for number in range(len(keys))]
    own_keys = [F.col(quoted(key)).alias(name) for key, name in zip(keys, names, strict=True)]
    of_key = rows.groupBy(*own_keys).agg(last.alias(_LAST), F.max(is_delete).alias(_EXPECTED))
    changed = of_key.where(_EXPECTED).select(*names, F.col(_LAST)["inserts"].cast("long").alias(_EXPECTED))
    if not (count := changed.count()):
        return False
    columns = [f"{_TABLE}{number}" for number in range(len(keys))]
    of_table = table.select(
        *[F.col(quoted(key)).alias(name) for key, name in zip(keys, columns, strict=True)]
    )
    same_values = [F.col(column).eqNullSafe(F.col(name)) for column, name in zip(columns, names, strict=True)]
    expected = F.broadcast(changed) if count <= _MAX_BROADCAST else changed
    same_keys = of_table.join(expected, reduce(lambda above, below: above & below, same_values))
    counts = same_keys.groupBy(*names, _EXPECTED).agg(F.count("*").alias(_ROWS))
    return not counts.where(F.col(_ROWS) > F.col(_EXPECTED)).isEmpty()
