"""``max_bad_records`` above 0: records that do not parse are set aside in a table of their own, and the others are loaded (docs/reference/files.md)."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from platform_assets.project.errors import InvalidProject
from resources.connections.places import Place
from resources.outcome import Step
from resources.spark.engine import SparkEngine
from resources.tables.registry import open_table
from tests.integration.conftest import MakeFeed
from tests.support.crash_runner import crash
from tests.support.feed import Feed, dies_after

FEW = {"max_bad_records": 3}


def aside(feed: Feed, *columns: str) -> list[tuple[Any, ...]]:
    """The bad records that are kept, by file and position."""
    folder = Path(f"{feed.table}_bad_records")
    found = (
        DeltaTable(str(folder)).to_pyarrow_table().select(columns or ("file", "position", "text")).to_pylist()
    )
    return sorted(tuple(row.values()) for row in found)


def test_records_that_do_not_parse_are_kept_with_file_line_text_and_reason(make_feed: MakeFeed) -> None:
    feed = make_feed(source={"schema": "id long, v long"}, **FEW)
    feed.put_text("a.ndjson", '{"id": 1}\n{"id": "x"}\n\n{"id": 2\n{"id": 3, "v": 4}\n')
    feed.put_text("b.ndjson", '{"id": "x"}\n{"id": 5}\n')
    outcome = feed.load()
    assert feed.ids == [1, 3, 5]
    assert aside(feed, "file", "position", "text", "reason", "number") == [
        ("a.ndjson", 2, '{"id": "x"}', "field id: expected bigint, found text", 1),
        (
            "a.ndjson",
            4,
            '{"id": 2',
            "expected a JSON object, found text that is not JSON (a comma or a closing bracket is missing at character 9)",
            1,
        ),
        ("b.ndjson", 1, '{"id": "x"}', "field id: expected bigint, found text", 1),
    ]
    assert outcome.rows == 3
    assert outcome.warnings[-1] == (
        "3 records of 2 files did not parse: see table bronze/flow_bad_records. The first: file a.ndjson, line 2: field id: expected"
        " bigint, found text"
    )
    assert feed.load().status == "nothing"


@pytest.mark.parametrize("options", [{}, {"encoding": "UTF-16LE", "lineSep": "|"}])
def test_types_are_inferred_beside_records_with_a_doubled_name(
    make_feed: MakeFeed, options: dict[str, str]
) -> None:
    feed = make_feed(source={"schema": None, "options": options}, **FEW)
    encoding, line_break = options.get("encoding", "utf-8"), options.get("lineSep", "\n")
    lines = ['{"id": 1, "o": {"a": 1}}', '{"id": 2, "o": {"a": 1, "a": 2}}', '{"id": 3, "id": "x"}', ""]
    feed.put_bytes("a.ndjson", line_break.join(lines).encode(encoding))
    feed.put_bytes("b.ndjson", '{"id": 4, "o": null}'.encode(encoding))
    feed.load()
    assert feed.rows("id", "o") == [(1, {"a": 1}), (4, None)]
    assert aside(feed, "text", "reason") == [
        (lines[1], "field o.a occurs twice"),
        (lines[2], "field id occurs twice"),
    ]


@pytest.mark.parametrize("mode", ["strict", "merge"])
def test_records_of_which_no_type_is_inferred_are_set_aside(make_feed: MakeFeed, mode: str) -> None:
    feed = make_feed(source={"schema": None}, target={"schema_mode": mode}, **FEW)
    deep, two = '{"id": 2, "d": ' + "[" * 30 + "1" + "]" * 30 + "}", '{"id": 3, "o": {"a": 1, "A": 2}}'
    feed.put_text("a.ndjson", f'{{"id": 1, "o": {{"a": 1}}}}\n{deep}\n{two}\n')
    feed.put_text("b.ndjson", '{"id": 4, "O": {"a": 5}}\n{"id": 5}\n')
    feed.load()
    assert feed.rows("id", "o") == [(1, {"a": 1}), (5, None)]
    assert aside(feed, "text") == [
        (deep,),
        (two,),
        ('{"id": 4, "O": {"a": 5}}',),
    ]


@pytest.mark.parametrize(
    ("name", "first", "second"),
    [
        ("ndjson", '{"id": 1}\n', '{"id": 3000000000}\n{"id": 2}\n'),
        ("csv", "id\n1\n", "id\n3000000000\n2\n"),
    ],
)
def test_a_large_whole_number_widens(make_feed: MakeFeed, name: str, first: str, second: str) -> None:
    source = {"format": name, "schema": "id int"}
    feed = make_feed(source=source, target={"schema_mode": "merge"}, **FEW)
    feed.put_text(f"a.{name}", first)
    feed.load()
    feed.put_text(f"b.{name}", second)
    rows = feed.load().rows
    ids = [row["id"] for row in open_table("delta", Place(str(feed.table))).contents.distinct_rows(["id"])]
    assert (rows, ids) == (2, [1, 2, 3_000_000_000])
    assert not Path(f"{feed.table}_bad_records").exists()


@pytest.mark.parametrize(
    ("name", "second"),
    [
        ("ndjson", '{"id": 3000000000}\n{"id": "x"}\n'),
        ("ndjson", '{"id": 3000000000}\n{"id": 1.5}\n'),
        ("csv", "id\n3000000000\nx\n"),
        ("csv", "id\n3000000000\n1.5\n"),
    ],
)
def test_a_large_number_widens_beside_a_bad_record(make_feed: MakeFeed, name: str, second: str) -> None:
    source = {"format": name, "schema": "id int"}
    feed = make_feed(source=source, target={"schema_mode": "merge"}, max_bad_records=1)
    feed.put_text(f"a.{name}", second)
    warnings = feed.load().warnings
    assert (feed.ids, len(aside(feed))) == ([3_000_000_000], 1)
    assert f"the schema changes with file a.{name}: id was int, is bigint" in warnings


def test_one_bad_record_too_many_stops_before_its_file(make_feed: MakeFeed) -> None:
    feed = make_feed(max_bad_records=1)
    feed.put_text("a.ndjson", '{"id": 1}\n{"id": "x"}\n')
    feed.put_text("b.ndjson", '{"id": 2}\n{"id": "y"}\n')
    error = feed.fail()
    assert error.message.startswith(
        "file b.ndjson, line 2: field id: expected bigint, found text, 'y'; 1 bad record in all, after 1 in files before it, and max_bad_records is 1"
    )
    assert feed.ids == [1]
    assert aside(feed) == [("a.ndjson", 2, '{"id": "x"}')]
    assert feed.path == "a.ndjson"


def test_a_header_that_stands_again_is_told_by_its_own_line(make_feed: MakeFeed) -> None:
    feed = make_feed(source={"format": "csv", "schema": "id long"}, **FEW)
    feed.put_text("a.csv", "id\n1\nid\n2\nid\n")
    feed.load()
    assert feed.ids == [1, 2]
    assert aside(feed, "position", "text") == [(3, "id"), (5, "id")]


def test_lines_of_csv_are_told_by_their_values_whatever_a_step_asks_for(make_feed: MakeFeed) -> None:
    feed = make_feed(
        source={"format": "csv", "schema": "id long, v long"}, sql="select id, _source_file from input", **FEW
    )
    feed.put_text("a.csv", "id,v\n1,2\n2,x\n3\n4,5\n")
    feed.load()
    assert feed.ids == [1, 4]
    assert aside(feed, "position", "text", "reason") == [
        (3, "2,x", "field v: expected bigint, found other text"),
        (4, "3", "expected 2 values, found 1"),
    ]


@pytest.mark.parametrize("step", [Step.INTENT_PUT, Step.SET_ASIDE, Step.WRITTEN])
def test_a_run_that_dies_around_bad_records_keeps_each_once(make_feed: MakeFeed, step: Step) -> None:
    feed = make_feed(**FEW)
    feed.put_text("a.ndjson", '{"id": 1}\n{"id": "x"}\n')
    with pytest.raises(KeyboardInterrupt):
        feed.run(dies_after(step))
    assert feed.load().status == "recovered"
    assert feed.ids == [1]
    assert aside(feed) == [("a.ndjson", 2, '{"id": "x"}')]


def test_a_run_that_is_killed_between_both_tables_keeps_each_record_once(make_feed: MakeFeed) -> None:
    feed = make_feed(**FEW)
    feed.put_text("a.ndjson", '{"id": 1}\n{"id": "x"}\n')
    crash(feed, Step.SET_ASIDE)
    feed.load()
    assert feed.ids == [1]
    assert aside(feed) == [("a.ndjson", 2, '{"id": "x"}')]


def test_records_are_not_lost_where_their_table_is_ahead_of_a_restored_state(make_feed: MakeFeed) -> None:
    feed = make_feed(**FEW)
    feed.put_text("a.ndjson", '{"id": 1}\n{"id": "x"}\n')
    feed.load()
    backup = {name: feed.folder / f"{name} of 1" for name in ("state", "table")}
    shutil.copytree(feed.state, backup["state"])
    shutil.copytree(feed.table, backup["table"])
    feed.put_text("b.ndjson", '{"id": 2}\n{"id": "y"}\n')
    feed.load()
    for place, kept in ((feed.state, backup["state"]), (feed.table, backup["table"])):
        shutil.rmtree(place)
        shutil.copytree(kept, place)
    (feed.landing / "b.ndjson").unlink()
    feed.put_text("b.ndjson", '{"id": 2}\n{"id": "z"}\n')
    error = feed.run().error
    if error is not None:
        assert error.choices
        feed.decide("adopt")
        feed.load()
    assert feed.ids == [1, 2]
    assert aside(feed) == [("a.ndjson", 2, '{"id": "x"}'), ("b.ndjson", 2, '{"id": "z"}')]


def test_files_that_are_loaded_again_replace_their_records(make_feed: MakeFeed) -> None:
    feed = make_feed(**FEW)
    feed.put_text("a.ndjson", '{"id": 1}\n{"id": "x"}\n')
    feed.put_text("b.ndjson", '{"id": "y"}\n')
    feed.load()
    feed.put_text("a.ndjson", '{"id": 1}\n{"id": 2}\n')
    feed.decide("rewind", "--to", "0", "--replace")
    feed.load()
    assert feed.ids == [1, 2]
    assert aside(feed) == [("b.ndjson", 1, '{"id": "y"}')]


def test_records_that_only_rescue_cannot_parse_are_set_aside(make_feed: MakeFeed) -> None:
    feed = make_feed(target={"schema_mode": "rescue"}, **FEW)
    feed.put_text("a.ndjson", '{"id": "x"}\n{"id": 2\n')
    feed.load()
    assert feed.rows("id", "_rescued_data") == [(None, '{"id":"x"}')]
    assert aside(feed, "position", "text") == [(2, '{"id": 2')]


def test_what_cannot_set_records_aside_is_refused_with_the_reason(make_feed: MakeFeed) -> None:
    feed = make_feed(source={"format": "parquet", "schema": None}, **FEW)
    with pytest.raises(InvalidProject, match="found 3 beside parquet, expected 0, or format ndjson or csv"):
        _ = feed.dataflow


_GOOD = {
    "inferred.ndjson": ['{"id": 1, "t": "12.50", "v": "a"}', ' {"id": 2, "t": "é", "v": "{ }"}'],
    "ndjson": [
        '{"id": 1, "t": "12.50"}',
        '{"id": 2, "t": 12.50, "v": {"obj": 1.0}}',
        '{"id": 3, "v": [1E2]}',
    ],
    "csv": ["id,t,v", "1,12.50,a", '2," 12.50","{""obj"": 1.0}"', "3,é, x "],
}
_BAD = {"ndjson": "not json", "csv": "2,b,c,d"}
_SHAPES = {
    "inferred": (None, "strict"),
    "declared": ("id long, t string, v string, region string not null, day date", "strict"),
    "merge": ("id long, t string, v string, region string, day date", "merge"),
    "rescue": ("id long, t string, v string, region string, day date", "rescue"),
}


@pytest.mark.parametrize("shape", [*_SHAPES])
@pytest.mark.parametrize("form", [*_BAD])
def test_good_records_are_read_alike_with_and_without_a_bad_one_beside_them(
    tmp_path: Path, engine: SparkEngine, form: str, shape: str
) -> None:
    schema, mode = _SHAPES[shape]
    first, *others = _GOOD.get(f"{shape}.{form}", _GOOD[form])
    rows: list[list[tuple[Any, ...]]] = []
    for bad in ([], [_BAD[form]]):
        definition = {
            "source": {"format": form, "schema": schema},
            "target": {"origin_columns": True, "schema_mode": mode},
            **FEW,
        }
        feed = Feed(tmp_path / str(len(bad)), engine, definition)
        feed.put_text(f"region=eu/day=2026-01-01/1.{form}", _lines(first, *others))
        feed.put_text(f"region=us/day=2026-01-02/2.{form}", _lines(first, *bad, *others))
        feed.put_text(f"region=us/day=2026-01-02/3.{form}.gz", _lines(first, *others, *bad))
        feed.load()
        rows.append(feed.rows("id", "t", "v", "region", "day", "_source_file"))
        assert Path(f"{feed.table}_bad_records").exists() == bool(bad)
    assert rows[0] == rows[1]
    assert {(region, str(day)) for *_, region, day, _ in rows[0]} == {
        ("eu", "2026-01-01"),
        ("us", "2026-01-02"),
    }


def test_a_text_that_is_bad_below_one_folder_is_a_record_below_another(make_feed: MakeFeed) -> None:
    feed = make_feed(source={"schema": "id long, region string"}, **FEW)
    feed.put_text("region=eu/a.ndjson", '{"id": 1}\n{"id": 2, "region": "us"}\n')
    feed.put_text("region=us/b.ndjson", '{"id": 2, "region": "us"}\n{"id": 3, "region": "eu"}\n')
    feed.load()
    assert feed.rows("id", "region") == [(1, "eu"), (2, "us")]
    assert aside(feed, "file", "position") == [("region=eu/a.ndjson", 2), ("region=us/b.ndjson", 2)]


def test_a_line_that_spark_skips_is_a_record_below_folders_too(make_feed: MakeFeed) -> None:
    feed = make_feed(source={"format": "csv", "schema": "t string, day date"}, **FEW)
    for day in (1, 2):
        feed.put_text(f"day=2026-01-0{day}/{day}.csv", f"t\na{day}\n\x01\nx,y\n")
    feed.load()
    assert [(t, str(day)) for t, day in feed.rows("t", "day")] == [
        ("\x01", "2026-01-01"),
        ("\x01", "2026-01-02"),
        ("a1", "2026-01-01"),
        ("a2", "2026-01-02"),
    ]


def _lines(*lines: str) -> str:
    return "".join(f"{line}\n" for line in lines)
