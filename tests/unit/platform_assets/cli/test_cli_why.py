"""``strandline why`` of windows, columns and streams: from states and lists as runs leave them."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner
from deltalake import write_deltalake

from partitions.errors import SourceError
from partitions.instants import milliseconds, time_text
from partitions.sentinels import serialise
from partitions.stream.state import Segment, Split, StreamState
from partitions.window.calendar_grid import Grid
from partitions.window.state import WindowState
from partitions.window.work_outcomes import Failure, LoadedUnit
from platform_assets.cli import main
from platform_assets.kinds.window.words import reach_in_words
from resources.connections.places import Place
from resources.notes.last_run import note_attempt
from resources.outcome import Outcome
from resources.watermarks.blobs import open_blobs
from resources.watermarks.entry import Entry, next_entry
from resources.watermarks.lists import SEEN_WORK_UNITS, StoredList
from resources.watermarks.log import WatermarkLog
from resources.watermarks.stored_objects import OBSERVED
from resources.watermarks.work_units import WORK_UNITS
from tests.support.projects import FILES, project_of

NOW = "2026-01-05T12:00:00+00:00"
WINDOWS = """\
source: {type: files, path: './landing/{start:%Y-%m-%d}/{unit.airport}', format: ndjson, schema: id long, missing: empty}
watermark:
  type: window
  definition:
    - {name: day, type: datetime, range: {from: '2026-01-01', to: '-'}}
    - {name: airport, type: unit, units: [EWR, JFK]}
  window: daily
  partial: false
