"""``strandline list`` and ``plan``: what they answer beside a broken file, and how the last attempt and what waits are told."""

from __future__ import annotations

import json
import os
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from partitions.errors import SourceError
from partitions.fingerprint import fingerprint
from partitions.instants import time_text
from partitions.sentinels import serialise
from partitions.stream.state import Segment, Split, StreamState
from platform_assets.cli import main
from platform_assets.kinds import PROFILES
from platform_assets.project import load_project
from resources.connections.places import Place
from resources.notes.last_run import note_attempt
from resources.outcome import Outcome
from resources.watermarks import holder
from resources.watermarks.blobs import open_blobs
from resources.watermarks.entry import Entry, Holder, Intent, next_entry
from resources.watermarks.log import WatermarkLog
from tests.support.projects import FILES, WINDOWS, project_of

NOW = "2026-06-01T00:00:00+00:00"


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DAGSTER_HOME", raising=False)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return project_of(tmp_path, good=FILES)


@pytest.fixture
def log(project: Path) -> WatermarkLog:
    return WatermarkLog(open_blobs(Place(str(project / "state"))))


def call(project: Path, *arguments: str) -> Result:
    return CliRunner().invoke(main.strandline, ["--project", str(project), "--now", NOW, *arguments])


def answers(project: Path, *arguments: str) -> tuple[int, Any]:
    answer = call(project, "--json", *arguments)
    return answer.exit_code, json.loads(answer.stdout)


def append(log: WatermarkLog, number: int = 1, **changes: Any) -> Entry:
    first: dict[str, Any] = {"kind": "path", "app_id": "a", "fingerprint": "", "why": "run"}
    entry = next_entry(
        log.newest("good"), **first | {"watermark": '{"path": "a.ndjson"}', "modified": 1} | changes
    )
    return log.append("good", entry, expected=number - 1)


def intent(number: int, who: Holder, time: str) -> Intent:
    return Intent(
        id=f"intent-{number}", number=number, dataflow="good", kind="path", app_id="a", why="run", before="{}", watermark="{}",
        upper="{}", definition={}, fingerprint="", pinned="p", file_list="l", holder=who, time=time,
    )  # fmt: skip


@pytest.mark.parametrize("command", ["plan", "list", "status"])
class TestABrokenFile:
    def test_a_broken_file_has_a_record_and_exit_code_is_2(self, project: Path, command: str) -> None:
        (project / "dataflows/bad.yaml").write_text(FILES + "lyer: x\n")
        code, documents = answers(project, command)
        assert code == 2
        good, bad = documents
        assert (good["dataflow"], good["state_number"], good.get("error")) == ("good", 0, None)
        assert sorted(bad) == ["dataflow", "error"]
        assert (bad["dataflow"], bad["error"]["code"], bad["error"]["choices"]) == (
            "bad",
            "project",
            ["strandline validate"],
        )
        assert bad["error"]["message"].startswith("dataflows/bad.yaml:3: lyer: found an unknown key")

    def test_the_text_output_shows_its_error(self, project: Path, command: str) -> None:
        (project / "dataflows/bad.yaml").write_text(FILES + "lyer: x\n")
        answer = call(project, command)
        assert (answer.exit_code, answer.stderr) == (2, "")
        assert "bad: dataflows/bad.yaml:3: lyer: found an unknown key" in answer.stdout
        assert "strandline validate" in answer.stdout

    def test_it_has_a_record_if_it_is_named_beside_others(self, project: Path, command: str) -> None:
        (project / "dataflows/bad.yaml").write_text(FILES + "lyer: x\n")
        code, documents = answers(project, command, "bad", "good")
        assert (code, [document["dataflow"] for document in documents]) == (2, ["good", "bad"])

    def test_named_alone_it_is_the_whole_answer(self, project: Path, command: str) -> None:
        (project / "dataflows/bad.yaml").write_text(FILES + "lyer: x\n")
        code, document = answers(project, command, "bad")
        assert (code, document["error"]["code"]) == (2, "project")

    def test_the_exit_code_is_0_if_all_files_are_good(self, project: Path, command: str) -> None:
        assert answers(project, command)[0] == 0


