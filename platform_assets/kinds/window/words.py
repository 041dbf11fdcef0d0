"""Say in words how far a window watermark reaches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from partitions.dataflow import Dataflow
from partitions.fingerprint import fingerprint
from partitions.instants import as_datetime
from partitions.intervals import Interval, subtract, union
from partitions.plan import Plan, pluralize
from partitions.window.skipped_windows import skipped_windows
from partitions.window.work_unit import describe_unit
from resources.watermarks.entry import Entry

_WITHOUT_UNITS = ["{}"]

UnloadedSpan = tuple[Interval, str]
"""``[start, end)``, epoch milliseconds, and its unit for people; "" if there are none, or of all units."""


def unloaded_spans(plan: Plan[Any]) -> Iterator[UnloadedSpan]:
    """Yield the windows that a plan leaves out, and those that it loads."""
    yield from ((skipped.span, skipped.unit) for skipped in skipped_windows(plan.skips))
    for work in (work for slice_ in plan.slices for work in slice_.works):
        if work.start is not None:
            yield (work.start, work.end), describe_unit(work.unit)


def windows_before(dataflow: Dataflow, entry: Entry) -> Iterator[UnloadedSpan]:
    """Yield, for each unit of an entry, the time before its first window that the definition has.

    Nothing of entries of another definition.
    """
    if dataflow.window.time_entry is None or entry.fingerprint != fingerprint(dataflow):
        return
    starts = dataflow.window.windows(datetime.fromisoformat(entry.time)).starts
    for unit, runs in entry.state().get("units", {}).items():
        if starts and runs and starts[0] < runs[0][0]:
            yield (starts[0], runs[0][0]), describe_unit(unit)


@dataclass(frozen=True)
class WindowReach:
    """How far the windows of all units are loaded.

    Attributes:
        furthest: the end of the furthest unit, epoch milliseconds; None if nothing is loaded.
        complete: the end up to which all units are complete; None if one is not started.
        has_gap_first: whether a unit lacks its first windows.
        behind: the units that end before the furthest one.
        units: all units.
        gaps: the stretches that are not loaded, without failures.
        has_units: whether the definition has units.
        failures: the work units that failed.
        rereads: the loaded work units whose last read failed.
        outdated: the loaded work units that the plan loads again since their upstream has changed.
    """

    furthest: int | None
    complete: int | None
    has_gap_first: bool
    behind: int
    units: int
    gaps: int
    has_units: bool
    failures: int
    rereads: int
    outdated: int = 0

    @property
    def in_words(self) -> str:
        """How far all units are loaded, and how far the furthest one."""
        parts = [] if self.furthest is None else [self._of_units(self.furthest)]
        if self.has_units and not self.behind:
            parts.append(pluralize(self.units, "unit"))
        parts += [f"{pluralize(self.failures, 'work unit')} failed"] if self.failures else []
        parts += (
            [f"{pluralize(self.rereads, 'work unit')} loaded, but not read again"] if self.rereads else []
        )
        return ", ".join(parts) or "none"

    @property
    def in_short(self) -> str:
        """How far all units are loaded; after a semicolon what is behind, if anything is."""
        end = self.complete if self.behind else self.furthest
        up_to = f"up to {as_datetime(end).isoformat()}" if end is not None else self._incomplete
        units = f"{self.behind:,} of {pluralize(self.units, 'unit')} behind" if self.has_units else ""
        loaded = (
            f"loaded up to {as_datetime(self.furthest).isoformat()}"
            if self.furthest is not None and self.has_gap_first
            else ""
        )
        parts = [
            loaded,
            units if self.behind else "",
            pluralize(self.gaps, "gap") if self.gaps else "",
            f"{self.failures:,} failed" if self.failures else "",
            f"{self.rereads:,} not read again" if self.rereads else "",
            f"{self.outdated:,} out of date" if self.outdated else "",
        ]
        return "; ".join(filter(None, [up_to, ", ".join(filter(None, parts))]))

    @property
    def _incomplete(self) -> str:
        if self.furthest is None:
            return "none"
        return "first windows missing" if self.has_gap_first else "some units are not started"

    def _of_units(self, furthest: int) -> str:
        up_to = f"up to {as_datetime(furthest).isoformat()}"
        if not self.behind:
            return up_to
        complete = (
            self._incomplete
            if self.complete is None
            else f"complete up to {as_datetime(self.complete).isoformat()}"
        )
        more = f" ({pluralize(self.gaps, 'gap')})" if self.gaps else ""
        of_units = f" ({self.behind:,} of {pluralize(self.units, 'unit')} behind)" if self.has_units else more
        if self.has_gap_first:
            return f"loaded {up_to}, {self._incomplete}{of_units}"
        return f"{complete}, at most {up_to}{of_units}"


def reach_in_words(watermark: Mapping[str, Any], unloaded: Iterable[UnloadedSpan] = ()) -> str:
    """Return how far all units are loaded, and how far the furthest one; arguments as of :func:`reach_of`."""
    return reach_of(watermark, unloaded).in_words


def reach_of(watermark: Mapping[str, Any], unloaded: Iterable[UnloadedSpan] = ()) -> WindowReach:
    """Return how far all units are loaded. A unit that fails or waits holds the others back.

    Args:
        watermark: the JSON form.
        unloaded: windows that are not loaded, unless the watermark has them; the watermark alone does not
            know of those before its first one.
    """
    loaded, all_failed = watermark["units"], watermark.get("failed", {})
    units = {**loaded, **all_failed}
    rereads = _failed_rereads(watermark)
    failures = sum(len(_failing_starts(of_unit)) for of_unit in all_failed.values()) - rereads
    failed = {unit: _unloaded(of_unit, loaded.get(unit, ())) for unit, of_unit in all_failed.items()}
    furthest = max((run[1] for runs in loaded.values() for run in runs), default=None)
    gaps = {} if furthest is None else _gaps_by_unit(loaded, failed, list(unloaded), furthest)
    reached = [
        _gapless_end(loaded.get(unit, ()), failed.get(unit, {}), gaps.get(unit, ()))
        for unit in {**units, **gaps}
    ]
    ends = [end for end in reached if end is not None]
    has_gap_first = any(_starts_with_gap(loaded.get(unit, ()), of_unit) for unit, of_unit in gaps.items())
    is_started = len(ends) == len(reached) and not has_gap_first
    return WindowReach(
        furthest,
        min(ends, default=None) if is_started else None,
        has_gap_first,
        0 if furthest is None else sum(1 for end in reached if end is None or end < furthest),
        len(reached) if furthest is not None else len(units),
        sum(len(of_unit) for of_unit in gaps.values()),
        list(units) != _WITHOUT_UNITS,
        failures,
        rereads,
    )


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
        failing = _failing_instants(failed.get(unit, {}))
        spans = [span for span, of in unloaded if of in ("", name) and span[0] not in failing]
        runs = union(sorted((run[0], run[1]) for run in loaded.get(unit, ())))
        before_end = sorted(span for span in spans if span[0] < furthest)
        if of_unit := subtract(before_end, runs):
            gaps[unit] = of_unit
    return gaps


def _failed_rereads(watermark: Mapping[str, Any]) -> int:
    """Return the number of loaded work units whose last read failed; their earlier rows stay."""
    loaded, growing = watermark["units"], watermark.get("open", {})
    return sum(
        start not in _unloaded(of_unit, loaded.get(unit, ()))
        and (start == "-" or int(start) not in growing.get(unit, ()))
        for unit, of_unit in watermark.get("failed", {}).items()
        for start in _failing_starts(of_unit)
    )


def _unloaded(failed: Mapping[str, Any], runs: Sequence[Any]) -> dict[str, Any]:
    """Return the failures of windows of which nothing is loaded."""
    return {
        start: failure
        for start, failure in failed.items()
        if (not runs if start == "-" else not any(run[0] <= int(start) < run[1] for run in runs))
    }


def _failing_starts(failed: Mapping[str, Any]) -> list[str]:
    return [start for start, failure in failed.items() if failure[0]]


def _failing_instants(failed: Mapping[str, Any]) -> list[int]:
    return [int(start) for start in _failing_starts(failed) if start != "-"]


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
    return min([end, *_failing_instants(failed)])
