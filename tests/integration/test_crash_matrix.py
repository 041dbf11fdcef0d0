"""kill -9 at every step of the protocol, for every way of loading, over every store of the state: rows once, watermark right.

A run of the whole matrix writes its report, docs/explanation/crash-matrix.md. ``make test`` has a cell of every row and column.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from resources.connections.places import Place
from resources.kinds.path.late import find_late
from resources.outcome import Step
from resources.sources.files.paths import SOURCE_FILE
from resources.spark.engine import SparkEngine
from tests.support.commits import TABLE, UPSTREAMS, Upstream
from tests.support.crash_report import write_part
from tests.support.crash_runner import WRITING, crash
from tests.support.feed import NAME, NOW, Feed, rows_in
from tests.support.seaweed import Seaweed
from tests.support.window_feed import BY_COLUMNS, REPLACED, LakeTable, event, instant, watermark

STORES = (
    "folder",
    pytest.param("S3", marks=pytest.mark.s3),
    pytest.param("PostgreSQL", marks=pytest.mark.postgres),
)
STEPS = {
    Step.PLANNED: "planned",
    Step.LIST_KEPT: "list of files stored",
    Step.INTENT_PUT: "intent stored",
    WRITING: "while Spark writes",
    Step.WRITTEN: "written",
    Step.VERIFIED: "commit looked up",
    Step.APPENDED: "entry appended",
}
OPEN = (Step.INTENT_PUT, WRITING, Step.WRITTEN, Step.VERIFIED)
"""After these an intent is there and its entry is not."""

SLOW = "SELECT * FROM ({}) WHERE coalesce(java_method('java.lang.Thread', 'sleep', 300L), '') <> 'x'"
"""Slow enough to be killed in its middle; the write goes on at the server."""


@dataclass(frozen=True)
class Way:
    """A way of loading.

    Attributes:
        watermark: keys of the definition.
        before: makes what the killed run finds.
        ids: all rows in the end.
        path: the watermark in the end, where it is one.
        more: other parts of the definition.
        idle: what a run is that finds nothing new.
        check: what else must be right in the end.
    """

    watermark: dict[str, Any]
    before: Callable[[Feed], None]
    ids: list[int]
    path: str | None
    more: dict[str, Any] = field(default_factory=dict)
    idle: str = "nothing"
    check: Callable[[Feed], None] = lambda feed: None


def _append(feed: Feed) -> None:
    feed.put("d=1/a.ndjson", 1)
    feed.load()
    feed.put("d=1/b.ndjson", 2, 3)
    feed.put("d=2/a.ndjson", 4)


def _late(feed: Feed) -> None:
    feed.put("d=1/b.ndjson", 1)
    feed.put("d=2/b.ndjson", 2)
    feed.load()
    feed.put("d=1/a.ndjson", 3, 4)
    assert len(find_late(feed.platform, feed.dataflow, NOW).late) == 1


def _set(feed: Feed) -> None:
    feed.put("m.ndjson", 1)
    feed.load()
    feed.put("a.ndjson", 2, 3)
    feed.put("z.ndjson", 4)


def _rewind(feed: Feed) -> None:
    feed.put("d=1/a.ndjson", 1)
    feed.load()
    feed.put("d=1/b.ndjson", 2, 3)
    feed.put("d=2/a.ndjson", 4)
    feed.load()
    feed.decide("rewind", "--to", "1", "--replace")


def _by_keys(feed: Feed) -> None:
    feed.put("d=1/a.ndjson", 1, 2)
    feed.load()
    feed.put("d=1/b.ndjson", 2, 3)
    feed.put("d=2/a.ndjson", 4)


def _versions(feed: Feed) -> None:
    feed.put("d=1/a.ndjson", {"id": 1, "since": 1, "fact": 1}, {"id": 2, "since": 1, "fact": 1})
    feed.load()
    feed.put("d=1/b.ndjson", {"id": 2, "since": 2, "fact": 2})
    feed.put("d=2/a.ndjson", {"id": 3, "since": 1, "fact": 1})


def _windows(feed: Feed) -> None:
    source = LakeTable(feed.folder / "lake" / "raw" / "events")
    source.put(event(1, "2026-05-28"), event(2, "2026-05-29", value=1), event(3, "2026-05-29"))
    assert feed.run(now=instant("2026-05-30")).error is None
    source.drop(3)
    source.put(event(2, "2026-05-29", value=2), event(4, "2026-05-30"), event(5, "2026-05-31T23:00", "b"))


def _appended_windows(feed: Feed) -> None:
    source = LakeTable(feed.folder / "lake" / "raw" / "events")
    source.put(event(1, "2026-05-28"), event(2, "2026-05-29", "b"), event(3, "2026-05-30"))
    assert feed.run(now=instant("2026-05-29T12:00")).error is None
    source.put(event(4, "2026-05-29T13:00", "b"), event(5, "2026-05-31T23:00"))


def _deletes(feed: Feed) -> None:
    feed.put("d=1/a.ndjson", {"id": 1}, {"id": 2})
    feed.load()
    feed.put("d=1/b.ndjson", {"id": 2, "gone": True}, {"id": 3})
    feed.put("d=2/a.ndjson", {"id": 4})


def _check_tombstones(feed: Feed) -> None:
    beside = feed.table.with_name(f"{feed.table.name}__tombstones")
    assert rows_in(beside, ("id", SOURCE_FILE)) == [(2, "d=1/b.ndjson")], "the deleted key is remembered once"


def _upstream(feed: Feed) -> Upstream:
    """The table above, of the same format as the dataflow's own."""
    return UPSTREAMS[feed.dataflow.target.format](feed.folder / "lake", feed.engine)


