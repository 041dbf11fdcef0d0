"""The planner against the rule of docs/explanation/watermarks.md written down literally, over chains of runs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from partitions.instants import milliseconds
from partitions.request import DUE, Forced, WorkUnitSelection
from partitions.sentinels import deserialise, serialise
from partitions.window.definition import WindowWatermark
from partitions.window.plan import plan
from partitions.window.state import WindowState
from partitions.window.work_unit import FailedUnit, WorkUnit
from tests.support.naive_windows import ForcedParts, Naive, Work, highs, keys

# Each with a day near a change of its clocks; in Apia a whole day was left out, in Santiago and Cairo midnight is.
PLACES = {
    "UTC": "2020-02-20",
    "America/New_York": "2020-03-05",
    "Europe/Berlin": "2020-10-22",
    "Australia/Lord_Howe": "2020-04-02",
    "Pacific/Apia": "2011-12-27",
    "Asia/Kathmandu": "2020-01-30",
    "America/Santiago": "2026-09-02",
    "Africa/Cairo": "2026-04-20",
}
UNITS = ('{"id":1}', '{"id":2}', '{"id":3}')
GRAINS: tuple[str, ...] = ("daily", "daily", "hourly", "weekly", "monthly", "yearly", "none")
DAYS: dict[str, float] = {"none": 8, "hourly": 0.5, "daily": 5, "weekly": 20, "monthly": 80, "yearly": 900}
COARSER = {"hourly": "daily", "daily": "weekly", "weekly": "monthly", "monthly": "yearly"}

periods = st.sampled_from(["P1D", "P3D", "P0D", "PT6H", "PT90M", "P10D"])
begins = st.sampled_from(
    ["day", "day", "day", "now", "T00:30:00", "T02:30:00", "P2D", "P7D", "P1DT3H", "P30D"]
)


def _sometimes(draw: st.DrawFn, one_in: int) -> bool:
    return draw(st.integers(1, one_in)) == one_in


@st.composite
def definitions(draw: st.DrawFn, zone: str, now: datetime) -> tuple[dict[str, Any], str]:
    """A definition whose windows end near now, and the grain that says how far runs lie apart."""
    grain = draw(st.sampled_from(GRAINS))
    back = now - timedelta(days=DAYS[grain] * draw(st.sampled_from([1, 2, 3])))
    day = back.date().isoformat()
    begin = draw(begins if grain != "hourly" else begins.filter(lambda text: not text.startswith("P")))
    window: Any = grain
    if grain in COARSER and _sometimes(draw, 3):
        cut: Any = draw(st.sampled_from([1, 3, "P2D", "P0DT6H"]))
        bound = (
            cut if isinstance(cut, str) else (back + timedelta(days=cut * DAYS[grain] / 5)).isoformat()[:19]
        )
        window = {COARSER[grain]: ["P4000D", bound], grain: [bound, "-"]}
    start = {"day": day, "now": now.isoformat()[:19] + "Z"}.get(begin, begin)
    raw = {
        "definition": [
            {
                "name": "system",
                "type": "datetime",
                "range": {
                    "from": day + start if start.startswith("T") else start,
                    "to": draw(st.sampled_from(["-", "P0D", "P0DT0H", "P1D"])),
                },
            }
        ],
        "window": window,
        "timezone": zone,
        "partial": not _sometimes(draw, 4),
        "grace": draw(periods),
        "abstinent": draw(periods) if _sometimes(draw, 4) else "P0D",
        "max_slices": 1_000_000,
        "checkpoint": {"interval_windows": draw(st.sampled_from([100, 3, 1]))},
    }
    most = draw(st.sampled_from([None, None, 1, 2, 4, 20]))
    return raw | ({"parallelism": most} if most else {}), grain


@st.composite
def selections(draw: st.DrawFn, now: datetime, grain: str) -> ForcedParts:
    """Somebody asks for a range near now, or for all of it, of some units."""
    first = now - timedelta(days=DAYS[grain]) * draw(st.sampled_from([0.2, 0.7, 1.5, 4]))
    last = first + timedelta(days=DAYS[grain]) * draw(st.sampled_from([0, 0.1, 0.6, 5]))
    ms = int(first.timestamp() * 1000), int(last.timestamp() * 1000)
    ranges = draw(st.sampled_from([None, (ms,), (ms, (ms[1] - 1, ms[1] + 10**8))]))
    return ForcedParts(ranges, draw(st.sampled_from([None, frozenset(UNITS[:2]), frozenset(UNITS[2:])])))


@st.composite
def chains(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Runs: each with its definition, its clock, its units, what is asked for and which work units fail."""
    zone = draw(st.sampled_from(list(PLACES)))
    now = datetime.fromisoformat(PLACES[zone]).replace(tzinfo=UTC)
    raw, grain = draw(definitions(zone, now))
    runs = []
    for _ in range(draw(st.integers(2, 9))):
        if _sometimes(draw, 4):
            zone = draw(st.sampled_from([zone, zone, *PLACES]))
            raw, grain = draw(definitions(zone, now))
        now += timedelta(days=DAYS[grain]) * draw(st.sampled_from([0.2, 0, 0.02, 0.6, 1.7]))
        now = now.replace(second=0, microsecond=0)
        runs.append(
            {
                "raw": raw,
                "now": now,
                "asked": draw(selections(now, grain)) if _sometimes(draw, 4) else None,
                "units": draw(st.lists(st.sampled_from(UNITS), min_size=1, unique=True))
                if _sometimes(draw, 3)
                else list(UNITS),
                "fails": draw(st.frozensets(st.integers(0, 12), max_size=4)),
            }
        )
    return runs


