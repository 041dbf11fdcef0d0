"""Days wait for hours in real runs without a JVM: what is loaded, what waits, and what is loaded again."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from partitions.errors import PlanError
from partitions.instants import HOUR, milliseconds
from partitions.lineage import Lineage
from partitions.request import Forced, WorkUnitSelection
from partitions.sentinels import canonical, serialise
from platform_assets.project.project import DataflowNames
from resources.kinds.window.unit_ledger import unit_ledger
from resources.kinds.window.upstream_loads import NO_ENTRY, loaded_since, position_of
from resources.watermarks.entry import next_entry
from tests.support.chained import Chain, at, key_of
from tests.support.jvmless import jvmless


@pytest.fixture(autouse=True)
def _jvmless() -> Iterator[None]:
    with jvmless():
        yield


@pytest.fixture
def chain(tmp_path: Path) -> Chain:
    chain = Chain(tmp_path)
    for hour in range(24 * 3):
        chain.arrive("EWR", hour, 1)
        chain.arrive("JFK", hour, 10)
    return chain


def test_days_load_around_a_hole_and_again_when_it_is_filled(chain: Chain) -> None:
    chain.now = at(73)
    chain.scene.broken.add(key_of("EWR", 29))
    hours = chain.run("hours")
    assert hours is not None
    assert hours.status == "failed"
    days = chain.run("days")
    assert days is not None
    assert (days.status, chain.rows("days")) == (
        "committed",
        [("|2026-01-05T00", 264), ("|2026-01-07T00", 264)],
    )
    assert chain.plan("days").why == (
        "no work unit is due; 2026-01-06 waits for 1 of 48 hours of bronze/hours: EWR 2026-01-06 05:00 (failed)"
    )
    assert [gap.why for _, gap in chain.ledger("days").missing] == [
        "waits for 1 of 48 hours of bronze/hours: EWR 2026-01-06 05:00 (failed)"
    ]
    chain.scene.broken.clear()
    chain.run("hours")
    chain.run("days")
    assert chain.rows("days") == [(f"|2026-01-{day:02}T00", 264) for day in (5, 6, 7)]
    assert chain.ledger("days").missing == []


def test_the_ledger_names_the_first_missing_hours_of_a_whole_gap_and_midnight(chain: Chain) -> None:
    chain.now = at(73)
    chain.scene.broken |= {key_of("JFK", hour) for hour in (24, 25, 48, 49)}
    chain.run("hours")
    chain.run("days")
    (gap,) = [gap for _, gap in chain.ledger("days").missing]
    assert (gap.start, gap.end) == (milliseconds(at(24)), milliseconds(at(72)))
    assert gap.why == (
        "waits for 4 of 96 hours of bronze/hours: JFK 2026-01-06 00:00 (failed), JFK 2026-01-06 01:00 (failed),"
        " JFK 2026-01-07 00:00 (failed), …"
    )


def test_a_changed_hour_reaches_days_and_weeks_once(chain: Chain) -> None:
    for hour in range(72, 24 * 7):
        chain.arrive("EWR", hour, 1)
    chain.now = at(24 * 7 + 1)
    for name in ("hours", "days", "weeks"):
        chain.run(name)
    assert chain.rows("weeks") == [("|2026-01-05T00", 3 * 264 + 4 * 24)]
    chain.arrive("JFK", 30, 1000)
    chain.run("hours", Forced(WorkUnitSelection((hour_of(30),), frozenset({unit("JFK")}))))
    assert [chain.plan(name).why for name in ("days", "weeks")] == [
        "1 work unit of 7 windows x 1 unit due: 1 upstream",
        "no work unit is due; 2026-01-05 lacks 1 of 7 days of gold/days: 2026-01-06; it is loaded again once they are there",
    ]
    for name in ("days", "weeks"):
        chain.run(name)
    assert chain.rows("weeks") == [("|2026-01-05T00", 3 * 264 + 4 * 24 + 990)]
    assert [chain.plan(name).why for name in ("days", "weeks")] == ["no work unit is due"] * 2


def test_an_hour_that_is_loaded_while_a_run_is_planned_is_read_or_known(chain: Chain) -> None:
    chain.now = at(25)
    chain.run("hours")
    chain.arrive("EWR", 3, 500)
    again = Forced(WorkUnitSelection((hour_of(3),)))
    chain.scene.meanwhile = lambda: chain.run("hours", again)
    chain.run("days")
    assert chain.rows("days") == [("|2026-01-05T00", 264 + 499)]
    assert chain.state("days").upstream == {"hours": [2, entry_id(chain, "hours")]}
    assert not chain.plan("days").due


@pytest.mark.parametrize("point", [("before", "commit"), ("after", "commit"), ("before", "entries")])
def test_a_day_whose_run_was_killed_knows_what_was_loaded_since(chain: Chain, point: tuple[str, str]) -> None:
    chain.now = at(25)
    chain.run("hours")
    chain.scene.kill = (*point, 1)
    assert chain.run("days") is None
    chain.arrive("EWR", 3, 500)
    chain.run("hours", Forced(WorkUnitSelection((hour_of(3),))))
    while chain.plan("days").due:
        chain.run("days")
    assert chain.rows("days") == [("|2026-01-05T00", 264 + 499)]


def test_a_killed_run_is_finished_with_what_it_knew_of_the_hours(chain: Chain) -> None:
    chain.now = at(25)
    chain.run("hours")
    chain.scene.kill = ("after", "commit", 1)
    assert chain.run("days") is None
    chain.run("days")
    assert chain.state("days").upstream == {"hours": [1, entry_id(chain, "hours")]}
    assert chain.plan("days").why == "no work unit is due"


def test_the_log_tells_what_was_loaded_since_an_entry_or_that_it_is_unknown(chain: Chain) -> None:
    log, flow = chain.platform().log, chain.flows["hours"]
    assert loaded_since(log, flow, None, NO_ENTRY) == ()
    chain.now = at(1)
    chain.run("hours")
    first = chain.newest("hours")
    chain.now = at(2)
    chain.run("hours")
    newest = chain.newest("hours")
    spans = {name: [(unit(airport), *hour_of(number)) for airport in ("EWR", "JFK")] for name, number in (("first", 0), ("second", 1))}  # fmt: skip
    assert loaded_since(log, flow, newest, position_of(newest)) == ()
    assert loaded_since(log, flow, newest, position_of(first)) == tuple(spans["second"])
    assert loaded_since(log, flow, newest, NO_ENTRY) == tuple(spans["second"] + spans["first"])
    for unknown in (None, [1, "another log"], [7, "a later entry"]):
        assert loaded_since(log, flow, newest, unknown) is None
    assert loaded_since(log, flow, None, position_of(first)) is None
    log.raise_floor("hours", 1)
    log.delete_entries("hours", [1])
    log = chain.platform().log  # the other one remembers
    assert loaded_since(log, flow, newest, position_of(first)) == tuple(spans["second"])
    assert loaded_since(log, flow, newest, NO_ENTRY) is None


def test_days_that_were_loaded_by_the_clock_are_loaded_again_once(chain: Chain) -> None:
    chain.now = at(25)
    for name in ("hours", "days"):
        chain.run(name)
    entry = chain.newest("days")
    assert entry is not None
    by_clock = {key: value for key, value in entry.state().items() if key != "upstream"}
    chain.platform().log.append(
        "days",
        next_entry(entry, watermark=serialise(by_clock), why="set", fingerprint=entry.fingerprint),
        expected=entry.number,
    )
    assert chain.plan("days").why == "1 work unit of 1 window x 1 unit due: 1 upstream"
    chain.run("days")
    assert chain.plan("days").why == "no work unit is due"


@pytest.mark.parametrize(
    ("zone", "column", "is_refused"),
    [
        ("UTC", pa.timestamp("us"), False),
        ("America/New_York", pa.timestamp("us", "UTC"), False),
        ("America/New_York", pa.timestamp("us"), True),
        ("America/New_York", pa.date32(), True),
    ],
)
def test_times_without_zone_need_the_zone_of_the_hours(
    chain: Chain, zone: str, column: pa.DataType, is_refused: bool
) -> None:
    chain.days, chain.now = {"timezone": zone}, at(49)
    table = pa.table({"at": pa.array([], column)})
    write_deltalake(str(chain.root / "lake/bronze/hours"), table)
    if not is_refused:
        assert not chain.plan("days").due
        return
    with pytest.raises(
        PlanError, match=r"watermark\.timezone: expected UTC, as in hours, since the values of at"
    ) as refused:
        chain.plan("days")
    assert refused.value.code == "other_zone"


def test_nothing_counts_as_complete_while_the_file_of_a_dataflow_above_has_errors(chain: Chain) -> None:
    """Of two dataflows that load a table, the one without errors is not all that it needs."""
    chain.now = at(49)
    chain.run("hours")
    broken = DataflowNames("more", "bronze/hours", "bronze/hours")
    platform = replace(chain.platform(), lineage=Lineage([*chain.flows.values(), broken]))
    for look in (platform.plan, partial(unit_ledger, platform)):
        with pytest.raises(PlanError, match="found errors in its file: `strandline validate`") as refused:
            look(chain.flows["days"], chain.now)
        assert refused.value.code == "unknown_upstream"


def test_days_wait_for_an_input_and_read_it_at_the_version_that_is_complete(chain: Chain) -> None:
    chain.waits_for_weather, chain.now = True, at(49)
    for hour in range(48):
        chain.scene.values["{}", hour_of(hour)[0]] = [hour]
    chain.scene.broken.add(("{}", hour_of(30)[0]))
    for name in ("hours", "weather", "days"):
        chain.run(name)
    assert chain.rows("days") == [("|2026-01-05T00", 264)]
    assert chain.plan("days").why == (
        "no work unit is due; 2026-01-06 waits for 1 of 24 hours of bronze/weather: 2026-01-06 06:00 (failed)"
    )
    chain.scene.broken.clear()
    chain.run("weather")
    chain.scene.meanwhile = lambda: chain.run("weather", Forced(WorkUnitSelection((hour_of(3),))))
    outcome = chain.run("days")
    assert outcome is not None
    days, weather = chain.newest("days"), chain.newest("weather")
    assert days is not None
    assert weather is not None
    assert (days.inputs, outcome.work_units) == ({"weather": weather.table_version}, 2)
    assert chain.state("days").upstream["weather"] == [weather.number, weather.id]
    assert chain.plan("days").why == "no work unit is due"


def test_days_of_a_unit_need_the_hours_of_that_unit(chain: Chain) -> None:
    chain.day_units, chain.now = ("EWR", "JFK"), at(49)
    chain.scene.broken.add(key_of("EWR", 29))
    chain.run("hours")
    chain.run("days")
    assert chain.rows("days") == [
        ("EWR|2026-01-05T00", 24),
        ("JFK|2026-01-05T00", 240),
        ("JFK|2026-01-06T00", 240),
    ]
    assert chain.plan("days").why == (
        "no work unit is due; 2026-01-06 of airport EWR waits for 1 of 24 hours of bronze/hours:"
        " EWR 2026-01-06 05:00 (failed)"
    )


def test_days_wait_while_the_table_is_not_the_one_of_the_log(chain: Chain) -> None:
    chain.now = at(25)
    chain.run("hours")
    shutil.rmtree(chain.root / "lake" / "bronze" / "hours")
    assert chain.plan("days").skips[0].why == (
        "waits for bronze/hours: it is older than the state of hours, or another table: `strandline run hours`"
        " shows what to do"
    )
    outcome = chain.run("days")
    assert outcome is not None
    assert (outcome.status, outcome.error) == ("nothing", None)


def hour_of(number: int) -> tuple[int, int]:
    """Start and end of an hour."""
    _, start = key_of("EWR", number)
    return start, start + HOUR


def unit(name: str) -> str:
    return canonical({"airport": name})


def entry_id(chain: Chain, name: str) -> str:
    entry = chain.newest(name)
    assert entry is not None
    return entry.id