def _commits(feed: Feed) -> None:
    upstream = _upstream(feed)
    upstream.append((1, "a"))
    feed.load()
    upstream.append((2, "b"), (3, "c"))
    upstream.append((4, "d"))


def _files_of_a_first_read(feed: Feed) -> None:
    upstream = _upstream(feed)
    upstream.append((1, "a"), (2, "b"))
    upstream.append((3, "c"))
    feed.load()
    assert feed.ids in ([1, 2], [3])


def _changes(feed: Feed) -> None:
    upstream = _upstream(feed)
    upstream.append((1, "a"), (2, "b"), (3, "c"))
    feed.load()
    upstream.update(1, "x")
    upstream.delete(2)
    upstream.merge((3, "y"), (4, "d"))


def _check_values(*values: str) -> Callable[[Feed], None]:
    def check(feed: Feed) -> None:
        assert sorted(value for (value,) in feed.rows("v")) == list(values)

    return check


def _offset(source: dict[str, Any] | None = None, **keys: Any) -> dict[str, Any]:
    """Parts of the definition of a dataflow that reads commits."""
    return {"layer": "silver", "source": {"type": "table", "table": TABLE, **(source or {})}, **keys}


_OFFSET = {"type": "offset"}
_KEYED = {"merge_keys": ["id"], "table": "silver/flow"}
_LAKE = {"source": {"type": "table", "table": "raw/events", **BY_COLUMNS}}

