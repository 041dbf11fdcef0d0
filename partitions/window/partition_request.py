"""Convert the partition keys of a run to a request for stretches of time and units.

See docs/reference/dagster.md.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence

from partitions.errors import ConfigurationError
from partitions.plan import pluralize
from partitions.request import Due, Forced, WorkUnitSelection
from partitions.window.listed_units import SelectedUnits
from partitions.window.partition_keys import UnitBuckets, unit_of_key
from partitions.window.partitioning import Partitioning
from partitions.window.windows import Windows


def request_of_keys(
    partitions: Partitioning, keys: Sequence[str], windows: Windows | None, *, forced: bool
) -> Due | Forced:
    """Return the request that a run's partition keys stand for.

    Args:
        partitions: the dataflow's partition keys.
        keys: the run's keys, in any order.
        windows: all windows at the instant of the run; None if there is no time dimension.
        forced: whether the request ignores the cutoffs.

    Raises:
        ConfigurationError: if there is no key (a reversed range has none), if a key is no window or unit
        that can be loaded now, or if keys of two dimensions are no cross product.
    """
    request = Forced if forced else Due
    if not partitions.timed and partitions.units is None:
        return request(WorkUnitSelection())
    if not keys:
        raise _request_error(
            partitions, "at least one partition (a range that ends before its start has none)", "none"
        )
    pairs = {partitions.parts(key) for key in keys}
    window_keys, unit_keys = {window for _, window in pairs}, {unit for unit, _ in pairs}
    if len(pairs) != len(window_keys) * len(unit_keys):
        raise _request_error(
            partitions,
            "every combination of some windows and some units",
            f"{len(pairs)} partitions that are not",
        )
    ranges = stretches_of_keys(partitions, window_keys, windows) if partitions.timed else None
    return request(
        WorkUnitSelection(ranges, _identities(partitions, unit_keys) if partitions.units else None)
    )


def stretches_of_keys(
    partitions: Partitioning, keys: Iterable[str], windows: Windows | None
) -> tuple[tuple[int, int], ...]:
    """Return windows as stretches of time, epoch milliseconds; adjacent ones are joined.

    Raises:
        ConfigurationError: a key is no window that exists now.
    """
    if windows is None:
        raise _request_error(
            partitions, "the windows at the time of the run, since the keys name windows", "none"
        )
    stretches: list[tuple[int, int]] = []
    for index in sorted(_planned_index(partitions, key, windows) for key in keys):
        start, end = windows[index]
        joins = stretches and stretches[-1][1] == start
        stretches[-1:] = [(stretches[-1][0], end)] if joins else [*stretches[-1:], (start, end)]
    return tuple(stretches)


def _planned_index(partitions: Partitioning, key: str, windows: Windows) -> int:
    index = windows.index.get(partitions.window_of(key))
    if index is None:
        raise _request_error(
            partitions,
            f"{_existing(partitions, windows)} (a window exists once it has begun; with partial: false, "
            "once it is complete)",
            f"the partition {key}, which does not exist now",
        )
    return index


def _existing(partitions: Partitioning, windows: Windows) -> str:
    if not len(windows):
        return "a window, but no window exists yet"
    first, last = partitions.window_key(windows.starts[0]), partitions.window_key(windows.starts[-1])
    return f"one of {pluralize(len(windows), 'window')} from {first} to {last}"


def _identities(partitions: Partitioning, keys: set[str]) -> Container[str]:
    unknown_keys = [] if partitions.units == "dynamic" else sorted(keys.difference(partitions.unit_keys))
    if unknown_keys:
        few, noun = ", ".join(partitions.unit_keys[:5]), "bucket" if partitions.bucket_count else "unit"
        raise _request_error(
            partitions,
            f"one of {pluralize(len(partitions.unit_keys), noun)} ({few}, …)",
            f"the {noun} {unknown_keys[0]!r}",
        )
    if partitions.bucket_count:
        return UnitBuckets(partitions.bucket_count, frozenset(keys))
    identities = frozenset(unit_of_key(key, partitions.unit_fields) for key in keys)
    return SelectedUnits(identities, partitions.listed_units) if partitions.units == "static" else identities


def _request_error(partitions: Partitioning, expected: str, problem: str) -> ConfigurationError:
    return ConfigurationError(f"dataflow {partitions.name}: expected {expected}, found {problem}")
