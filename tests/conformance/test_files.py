"""files.json: one run of the product loads each case, and another reader reads its table.

Streams on both engines load it, too.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from partitions.errors import StrandlineError
from resources.sources.files.pinned import PinnedSchema
from resources.spark.engine import SparkEngine
from tests.conformance.common import Case, decode, same
from tests.support.feed import NOW, Feed

_CODES = {"configuration_error": "project"}
"""The product's codes where they are others: what is refused in a project's files has one code."""


_EVENT_TIME = "stream_ts"
"""Streams need an event time, which few cases have: a folder above the files names one."""

_FOLDER = f"{_EVENT_TIME}=2026-01-01"

_ON_SPARK: dict[str, Any] = {
    "type": "stream",
    "engine": "structured_streaming",
    "event_time": _EVENT_TIME,
    "timeout": "PT1H",
    # What comes before a bad file is loaded, as by other kinds.
    "checkpoint": {"interval_files": 1},
}

_REFUSED_BESIDE_STREAMS = {"on_bad_file", "max_bad_records"}
"""Keys of a case that a stream is refused."""

_OF_SPLITS: dict[str, Any] = {
    "type": "stream",
    "split": "stream_split",
    # What comes before a bad file is loaded, as by other kinds.
    "checkpoint": {"interval_files": 1},
}


@pytest.mark.each_case  # each is a rule of its own
@pytest.mark.cases("files", "load")
def test_load(case: Case, tmp_path: Path, engine: SparkEngine) -> None:
    feed = _feed(case, tmp_path, engine)
    for file in case["input"]["files"]:
        feed.put_bytes(file["path"], _content(file))
    _check_answer(case, feed)


@pytest.mark.full
@pytest.mark.cases("files", "load")
def test_load_by_a_stream_on_spark_s_engine(case: Case, tmp_path: Path, engine: SparkEngine) -> None:
    feed = _feed(case, tmp_path, engine)
    for number, file in enumerate(sorted(case["input"]["files"], key=lambda file: str(file["path"]))):
        path = feed.landing / feed.put_bytes(f"{_FOLDER}/{file['path']}", _content(file))
        os.utime(path, (1_700_000_000 + number,) * 2)
    schema = case["input"]["schema"] or _own_schema(feed, case["input"]["format"])
    if schema is None:
        pytest.skip(
            "a stream's columns are declared: nothing is inferred, and no schema stands in these files"
        )
    declared = f"{schema}, {_EVENT_TIME} timestamp"
    feed.define(watermark=None).define(
        source={"schema": declared}, watermark=_ON_SPARK, target={"origin_columns": False}
    )
    if _is_refused_beside_streams(case):
        _check_refusal(feed)
    else:
        _check_answer(case, feed)


@pytest.mark.full
@pytest.mark.cases("files", "load")
def test_load_by_a_stream_of_splits(case: Case, tmp_path: Path, engine: SparkEngine) -> None:
    """Load each file as a split of its own.

    Behind a bad file its rows wait in the buffer; otherwise they are flushed.
    """
    feed = _feed(case, tmp_path, engine)
    for number, file in enumerate(case["input"]["files"]):
        feed.put_bytes(f"stream_split=s{number}/{_FOLDER}/{file['path']}", _content(file))
    event_time: dict[str, Any] = {"event_time": _EVENT_TIME, "timeout": "PT1H"}
    if case["input"]["schema"] is not None:
        declared = f"{case['input']['schema']}, stream_split string, {_EVENT_TIME} timestamp"
        feed.define(source={"schema": declared})
    elif number_column := _whole_number_column(feed):
        event_time = {"event_time": number_column, "timeout": 1000}
    feed.define(watermark=None).define(watermark=_OF_SPLITS | event_time, target={"origin_columns": False})
    if _is_refused_beside_streams(case):
        _check_refusal(feed)
        return
    error = _run(feed)
    if error is None:
        feed.command("stream", "flush", "flow", "--reason", "no more input", "--yes")
    places = ("__quarantine", "__buffer" if error else "")
    _check_outcome(case, error, [row for place in places for row in _rows(feed, place)])


def _is_refused_beside_streams(case: Case) -> bool:
    keys, target = case["input"]["keys"], case["input"]["target"]
    return bool(_REFUSED_BESIDE_STREAMS & keys.keys()) or target.get("schema_mode", "strict") != "strict"


def _check_refusal(feed: Feed) -> None:
    error = _run(feed)
    assert error is not None
    assert error.code == "project"
    assert not _rows(feed)


def _feed(case: Case, folder: Path, engine: SparkEngine) -> Feed:
    inputs = case["input"]
    source = {"format": inputs["format"], "options": inputs["options"], **inputs["source"]}
    feed = Feed(folder, engine, {"source": source, "target": inputs["target"], **inputs["keys"]})
    return feed.define(source={"schema": inputs["schema"]})


def _content(file: dict[str, str]) -> bytes:
    return bytes.fromhex(file["hex"]) if "hex" in file else file["text"].encode()


def _own_schema(feed: Feed, form: str) -> str | None:
    """Return the schema inside the files, as a dataflow would pin it, without the folder's column."""
    columns = _inferred_types(feed) if form in ("parquet", "avro") else {}
    return ", ".join(f"`{name}` {data_type}" for name, data_type in columns.items()) or None


