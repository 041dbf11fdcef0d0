"""What every format promises that the tables of a stream over splits are of: the table, late rows, quarantine and the buffer (docs/reference/streams.md)."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from resources.outcome import Step
from resources.spark.engine import SparkEngine
from tests.support.feed import Feed
from tests.support.steps import Killed, killed_at
from tests.support.streams import FILES, FileStream, Stream, definition, minutes, plainly

pytestmark = pytest.mark.usefixtures("engine")

FORMATS = ("iceberg", "delta")

CHUNKS = (
    ((1, "a", 100), (2, "b", 200), (3, "a", 110), (4, None, 5)),
    ((5, "a", 90), (6, "a", 300), (7, "b", 201), (8, "b", None)),
    ((9, "a", 310), (10, "b", 400), (11, "b", 150)),
    ((12, "a", 500), (13, "b", 500)),
)


@pytest.fixture
def make(tmp_path: Path, engine: SparkEngine) -> Any:
    def made(format_: str, *chunks: Any, operators: Any = (), **watermark: Any) -> Stream:
        declared = definition(*operators, source=FILES, checkpoint={"interval_files": 1}, **watermark)
        stream = FileStream(Feed(tmp_path / "project", engine, declared).define(target={"format": format_}))
        for rows in chunks:
            stream.append(*rows)
        return stream

    return made


@pytest.mark.parametrize("format_", FORMATS)
@pytest.mark.full
def test_each_row_is_in_one_table_epoch_by_epoch(make: Any, format_: str) -> None:
    stream = make(format_, *CHUNKS[:3], splits=["a", "b"])
    stream.feed.load()
    expected = plainly(stream.written, 5, ["a", "b"])
    assert tuple(stream.places().values()) == expected[:4]
    assert minutes(stream.feed.watermark["global"]) == expected.value
    ordered = stream.sorted()
    assert ordered == sorted(ordered, key=lambda row: (row[1], row[0]))
    (late, *_) = sorted(stream.table("__late"), key=lambda row: row["id"])
    assert (late["id"], late["_split"], minutes(late["_watermark"]), late["_epoch"]) == (5, "a", 105, 2)
    # segments that are read for the last time are deleted by the epoch after
    stream.append(*CHUNKS[3])
    stream.append((14, "a", 600), (15, "b", 600))
    stream.feed.load()
    assert sorted({row["_epoch"] for row in stream.table("__buffer")}) == [4, 5]


@pytest.mark.full
@pytest.mark.parametrize("format_", FORMATS)
def test_a_run_that_dies_between_side_tables_is_finished_or_given_up(make: Any, format_: str) -> None:
    stream = make(format_, *CHUNKS[:2], splits=["a", "b"])
    with pytest.raises(Killed):
        stream.feed.run(killed_at(Step.SET_ASIDE, 4))
    with suppress(Killed):
        stream.feed.run(killed_at(Step.SET_ASIDE, 2))
    stream.feed.load()
    assert tuple(stream.places().values()) == plainly(stream.written, 5, ["a", "b"])[:4]
    stream.append(*CHUNKS[2])
    with pytest.raises(Killed):
        stream.feed.run(killed_at(Step.SET_ASIDE, 2))
    stream.feed.decide("reset", "--replace")
    stream.feed.load()
    assert tuple(stream.places().values()) == plainly(stream.written, 5, ["a", "b"])[:4]


@pytest.mark.parametrize("format_", FORMATS)
@pytest.mark.full
def test_an_over_window_carries_rows_in_a_table_of_the_format(make: Any, format_: str) -> None:
    before = {"type": "over", "partition_by": ["device"], "columns": {"prev": {"fn": "lag", "column": "id"}}}
    stream = make(format_, *CHUNKS, operators=[before], splits=["a", "b"])
    stream.feed.load()
    rows = sorted((row["device"], row["id"], row["prev"]) for row in stream.table())
    assert rows == [
        ("a", 1, None),
        ("a", 3, 1),
        ("a", 6, 3),
        ("a", 9, 6),
        ("b", 2, None),
        ("b", 7, 2),
        ("b", 10, 7),
    ]