WAYS = {
    "append": Way({}, _append, [1, 2, 3, 4], "d=2/a.ndjson"),
    "late ingest": Way({}, _late, [1, 2, 3, 4], "d=2/b.ndjson"),
    "set tracking": Way({"tracking": "set"}, _set, [1, 2, 3, 4], "z.ndjson"),
    "rewind": Way({}, _rewind, [1, 2, 3, 4], "d=2/a.ndjson"),
    "upsert": Way({}, _by_keys, [1, 2, 3, 4], "d=2/a.ndjson", {"target": {"load": "merge_upsert", "merge_keys": ["id"]}}),
    "upsert into partitions": Way({}, _by_keys, [1, 2, 3, 4], "d=2/a.ndjson", {"target": {"load": "merge_upsert", "merge_keys": ["id"], "partition_by": ["id"]}}),
    "replace by keys": Way({}, _by_keys, [1, 2, 3, 4], "d=2/a.ndjson", {"target": {"load": "merge_overwrite", "merge_keys": ["id"]}, "late_files": "alert"}),
    "scd2": Way(
        {},
        _versions,
        [1, 2, 2, 3],
        "d=2/a.ndjson",
        {
            "source": {"schema": "id long, since long, fact long"},
            "target": {"load": "scd2", "merge_keys": ["id"], "effective_column": "since"},
        },
    ),
    "windows": Way(watermark("2026-05-28", grace="P3D"), _windows, [1, 2, 4, 5], None, _LAKE | {"target": REPLACED}, "committed"),
    "appended windows": Way(watermark("2026-05-28"), _appended_windows, [1, 2, 3, 4, 5], None, _LAKE),
    "deletes by rule, with tombstones": Way(
        {},
        _deletes,
        [1, 3, 4],
        "d=2/a.ndjson",
        {
            "source": {"schema": "id long, gone boolean"},
            "target": {"load": "merge_upsert", "merge_keys": ["id"], "delete_when": "gone", "keep_tombstones": "P30D"},
        },
        check=_check_tombstones,
    ),
    "commits": Way(_OFFSET, _commits, [1, 2, 3, 4], None, _offset(target={"table": "silver/flow"})),
    "first read of a table, in parts": Way(
        _OFFSET | {"checkpoint": {"files": 1}, "max_slices": 1}, _files_of_a_first_read, [1, 2, 3], None, _offset(target={"table": "silver/flow"})
    ),
    "commits, changes applied": Way(
        _OFFSET,
        _changes,
        [3, 4],
        None,
        _offset(target={"load": "merge_upsert", **_KEYED, "delete_when": "v = 'x'"}),
        check=_check_values("d", "y"),
    ),
    "commits into versions": Way(
        _OFFSET,
        _changes,
        [1, 1, 2, 3, 3, 4],
        None,
        _offset(sql="SELECT *, _commit_timestamp AS at FROM input", target={"load": "scd2", **_KEYED, "effective_column": "at"}),
        check=_check_values("a", "b", "c", "d", "x", "y"),
    ),
    "commits, every change kept": Way(
        _OFFSET,
        _changes,
        [1, 1, 1, 2, 2, 3, 3, 3, 4],
        None,
        _offset({"on_change": "keep"}, target={"table": "silver/flow"}),
        check=_check_values("a", "a", "b", "b", "c", "c", "d", "x", "y"),
    ),
}  # fmt: skip


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def settings(store: str, request: pytest.FixtureRequest) -> Iterator[tuple[dict[str, Any], dict[str, str]]]:
    """platform.yaml and its variables for a state there."""
    if store == "folder":
        yield {}, {}
    elif store == "PostgreSQL":
        postgres = request.getfixturevalue("postgres")
        url = f"{postgres.url()}?schema={postgres.database().schema}"
        yield {"state": {"env": "STATE"}}, {"STATE": url}
    else:
        yield from _in_a_bucket(request.getfixturevalue("seaweed"))


def _in_a_bucket(seaweed: Seaweed) -> Iterator[tuple[dict[str, Any], dict[str, str]]]:
    keys = {"K": seaweed.access_key_id, "S": seaweed.secret_access_key}
    with seaweed.bucket() as bucket:
        land = in_bucket(bucket)
        yield {"state": {"path": bucket.url, "connection": "land"}, "connections": {"land": land}}, keys


@pytest.fixture
def make(
    tmp_path: Path, engine: SparkEngine, settings: tuple[dict[str, Any], dict[str, str]]
) -> Callable[[Way, str], Feed]:
    def made(way: Way, step: str) -> Feed:
        return Feed(tmp_path / "project", engine, definition_of(way, step), *settings)

    return made


def definition_of(way: Way, step: str) -> dict[str, Any]:
    """The definition, by which a run can be killed there."""
    slow = {"sql": SLOW.format(way.more.get("sql", "SELECT * FROM input"))} if step == WRITING else {}
    return {"watermark": way.watermark, **way.more, **slow}


@pytest.fixture(scope="module")
def report() -> Iterator[dict[tuple[str, str, str], str]]:
    """Collects the cells; the whole matrix is written down."""
    cells: dict[tuple[str, str, str], str] = {}
    yield cells
    if len(cells) == len(WAYS) * len(STORES) * len(STEPS):
        write_part(_written(cells))


def in_bucket(place: Place) -> dict[str, Any]:
    """The connection of a bucket, with its keys in variables ``K`` and ``S``."""
    return {
        "type": "s3",
        "endpoint": place.connection and place.connection.endpoint,
        "region": "us-east-1",
        "access_key_id": {"env": "K"},
        "secret_access_key": {"env": "S"},
    }