def _kind(before: WindowState, one: WorkUnit, asked: bool) -> tuple[bool, bool, bool]:
    failure = before.failed.get(one.unit, {}).get(one.start)
    attempts = failure.attempts if failure and not asked else 0
    return attempts > 1, one.reason == "forced" and attempts < 2, attempts == 1


def _advance(state: WindowState, run: dict[str, Any]) -> tuple[list[Work], WindowState]:
    asked, before = run["asked"], state
    chosen = Forced(WorkUnitSelection(asked.ranges, asked.units)) if asked else DUE
    made = plan(
        WindowWatermark.of(run["raw"]),
        state,
        run["units"],
        run["now"],
        dataflow="flow",
        state_number=0,
        request=chosen,
    )
    works = [one for piece in made.slices for one in piece.works]
    planned = sorted(works, key=lambda one: (one.start or 0, run["units"].index(one.unit)))
    for piece in made.slices:
        bad = [
            FailedUnit(one, "no")
            for number, one in enumerate(planned)
            if number in run["fails"] and one in piece.works
        ]
        text = serialise(piece.without(bad).advance(state.watermark()))
        state = WindowState.of(deserialise(text))
    # What makes room stands behind what does not, what failed behind what did not, who failed twice behind all; else it is planning order.
    assert works == sorted(planned, key=lambda one: _kind(before, one, asked is not None))
    return [Work(one.start or 0, one.end or 0, one.unit, one.lower or 0) for one in planned], state


@settings(max_examples=250, deadline=None)
@given(chains())
def test_every_run_reads_what_the_rule_says(runs: list[dict[str, Any]]) -> None:
    naive, state = Naive(), WindowState()
    for run in runs:
        before, definition = state, WindowWatermark.of(run["raw"])
        cut = definition.windows(run["now"])
        due = naive.due(definition, cut, run["units"], run["asked"])
        now = milliseconds(run["now"])
        wanted = naive.chosen(due, definition.parallelism, now, run["asked"] is not None)
        found, state = _advance(state, run)
        assert found == wanted
        naive.run(cut, due, wanted, run["fails"], run["asked"] is not None, now)
        assert highs(state) == naive.highs
        assert all(state.high(unit, start) == high for (start, unit), high in naive.highs.items())
        assert keys(state, state.over_cap) == naive.skipped
        assert keys(state, state.reread_whole) == naive.whole
        assert {(start, unit) for unit, of_unit in state.failed.items() for start in of_unit} == {
            *naive.failed
        }
        assert {(start, unit) for unit, starts in state.open.items() for start in starts} == naive.open
        if len(wanted) == 1:
            assert state.retried == naive.retried
        naive.retried = state.retried  # of several slices the last one says it
        assert state.covers(before)
        assert before.covers(state) == (highs(before) == highs(state))