class TestTheLastAttempt:
    def test_a_dataflow_without_a_run_has_no_attempt(self, project: Path) -> None:
        _, (document,) = answers(project, "list")
        assert (document["last_attempt"], document["last_run"]) == (None, None)

    def test_an_early_failed_attempt_is_shown_since_when(self, project: Path, log: WatermarkLog) -> None:
        note_attempt(
            log,
            Outcome(
                "good", None, {}, 0, error=SourceError("file a.ndjson is bad", choices=["strandline doctor"])
            ),
        )
        _, (document,) = answers(project, "list")
        attempt = document["last_attempt"]
        assert (attempt["status"], attempt["failing_since"]) == ("failed", attempt["time"])
        assert attempt["error"] == {
            "code": "source",
            "message": "file a.ndjson is bad",
            "choices": ["strandline doctor"],
        }
        people = call(project, "list").stdout
        assert "failed for 0 s" in people
        assert (
            f"good: failed 0 s ago, failing since {time_text(attempt['time'])}: file a.ndjson is bad\n    strandline doctor"
            in people
        )

    def test_a_dead_processs_slice_is_a_dead_attempt(self, project: Path, log: WatermarkLog) -> None:
        append(log)
        gone = holder.current_holder(None).model_copy(update={"pid": 2**22 + 1})
        log.put_intent(intent(2, gone, "2026-05-31T00:00:00.000+00:00"))
        _, (document,) = answers(project, "list")
        attempt = document["last_attempt"]
        assert (attempt["status"], attempt["error"]["code"], attempt["error"]["choices"]) == (
            "died",
            "died",
            ["strandline run good"],
        )
        assert (
            "the process of slice 2, started at 2026-05-31 00:00:00 UTC, is gone"
            in attempt["error"]["message"]
        )
        assert re.search(r"│ died [0-9]+ days ago ", call(project, "list").stdout)

    def test_a_slice_that_another_machine_works_on_is_running(self, project: Path, log: WatermarkLog) -> None:
        append(log)
        log.put_intent(intent(2, Holder(host="elsewhere", pid=1, started=1), "2026-05-31T00:00:00.000+00:00"))
        _, (document,) = answers(project, "list")
        assert (document["last_attempt"]["status"], document["last_attempt"]["error"]) == ("running", None)

    def test_a_run_failed_in_a_slice_says_more_than_it(self, project: Path, log: WatermarkLog) -> None:
        append(log)
        gone = holder.current_holder(None).model_copy(update={"pid": 2**22 + 1})
        log.put_intent(intent(2, gone, "2026-05-31T00:00:00.000+00:00"))
        note_attempt(log, Outcome("good", None, {}, 0, error=SourceError("no room left")))
        _, (document,) = answers(project, "list")
        assert document["last_attempt"]["error"]["message"] == "no room left"


