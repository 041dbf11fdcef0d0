"""Pages of the Dagster UI in Chromium: a table whose source fails, the runs, and the pictures of watermarks.

``make screenshots`` also writes the pictures of the docs; without it the pages are only checked.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

import pytest
from dagster import (
    AssetMaterialization,
    DagsterInstance,
    DagsterRunStatus,
    Definitions,
    MetadataValue,
    build_sensor_context,
)
from dagster._core.test_utils import create_run_for_test

from partitions.errors import SourceError
from partitions.instants import DAY, HOUR, milliseconds
from partitions.sentinels import serialise
from partitions.stream.state import Split, StreamState
from partitions.window.calendar_grid import Grain, Grid
from partitions.window.state import WindowState
from partitions.window.work_outcomes import LoadedUnit
from platform_assets.build import build_definitions
from platform_assets.dagster_home import dagster_home
from platform_assets.factory.kinds.path.pictures import arrivals_metadata
from platform_assets.factory.kinds.stream.pictures import splits_picture
from platform_assets.platform import build_platform
from platform_assets.project import load_project
from resources.dagster.run_holder import mark_run
from resources.kinds.path.arrivals import DayArrivals
from resources.spark.connect_server import free_port
from resources.watermarks.entry import next_entry
from resources.watermarks.log import WatermarkLog
from tests.support.browser import WIDTH, page_shows
from tests.support.environment import clean_environment
from tests.support.names import names_of_runs
from tests.support.projects import project_of
from tests.support.ready import answers, wait_until_ready

pytestmark = [pytest.mark.full, pytest.mark.ui, pytest.mark.timeout(600)]

EVENTS = """\
source: {type: files, path: ./landing, format: ndjson, schema: id long}
watermark: {type: path}
target: {load: append}
"""
WINDOWS = """\
source: {{type: files, path: './in/{{start:%Y-%m-%d%H}}/{{unit.airport}}', format: ndjson, schema: id long, missing: empty}}
watermark:
  type: window
  definition:
    - {{name: time, type: datetime, range: {{from: '{start}', to: '{end}'}}}}
    - {{name: airport, type: unit, units: [{units}]}}
  window: {window}
target: {{load: merge_overwrite, replace_by_watermark: true}}
"""
STREAM = """\
source: {type: table, table: bronze/devices}
watermark: {type: stream, event_time: ts, split: device, timeout: PT5M}
"""
AIRPORTS = [
    "EWR",
    "JFK",
    "LGA",
    "ATL",
    "ORD",
    "DFW",
    "DEN",
    "LAX",
    "SFO",
    "SEA",
    "MIA",
    "BOS",
    "PHX",
    "IAH",
    "MCO",
    "CLT",
    "LAS",
    "DTW",
    "PHL",
    "MSP",
    "FLL",
    "BWI",
    "SLC",
    "DCA",
    "SAN",
    "TPA",
    "PDX",
    "HNL",
    "STL",
    "BNA",
    "AUS",
    "OAK",
    "MCI",
    "RDU",
    "SJC",
    "SMF",
    "MSY",
    "SNA",
    "CLE",
    "PIT",
]
START = datetime(2025, 1, 1, tzinfo=UTC)


@dataclass
class Pages:
    """A webserver over a project whose log and Dagster home are filled, without Spark and daemon.

    Attributes:
        url: its address.
        definitions: of the project.
        instance: the runs and events that it shows.
        log: the watermark log.
        folder: the project.
    """

    url: str
    definitions: Definitions
    instance: DagsterInstance
    log: WatermarkLog
    folder: Path

    def tick(self, sensor: str) -> Any:
        """Return what a sensor requests at its first tick."""
        return self.definitions.resolve_sensor_def(sensor)(build_sensor_context(instance=self.instance))

    def show_watermark(self, name: str) -> None:
        """Report a materialisation of a dataflow's watermark, as a run would."""
        flow = load_project(self.folder).dataflows[name]
        manager = self.definitions.resources["strandline_watermark"] if self.definitions.resources else None
        assert manager is not None
        self.instance.report_runless_asset_event(
            AssetMaterialization(["watermark", name], metadata=manager.described(flow))
        )


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pages]:
    many = WINDOWS.format(start="2025-01-01", end="2026-02-05", units=", ".join(AIRPORTS), window="daily")
    hours = WINDOWS.format(start="2025-01-01", end="2025-01-04", units="EWR, JFK, LGA", window="hourly")
    due = WINDOWS.format(start="2025-01-01", end="2025-12-23", units="EWR, JFK, LGA", window="daily")
    folder = project_of(
        tmp_path_factory.mktemp("pages"),
        events=EVENTS,
        flights=many,
        departures=hours,
        weather=due,
        readings=STREAM,
    )
    (folder / "landing").rmdir()
    (folder / "in").mkdir()
    home = dagster_home(folder, {})
    port, log = free_port(), folder / "web.log"
    environment = clean_environment() | {"DAGSTER_HOME": str(home), "STRANDLINE_PROJECT": str(folder)}
    project = load_project(folder)
    with DagsterInstance.from_config(str(home)) as instance, log.open("wb") as output:
        command = ["-m", "dagster_webserver", "-m", "platform_assets.definitions", "-p", str(port)]
        process = subprocess.Popen(
            [sys.executable, *command], stdout=output, stderr=subprocess.STDOUT, env=environment
        )
        try:
            definitions, watermarks = build_definitions(project), build_platform(project).log
            filled = Pages(f"http://127.0.0.1:{port}", definitions, instance, watermarks, folder)
            wait_until_ready(lambda: answers(f"{filled.url}/server_info"), process, log, 120)
            yield filled
        finally:
            process.terminate()
            process.wait(60)


