"""``strandline metrics`` and its endpoint: Prometheus' text of what ``strandline list`` shows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from click.testing import CliRunner
from prometheus_client.parser import text_string_to_metric_families

from partitions.errors import SourceError, StrandlineError
from partitions.sentinels import serialise
from partitions.stream.state import Segment, Split, StreamState
from platform_assets.cli import main
from platform_assets.cli.metrics_gathering import serve_metrics
from platform_assets.cli.metrics_text import METRICS, families
from platform_assets.project import load_project
from resources.connections.places import Place
from resources.notes.last_run import note_attempt
from resources.outcome import Outcome
from resources.watermarks.blobs import open_blobs
from resources.watermarks.entry import Entry, next_entry
from resources.watermarks.log import WatermarkLog
from tests.support.projects import FILES, WINDOWS, project_of

NOW = datetime(2026, 6, 1, tzinfo=UTC)
MARK = NOW.timestamp()
STREAM = (
    "source: {type: table, table: bronze/events}\n"
    "watermark: {type: stream, event_time: ts, split: device, timeout: PT5M}\n"
)


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DAGSTER_HOME", raising=False)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return project_of(tmp_path, good=FILES, broken=FILES + "lyer: x\n")


@pytest.fixture
def log(project: Path) -> WatermarkLog:
    return WatermarkLog(open_blobs(Place(str(project / "state"))))


def append(log: WatermarkLog, **changes: Any) -> Entry:
    newest = log.newest("good")
    first: dict[str, Any] = {"kind": "path", "app_id": "a", "fingerprint": "", "why": "run"}
    entry = next_entry(newest, **first | {"watermark": '{"path": "a.ndjson"}'} | changes)
    return log.append("good", entry, expected=newest.number if newest else 0)


Samples = dict[tuple[str, str], float]
"""The value of each sample by its name and its dataflow; ``""`` is none."""


def samples(text: str) -> Samples:
    """Return the samples of a text, which must be Prometheus' and give each sample once."""
    values: Samples = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            key = (sample.name.removeprefix("strandline_"), sample.labels.get("dataflow", ""))
            assert key not in values, key
            values[key] = sample.value
    return values


def metrics(project: Path, *arguments: str) -> Samples:
    answer = CliRunner().invoke(
        main.strandline, ["--project", str(project), "--now", NOW.isoformat(), "metrics", *arguments]
    )
    assert answer.exit_code == 0, answer.output
    return samples(answer.stdout)


def of(values: Samples, dataflow: str) -> dict[str, float]:
    return {name: value for (name, of_dataflow), value in values.items() if of_dataflow == dataflow}


def test_a_loaded_dataflow_has_rows_lag_waiting_files_and_times(project: Path, log: WatermarkLog) -> None:
    loaded, cleared = NOW - timedelta(hours=2), NOW - timedelta(hours=1)
    append(log, rows=5, total_rows=5, loaded_rows=5, modified=int(MARK - 60) * 1000, time=loaded.isoformat())
    append(log, why="delete", total_rows=3, upper="{}", time=cleared.isoformat())
    outcome = Outcome("good", None, {}, 0)
    outcome.seconds = 1.5
    note_attempt(log, outcome)
    note = log.note("good", "attempt")
    assert note is not None
    values = of(metrics(project), "good")
    ended = datetime.fromisoformat(note["time"]).timestamp()
    assert values.pop("last_run_timestamp_seconds") == pytest.approx(ended)
    assert values == {
        "dataflow_info": 1,
        "known": 1,
        "loaded_rows_total": 5,
        "table_rows": 3,
        "lag_seconds": 60,
        "consecutive_failures": 0,
        "late_files": 0,
        "quarantined_files": 0,
        "last_run_duration_seconds": 1.5,
        "last_load_timestamp_seconds": loaded.timestamp(),
        "last_look_timestamp_seconds": MARK,
        "new_data": 0,
        "waiting_files": 0,
    }


def test_new_files_wait_until_a_run(project: Path) -> None:
    assert of(metrics(project), "good")["new_data"] == 0
    (project / "landing/a.ndjson").write_text('{"id": 1}\n')
    values = of(metrics(project), "good")
    assert (values["new_data"], values["waiting_files"]) == (1, 1)
    assert values["last_look_timestamp_seconds"] == MARK


def test_failures_count_and_tell_since_when_and_end_with_a_success(project: Path, log: WatermarkLog) -> None:
    for _ in range(3):
        note_attempt(log, Outcome("good", None, {}, 0, error=SourceError("the source is away")))
    note = log.note("good", "attempt")
    assert note is not None
    values = of(metrics(project), "good")
    since = datetime.fromisoformat(note["failing_since"]).timestamp()
    assert values["consecutive_failures"] == 3
    assert values["failing_since_timestamp_seconds"] == pytest.approx(since)
    note_attempt(log, Outcome("good", None, {}, 0))
    values = of(metrics(project), "good")
    assert (values["consecutive_failures"], "failing_since_timestamp_seconds" in values) == (0, False)