class TestWhatWaits:
    def test_files_above_the_watermark_wait(self, project: Path, log: WatermarkLog) -> None:
        for name in ("a.ndjson", "b.ndjson", "c.ndjson"):
            (project / "landing" / name).touch()
        _, (document,) = answers(project, "list")
        assert document["waiting"] == {
            "files": 3,
            "settling": 0,
            "new_rows": None,
            "new_input": None,
            "new_commits": None,
            "commits_lag_seconds": None,
            "work_units": None,
            "failed_units": None,
            "waiting_for_upstream": None,
            "reach": None,
            "more": False,
            "why": None,
            "warnings": [],
        }
        append(log)
        _, (document,) = answers(project, "list")
        assert document["waiting"]["files"] == 2
        assert "2 files" in call(project, "list").stdout

    @pytest.mark.parametrize(
        ("young", "said"), [(("b", "c"), "1 file, 2 settling"), (("a", "b", "c"), "3 settling")]
    )
    def test_new_files_that_settle_holds_back_are_counted(
        self, project: Path, young: tuple[str, ...], said: str
    ) -> None:
        (project / "dataflows/good.yaml").write_text(FILES.replace("path}", "path, settle: PT1H}"))
        now = datetime.fromisoformat(NOW).timestamp()
        for name in "abc":
            (project / f"landing/{name}.ndjson").touch()
            at = now - (60 if name in young else 86_400)
            os.utime(project / f"landing/{name}.ndjson", (at, at))
        _, (document,) = answers(project, "list")
        assert (document["waiting"]["files"], document["waiting"]["settling"]) == (3 - len(young), len(young))
        assert said in call(project, "list").stdout

    def test_a_missing_source_is_said_and_hides_nothing(self, project: Path, log: WatermarkLog) -> None:
        append(log)
        (project / "landing").rmdir()
        code, (document,) = answers(project, "list")
        assert (code, document["state_number"], document["waiting"]["files"]) == (0, 1, None)
        assert f"{project}/landing: expected a folder, found none" in document["waiting"]["why"]

    def test_a_changed_definition_is_said(self, project: Path, log: WatermarkLog) -> None:
        append(log, fingerprint="another")
        _, (document,) = answers(project, "list")
        assert "its definition has changed" in document["waiting"]["why"]

    def test_work_units_and_failed_ones_count_apart(self, project: Path, log: WatermarkLog) -> None:
        (project / "platform.yaml").write_text(
            "state: ./state\nlake: ./lake\nconnections: {erp: {type: jdbc, url: 'jdbc:postgresql://h/d', user: u}}\n"
        )
        (project / "dataflows/good.yaml").write_text(WINDOWS)
        day, first = 86_400_000, 1_767_225_600_000
        watermark = {
            "grid": "daily UTC",
            "units": {"{}": [[first, first + day]]},
            "failed": {"{}": {str(first + day): [1, "no", 1]}},
        }
        append(log, kind="window", watermark=json.dumps(watermark))
        _, (document,) = answers(project, "list")
        assert (document["waiting"]["work_units"], document["waiting"]["failed_units"]) == (2, 1)

    def test_an_emptied_source_is_warned_of(self, project: Path, log: WatermarkLog) -> None:
        append(log, files=2, total_files=2)
        for path in (project / "landing").iterdir():
            path.unlink()
        _, (document,) = answers(project, "list")
        assert document["waiting"]["warnings"] == [
            f"{project}/landing holds no file, although the dataflow has loaded 2 files from it. If it has moved, correct source.path; `strandline ledger good --compare` names them"
        ]
        assert f"good: warning: {project}/landing holds no file" in call(project, "list").stdout.replace(
            "\n", " "
        )

    def test_the_hole_before_the_first_loaded_window_is_a_gap_in_two_lines(
        self, project: Path, log: WatermarkLog
    ) -> None:
        (project / "platform.yaml").write_text(
            "state: ./state\nlake: ./lake\nconnections: {erp: {type: jdbc, url: 'jdbc:postgresql://h/d', user: u}}\n"
        )
        (project / "dataflows/good.yaml").write_text(WINDOWS)
        flow = load_project(project).dataflows["good"]
        day, first = 86_400_000, 1_767_225_600_000
        watermark = {"grid": "daily UTC", "units": {"{}": [[first + day, first + 3 * day]]}}
        append(log, kind="window", watermark=json.dumps(watermark), fingerprint=fingerprint(flow))
        _, (document,) = answers(project, "list")
        assert (
            document["waiting"]["reach"]
            == "first windows missing; loaded up to 2026-01-04T00:00:00+00:00, 1 gap"
        )
        assert PROFILES["window"].watermark_in_list(document["watermark"], document["waiting"]) == (
            "first windows missing\nloaded up to 2026-01-04T00:00:00+00:00, 1 gap"
        )
        words = "loaded up to 2026-01-04T00:00:00+00:00, first windows missing (1 gap)"
        assert words in call(project, "state", "history", "good").stdout
        assert words in call(project, "state", "show", "good").stdout

    def test_a_store_that_does_not_answer_is_asked_once_for_all_dataflows(self, project: Path) -> None:
        (project / "platform.yaml").write_text(
            "state: ./state\nlake: ./lake\nconnections: {land: {type: s3, endpoint: 'http://127.0.0.1:1', region: us-east-1,"
            " access_key_id: {env: K}, secret_access_key: {env: S}}}\n"
        )
        for name in ("good", "other"):
            (project / f"dataflows/{name}.yaml").write_text(
                FILES.replace("./landing", "s3://bucket/landing").replace(
                    "format:", "connection: land, format:"
                )
            )
        runner = CliRunner(env={"K": "key", "S": "very-secret"})
        answer = runner.invoke(main.strandline, ["--project", str(project), "--json", "list"])
        good, other = json.loads(answer.stdout)
        assert good["waiting"]["why"] == other["waiting"]["why"]
        assert (
            "s3://bucket/landing: no usable answer from http://127.0.0.1:1 (Connection refused)"
            in good["waiting"]["why"]
        )
        assert "very-secret" not in answer.output


STREAM = (
    "source: {type: table, table: bronze/events}\n"
    "watermark: {type: stream, event_time: ts, split: device, timeout: PT5M}\n"
)