def load_windows(
    pages: Pages, name: str, width: int, window: Grain, units: list[str], loaded: Any, failed: Any
) -> None:
    """Append an entry with the windows of a year that ``loaded`` and ``failed`` name by unit and number."""
    grid, first = Grid(window), milliseconds(START)
    count = 400 if window == "daily" else 72
    parts = [(f'{{"airport":"{unit}"}}', unit, number) for unit in units for number in range(count)]
    done = [
        LoadedUnit(
            first + number * width, first + (number + 1) * width, first + number * width, unit, False, grid
        )
        for unit, code, number in parts
        if loaded(code, number) and not failed(code, number)
    ]
    bad = [
        (unit, first + number * width, "a.ndjson is bad")
        for unit, code, number in parts
        if failed(code, number)
    ]
    state = WindowState(grid).after(done, bad, at=milliseconds(datetime(2026, 2, 5, tzinfo=UTC)))
    entry = next_entry(
        None, kind="window", app_id="a", fingerprint="", why="run", watermark=serialise(state.watermark())
    )
    pages.log.append(name, entry, expected=0)
    pages.show_watermark(name)


def fits(page: Any) -> None:
    """Check that nothing of the pictures, and of the texts beside them, is cut off at the right."""
    images = page.evaluate(
        "[...document.querySelectorAll('img[src^=\"data:\"]')].map(i => [i.clientWidth, i.naturalWidth,"
        " i.getBoundingClientRect().right, i.closest('td').getBoundingClientRect().right])"
    )
    assert images
    for shown, natural, right, cell in images:
        assert shown == natural, "it is not shrunk"
        assert right <= cell <= WIDTH


def test_the_page_of_a_table_says_why_looking_for_new_data_fails_and_when_it_is_tried_again(
    pages: Pages,
) -> None:
    with pytest.raises(SourceError):
        pages.tick("events_files")
    page_shows(
        f"{pages.url}/assets/bronze/events?view=checks&checkDetail=up_to_date",
        "Looking for new data has failed since",
        "expected a folder, found none",
        "failing_since",
        "next_attempt",
        "why",
        "looking for new data fails since",
        picture="failing-look.png",
        height=900,
        replaced={str(pages.folder): "/data/shop"},
    )


