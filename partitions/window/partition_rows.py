"""Select the rows of Dagster partitions in a dataflow's table, by the columns of window and unit.

See docs/reference/dagster.md, Your own assets. A row belongs to the window that holds its time, whichever
load wrote it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from partitions.predicate import NOTHING, Among, Predicate, all_of, any_of
from partitions.window.extent import Extent
from partitions.window.partition_keys import unit_of_key
from partitions.window.partition_request import stretches_of_keys
from partitions.window.partitioning import Partitioning
from partitions.window.predicates import ExtentColumns, extents_predicate
from partitions.window.units import unit_of
from partitions.window.windows import Windows

Identities = Callable[[Predicate], Iterable[str]]
"""Returns the identities of units that have rows among those that match."""


def rows_of_partitions(
    partitions: Partitioning,
    keys: Sequence[str],
    windows: Windows | None,
    columns: ExtentColumns,
    *,
    unit_column: str | None,
    identities: Identities,
) -> Predicate:
    """Return the predicate of exactly the rows of some partitions.

    Args:
        partitions: the dataflow's partition keys.
        keys: partitions, in any order and combination; without keys no row matches.
        windows: all windows now; None if there is no time dimension.
        columns: the columns that tell a row's window and unit.
        unit_column: the column with the identity of a row's unit; None if columns hold the unit's values.
        identities: asked if only the rows tell which units a partition has: buckets, and a column of
            identities.

    Raises:
        ConfigurationError: if a key is no partition now, or a column is missing.
    """
    windows_by_unit: dict[str, set[str]] = {}
    for key in keys:
        unit, window = partitions.parts(key)
        windows_by_unit.setdefault(unit, set()).add(window)
    units_by_windows: dict[frozenset[str], list[str]] = {}
    for unit, window_keys in windows_by_unit.items():
        units_by_windows.setdefault(frozenset(window_keys), []).append(unit)
    parts = []
    for starts, units in units_by_windows.items():
        stretches: Sequence[tuple[int | None, int | None]] = (
            stretches_of_keys(partitions, _keys_of_existing_windows(partitions, starts, windows), windows)
            if partitions.timed
            else [(None, None)]
        )
        timed = [Extent(*stretch, ({},)) for stretch in stretches]
        if partitions.units is None:
            parts.append(extents_predicate(timed, columns))
        elif partitions.bucket_count or unit_column is not None:
            time = extents_predicate(timed, columns)
            listed = [unit for unit in identities(time) if partitions.unit_key(unit) in set(units)]
            parts.append(
                all_of((time, Among(unit_column, tuple(listed))))
                if unit_column is not None
                else _of_units(stretches, listed, columns)
            )
        else:
            listed = [unit_of_key(unit, partitions.unit_fields) for unit in units]
            parts.append(_of_units(stretches, listed, columns))
    return any_of(parts) if parts else NOTHING


def _keys_of_existing_windows(
    partitions: Partitioning, keys: Iterable[str], windows: Windows | None
) -> list[str]:
    """Return the windows without those after the last one that exists: nothing is loaded of them yet.

    All partitions of a unit may name windows that begin while a run starts.
    """
    if windows is None or not len(windows):
        return []
    return [key for key in keys if partitions.window_of(key) <= windows.starts[-1]]


def _of_units(
    stretches: Sequence[tuple[int | None, int | None]], units: Sequence[str], columns: ExtentColumns
) -> Predicate:
    values = tuple(unit_of(unit) for unit in units)
    return extents_predicate([Extent(*stretch, values) for stretch in stretches], columns)
