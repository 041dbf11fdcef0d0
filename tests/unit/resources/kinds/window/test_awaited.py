"""Days wait for hours in real runs without a JVM: what is loaded, what waits, and what is loaded again."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest
import yaml
from deltalake import DeltaTable, write_deltalake

from partitions.errors import NeedsDecision, PlanError
from partitions.instants import HOUR, milliseconds
from partitions.lineage import Lineage
from partitions.request import Forced, WorkUnitSelection
from partitions.sentinels import canonical, serialise
from partitions.window.state import WindowState
from partitions.window.upstream import UpstreamTables
from platform_assets.kinds.dead_servers import UnreachableServers
from platform_assets.kinds.window.profile import WindowProfile
from platform_assets.project import load_project
from platform_assets.project.project import DataflowNames
from resources.kinds import all_decisions as decisions
from resources.kinds.window.awaited import find_awaited
from resources.kinds.window.unit_ledger import unit_ledger
from resources.kinds.window.upstream_loads import NO_ENTRY, loaded_since, position_of
from resources.replay.chunk_runs import Report
from resources.replay.in_place import replay_in_place
from resources.replay.isolated.promoting import preview_promote
from resources.replay.isolated.replaying import replay_isolated
from resources.replay.options import ReplayOptions
from resources.watermarks.compaction import RetentionPolicy, compact_log
from resources.watermarks.entry import next_entry
from resources.watermarks.expiry import Expiry, carry_expired
from resources.watermarks.exporting import export_lines
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


def test_a_loaded_day_whose_hours_changed_is_out_of_date_and_no_gap(chain: Chain) -> None:
    """The ledger, `list` and `why` say it alike."""
    chain.now = at(49)
    for name in ("hours", "days"):
        chain.run(name)
    _, start = key_of("JFK", 3)
    chain.run("hours", Forced(WorkUnitSelection(((start, start + HOUR),))))
    flow, platform, stale = chain.flows["days"], chain.platform(), "out of date since bronze/hours changed"
    profile = WindowProfile()
    document = unit_ledger(platform, flow, chain.now).as_json()
    (unit,) = document["units"]
    day = {"start": "2026-01-05T00:00:00+00:00", "end": "2026-01-06T00:00:00+00:00"}
    assert (unit["gaps"], unit["outdated"]) == ([], [{**day, "why": stale}])
    assert unit["covered"] == [{"start": day["start"], "end": "2026-01-07T00:00:00+00:00"}]
    assert profile.ledger_page(flow, document).heading == (
        "days: complete up to 2026-01-07T00:00:00+00:00, 1 unit, 0 gaps, 1 stretch loaded, but out of date"
    )
    waiting = profile.waiting(platform, flow, chain.newest("days"), chain.now, UnreachableServers())
    assert waiting["reach"] == "up to 2026-01-07T00:00:00+00:00; 1 out of date"
    answer = profile.explain(platform, flow, "2026-01-05", chain.now)
    assert (answer.status, answer.summary) == (
        "loaded",
        f"loaded by entry 1, {stale}: the next run loads it again",
    )
    assert [reason.why for reason in answer.reasons] == [f"loaded, {stale}: the next run loads it again"]
    assert answer.choices == ("strandline run days",)
    whole = profile.explain(platform, flow, "2026-01", chain.now)
    assert whole.summary == "2 of 2 work units loaded, 1 of them out of date"
    assert profile.explain(platform, flow, "2026-01-06", chain.now).summary == "loaded"
    chain.run("days")
    assert not chain.ledger("days").outdated


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


@pytest.mark.parametrize(
    ("to", "expected"),
    [("2026-01-07", at(121)), ("P1D", at(96)), ("-", at(121)), ("2027-01-01", at(121))],
)
def test_only_a_last_window_that_moves_holds_up_days_over_a_shared_table(
    chain: Chain, to: str, expected: datetime
) -> None:
    chain.write_project()
    file = chain.root / "dataflows/hours.yaml"
    hours = yaml.safe_load(file.read_text())
    hours["target"] |= {"table": "bronze/hours", "shared": True}
    file.write_text(yaml.safe_dump(hours))
    hours["watermark"]["definition"][0]["range"]["to"] = to
    (chain.root / "dataflows/archive.yaml").write_text(yaml.safe_dump(hours))
    flows = load_project(chain.root, environment={}).named(())
    platform = replace(chain.platform(), lineage=Lineage(flows))
    awaited = find_awaited(platform, chain.flows["days"], WindowState(), at(121))
    assert isinstance(awaited, UpstreamTables)
    assert awaited.reached == expected


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


def test_days_wait_while_a_changed_definition_of_the_hours_is_not_accepted(chain: Chain) -> None:
    """Hours of UTC say nothing of days of Tokyo, whose rows they may lack."""
    chain.now = at(25)
    chain.run("hours")
    moved = Chain(
        chain.root, hours={"timezone": "Asia/Tokyo"}, days={"timezone": "Asia/Tokyo"}, now=chain.now
    )
    assert moved.plan("days").skips[0].why == (
        "waits for bronze/hours: the definition of hours has changed since it was loaded: `strandline run hours`"
        " shows what to do"
    )
    assert moved.plan("days").slices == ()


_WAITS = (
    "dataflow days: 1 requested work unit waits, and is not loaded: [2026-01-06T00:00:00+00:00, 2026-01-07T00:00:00+00:00) waits for 24 of 48 hours of"
    " bronze/hours: EWR 2026-01-06 00:00 (failed), EWR 2026-01-06 01:00 (failed), EWR 2026-01-06 02:00 (failed), …. Load what they wait for, and replay"
    " them again"
)


def test_a_replay_is_unfinished_while_a_day_of_it_waits(chain: Chain) -> None:
    """Else a promote would delete the rows of the day, and bring none."""
    chain.days, chain.now = {"checkpoint": {"interval_windows": 1}}, at(73)
    for name in ("hours", "days"):
        chain.run(name)
    options = ReplayOptions(start="2026-01-05", end="2026-01-08", table="aside/days")

    def lose_a_day(reports: Sequence[Report]) -> None:
        if [report["status"] for report in reports] == ["committed", "pending", "pending"]:
            chain.scene.broken |= {key_of("EWR", hour) for hour in range(24, 48)}
            decisions.decide(chain.platform(), chain.flows["hours"], decisions.reset("any"), "any")
            chain.run("hours")

    days = chain.flows["days"]
    first = replay_isolated(chain.platform(), days, options, chain.now, on_progress=lose_a_day)
    assert [report["status"] for report in first.reports] == ["committed", "failed", "committed"]
    assert first.outcome.error is not None
    assert (first.outcome.status, first.outcome.error.message) == (
        "failed",
        f"chunk 2026-01-06 00:00:00+00:00 to 2026-01-07 00:00:00+00:00: {_WAITS}",
    )
    with pytest.raises(NeedsDecision) as refused:
        preview_promote(chain.platform(), days, "aside/days")
    assert refused.value.code == "replay_unfinished"
    chain.scene.broken.clear()
    chain.run("hours")
    again = replay_isolated(chain.platform(), days, options, chain.now)
    assert [report["status"] for report in again.reports] == ["skipped", "committed", "skipped"]
    assert len(preview_promote(chain.platform(), days, "aside/days")) == 3


class _StoppedError(Exception):
    """Ends a replay between two chunks."""


def test_a_promote_leaves_windows_of_units_that_the_replay_could_not_read_any_more(chain: Chain) -> None:
    """The unit went while the replay was at work; windows without a row are read all the same."""
    for number in range(36, 48):
        chain.scene.values.pop(key_of("EWR", number))
    chain.hours, chain.now = {"checkpoint": {"interval_windows": 24}}, at(73)
    chain.run("hours")
    options = ReplayOptions(start="2026-01-06", end="2026-01-07", table="aside/hours")

    def stop(reports: Sequence[Report]) -> None:
        if [report["status"] for report in reports] == ["committed", "pending"]:
            raise _StoppedError

    with pytest.raises(_StoppedError):
        replay_isolated(chain.platform(), chain.flows["hours"], options, chain.now, on_progress=stop)
    chain.units = ("EWR",)
    hours = chain.flows["hours"]
    replayed = replay_isolated(chain.platform(), hours, options, chain.now)
    assert (replayed.outcome.error, len(replayed.reports)) == (None, 2)
    lines = preview_promote(chain.platform(), hours, "aside/hours")
    went, stayed = (line for line in lines if line.startswith("rows of "))
    assert went.endswith("go from bronze/hours, and at most 24 rows of aside/hours come, in one commit")
    assert went.startswith("rows of 36 work units ")
    assert stayed == (
        "rows of [2026-01-06T12:00:00+00:00, 2026-01-07T00:00:00+00:00) airport JFK stay as they are: the replay"
        " has not read them"
    )


def test_a_replay_in_place_names_the_days_that_wait(chain: Chain) -> None:
    chain.now = at(73)
    chain.scene.broken |= {key_of("EWR", hour) for hour in range(24, 48)}
    for name in ("hours", "days"):
        chain.run(name)
    options = ReplayOptions(start="2026-01-05", end="2026-01-08", replace=True)
    replayed = replay_in_place(chain.platform(), chain.flows["days"], options, chain.now)
    assert (replayed.outcome.status, replayed.outcome.work_units) == ("committed", 2)
    assert list(replayed.outcome.warnings) == [_WAITS]


def compact(chain: Chain, keep: int) -> None:
    """Delete the entries of the hours but for the newest ones."""
    policy = RetentionPolicy(keep, timedelta(0))
    compact_log(chain.platform().log, "hours", chain.newest("hours"), policy, at(24 * 400))


def test_only_days_whose_hours_changed_load_again_after_the_hours_log_was_compacted(chain: Chain) -> None:
    chain.hours, chain.now = {"parallelism": 20}, at(73)
    while (outcome := chain.run("hours")) and outcome.work_units:
        pass
    chain.run("days")
    seen = chain.state("days").upstream["hours"]
    for number, value in ((30, 500), (31, 600), (32, 700)):
        chain.arrive("EWR", number, value)
        chain.run("hours", Forced(WorkUnitSelection((hour_of(number),), frozenset({unit("EWR")}))))
        compact(chain, 1)
    log, newest = chain.platform().log, chain.newest("hours")
    assert newest is not None
    assert (log.numbers("hours"), newest.number - seen[0]) == ([newest.number], 3)
    assert len(log.names("hours", "loads", 9)) == 1
    assert chain.plan("days").why == "1 work unit of 3 windows x 1 unit due: 1 upstream"
    chain.run("days")
    assert dict(chain.rows("days"))["|2026-01-06T00"] == 264 + 499 + 599 + 699
    flow = chain.flows["hours"]
    assert loaded_since(log, flow, newest, [seen[0], "another log"]) is None
    everything = loaded_since(log, flow, newest, NO_ENTRY)
    assert everything is not None
    assert {(span.unit, span.start) for span in everything} >= {(unit("JFK"), hour_of(0)[0])}


def test_a_log_that_began_anew_is_told_apart_where_its_deleted_entries_end(chain: Chain) -> None:
    chain.now = at(49)
    for name in ("hours", "days"):
        chain.run(name)
    for lost in ("state/hours", "lake/bronze/hours"):
        shutil.rmtree(chain.root / lost)
    chain.arrive("EWR", 30, 500)
    chain.run("hours")
    chain.run("hours", Forced(WorkUnitSelection((hour_of(3),))))
    compact(chain, 1)
    assert (chain.platform().log.numbers("hours"), chain.state("days").upstream["hours"][0]) == ([2], 1)
    chain.run("days")
    assert chain.rows("days") == [("|2026-01-05T00", 264), ("|2026-01-06T00", 264 + 499)]


@pytest.mark.parametrize("decision", ["set", "rewind"])
def test_days_load_again_after_a_decision_counted_hours_of_another_table_as_loaded(
    chain: Chain, decision: str
) -> None:
    """A rewind to before a reset does so, and a watermark that an operator sets."""
    chain.now = at(25)
    chain.run("hours")
    chain.arrive("EWR", 3, 500)
    chain.run("hours", Forced(WorkUnitSelection((hour_of(3),))))
    chain.run("days")
    table, newest = DeltaTable(str(chain.root / "lake/bronze/hours")), chain.newest("hours")
    assert newest is not None
    if decision == "rewind":
        table.restore(0)
        made = [decisions.reset("any"), decisions.rewind("any", 1)]
    else:
        rows = DeltaTable(table.table_uri, version=0).to_pyarrow_table()
        shutil.rmtree(chain.root / "lake/bronze/hours")
        write_deltalake(table.table_uri, rows)
        made = [decisions.set_watermark("any", newest.watermark)]
    for make in made:
        decisions.decide(chain.platform(), chain.flows["hours"], make, "any")
    assert chain.plan("hours").why == "no work unit is due"
    chain.run("days")
    assert chain.rows("days") == [("|2026-01-05T00", 264)]


def test_a_record_that_begins_later_than_the_log_leaves_older_positions_unknown(chain: Chain) -> None:
    for hour in range(1, 5):
        chain.now = at(hour)
        chain.run("hours")
    log, newest, flow = chain.platform().log, chain.newest("hours"), chain.flows["hours"]
    positions = {entry.number: position_of(entry) for entry in log.history("hours")}
    log.raise_floor("hours", 1)
    log.delete_entries("hours", [1])  # as a version without a record did
    compact(chain, 1)
    log = chain.platform().log
    assert loaded_since(log, flow, newest, NO_ENTRY) is None
    spans = {number: loaded_since(log, flow, newest, positions[number]) for number in (1, 2, 3)}
    assert {number: len(of_number or ()) for number, of_number in spans.items()} == {1: 6, 2: 4, 3: 2}


def test_a_window_that_grew_upstream_has_changed_only_in_the_part_that_was_read(chain: Chain) -> None:
    chain.hours = {"window": "monthly", "partial": True, "grace": "PT6H"}
    chain.now = at(49)
    chain.run("hours")
    chain.run("days")
    chain.now = at(73)
    chain.run("hours")
    assert chain.plan("days").why == "2 work units of 3 windows x 1 unit due: 1 upstream, 1 new"
    (changed,) = {(start, end) for _, start, end in changes_of(chain)}
    assert changed == (milliseconds(at(43)), milliseconds(at(48)))


def changes_of(chain: Chain) -> tuple[tuple[str, int, int], ...]:
    """Return the loaded stretches that a plan of the days has seen to be changed."""
    read = chain.plan("days").slices[0].upstream
    assert read is not None
    changed: tuple[tuple[str, int, int], ...] = read.changed
    return changed


def expire(chain: Chain, hours: int, *, carried: bool = True) -> None:
    """Let the rows of the first hours expire, by a retention that the definition no longer has."""
    entry = chain.newest("hours")
    assert entry is not None
    upper = serialise({"at": at(hours)})
    expired = next_entry(
        entry, why="expire", fingerprint=entry.fingerprint, upper=upper, deleted=1, expired=1
    )
    text = carry_expired(entry, expired.number, expired.id, upper) if carried else None
    changed = expired.model_copy(update={"expiry": text})
    chain.platform().log.append("hours", changed, expected=entry.number)


@pytest.mark.parametrize("carried", [True, False])
def test_days_that_were_never_loaded_wait_for_rows_that_an_earlier_retention_deleted(
    chain: Chain, carried: bool
) -> None:
    chain.now = at(25)
    for name in ("hours", "days"):
        chain.run(name)
    chain.now = at(73)
    chain.run("hours")
    expire(chain, 30, carried=carried)
    chain.run("days")
    assert chain.rows("days") == [("|2026-01-05T00", 264), ("|2026-01-07T00", 264)]
    waits = "waits for rows that the retention of bronze/hours has deleted"
    assert chain.plan("days").why == f"no work unit is due; 2026-01-06 {waits}"
    (gap,) = [gap for _, gap in chain.ledger("days").missing]
    assert (gap.start, gap.end, gap.why) == (milliseconds(at(24)), milliseconds(at(48)), waits)


def test_hours_that_are_loaded_again_after_the_retention_bring_their_days_back(chain: Chain) -> None:
    chain.now = at(49)
    chain.run("hours")
    expire(chain, 30)
    first_day, rest = (hour_of(0)[0], hour_of(24)[0]), (hour_of(24)[0], hour_of(30)[0])
    chain.run("hours", Forced(WorkUnitSelection((first_day,))))
    chain.run("days")
    assert chain.rows("days") == [("|2026-01-05T00", 264)]
    chain.run("hours", Forced(WorkUnitSelection((rest,))))
    chain.run("days")
    assert chain.rows("days") == [("|2026-01-05T00", 264), ("|2026-01-06T00", 264)]
    assert chain.ledger("days").missing == []


def test_a_lengthened_retention_that_takes_rows_out_again_leaves_hours_that_came_back(chain: Chain) -> None:
    """A correction of such an hour reaches its day."""
    chain.now = at(73)
    chain.run("hours")
    expire(chain, 48)
    chain.run("hours", Forced(WorkUnitSelection(((hour_of(24)[0], hour_of(48)[0]),))))
    chain.run("days")
    assert chain.rows("days") == [("|2026-01-06T00", 264), ("|2026-01-07T00", 264)]
    expire(chain, 10)
    chain.arrive("EWR", 30, 500)
    chain.run("hours", Forced(WorkUnitSelection((hour_of(30),))))
    chain.run("days")
    assert chain.rows("days") == [("|2026-01-06T00", 264 + 499), ("|2026-01-07T00", 264)]
    waits = "waits for rows that the retention of bronze/hours has deleted"
    assert chain.plan("days").why == f"no work unit is due; 2026-01-05 {waits}"
    expire(chain, 48)
    expiry = Expiry.of(chain.newest("hours"))
    assert expiry is not None
    assert (expiry.before, expiry.earlier) == ({"at": milliseconds(at(48))}, ())


def test_an_import_over_a_log_that_began_anew_brings_back_what_a_retention_has_taken_out(
    chain: Chain,
) -> None:
    chain.now = at(73)
    chain.run("hours")
    expire(chain, 30)
    export = list(export_lines(chain.platform().log, "hours"))
    shutil.rmtree(chain.root / "state/hours")
    for make in (decisions.adopt("lost"), decisions.import_entries("found", export)):
        decisions.decide(chain.platform(), chain.flows["hours"], make, "any")
    chain.run("days")
    assert chain.rows("days") == [("|2026-01-07T00", 264)]
    chain.run("hours", Forced(WorkUnitSelection(((hour_of(0)[0], hour_of(30)[0]),))))
    chain.run("days")
    assert [cell for cell, _ in chain.rows("days")] == [f"|2026-01-{day:02}T00" for day in (5, 6, 7)]


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
