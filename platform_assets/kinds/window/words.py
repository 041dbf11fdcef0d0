"""Say in words how far a window watermark reaches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from partitions.instants import as_datetime
from partitions.intervals import Interval, subtract, union
from partitions.plan import Plan, pluralize
from partitions.window.skipped_windows import skipped_windows
from partitions.window.work_unit import describe_unit

_WITHOUT_UNITS = ["{}"]

UnloadedSpan = tuple[Interval, str]
"""``[start, end)``, epoch milliseconds, and its unit for people; "" if there are none, or of all units."""


def unloaded_spans(plan: Plan[Any]) -> Iterator[UnloadedSpan]:
    """Yield the windows that a plan leaves out, and those that it loads."""
    yield from ((skipped.span, skipped.unit) for skipped in skipped_windows(plan.skips))
    for work in (work for slice_ in plan.slices for work in slice_.works):
        if work.start is not None:
            yield (work.start, work.end), describe_unit(work.unit)


def reach_in_words(watermark: Mapping[str, Any], unloaded: Iterable[UnloadedSpan] = ()) -> str:
    """Return how far all units are loaded, and how far the furthest one.

    A unit that fails or waits holds the first back.

    Args:
        watermark: the JSON form.
        unloaded: windows that are not loaded, unless the watermark has them; the watermark alone does not
            know of those before its first one.
    """
    loaded, failed = watermark["units"], watermark.get("failed", {})
    units = {**loaded, **failed}
    failures = sum(1 for of_unit in failed.values() for failure in of_unit.values() if failure[0])
    ends = [run[1] for runs in loaded.values() for run in runs]
    gaps = _gaps_by_unit(loaded, failed, list(unloaded), max(ends)) if ends else {}
    reached = [
        _gapless_end(loaded.get(unit, ()), failed.get(unit, {}), gaps.get(unit, ()))
        for unit in {**units, **gaps}
    ]
    has_units = list(units) != _WITHOUT_UNITS
    parts = [_reach_of_units(max(ends), reached, gaps, loaded, has_units)] if ends else []
    if has_units and not (ends and _count_behind(max(ends), reached)):
        parts.append(pluralize(len(units), "unit"))
    parts += [f"{pluralize(failures, 'work unit')} failed"] if failures else []
    return ", ".join(parts) or "none"


def _gaps_by_unit(
    loaded: Mapping[str, Any], failed: Mapping[str, Any], unloaded: Sequence[UnloadedSpan], furthest: int
) -> dict[str, list[Interval]]:
    """Return the stretches before an end that are not loaded, by unit; a unit without rows by its name.

    Failed windows are left out: the watermark itself tells of them.
    """
    names = {unit: describe_unit(unit) for unit in {**loaded, **failed}}
    missing_units = {name: name for _, name in unloaded if name and name not in names.values()}
    gaps = {}
    for unit, name in {**names, **missing_units}.items():
        failing = _failing_starts(failed.get(unit, {}))
        spans = [span for span, of in unloaded if of in ("", name) and span[0] not in failing]
        runs = union(sorted((run[0], run[1]) for run in loaded.get(unit, ())))
        before_end = sorted(span for span in spans if span[0] < furthest)
        if of_unit := subtract(before_end, runs):
            gaps[unit] = of_unit
    return gaps


def _failing_starts(failed: Mapping[str, Any]) -> list[int]:
    return [int(start) for start, failure in failed.items() if failure[0] and start != "-"]


def _reach_of_units(
    furthest: int,
    reached: Sequence[int | None],
    gaps: Mapping[str, Sequence[Interval]],
    loaded: Mapping[str, Any],
    has_units: bool,
) -> str:
    """Return how far the units are loaded: all of them, and the furthest one."""
    up_to = f"up to {as_datetime(furthest).isoformat()}"
    behind = _count_behind(furthest, reached)
    if not behind:
        return up_to
    ends = [end for end in reached if end is not None]
    if any(_starts_with_gap(loaded.get(unit, ()), of_unit) for unit, of_unit in gaps.items()):
        complete = "nothing complete yet"
    elif len(ends) == len(reached):
        complete = f"complete up to {as_datetime(min(ends)).isoformat()}"
    else:
        complete = "some units are not started"
    count = sum(len(of_unit) for of_unit in gaps.values())
    more = f" ({pluralize(count, 'gap')})" if count else ""
    of_units = f" ({behind:,} of {pluralize(len(reached), 'unit')} behind)" if has_units else more
    return f"{complete}, at most {up_to}{of_units}"


def _count_behind(furthest: int, reached: Sequence[int | None]) -> int:
    """Return how many units end before the furthest end."""
    return sum(1 for end in reached if end is None or end < furthest)


def _starts_with_gap(runs: Sequence[Any], gaps: Sequence[Interval]) -> bool:
    return bool(gaps) and (not runs or gaps[0][0] < runs[0][0])


def _gapless_end(runs: Any, failed: Mapping[str, Any], gaps: Sequence[Interval]) -> int | None:
    """Return the end up to which a unit is loaded without gap or failure; None if nothing is."""
    if not runs or _starts_with_gap(runs, gaps):
        return None
    end: int = runs[0][1]
    for run in runs[1:]:
        if run[0] > end:
            break
        end = max(end, run[1])
    return min([end, *_failing_starts(failed)])