def crash_cell(make: Callable[[Way, str], Feed], name: str, step: str) -> str:
    """Kill a run there, run again, and look."""
    way = WAYS[name]
    feed = make(way, step)
    way.before(feed)
    crash(feed, step)
    outcome = feed.load()
    numbers = [entry.number for entry in feed.entries]
    assert feed.ids == way.ids
    assert feed.path == way.path
    assert outcome.status == (
        "recovered" if step in OPEN else way.idle if step == Step.APPENDED else "committed"
    )
    assert (feed.load().status, feed.ids) == (way.idle, way.ids)
    assert numbers == list(range(1, len(numbers) + 1))
    assert feed.entries[-1].total_rows == len(way.ids)
    assert feed.open_intent is None
    way.check(feed)
    if feed.dataflow.kind == "path":
        assert feed.cli("late", NAME).json["late"] == [], "the log knows all that was loaded"
    return str(outcome.status)


DIAGONAL = [
    ("append", Step.INTENT_PUT),
    ("late ingest", Step.WRITTEN),
    ("set tracking", Step.VERIFIED),
    ("rewind", Step.WRITTEN),
    ("upsert", WRITING),
    ("upsert into partitions", WRITING),
    pytest.param("replace by keys", Step.WRITTEN, marks=pytest.mark.full),
    pytest.param("scd2", Step.WRITTEN, marks=pytest.mark.full),
    ("windows", Step.WRITTEN),
    pytest.param("appended windows", Step.INTENT_PUT, marks=pytest.mark.full),
    pytest.param("deletes by rule, with tombstones", Step.INTENT_PUT, marks=pytest.mark.full),
    pytest.param("commits", Step.VERIFIED, marks=pytest.mark.full),
    pytest.param("first read of a table, in parts", Step.INTENT_PUT, marks=pytest.mark.full),
    ("commits, changes applied", Step.WRITTEN),
    pytest.param("commits into versions", Step.VERIFIED, marks=pytest.mark.full),
    pytest.param("commits, every change kept", WRITING, marks=pytest.mark.full),
]


@pytest.mark.each_case
@pytest.mark.parametrize(("name", "step"), DIAGONAL)
@pytest.mark.parametrize("store", ["folder"], indirect=True)
def test_a_killed_run_is_finished_by_the_next(make: Callable[[Way, str], Feed], name: str, step: str) -> None:
    crash_cell(make, name, step)


@pytest.mark.s3
@pytest.mark.parametrize("store", ["S3"], indirect=True)
def test_a_killed_run_is_finished_by_the_next_with_its_state_on_s3(make: Callable[[Way, str], Feed]) -> None:
    crash_cell(make, "rewind", Step.INTENT_PUT)


@pytest.mark.full
@pytest.mark.timeout(300)
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("name", WAYS)
def test_matrix(
    make: Callable[[Way, str], Feed],
    report: dict[tuple[str, str, str], str],
    store: str,
    name: str,
    step: str,
) -> None:
    report[name, str(step), store] = crash_cell(make, name, step)


def _written(cells: dict[tuple[str, str, str], str]) -> str:
    """The matrix as a page."""
    stores = list(dict.fromkeys(store for _, _, store in cells))
    lines = [
        "# Crash matrix",
        "",
        "Written by `make test-full` (tests/integration/test_crash_matrix.py). A run is killed with SIGKILL right after the step. The write has then",
        "finished, or it is still running on the Spark server if the step says so. Each cell shows the status of the next run. In every cell each row is",
        "in the table exactly once and the watermark is right. The numbers have no gap, and a further run has nothing to do.",
        "",
        "The steps are those of [the protocol](protocol.md); the columns name the store of the watermark log. If a dataflow reads commits, its list has",
        "commits in place of files.",
    ]
    for name in WAYS:
        lines += ["", f"## {name}", "", f"| killed | {' | '.join(stores)} |", f"|---|{'---|' * len(stores)}"]
        for step, shown in STEPS.items():
            row = " | ".join(cells[name, str(step), store] for store in stores)
            lines.append(f"| {shown} | {row} |")
    return "\n".join(lines) + "\n"
