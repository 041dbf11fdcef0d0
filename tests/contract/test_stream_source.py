"""What every source of a stream over splits promises: it is read in chunks that no epoch cuts, in order, each once (docs/reference/streams.md)."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from resources.outcome import Step
from resources.spark.engine import SparkEngine
from tests.support.feed import Feed
from tests.support.steps import Killed, killed_at
from tests.support.streams import (
    FILES,
    FileStream,
    IcebergStream,
    ParquetStream,
    Stream,
    definition,
    minutes,
    plainly,
)

pytestmark = pytest.mark.usefixtures("engine")

SOURCES = {"delta": Stream, "iceberg": IcebergStream, "parquet": ParquetStream, "files": FileStream}
TABLES = ("delta", "iceberg")

CHUNKS = (
    ((1, "a", 100), (2, "b", 200), (3, "a", 110), (4, None, 5)),
    ((5, "a", 90), (6, "a", 300), (7, "b", 201), (8, "b", None)),
    ((9, "a", 310), (10, "b", 400), (11, "b", 150)),
)


@pytest.fixture
def make(tmp_path: Path, engine: SparkEngine) -> Any:
    def made(kind: str, *chunks: Any, **watermark: Any) -> Stream:
        source = {"source": FILES} if kind == "files" else {}
        feed = Feed(tmp_path / "project", engine, definition(**source, **watermark))
        stream = SOURCES[kind](feed)
        for rows in chunks:
            stream.append(*rows)
        return stream

    return made


@pytest.mark.parametrize("kind", SOURCES)
@pytest.mark.full
def test_chunks_are_judged_one_after_another_in_one_epoch_or_in_many(make: Any, kind: str) -> None:
    stream = make(kind, CHUNKS[0], splits=["a", "b"], idle="stall", checkpoint={"interval_files": 1})
    stream.feed.load()
    for rows in CHUNKS[1:]:
        stream.append(*rows)
    # of two chunks in one epoch the second is judged by the first
    stream.feed.define(watermark={"checkpoint": {"interval_files": 1000}})
    outcome = stream.feed.load()
    assert len(outcome.committed) == 1
    expected = plainly(stream.written, 5, ["a", "b"])
    assert tuple(stream.places().values()) == expected[:4]
    assert minutes(stream.feed.watermark["global"]) == expected.value
    assert stream.feed.load().status == "nothing"


@pytest.mark.parametrize("kind", SOURCES)
def test_an_epoch_that_died_is_finished_with_the_same_chunks(make: Any, kind: str) -> None:
    stream = make(kind, *CHUNKS[:2], splits=["a", "b"], idle="stall")
    with pytest.raises(Killed):
        stream.feed.run(killed_at(Step.SET_ASIDE, 1))
    stream.append(*CHUNKS[2])  # which is not part of it
    with suppress(Killed):
        stream.feed.run(killed_at(Step.SET_ASIDE, 2))
    outcome = stream.feed.load()
    assert tuple(stream.places().values()) == plainly(stream.written, 5, ["a", "b"])[:4]
    assert [entry.number for entry in stream.feed.entries] == [1, 2]
    assert outcome.error is None


@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.full
def test_compaction_is_no_input_and_hides_none(make: Any, kind: str) -> None:
    stream = make(kind, *CHUNKS[:1], splits=["a", "b"], idle="stall")
    stream.feed.load()
    stream.append(*CHUNKS[1])
    stream.compact()
    stream.append(*CHUNKS[2])
    stream.feed.load()
    assert tuple(stream.places().values()) == plainly(stream.written, 5, ["a", "b"])[:4]
    stream.compact()
    assert stream.feed.load().status == "nothing"


@pytest.mark.parametrize("kind", [*TABLES, "parquet"])
def test_a_chunk_that_changes_rows_stops_the_run(make: Any, kind: str) -> None:
    stream = make(kind, *CHUNKS[:2])
    stream.feed.load()
    stream.delete(6)
    error = stream.feed.fail()
    assert error.code == "source_changed"


@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.full
def test_cleaned_versions_that_were_read_stop_nothing_and_others_do(make: Any, kind: str) -> None:
    stream = make(kind, CHUNKS[0], splits=["a", "b"], idle="stall")
    stream.clean()  # what is left is read as a whole
    stream.feed.load()
    stream.append(*CHUNKS[1])
    stream.clean()
    stream.feed.load()
    assert tuple(stream.places().values()) == plainly(stream.written, 5, ["a", "b"])[:4]
    stream.append(*CHUNKS[2])
    stream.append((20, "a", 500))
    stream.clean()
    error = stream.feed.fail()
    assert (error.code, error.exit_code) == ("versions_gone", 4)


@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.full
def test_chunks_on_both_sides_of_one_that_is_passed_over_are_read(make: Any, kind: str) -> None:
    stream = make(kind, CHUNKS[0], splits=["a", "b"], idle="stall")
    stream.feed.define(source={"on_change": "skip"})
    stream.append(*CHUNKS[1])
    stream.delete(6, beside=True)  # which leaves the row's file as it is
    stream.append(*CHUNKS[2])
    stream.feed.load()
    assert tuple(stream.places().values()) == plainly(stream.written, 5, ["a", "b"])[:4]


def test_files_that_were_joined_and_vacuumed_before_they_were_read_stop_the_run(make: Any) -> None:
    from deltalake import DeltaTable

    stream = make("delta", CHUNKS[0])
    stream.feed.load()
    stream.append(*CHUNKS[1])
    stream.compact()
    table = DeltaTable(str(stream.source))
    table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    error = stream.feed.fail()
    assert (error.code, error.exit_code) == ("versions_gone", 4)
    assert "joined and vacuumed them" in error.message


@pytest.mark.parametrize("kind", TABLES)
def test_a_table_that_was_rolled_back_and_has_grown_again_stops_the_run(make: Any, kind: str) -> None:
    stream = make(kind, *CHUNKS[:2])
    stream.feed.load()
    stream.go_back()
    stream.append((20, "a", 1))
    stream.append((21, "a", 2))
    error = stream.feed.fail()
    assert (error.code, error.exit_code) == ("source_replaced", 4)
    assert "strandline state reset flow --replace" in error.choices[0]


@pytest.mark.full
def test_files_read_folder_by_folder_make_no_split_idle_and_no_row_late(make: Any) -> None:
    stream = make("files", checkpoint={"interval_files": 1}, idle_after=1)
    stream.feed.define(source={"schema": "id long, ts timestamp, device string"})
    for place, device in enumerate("ab"):
        for number in range(3):
            row = {"id": 10 * place + number, "ts": f"2026-01-01T0{number}:00:00Z"}
            stream.feed.put(f"device={device}/{number}.ndjson", row)
    stream.feed.load()
    state = stream.feed.watermark
    # folders take turns, and only the last epoch, which left nothing unread, counts
    assert {name: split["idle"] for name, split in state["splits"].items()} == {"a": 1, "b": 0}
    assert (stream.places()["late"], state["late"]) == ([], 0)
    assert state["position"] == {
        "path": {"paths": {"device=a": "2.ndjson", "device=b": "2.ndjson"}, "closed_before": None}
    }
    # a file that sorts below another folder's is found
    stream.feed.put("device=a/3.ndjson", {"id": 3, "ts": "2026-01-01T03:00:00Z"})
    assert stream.feed.load().rows > 0


def test_files_before_one_that_cannot_be_read_are_an_epoch_and_the_run_names_it(make: Any) -> None:
    stream = make("files", ((1, "a", 100), (2, "a", 20)), scope="global")
    stream.feed.put_text("0002.ndjson", "no record\n")
    error = stream.feed.fail()
    assert "0002.ndjson" in error.message
    assert (stream.feed.watermark["position"], stream.ids()) == ({"path": {"path": "0001.ndjson"}}, [2])