def test_a_file_with_errors_and_a_state_that_does_not_read_are_not_known(
    project: Path, log: WatermarkLog
) -> None:
    append(log)
    (entry,) = (project / "state/good/entries").glob("*.json")
    entry.write_text("{")
    values = metrics(project)
    assert of(values, "broken") == {"dataflow_info": 1, "known": 0}
    assert of(values, "good") == {"dataflow_info": 1, "known": 0}
    assert values[("gathered_timestamp_seconds", "")] == MARK


def test_a_stream_has_lags_by_event_time_and_its_waiting_rows(project: Path, log: WatermarkLog) -> None:
    (project / "dataflows/good.yaml").write_text(STREAM)
    hours = [NOW - timedelta(hours=24 - hour) for hour in range(24)]
    splits = {"a": Split(hours[23]), "b": Split(hours[20], idle=1)}
    state = StreamState(splits, hours[20], (Segment("1", 4, hours[20], hours[22]),), 1, newest=hours[22])
    append(log, kind="stream", watermark=serialise(state.watermark()), modified=None)
    values = of(metrics(project), "good")
    names = ("lag_seconds", "event_lag_seconds", "waiting_rows", "late_rows", "quarantined_rows")
    assert [values.get(name) for name in names] == [4 * 3600, 2 * 3600, 4, 0, 0]
    assert "quarantined_files" not in values


def test_windows_count_failed_work_units_and_those_that_wait_for_their_upstream(
    project: Path, log: WatermarkLog
) -> None:
    settings = "state: ./state\nlake: ./lake\nconnections: {erp: {type: jdbc, url: 'jdbc:postgresql://h/d', user: u}}\n"
    (project / "platform.yaml").write_text(settings)
    (project / "dataflows/good.yaml").write_text(WINDOWS)
    day, first = 86_400_000, 1_767_225_600_000
    failed = {str(first + day * number): [1, "no", 1] for number in (1, 2)}
    watermark = {"grid": "daily UTC", "units": {"{}": [[first, first + day]]}, "failed": {"{}": failed}}
    append(log, kind="window", watermark=json.dumps(watermark))
    values = of(metrics(project), "good")
    assert (values["failed_work_units"], values["upstream_waiting_work_units"]) == (2, 0)


def test_figures_of_work_units_are_those_of_list() -> None:
    waiting = {"work_units": 3, "failed_units": 2, "waiting_for_upstream": 5, "why": None}
    document = {"dataflow": "days", "kind": "window", "target": "gold/days", "waiting": waiting}
    figures = {
        metric.name: [sample.value for sample in metric.samples] for metric in families([document], 0, 0)
    }
    names = ("waiting_work_units", "failed_work_units", "upstream_waiting_work_units")
    assert [figures[f"strandline_{name}"] for name in names] == [[3], [2], [5]]


def test_each_metric_has_a_line_in_the_reference(project: Path) -> None:
    page = (Path(__file__).parents[4] / "docs/how-to/metrics.md").read_text()
    assert [name for name in METRICS if f"`{name}`" not in page] == []


def test_json_has_the_same_text(project: Path) -> None:
    answer = CliRunner().invoke(main.strandline, ["--project", str(project), "--json", "metrics", "good"])
    assert ("known", "good") in samples(json.loads(answer.stdout)["metrics"])


@contextmanager
def endpoint(project: Path, said: list[str], port: int = 0) -> Iterator[str]:
    with serve_metrics(load_project(project), (), "127.0.0.1", port, said.append):
        yield said[-1].removeprefix("metrics: ")


def test_the_endpoint_gives_what_the_command_prints(project: Path, log: WatermarkLog) -> None:
    append(log, rows=5, total_rows=5, loaded_rows=5)
    with endpoint(project, []) as url, urlopen(url) as answer:
        assert answer.headers["Content-Type"].startswith("text/plain; version=")
        served = samples(answer.read().decode())
    printed = metrics(project)
    clock = {
        "lag_seconds",
        "last_look_timestamp_seconds",
        "gathered_timestamp_seconds",
        "gathering_duration_seconds",
    }
    assert {key: value for key, value in served.items() if key[0] not in clock} == {
        key: value for key, value in printed.items() if key[0] not in clock
    }
    assert served.keys() == printed.keys()


def test_an_endpoint_that_cannot_gather_says_why_once_and_answers(project: Path) -> None:
    said: list[str] = []
    with endpoint(project, said) as url:
        (project / "platform.yaml").write_text("lakes: x\n")
        for _ in range(2):
            with urlopen(url) as answer:
                assert samples(answer.read().decode()) == {}
    assert [line for line in said if "metrics cannot be gathered: platform.yaml:1: lakes" in line] == said[1:]
    assert len(said) == 2


def test_a_port_that_is_taken_is_refused(project: Path) -> None:
    said: list[str] = []
    with endpoint(project, said) as url:
        port = int(url.rpartition(":")[2].partition("/")[0])
        with (
            pytest.raises(StrandlineError, match="to be free for metrics") as refused,
            endpoint(project, said, port),
        ):
            pass
    assert refused.value.code == "metrics"
