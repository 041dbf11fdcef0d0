"""A delete of a table and of those that are made of it, and the purge of old versions (docs/how-to/deleting-and-keeping.md)."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from resources.outcome import Step
from resources.spark.engine import SparkEngine
from tests.integration.test_dagster import run
from tests.support.asides import TABLE, stand_aside
from tests.support.columns import on_lake
from tests.support.decision_crash import crash_deciding
from tests.support.delete_crash import crash_deleting
from tests.support.feed import NAME, NOW, Answer, Feed
from tests.support.streams import Stream, definition
from tests.support.window_feed import instant

BOB = "who = 'bob'"
ROWS = ({"id": 1, "who": "ann"}, {"id": 2, "who": "bob"})


def pair(folder: Path, engine: SparkEngine, table_format: str = "delta", **below: Any) -> tuple[Feed, Feed]:
    """A table of files, and one that is made of it by the highest id."""
    above = Feed(
        folder,
        engine,
        {"source": {"schema": "id long, who string"}, "target": {"format": table_format}},
    )
    made = Feed(
        folder,
        engine,
        {
            "source": {"type": "table", "table": f"bronze/{NAME}"},
            "watermark": {"type": "column", "columns": ["id"]},
            **below,
        },
        name="below",
    )
    above.put("1.ndjson", *ROWS)
    above.load()
    made.load()
    return above, made


def delete(feed: Feed, *more: str, where: str = BOB) -> Answer:
    return feed.cli("delete", feed.name, "--where", where, "--reason", "asked for", "--yes", *more)


def rows(feed: Feed) -> list[tuple[Any, ...]]:
    return feed.rows("id", "who")


@pytest.mark.full
def test_tables_downstream_are_named_and_taken_along(tmp_path: Path, engine: SparkEngine) -> None:
    above, below = pair(tmp_path / "project", engine)
    answer = delete(above)
    assert answer.json["untouched"] == ["below"]
    assert rows(below) == [(1, "ann"), (2, "bob")]
    told = delete(above, "--downstream", "--dry-run").err
    assert "the source still holds the rows; older versions of the table hold them until a purge" in told
    below_loses = (
        f"the command deletes the rows from the source bronze/{NAME}, too; older versions of the table "
    )
    assert f"{below_loses}hold them until a purge" in told
    told = delete(above, "--downstream", "--purge", "--dry-run").err
    assert "the source still holds the rows; older versions of the table go with --purge" in told
    assert f"{below_loses}go with --purge" in told
    assert "until a purge" not in told
    answer = delete(above, "--downstream")
    assert [(other["dataflow"], other["matching"]["rows"]) for other in answer.json["downstream"]] == [
        ("below", 1)
    ]
    assert (rows(above), rows(below)) == ([(1, "ann")], [(1, "ann")])
    above.put("2.ndjson", {"id": 3, "who": "bob"}, {"id": 4, "who": "eve"})
    assert (above.load().withheld, below.load().rows) == (1, 1)
    assert rows(below) == [(1, "ann"), (4, "eve")]


@pytest.mark.full
def test_a_forget_ends_the_delete_of_the_named_table_only(tmp_path: Path, engine: SparkEngine) -> None:
    above, below = pair(tmp_path / "project", engine)
    delete(above, "--downstream")
    above.cli("delete", NAME, "--forget", "2", "--reason", "back", "--yes")
    above.put("2.ndjson", {"id": 3, "who": "bob"})
    assert (above.load().rows, below.load().rows) == (1, 0)
    below.cli("delete", "below", "--forget", "2", "--reason", "back", "--yes")
    above.put("3.ndjson", {"id": 4, "who": "bob"})
    assert (above.load().rows, below.load().rows) == (1, 1)
    assert rows(below) == [(1, "ann"), (4, "bob")]


@pytest.mark.full
def test_a_delete_that_died_between_two_tables_is_finished_by_the_same_command(
    tmp_path: Path, engine: SparkEngine
) -> None:
    above, below = pair(tmp_path / "project", engine)
    crash_deleting(above, Step.APPENDED, BOB)
    delete(above, "--downstream")
    assert (rows(above), rows(below)) == ([(1, "ann")], [(1, "ann")])
    assert [entry.why for entry in above.entries] == ["run", "delete"]


@pytest.mark.full
def test_a_table_downstream_without_the_columns_refuses_before_anything_is_deleted(
    tmp_path: Path, engine: SparkEngine
) -> None:
    above, _ = pair(tmp_path / "project", engine, sql="SELECT id, upper(who) AS name FROM input")
    answer = delete(above, "--downstream")
    assert (answer.code, answer.error["code"]) == (2, "predicate")
    assert "expected columns who of the condition in bronze/below" in answer.error["message"]
    assert answer.error["choices"][0] == "strandline delete below --where SQL --reason TEXT"
    assert len(rows(above)) == 2


@pytest.mark.parametrize(
    "table_format",
    ["delta", *(pytest.param(name, marks=pytest.mark.full) for name in ("iceberg", "parquet"))],
)
def test_a_purge_leaves_no_file_with_the_rows(tmp_path: Path, engine: SparkEngine, table_format: str) -> None:
    feed = Feed(
        tmp_path / "project",
        engine,
        {"source": {"schema": "id long, who string"}, "target": {"format": table_format}},
    )
    feed.put("1.ndjson", {"id": 1, "who": "ann"}, {"id": 2, "who": "bobbingworth"})
    feed.load()
    answer = delete(feed, "--purge", where="who = 'bobbingworth'")
    (purged,) = answer.json["purged"]
    assert (purged["dataflow"], purged["files"] > 0) == (NAME, True)
    assert rows(feed) == [(1, "ann")]
    assert files_with(feed, b"bobbingworth") == []
    assert [entry.why for entry in feed.entries] == ["run", "delete", "maintain"]
    feed.put("2.ndjson", {"id": 3, "who": "eve"})
    assert feed.load().status == "committed"
    assert rows(feed) == [(1, "ann"), (3, "eve")]


@pytest.mark.full
@pytest.mark.parametrize("folder", ["intents", "entries"])
def test_a_purge_that_died_is_finished_by_the_same_command(
    tmp_path: Path, engine: SparkEngine, folder: str
) -> None:
    feed = Feed(tmp_path / "project", engine, {"source": {"schema": "id long, who string"}})
    feed.put("1.ndjson", {"id": 1, "who": "ann"}, {"id": 2, "who": "bobbingworth"})
    feed.load()
    where = "who = 'bobbingworth'"
    delete(feed, where=where)
    crash_deciding(
        feed, folder, "delete", feed.name, "--where", where, "--purge", "--reason", "asked for", "--yes"
    )
    assert feed.load().status == "nothing"
    assert delete(feed, "--purge", where=where).code == 0
    assert (rows(feed), files_with(feed, b"bobbingworth")) == ([(1, "ann")], [])
    assert feed.open_intent is None


def files_with(feed: Feed, text: bytes) -> list[str]:
    """Return the data files and checkpoints of the lake that hold a text."""
    files = [path for path in (feed.folder / "lake").rglob("*.parquet") if path.is_file()]
    return [str(path) for path in files if text in path.read_bytes()]


@pytest.mark.remedy("replays_open", "promote", "drop")
def test_an_isolated_replay_withholds_too_and_refuses_a_purge(tmp_path: Path, engine: SparkEngine) -> None:
    flow, source = on_lake(tmp_path / "project", engine)
    source.put(*({"id": day, "at": instant(f"2026-05-0{day}"), "value": day} for day in (1, 2, 3)))
    flow.run()
    feed = flow.feed
    stand_aside(feed, instant("2026-05-01"), instant("2026-05-05"), now=NOW)
    refused = delete(feed, "--purge", where="value = 2")
    assert refused.error["code"] == "replays_open"
    assert delete(feed, where="value = 2").code == 0
    feed.command("promote", feed.name, TABLE, "--reason", "x", "--yes")
    assert feed.rows("id") == [(1,), (3,)]
    assert feed.entries[-1].withheld == {2: 1}
    feed.command("replay", feed.name, "--start", "2026-05-01", "--end", "2026-05-05", "--into", TABLE)
    isolated = feed.platform.lake.child(TABLE)
    assert sorted(DeltaTable(isolated.url).to_pyarrow_table()["id"].to_pylist()) == [1, 3]
    _, drop = delete(feed, "--purge", where="value = 3").error["choices"]
    feed.command(*drop.replace("TEXT", "x").split()[1:], "--yes")
    assert delete(feed, "--purge", where="value = 3").code == 0
    assert feed.rows("id") == [(1,)]


@pytest.mark.full
def test_the_job_shows_first_and_deletes_with_confirm(tmp_path: Path, engine: SparkEngine) -> None:
    above, below = pair(tmp_path / "project", engine)
    config = {"dataflow": NAME, "reason": "asked for", "where": BOB, "downstream": True}
    run(above, "strandline_delete", config)
    assert len(rows(above)) == 2
    run(above, "strandline_delete", {**config, "confirm": True})
    assert (rows(above), rows(below)) == ([(1, "ann")], [(1, "ann")])


@pytest.mark.full
@pytest.mark.parametrize("table_format", ["delta", "iceberg"])
def test_a_stream_of_the_table_passes_over_the_delete(
    tmp_path: Path, engine: SparkEngine, table_format: str
) -> None:
    schema = "id long, device string, ts timestamp"
    above = Feed(
        tmp_path / "project",
        engine,
        {"source": {"schema": schema}, "target": {"format": table_format}},
    )
    below = Feed(
        tmp_path / "project",
        engine,
        {
            "source": {"type": "table", "table": f"bronze/{NAME}"},
            "watermark": {
                "type": "stream",
                "event_time": "ts",
                "split": "device",
                "timeout": "PT5M",
                "order_by": ["id"],
            },
        },
        name="below",
    )

    def put(name: str, *ids: int) -> None:
        above.put(name, *({"id": id_, "device": "a", "ts": f"2026-05-01T00:{id_:02}:00Z"} for id_ in ids))
        above.load()

    put("1.ndjson", 1, 2, 20)
    below.load()
    assert below.ids == [1, 2]
    assert delete(above, where="id = 2").code == 0
    put("2.ndjson", 2, 21, 40)
    below.load()
    assert (above.ids, below.ids) == ([1, 20, 21, 40], [1, 2, 20, 21])
    assert delete(above, "--downstream", "--purge", where="id = 40").error["code"] == "conflict"
    assert delete(above, "--downstream", where="id = 40").code == 0
    put("3.ndjson", 59)
    outcome = below.load()
    assert (below.ids, outcome.withheld, outcome.rows_add_up) == ([1, 2, 20, 21], 1, True)


@pytest.mark.full
def test_a_purge_takes_late_rows_of_a_stream_and_waits_for_its_buffer(
    tmp_path: Path, engine: SparkEngine
) -> None:
    stream = Stream(Feed(tmp_path / "project", engine, definition()))
    stream.append((1, "a", 0), (2, "a", 10), (3, "a", 20))
    stream.feed.load()
    stream.append((4, "a", 1))
    stream.feed.load()
    assert stream.places() == {"sorted": [1, 2], "late": [4], "quarantine": [], "buffer": [3]}
    answer = delete(stream.feed, "--purge", where="id = 4")
    assert answer.json["purged"][0]["side_rows"] == 1
    assert stream.places() == {"sorted": [1, 2], "late": [], "quarantine": [], "buffer": [3]}
    refused = delete(stream.feed, "--purge", where="id = 3")
    assert refused.error["code"] == "conflict"
    assert "strandline stream flush flow" in refused.error["message"]
    stream.append((5, "a", 40))
    outcome = stream.feed.load()
    assert (stream.ids(), outcome.withheld, outcome.rows_add_up) == ([1, 2], 1, True)
    assert delete(stream.feed, "--purge", where="id = 3").code == 0
    assert stream.ids("__buffer") == [5]
    stream.append((6, "a", 60))
    assert stream.feed.load().rows == 1


def test_a_forget_names_the_same_delete_downstream_and_speaks_of_rows_above_a_column(
    tmp_path: Path, engine: SparkEngine
) -> None:
    above, below = pair(tmp_path / "project", engine)
    delete(above, "--downstream")
    delete(below, where="id = 7")
    forget = ("--forget", "2", "--reason", "a mistake", "--yes")
    preview = above.command("delete", above.name, *forget).err
    named = "below, downstream, has the same delete in force (entry 2). To end it, too: strandline delete below --forget 2"
    assert named in preview
    assert "files that were loaded meanwhile need to be read again" in preview
    preview = below.command("delete", below.name, *forget).err
    assert ("downstream" in preview, "files" in preview) == (False, False)
    assert "rows that were read meanwhile need to be read again" in preview
    assert "`strandline state rewind below --to 0 --replace`" in preview


def test_a_forget_after_a_lost_state_counts_what_is_known_as_the_least(
    tmp_path: Path, engine: SparkEngine
) -> None:
    above, _ = pair(tmp_path / "project", engine)
    delete(above)
    above.put("2.ndjson", {"id": 3, "who": "bob"})
    above.load()
    shutil.rmtree(above.state)
    above.decide("adopt", "--deleted", "load")
    above.put("3.ndjson", {"id": 4, "who": "bob"})
    above.load()
    preview = above.command("delete", NAME, "--forget", "2", "--reason", "a mistake", "--yes").err
    assert "at least 1 row withheld since (the log does not reach back to the delete), stay away" in preview