def test_the_runs_page_says_what_each_run_does_and_hides_tags_of_machines(pages: Pages) -> None:
    requests = pages.tick("weather_windows").run_requests
    texts = [request.tags["strandline/plan"] for request in requests]
    assert texts == [
        "EWR to LGA, 498 of 1,068 work units",
        "EWR to LGA, 498 of 1,068 work units",
        "EWR to LGA, 72 of 1,068 work units",
    ]
    states = (DagsterRunStatus.SUCCESS, DagsterRunStatus.STARTED, DagsterRunStatus.NOT_STARTED)
    for request, status in zip(requests, states, strict=True):
        run = create_run_for_test(
            pages.instance, job_name="load_weather", tags=dict(request.tags), status=status
        )
        if status is not DagsterRunStatus.NOT_STARTED:
            mark_run(pages.instance, run.run_id, names_of_runs("weather"))
    page_shows(
        f"{pages.url}/runs",
        "strandline/dataflow: weather",
        "strandline/plan: EWR to LGA, 498",
        hides=("holder", '{"', "upstream", "told_"),
        picture="runs.png",
        height=700,
    )


@pytest.mark.parametrize("theme", ["light", "dark"])
class TestPictures:
    def test_forty_units_of_four_hundred_days(self, pages: Pages, theme: Literal["light", "dark"]) -> None:
        if pages.log.newest("flights") is None:
            load_windows(
                pages,
                "flights",
                DAY,
                "daily",
                AIRPORTS,
                lambda unit, day: (unit != "LAX" or day < 350) and (unit != "BOS" or day % 9),
                lambda unit, day: unit == "DEN" and 200 <= day < 220,
            )
        page_shows(
            f"{pages.url}/assets/watermark/flights",
            "37 of 40 units without a gap",
            "Green is loaded, yellow in part, red failed, grey missing. Times in UTC.",
            image="ledger",
            theme=theme,
            picture="ledger.png" if theme == "light" else None,
            height=1250,
            check=fits,
        )

    def test_three_units_of_72_hours(self, pages: Pages, theme: Literal["light", "dark"]) -> None:
        if pages.log.newest("departures") is None:
            load_windows(
                pages,
                "departures",
                HOUR,
                "hourly",
                AIRPORTS[:3],
                lambda unit, hour: unit != "LGA" or not 50 <= hour < 60,
                lambda unit, hour: unit == "JFK" and hour == 40,
            )
        page_shows(
            f"{pages.url}/assets/watermark/departures",
            "1 of 3 units without a gap",
            "Green is loaded, red failed, grey missing. Times in UTC.",
            image="ledger",
            theme=theme,
            check=fits,
        )

    def test_arrivals_of_files(self, pages: Pages, theme: Literal["light", "dark"]) -> None:
        days = {
            (date(2025, 12, 1) + timedelta(days=number)).isoformat(): DayArrivals(
                20 + number % 7 * 3, 2 * (number % 9 == 0), int(number == 30)
            )
            for number in range(45)
        }
        metadata = arrivals_metadata(days, date(2026, 1, 20))
        pages.instance.report_runless_asset_event(
            AssetMaterialization(
                ["watermark", "events"], metadata={"watermark": "2026-01-14/b.ndjson", **metadata}
            )
        )
        page_shows(
            f"{pages.url}/assets/watermark/events",
            "Green is loaded, yellow late, red in quarantine.",
            image="arrivals",
            theme=theme,
            picture="arrivals.png" if theme == "light" else None,
            height=850,
            check=fits,
        )

    def test_watermarks_of_a_stream(self, pages: Pages, theme: Literal["light", "dark"]) -> None:
        states = []
        for epoch in range(1, 41):
            behind = Split(START + timedelta(minutes=min(10 * epoch - 60, 150)), max(0, epoch - 21))
            ahead = [START + timedelta(minutes=10 * epoch - less) for less in (0, 20)]
            slowest = ahead[1] if behind.idle >= 5 else behind.watermark
            splits = {"a": Split(ahead[0]), "b": Split(ahead[1]), "c": behind}
            states.append(StreamState(splits, slowest, epoch=epoch))
        picture = MetadataValue.md(splits_picture(states, 5))
        pages.instance.report_runless_asset_event(
            AssetMaterialization(["watermark", "readings"], metadata={"watermarks": picture})
        )
        page_shows(
            f"{pages.url}/assets/watermark/readings",
            "Green is complete, yellow the watermark of a split, red of an idle one, grey waits.",
            image="watermarks",
            theme=theme,
            picture="watermarks.png" if theme == "light" else None,
            height=1000,
            check=fits,
        )
