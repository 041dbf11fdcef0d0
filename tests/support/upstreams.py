"""Hours that a dataflow has loaded, and days of a dataflow that waits for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from partitions.instants import DAY, HOUR, milliseconds
from partitions.plan import Plan
from partitions.request import DUE, Request
from partitions.sentinels import canonical
from partitions.window.awaited_windows import AwaitedWindows
from partitions.window.awaited_words import AwaitedWords
from partitions.window.calendar_grid import Grid
from partitions.window.definition import WindowWatermark
from partitions.window.expired import ExpiredRows, LoadedSpan
from partitions.window.ledger import Ledger, ledger
from partitions.window.plan import plan
from partitions.window.slices import WindowSlice
from partitions.window.state import WindowState
from partitions.window.upstream import Maker, UpstreamTables
from partitions.window.work_outcomes import LoadedUnit

START = milliseconds(datetime(2026, 1, 1, tzinfo=UTC))
HOURLY = Grid("hourly", "UTC")
ONE = "{}"


def instant(day: float) -> datetime:
    """Return the instant some days after the first."""
    return datetime.fromtimestamp((START + day * DAY) / 1000, UTC)


def unit(name: str, field: str = "airport") -> str:
    """Return the identity of a unit."""
    return canonical({field: name})


def definition(window: str | dict[str, list[str]], to: str, **more: Any) -> WindowWatermark:
    """Return windows from the first day on."""
    entry = {"name": "at", "type": "datetime", "range": {"from": "2026-01-01", "to": to}}
    return WindowWatermark.of({"definition": [entry], "window": window, **more})


def days(**more: Any) -> WindowWatermark:
    """Return days that wait for their upstream."""
    return definition("daily", "upstream", **more)


def hours(
    now: float,
    lacking: Mapping[str, Iterable[float]] | None = None,
    *,
    units: Sequence[str] = (ONE,),
    names: Mapping[str, str] | None = None,
    since: Sequence[tuple[str, float]] | None = (),
    position: int = 1,
    watermark: WindowWatermark | None = None,
    expired: ExpiredRows | None = None,
    **more: Any,
) -> UpstreamTables:
    """Return hours that are loaded up to an instant, but for some hours of some units.

    Args:
        now: days after the first; all hours that have ended are loaded.
        lacking: by unit, the hours after the first that are not loaded.
        units: the units.
        names: by the name of a unit's value of the reader, that of the upstream.
        since: unit and hour that were loaded since the reader has looked; None: unknown.
        position: the number of the newest entry.
        watermark: the upstream's definition.
        expired: the rows that a retention has taken out.
        more: further fields of :class:`Maker`.
    """
    of_hours = watermark or definition("hourly", "-")
    missing = {name: set(numbers) for name, numbers in (lacking or {}).items()}
    done = [
        LoadedUnit(start, start + HOUR, start, name, False, HOURLY)
        for name in units
        for number in range(int(now * 24))
        if number not in missing.get(name, ())
        for start in [START + number * HOUR]
    ]
    state = WindowState().rebased(HOURLY).after(done)
    book = ledger(of_hours, state, units, instant(now), dataflow="flights")
    spans = (
        None
        if since is None
        else [LoadedSpan(name, START + int(at * HOUR), START + int((at + 1) * HOUR)) for name, at in since]
    )
    entry = [position, f"id{position}"]
    maker = Maker("flights", "bronze/flights", of_hours, book, entry, names or {}, spans, expired, **more)
    return UpstreamTables((maker,), of_hours.zone)


def planned(
    upstream: UpstreamTables,
    state: WindowState | None = None,
    *,
    of: WindowWatermark | None = None,
    units: Sequence[str] = (ONE,),
    now: float | None = None,
    request: Request = DUE,
) -> Plan[WindowSlice]:
    """Return the plan of the days at the upstream's clock."""
    clock = upstream.makers[0].ledger.now if now is None else instant(now)
    waiting = (of or days()).up_to(upstream.reached)
    return plan(
        waiting,
        state or WindowState(),
        units,
        clock,
        dataflow="daily",
        state_number=1,
        request=request,
        upstream=upstream,
    )


def due(plan: Plan[WindowSlice]) -> list[tuple[str, str, str]]:
    """Return day, unit and reason of each work unit that is due."""
    return [
        (f"{instant((work.start - START) / DAY):%d}", work.unit, work.reason)
        for slice_ in plan.slices
        for work in slice_.works
        if work.start is not None
    ]


def after(plan: Plan[WindowSlice], state: WindowState | None = None) -> WindowState:
    """Return the state after all slices of a plan."""
    watermark = (state or WindowState()).watermark()
    for slice_ in plan.slices:
        watermark = slice_.advance(watermark)
    return WindowState.of(watermark)


def book_of(
    upstream: UpstreamTables,
    state: WindowState,
    *,
    of: WindowWatermark | None = None,
    units: Sequence[str] = (ONE,),
) -> Ledger:
    """Return the ledger of the days at the upstream's clock."""
    now = upstream.makers[0].ledger.now
    waiting = (of or days()).up_to(upstream.reached)
    awaited = AwaitedWords(AwaitedWindows.of(upstream, waiting, state, waiting.windows(now), now))
    return ledger(
        waiting, state, units, now, dataflow="daily", not_ready=awaited.gaps, outdated=awaited.outdated
    )