target: {load: merge_overwrite, replace_by_watermark: true}
"""
COLUMN = """\
source: {type: jdbc, connection: erp, table: public.a}
watermark: {type: column, columns: [id]}
target: {load: append}
"""
STREAM = """\
source: {type: table, table: bronze/events}
watermark: {type: stream, event_time: ts, split: device, timeout: 5, splits: [a, b, c]}
"""
EWR, JFK = '{"airport":"EWR"}', '{"airport":"JFK"}'


def day(number: int) -> int:
    return milliseconds(datetime(2026, 1, number, tzinfo=UTC))


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DAGSTER_HOME", raising=False)


class Project:
    """A project with one dataflow, ``flow``, and its log."""

    def __init__(self, folder: Path, definition: str) -> None:
        self.folder = project_of(folder, flow=definition)
        (self.folder / "platform.yaml").write_text(
            "state: ./state\nlake: ./lake\nconnections: {erp: {type: jdbc, url: 'jdbc:postgresql://h/d', user: u}}\n"
        )
        (self.folder / "landing").mkdir(exist_ok=True)
        self.log = WatermarkLog(open_blobs(Place(str(self.folder / "state"))))

    def append(self, **changes: Any) -> Entry:
        last = self.log.newest("flow")
        first = {
            "app_id": "a",
            "fingerprint": "",
            "why": "run",
            "run_id": f"run-{last.number + 1 if last else 1}",
        }
        return self.log.append(
            "flow", next_entry(last, **first | changes), expected=last.number if last else 0
        )

    def text(self, *subject: str) -> str:
        answer = CliRunner().invoke(
            main.strandline, ["--project", str(self.folder), "--now", NOW, "why", "flow", *subject]
        )
        assert answer.exit_code == 0, answer.output
        return answer.stdout

    def json(self, *subject: str) -> Any:
        return self.answer("why", "flow", *subject)

    def answer(self, *call: str) -> Any:
        command = ["--project", str(self.folder), "--now", NOW, "--json", *call]
        return json.loads(CliRunner().invoke(main.strandline, command).stdout)


class TestWindows:
    @pytest.fixture
    def project(self, tmp_path: Path) -> Project:
        """Entry 1 has loaded two days of both airports; entry 2 the third day of JFK, and failed at that of EWR."""
        project = Project(tmp_path, WINDOWS)
        grid, state = Grid("daily"), WindowState().rebased(Grid("daily"))
        works = [(number, unit) for number in (1, 2) for unit in (EWR, JFK)]
        loaded = [LoadedUnit(day(at), day(at + 1), day(at), unit, False, grid) for at, unit in works]
        state = state.after(loaded, [], [], at=day(3))
        self.entry(project, state, works, [])
        state = state.after(
            [LoadedUnit(day(3), day(4), day(3), JFK, False, grid)],
            [(EWR, day(3), "file 2026-01-03/EWR/a.ndjson is bad")],
            [],
            at=day(4),
        )
        self.entry(project, state, [(3, JFK)], [(3, EWR)])
        return project

    @staticmethod
    def entry(
        project: Project, state: WindowState, works: list[tuple[int, str]], failed: list[tuple[int, str]]
    ) -> None:
        rows = [
            [day(at), day(at + 1), unit, day(at), "new", False, "daily UTC", None, error]
            for units, error in ((works, None), (failed, "file 2026-01-03/EWR/a.ndjson is bad"))
            for at, unit in units
        ]
        stored = StoredList(WORK_UNITS, rows, {"at": day(4)})
        name = f"list-{len(works)}"
        key = project.log.put_list("flow", name, stored)
        entry = project.append(
            kind="window", watermark=serialise(state.watermark()), rows=10 * len(works), file_list=key,
            work_units=len(works), failed_units=len(failed),
        )  # fmt: skip
        counts = StoredList(SEEN_WORK_UNITS, [[day(at), unit, at * 7, "d"] for at, unit in works])
        project.log.put_list("flow", f"{entry.number:010d}-{entry.id}", counts, OBSERVED)

    def test_a_loaded_window_of_a_unit_names_its_entry_run_and_own_rows(self, project: Project) -> None:
        entry = project.log.entry("flow", 1)
        assert project.text("2026-01-02/JFK") == (
            "flow 2026-01-02/JFK: loaded\n"
            f"  entry 1 (run) of {time_text(entry.time)}: 14 of its 40 rows, run run-1\n"
        )

    def test_a_loaded_window_whose_forced_read_failed_stays_loaded_in_every_answer(
        self, project: Project
    ) -> None:
        """Its rows of before are in the table: `why`, `ledger` and `list` say so, with the error and the command."""
        state = WindowState.of(json.loads(project.log.newest("flow").watermark))  # type: ignore[union-attr]
        failed = state.after([], [(JFK, day(2), "file 2026-01-02/JFK/a.ndjson is bad")], [], at=day(5))
        self.entry(project, failed, [], [(2, JFK)])
        document = project.json("2026-01-02/JFK")
        assert (document["status"], document["summary"]) == (
            "loaded",
            "loaded; reading again failed, and the earlier rows stay",
        )
        assert [entry["entry"] for entry in document["entries"]] == [1]
        assert [(reason["what"], reason["why"]) for reason in document["reasons"]] == [
            (
                "1 work unit loaded, but not read again 2026-01-02T00:00:00+00:00 of airport JFK",
                "file 2026-01-02/JFK/a.ndjson is bad",
            )
        ]
        assert document["choices"] == ["strandline run flow"]
        (ledger,) = project.answer("ledger", "flow")
        jfk = ledger["units"][1]
        assert (jfk["complete_up_to"], jfk["failed_rereads"]) == (
            "2026-01-04T00:00:00+00:00",
            [
                {
                    "start": "2026-01-02T00:00:00+00:00",
                    "end": "2026-01-03T00:00:00+00:00",
                    "why": "loaded, and keeps its earlier rows; reading it again failed once: file 2026-01-02/JFK/a.ndjson is bad",
                }
            ],
        )
        assert reach_in_words(failed.watermark()) == (
            "complete up to 2026-01-03T00:00:00+00:00, at most up to 2026-01-04T00:00:00+00:00 (1 of 2 units behind), 1 work unit failed,"
            " 1 work unit loaded, but not read again"
        )
        names = [reason["what"] for reason in project.json()["reasons"]]
        assert "1 work unit failed 2026-01-03T00:00:00+00:00 of airport EWR" in names
        assert "1 work unit loaded, but not read again 2026-01-02T00:00:00+00:00 of airport JFK" in names

    def test_a_failed_window_says_why_who_and_when_it_is_tried_again(self, project: Project) -> None:
        document = project.json("2026-01-03/EWR")
        (reason,) = document["reasons"]
        assert (document["status"], document["summary"], document["entries"]) == (
            "failed",
            "failed, not loaded",
            [],
        )
        assert reason == {
            "what": "[2026-01-03T00:00:00+00:00, 2026-01-04T00:00:00+00:00) airport EWR",
            "why": "failed once: file 2026-01-03/EWR/a.ndjson is bad",
            "since": None,
            "next_try": None,
            "due_since": "2026-01-04T00:01:00+00:00",
            "tried_at": "2026-01-04T00:00:00+00:00",
            "run_id": "run-2",
            "choices": ["strandline run flow"],
        }

    def test_a_day_of_all_units_counts_what_is_loaded_and_names_the_rest(self, project: Project) -> None:
        document = project.json("2026-01-03")
        assert (document["status"], document["summary"]) == ("loaded_in_part", "1 of 2 work units loaded")
        assert [(entry["entry"], entry["part"], entry["part_rows"]) for entry in document["entries"]] == [
            (2, "2026-01-03T00:00:00+00:00 of airport JFK", 21)
        ]
        assert [reason["what"][-11:] for reason in document["reasons"]] == ["airport EWR"]

    def test_a_unit_shows_each_entry_that_loaded_its_windows(self, project: Project) -> None:
        document = project.json("JFK")
        assert document["summary"] == "3 of 4 work units loaded"
        assert [(entry["entry"], entry["part"]) for entry in document["entries"]] == [
            (2, "2026-01-03T00:00:00+00:00 of airport JFK"),
            (1, "2 windows from 2026-01-01T00:00:00+00:00 of airport JFK"),
        ]

    def test_a_window_that_is_over_and_not_loaded_is_due(self, project: Project) -> None:
        assert project.text("2026-01-04/JFK") == (
            "flow 2026-01-04/JFK: not loaded yet: the next run loads it\n"
            "  [2026-01-04T00:00:00+00:00, 2026-01-05T00:00:00+00:00) airport JFK: never loaded; the next run loads it (new)\n"
            f"    strandline run flow --project {project.folder}\n"
        )

    @pytest.mark.parametrize(
        ("subject", "status", "summary"),
        [
            ("2026-01-05", "waits", "no window yet: windows end at 2026-01-05T00:00:00+00:00"),
            ("2026-02-01", "future", "in the future: its windows are not over yet"),
            (
                "2025-12-31",
                "outside",
                "no window of the definition: the windows cover [2026-01-01T00:00:00+00:00, 2026-01-05T00:00:00+00:00)",
            ),
        ],
    )
    def test_a_time_without_windows_says_why(
        self, project: Project, subject: str, status: str, summary: str
    ) -> None:
        document = project.json(subject)
        assert (document["status"], document["summary"]) == (status, summary)

    def test_without_a_subject_failed_work_units_are_counted_by_error(self, project: Project) -> None:
        document = project.json()
        assert document["status"] == "due"
        assert document["reasons"][0] == {
            "what": "1 work unit failed 2026-01-03T00:00:00+00:00 of airport EWR",
            "why": "file 2026-01-03/EWR/a.ndjson is bad",
            "since": None,
            "next_try": None,
            "due_since": "2026-01-04T00:01:00+00:00",
            "tried_at": "2026-01-04T00:00:00+00:00",
            "run_id": None,
            "choices": [],
        }
        assert not [reason for reason in document["reasons"] if reason["why"].endswith("loaded")]

    def test_work_units_that_fail_alike_are_one_reason_with_an_example(self, project: Project) -> None:
        newest = project.log.newest("flow")
        assert newest is not None
        failed = [(unit, day(at), f"no files in 2026-01-0{at}/{name}") for at in (3, 4) for unit, name in ((EWR, "EWR"), (JFK, "JFK"))]  # fmt: skip
        state = WindowState.of(newest.state()).after([], failed, [], at=day(5))
        project.append(kind="window", watermark=serialise(state.watermark()))
        document = project.json()
        assert next((reason["what"], reason["why"]) for reason in document["reasons"]) == (
            "3 work units failed, the first 2026-01-03T00:00:00+00:00 of airport EWR",
            "no files in 2026-01-03/EWR",
        )
        (reason,) = project.json("2026-01-04")["reasons"]
        assert reason["why"] == "2 alike, such as: failed once: no files in 2026-01-04/EWR"

    def test_a_window_that_only_a_decision_counts_as_loaded_says_so(self, project: Project) -> None:
        newest = project.log.newest("flow")
        assert newest is not None
        project.append(kind="window", why="import", era=2, watermark=newest.watermark)
        document = project.json("2026-01-02/JFK")
        assert (document["status"], document["entries"]) == ("loaded", [])
        assert "a decision took it as loaded" in document["summary"]


def test_the_pause_before_the_next_try_grows_with_the_failures(tmp_path: Path) -> None:
    project = Project(tmp_path, WINDOWS)
    failed_at = milliseconds(datetime(2026, 1, 5, 11, 58, tzinfo=UTC))
    state = WindowState(Grid.parse("daily UTC"), failed={EWR: {day(1): Failure(3, "bad", failed_at)}})
    project.append(kind="window", watermark=serialise(state.watermark()))
    (reason,) = project.json("2026-01-01/EWR")["reasons"]
    assert (reason["why"], reason["next_try"]) == ("failed 3 times: bad", "2026-01-05T12:02:00+00:00")
    assert reason["due_since"] is None
    sentence = "failed 3 times: bad (when it was last tried, 2026-01-05 11:58:00 UTC); Dagster's sensor, if it is on, tries it again at 2026-01-05 12:02:00 UTC"
    assert sentence in project.text("2026-01-01/EWR")


def test_once_the_pause_is_over_a_failed_window_is_due_since_then(tmp_path: Path) -> None:
    project = Project(tmp_path, WINDOWS)
    failed_at = milliseconds(datetime(2026, 1, 5, 11, 55, tzinfo=UTC))
    state = WindowState(Grid.parse("daily UTC"), failed={EWR: {day(1): Failure(3, "bad", failed_at)}})
    project.append(kind="window", watermark=serialise(state.watermark()))
    for subject in (("2026-01-01/EWR",), ()):
        assert (
            "bad (when it was last tried, 2026-01-05 11:55:00 UTC); due since 2026-01-05 11:59:00 UTC\n"
            in project.text(*subject)
        )


class TestAColumn:
    @pytest.fixture
    def project(self, tmp_path: Path) -> Project:
        project = Project(tmp_path, COLUMN)
        project.append(kind="column", watermark='{"id": 10}', upper='{"id": 10}', rows=9)
        project.append(kind="column", watermark='{"id": 20}', lower='{"id": 10}', upper='{"id": 20}', rows=5)
        return project

    @pytest.mark.parametrize(("value", "entry"), [("10", 1), ("11", 2), ("id=20", 2), ("-3", 1)])
    def test_a_value_names_the_entry_that_read_it(self, project: Project, value: str, entry: int) -> None:
        document = project.json("--", value)
        assert (document["status"], document["summary"]) == ("loaded", "loaded: id is loaded up to 20")
        assert [found["entry"] for found in document["entries"]] == [entry]

    def test_a_look_back_without_new_rows_loads_nothing_new(self, tmp_path: Path) -> None:
        source = "source: {type: table, table: bronze/rows}\n"
        project = Project(
            tmp_path,
            f"{source}watermark: {{type: column, columns: [id], backward: {{by: 5}}}}\ntarget: {{load: merge_upsert, merge_keys: [id]}}\n",
        )
        write_deltalake(str(tmp_path / "lake/bronze/rows"), pa.table({"id": [10]}))
        project.append(kind="column", watermark='{"id": 10}', upper='{"id": 10}', rows=1)
        document = project.json()
        assert (document["status"], document["summary"], document["reasons"], document["choices"]) == (
            "up_to_date",
            "nothing new; the next run reads the look-back again (5)",
            [],
            [],
        )

    def test_a_value_of_another_type_is_refused(self, project: Project) -> None:
        error = project.json("ten")["error"]
        assert error["message"] == "dataflow flow: expected a value of column id, such as 20, found 'ten'"

    def test_a_value_that_a_decision_covers_has_no_entry(self, project: Project) -> None:
        project.append(kind="column", why="set", watermark='{"id": 99}')
        document = project.json("50")
        assert document["entries"] == []
        assert "a decision set the watermark" in document["summary"]


class TestAStream:
    @pytest.fixture
    def project(self, tmp_path: Path) -> Project:
        project = Project(tmp_path, STREAM)
        first = StreamState({"a": Split(30), "b": Split(40)}, 20, (Segment("1", 3, 30, 45),), 1, drained=20)
        project.append(kind="stream", watermark=serialise(first.watermark()), rows=2)
        splits = {"a": Split(30, 1), "b": Split(70), "c": Split(50)}
        second = StreamState(splits, 30, (Segment("1", 3, 30, 45), Segment("2", 4, 50, 75)), 2, drained=30)
        project.append(kind="stream", watermark=serialise(second.watermark()), rows=6)
        return project

    def test_a_slow_split_is_what_the_stream_waits_for(self, project: Project) -> None:
        document = project.json("a")
        assert (document["status"], document["summary"]) == (
            "waits",
            "the slowest: the global watermark waits for it, at 30, no rows for 1 epoch",
        )
        assert [entry["entry"] for entry in document["entries"]] == [1]

    def test_a_fast_split_says_from_where_on_its_rows_wait_and_for_whom(self, project: Project) -> None:
        document = project.json("b")
        assert (
            document["summary"]
            == "at 70; its rows below 30 are loaded, those from there on wait in the buffer"
        )
        assert [entry["entry"] for entry in document["entries"]] == [2]
        assert document["reasons"][0]["why"] == (
            "wait for split a, the slowest, at 30, without rows for 1 epoch"
        )

    def test_an_unknown_split_names_the_nearest_one(self, tmp_path: Path) -> None:
        project = Project(tmp_path, STREAM.replace("[a, b, c]", "[sensor-1]"))
        assert project.json("sensor-11")["error"]["message"].endswith("did you mean sensor-1?")

    def test_sparks_engine_takes_no_second_argument(self, tmp_path: Path) -> None:
        definition = "source: {type: table, table: bronze/events}\nwatermark: {type: stream, engine: structured_streaming, event_time: ts, timeout: PT5M}\n"
        error = Project(tmp_path, definition).json("a")["error"]
        assert "which has one watermark and no splits" in error["message"]


class TestAFileBesideBadOnes:
    """A good file waits for the slice that failed at others."""

    @pytest.fixture
    def project(self, tmp_path: Path) -> Project:
        project = Project(tmp_path, FILES)
        for name in ("a.ndjson", "b.ndjson", "c.ndjson"):
            path = project.folder / "landing" / name
            path.write_text("{}")
            os.utime(path, (1_700_000_000, 1_700_000_000))
        return project

    @pytest.mark.parametrize(
        "error",
        [
            SourceError("2 of 3 files are bad, such as b.ndjson: no JSON", code="too_many_bad_files"),
            SourceError("file b.ndjson, line 1: no JSON"),
        ],
    )
    def test_it_says_so(self, project: Project, error: SourceError) -> None:
        note_attempt(project.log, Outcome("flow", None, {}, 0, error=error))
        document = project.json("c.ndjson")
        assert (document["status"], document["summary"]) == (
            "waits",
            "not loaded: it is in slice 1 of 1, and waits for a slice that failed at other files",
        )
        assert [reason["why"] for reason in document["reasons"]] == [error.message]
        assert project.json("b.ndjson")["status"] == "failing"

    def test_it_is_due_once_the_bad_file_is_another_one(self, project: Project) -> None:
        note_attempt(
            project.log, Outcome("flow", None, {}, 0, error=SourceError("file b.ndjson, line 1: no"))
        )
        os.utime(project.folder / "landing/b.ndjson", (4_000_000_000, 4_000_000_000))
        assert project.json("c.ndjson")["status"] == "due"
