"""The columns of scd2 tables: those that a load adds, and those that distinguish versions.

See docs/reference/loads.md, scd2.
"""

from __future__ import annotations

from collections.abc import Collection

from partitions.loads import Scd2


def history_columns(columns: Collection[str], load: Scd2, table_columns: Collection[str]) -> tuple[str, ...]:
    """Return the columns that a load adds to a slice's.

    A table keeps ``is_deleted`` when its definition no longer deletes. A source may have such a column of
    its own.

    Args:
        columns: columns of the slice.
        load: load of the slice.
        table_columns: columns of the table; none if there is no table.
    """
    is_deleted = load.names.is_deleted
    is_own = is_deleted.lower() not in {name.lower() for name in columns}
    has_deleted = load.deletes is not None or (is_deleted in table_columns and is_own)
    return load.names.all if has_deleted else load.names.of_versions


def compared_columns(columns: Collection[str], load: Scd2) -> list[str]:
    """Return the columns whose values distinguish versions of a row."""
    if load.tracked is not None:
        tracked = {name.lower() for name in load.tracked}
        return [name for name in columns if name.lower() in tracked]
    not_compared = {
        name.lower() for name in (*load.keys, load.effective, *load.ignored, *load.names.of_versions)
    }
    return [name for name in columns if name.lower() not in not_compared]