class TestAStream:
    @pytest.fixture
    def stream(self, project: Path, log: WatermarkLog) -> WatermarkLog:
        """A stream whose split b is an hour behind a: rows wait since entry 1."""
        (project / "dataflows/good.yaml").write_text(STREAM)
        day = datetime(2026, 5, 31, tzinfo=UTC)
        hours = [day + timedelta(hours=hour) for hour in range(24)]
        segments = (Segment("1", 4, hours[20], hours[22]), Segment("2", 3, hours[21], hours[23]))
        splits = {"a": Split(hours[23] - timedelta(minutes=5)), "b": Split(hours[20], idle=1)}
        states = [
            StreamState(splits, hours[20], segments[:1], 1, newest=hours[22]),
            StreamState(splits, hours[20], segments, 2, newest=hours[23]),
        ]
        for number, state in enumerate(states, 1):
            append(log, number, kind="stream", watermark=serialise(state.watermark()), modified=None)
        return log

    def test_it_has_lags_by_event_time_and_the_split_its_rows_wait_for(
        self, project: Path, stream: WatermarkLog
    ) -> None:
        _, (document,) = answers(project, "list")
        assert (document["buffered"], document["lag_seconds"]) == (7, 4 * 3600.0)
        assert document["stream"] == {
            "global_watermark": "2026-05-31T20:00:00+00:00",
            "newest_event": "2026-05-31T23:00:00+00:00",
            "watermark_lag_seconds": 14_400.0,
            "event_lag_seconds": 3_600.0,
            "spread": 10_800.0,
            "splits": {"known": 2, "awaited": 0, "idle": 0},
            "waiting_rows": {
                "rows": 7,
                "since": stream.entry("good", 1).time,
                "epoch": 1,
                "lowest": "2026-05-31T20:00:00+00:00",
                "reason": "slowest",
                "why": "split b, the slowest, at 2026-05-31T20:00:00+00:00, without rows for 1 epoch",
                "splits": [
                    {"split": "b", "watermark": "2026-05-31T20:00:00+00:00", "epochs_without_rows": 1}
                ],
            },
        }

    def test_the_text_says_since_when_its_rows_wait_and_for_what(
        self, project: Path, stream: WatermarkLog
    ) -> None:
        since = time_text(stream.entry("good", 1).time)
        shown = call(project, "status").stdout
        assert (
            f"  good: 7 rows wait since {since} (entry 1) for split b, the slowest, at 2026-05-31T20:00:00+00:00,"
            " without rows for 1 epoch\n" in shown
        )
        assert re.search(r"│ 4 h +[│0]", shown)

    def test_without_waiting_rows_there_is_no_line(self, project: Path, log: WatermarkLog) -> None:
        (project / "dataflows/good.yaml").write_text(STREAM)
        append(log, kind="stream", watermark=serialise(StreamState({"": Split(7)}, 7, epoch=1).watermark()))
        _, (document,) = answers(project, "list")
        assert (document["buffered"], document["lag_seconds"]) == (0, None)
        assert document["stream"]["waiting_rows"]["rows"] == 0
        assert document["stream"]["global_watermark"] == 7
        assert " wait" not in call(project, "list").stdout.partition("good: waiting data unknown")[0][-200:]


def test_an_intent_before_any_commit_shows_no_table(project: Path, log: WatermarkLog) -> None:
    log.put_intent(intent(1, holder.current_holder(None), "2026-05-31T00:00:00.000+00:00"))
    answer = call(project, "state", "history", "good", "--intents")
    assert answer.stdout.endswith("0 files, no table yet\n")


def test_list_shows_the_lag_in_words(project: Path, log: WatermarkLog) -> None:
    append(log, modified=1_780_272_000_000 - 200_000_000)
    _, (document,) = answers(project, "list")
    assert document["lag_seconds"] == 200_000.0
    assert "2 days 7 h" in call(project, "list").stdout


def test_a_watermark_is_not_broken_within_a_word(project: Path, log: WatermarkLog) -> None:
    name = "2026-01-01T00:00:00-a.ndjson"
    for number in range(8):
        (project / f"dataflows/a_dataflow_with_a_long_name_{number}.yaml").write_text(FILES)
    append(log, watermark=json.dumps({"path": name}))
    shown = call(project, "list").stdout
    assert f" {name} " in shown
    assert ("quarantined" in shown, "late" in shown) == (False, False)
    assert max(map(len, shown.splitlines())) <= 160


def test_list_starts_neither_dagster_nor_spark(project: Path) -> None:
    import subprocess
    import sys

    code = (
        f"import sys, atexit, runpy; sys.argv[1:] = ['list', '--json', '--project', {str(project)!r}]\n"
        "heavy = ('dagster', 'pyspark', 'pandas')\n"
        "atexit.register(lambda: print([name for name in heavy if name in sys.modules], file=sys.stderr))\n"
        "runpy.run_module('platform_assets.cli', run_name='__main__')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"


def test_a_line_that_begins_with_a_dataflow_names_it_once(tmp_path: Path) -> None:
    project = project_of(tmp_path, good=FILES, other=FILES)
    log = WatermarkLog(open_blobs(Place(str(project / "state"))))
    append(log, fingerprint="another", table="bronze/good")
    note_attempt(log, Outcome("good", None, {}, 0, error=SourceError("dataflow good: found no folder")))
    for command, line in {"plan": "good: its definition has changed", "list": ": found no folder"}.items():
        told = call(project, command).output
        assert line in told
        assert "dataflow good:" not in told