def _whole_number_column(feed: Feed) -> str | None:
    """Return the first inferred column that can be an event time: a folder's value is inferred as text."""
    types = _inferred_types(feed)
    return next((name for name, data_type in types.items() if data_type in ("int", "bigint")), None)


def _inferred_types(feed: Feed) -> dict[str, str]:
    """Return the files' columns with their types, without folder columns; {} if they cannot be read."""
    try:
        pinned, _ = feed.platform.loop(feed.dataflow, NOW).infer()
    except StrandlineError:
        return {}
    columns = PinnedSchema.of(pinned).data.fields if pinned is not None else []
    return {file.name: file.dataType.simpleString() for file in columns}


def _check_answer(case: Case, feed: Feed) -> None:
    error = _run(feed)
    _check_outcome(case, error, _rows(feed))


def _check_outcome(case: Case, error: StrandlineError | None, rows: list[dict[str, Any]]) -> None:
    expected = case["expected"]
    if "error" in expected:
        assert error is not None, f"expected {expected['error']}, loaded {rows}"
        assert error.code == _CODES.get(expected["error"], expected["error"]), error.message
        missing = [text for text in expected["mentions"] if text not in error.message]
        assert not missing, error.message
    else:
        assert error is None, error.message
    _check(rows, decode(expected["rows"]))


def _run(feed: Feed) -> StrandlineError | None:
    try:
        return feed.run().error
    except StrandlineError as error:  # of a definition that is refused before anything runs
        return error


def _rows(feed: Feed, place: str = "") -> list[dict[str, Any]]:
    """Return the rows of the table, or of a side table of a stream."""
    folder = feed.table.with_name(f"{feed.table.name}{place}")
    if not (folder / "_delta_log").exists():
        return []
    rows: list[dict[str, Any]] = DeltaTable(str(folder)).to_pyarrow_table().to_pylist()
    return rows


def _check(rows: list[dict[str, Any]], expected: list[dict[str, Any]]) -> None:
    """Compare rows in any order, in the columns that are expected, by type and value."""
    names = list(expected[0]) if expected else []
    remaining = [{name: row.get(name, "no such column") for name in names} for row in rows]
    for row in expected:
        match = next(
            (index for index, other_row in enumerate(remaining) if same(_plain(other_row), _plain(row))), None
        )
        assert match is not None, f"expected {row}, found {remaining}"
        del remaining[match]
    assert not remaining


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    """Instants in UTC: readers name that zone in different ways."""
    return {
        name: value.astimezone(tz=None).isoformat() if getattr(value, "tzinfo", None) else value
        for name, value in row.items()
    }
