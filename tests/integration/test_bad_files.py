"""Files that cannot be read, changed or vanished: the run fails naming the file, and what comes before it in order is committed."""

from __future__ import annotations

import bz2
import gzip
import os
import random
from collections.abc import Callable, Sequence
from datetime import date
from decimal import Decimal
from functools import partial
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest

from partitions.errors import BadFile
from resources.outcome import Observer, Outcome, Step
from tests.integration.conftest import MakeFeed
from tests.support.feed import Feed
from tests.support.file_contents import parquet_bytes
from tests.support.reading import Content, Reading, cases, put


def _with_footer(data: bytes, text: bytes, instead: bytes) -> bytes:
    """The file with another text in its footer, where that stands first."""
    start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    assert text in data[start:]
    footer = data[start:-8].replace(text, instead, 1)
    return data[:start] + footer + len(footer).to_bytes(4, "little") + b"PAR1"


ROWS = b"".join(b'{"id": %d}\n' % number for number in range(5000))


def _fails_at_b(
    feed: Feed, outcome: Outcome, code: str = "bad_file", *, before: Sequence[int] = (1,)
) -> None:
    """What holds after a run of a, b and c whose b was bad; ``before`` are the rows up to it."""
    assert isinstance(outcome.error, BadFile)
    assert (outcome.status, outcome.error.exit_code, outcome.error.code) == ("failed", 1, code)
    assert outcome.error.path.startswith("b.")
    assert outcome.error.path in outcome.error.message
    assert feed.ids == list(before), (
        "what comes before the bad file is committed, nothing of it, nothing after it"
    )
    assert (feed.path or "").startswith("a.")
    assert feed.open_intent is None


def _once(step: Step, act: Callable[[], object]) -> Observer:
    """Do something when the step is done for the first time."""
    waiting = [act]

    def observer(done: Step, line: str) -> None:
        if done is step and waiting:
            waiting.pop()()

    return observer


GZIP, INFER = gzip.compress(ROWS, mtime=0), {"schema": None}
GOOD: dict[str, Callable[[int], Content]] = {
    "ndjson": lambda number: [number],
    "json": lambda number: f'[{{"id": {number}}}]',
    "csv": lambda number: f"id\n{number}\n",
    "parquet": lambda number: [number],
}
"""A file with one row, by format."""

STOPS: dict[str, tuple[dict[str, Any], dict[str, Content], str, str]] = {
    "truncated gzip": ({}, {"b.ndjson.gz": GZIP[:-200]}, "bad_file", ""),
    "no gzip": ({}, {"b.ndjson.gz": b"not gzip"}, "bad_file", ""),
    "truncated bzip2": ({}, {"b.ndjson.bz2": bz2.compress(ROWS)[:-50]}, "bad_file", ""),
    "truncated among those that tell the schema": (INFER, {"b.ndjson.gz": GZIP[:-200]}, "bad_file", ""),
    "the first of several": ({}, {f"{name}.ndjson.gz": b"not gzip" for name in ("b", "c", "d")}, "bad_file", ""),
    "no footer": ({"format": "parquet"}, {"b.parquet": b"PAR1 but not really PAR1"}, "bad_file", ""),
    "a byte": ({"format": "parquet"}, {"b.parquet": b"x"}, "bad_file", ""),
    "another type of parquet": (INFER | {"format": "parquet"}, {"b.parquet": [{"id": "x"}]}, "bad_file", "column id: expected bigint, found Parquet's type string. Fix or remove it"),
    "half a JSON object": ({}, {"b.ndjson.gz": '{"id": 2}\n\n{"id": 3'}, "bad_record", "b.ndjson.gz, line 3: expected a JSON object, found text that is not JSON"),
    "no JSON object": ({}, {"b.ndjson.gz": '{"id": 2}\n"secret"\n'}, "bad_record", "b.ndjson.gz, line 2: expected a JSON object, found text"),
    "another type of ndjson": ({}, {"b.ndjson.gz": '{"id": "secret"}\n'}, "bad_record", "b.ndjson.gz, line 1: field id: expected bigint, found text"),
    "too many values of csv": ({"format": "csv"}, {"b.csv.gz": "id\n2\n3,secret\n"}, "bad_record", "b.csv.gz, line 3: expected 1 value, found 2"),
    "another type of csv": ({"format": "csv"}, {"b.csv.gz": "id\n2\nsecret\n"}, "bad_record", "b.csv.gz, line 3: field id: expected bigint, found other text"),
    "another type of json": ({"format": "json"}, {"b.json": '[{"id": 2}, {"id": "secret"}]'}, "bad_record", "b.json, line 1: record 2: field id: expected bigint, found text"),
    "an object of json for a number": ({"format": "json"}, {"b.json": '{"id": {"secret": 1}}'}, "bad_record", "b.json, line 1: field id: expected bigint, found an object"),
}  # fmt: skip
"""Keys of the source, the bad files, and the code and a part of the error: a record is not quoted where ``show_bad_records`` is false."""


@pytest.mark.parametrize(("source", "bad", "code", "said"), STOPS.values(), ids=STOPS)
def test_a_bad_file_stops_below_it_and_mended_is_loaded(
    make_feed: MakeFeed, source: dict[str, Any], bad: dict[str, Content], code: str, said: str
) -> None:
    feed = make_feed(source=source, show_bad_records=False)
    good, form = GOOD[source.get("format", "ndjson")], source.get("format", "ndjson")
    for path, content in {f"a.{form}": good(1), **bad, f"e.{form}": good(5)}.items():
        put(feed, path, content)
    outcome = feed.run()
    _fails_at_b(feed, outcome, code)
    assert said in str(outcome.error)
    assert "secret" not in str(outcome.error)
    for number, path in enumerate(bad, 2):
        put(feed, path, good(number))
    assert feed.load().files == len(bad) + 1
    assert feed.ids == [1, *range(2, len(bad) + 2), 5]


def _not_held() -> dict[str, bytes]:
    """Parquet files that no table holds, but for e and f."""
    rows = pa.table({"id": pa.array(range(1000))})
    data = bytearray(parquet_bytes(rows, write_page_checksum=True, use_dictionary=False, compression="none"))
    data[1000] ^= 1
    grouped = parquet_bytes(pa.table({"id": [8], "s": [{"x": 1, "y": 1}]}), store_schema=False)
    spans = parquet_bytes(
        pa.table({"id": [9], "t": pa.array([b"a" * 12], pa.binary(12))}), store_schema=False
    )
    return {
        "a.parquet": parquet_bytes(pa.table({"id": [1], "c": pa.array([1], pa.decimal256(60, 2))})),
        "b.parquet": parquet_bytes(pa.table({"id": [2], "c": [{"x": 1, "X": 2}]})),
        "c.parquet": parquet_bytes(pa.table({"id": [3], "a\0b": [3]})),
        "d.parquet": parquet_bytes(pa.table({"id": [4]}))[:-4] + b"PARE",
        "e.parquet": parquet_bytes(pa.table({})),
        "f.parquet": parquet_bytes(pa.table({"id": [6]})),
        "g.parquet": bytes(data),
        "h.parquet": _with_footer(grouped, b"\x18\x01s\x15\x04", b"\x18\x01s\x15\x04\x15\x08"),
        "i.parquet": _with_footer(spans, b"\x18\x01t\x00", b"\x18\x01t\x25\x2a\x00"),
    }  # fmt: skip


def _decimals(*, by_dictionary: bool) -> bytes:
    """Decimals of 18 digits, 2 of them behind the point, in 8 bytes each."""
    values = [number and number.to_bytes(8, "big", signed=True) for number in (150, -99_999, None, 150)]
    table = pa.table({"id": [1, 2, 3, 4], "d": values})
    data = parquet_bytes(table, store_schema=False, write_statistics=False, use_dictionary=by_dictionary)
    return _with_footer(data, b"\x18\x01d\x00", b"\x18\x01d\x25\x0a\x15\x04\x15\x24\x00")


PARQUET = INFER | {"format": "parquet"}
MODES = ("strict", "merge", "rescue")
CSV_WHY = "line 2: field x: expected int, found other text, 'a'; line 3: expected 2 values, found 3; 2 bad records in all"
NDJSON_WHY = (
    "line 1: field x: expected bigint, found a number with a fraction or an exponent, '1.5'; line 2: expected a JSON object, found text that is not JSON"
    " (a comma or a closing bracket is missing at character 9); 2 bad records in all"
)
UUID_TEXT = "00112233-4455-6677-8899-aabbccddeeff"
UUIDS = pa.array([UUID(UUID_TEXT).bytes], pa.uuid())
LAST, FAR = (pa.array([days], pa.int32()).cast(pa.date32()) for days in (2_932_896, 2_932_897))

READINGS = {
    **{
        f"parquet that no table holds is passed over [{mode}]": Reading(
            PARQUET, _not_held(), "id", [(6,)],
            {
                "a.parquet": "column c: expected a type that Spark reads, found decimal(60,2), which has more than 38 digits",
                "b.parquet": "expected column names that differ in more than upper and lower case, found x and X",
                "c.parquet": r"column a\0b: expected a type that Spark reads, found a name with a NUL",
                "d.parquet": "it is encrypted",
                "g.parquet": "cannot be read: a page does not match its checksum: it is damaged",
                "h.parquet": "its footer gives a column an invalid type",
                "i.parquet": "column t: expected a type that Spark reads, found an interval, which no table can hold",
            },
            more={"target": {"schema_mode": mode}},
        )
        for mode in MODES
    },
    **{
        f"decimals of parquet may be any bytes [{how}]": Reading(
            PARQUET, {"a.parquet": _decimals(by_dictionary=how == "by dictionary")}, "id d", [(1, Decimal("1.50")), (2, Decimal("-999.99")), (3, None), (4, Decimal("1.50"))],
        )
        for how in ("by dictionary", "plain")
    },
    **{
        f"a UUID is text and a time past 9999 is none [{mode}]": Reading(
            PARQUET, {"a.parquet": pa.table({"id": [1], "u": UUIDS, "day": LAST}), "b.parquet": pa.table({"id": [2], "u": UUIDS, "day": FAR})},
            "id u day", [(1, UUID_TEXT, date(9999, 12, 31))],
            {"b.parquet": "column day: expected date, found +10000-01-01 of the file's type date, which lies beyond the years 1 to 9999"}, more={"target": {"schema_mode": mode}},
        )
        for mode in MODES[:2]
    },
    "a time past 9999 is rescued as its text": Reading(
        PARQUET, {"a.parquet": pa.table({"id": [1], "u": UUIDS, "day": LAST}), "b.parquet": pa.table({"id": [2], "u": UUIDS, "day": FAR})}, "id u day _rescued_data",
        [(1, UUID_TEXT, date(9999, 12, 31), None), (2, UUID_TEXT, None, '{"day":"+10000-01-01"}')], more={"target": {"schema_mode": "rescue"}, "on_bad_file": "quarantine"},
    ),
    **{
        f"types come from files that load alone [{form}]": Reading(
            INFER | {"format": form}, {f"a.{form}": bad, f"b.{form}": sound}, "id x", [(3, 4)], {f"a.{form}": why}, types={"id": kind, "x": kind},
        )
        for form, kind, bad, sound, why in (
            ("ndjson", "long", '{"id": 1, "x": 1.5}\n{"id": 2\n', '{"id": 3, "x": 4}\n', NDJSON_WHY), ("csv", "integer", "id,x\n1,a\n2,b,c\n", "id,x\n3,4\n", CSV_WHY),
        )
    },
}  # fmt: skip


@pytest.mark.each_case
@pytest.mark.parametrize("reading", cases(READINGS))
def test_what_files_hold_beside_bad_ones_is_loaded(make_feed: MakeFeed, reading: Reading) -> None:
    reading.check(make_feed)


class TestUnreadable:
    @pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may read every file")
    def test_a_file_that_may_not_be_read_stops_the_watermark_below_it(self, feed: Feed) -> None:
        feed.put("a.ndjson", 1)
        feed.put("b.ndjson", 2)
        (feed.landing / "b.ndjson").chmod(0)
        feed.put("c.ndjson", 3)
        _fails_at_b(feed, feed.run())

    def test_a_broken_first_file_leaves_no_watermark_and_mended_loads_all(self, feed: Feed) -> None:
        feed.put_bytes("b.ndjson.gz", b"not gzip")
        feed.put("c.ndjson", 3)
        for _ in range(2):
            outcome = feed.run()
            assert (outcome.status, feed.ids, feed.path) == ("failed", [], None)
        feed.put("b.ndjson.gz", 2)
        feed.load()
        assert (feed.ids, feed.path) == ([2, 3], "c.ndjson")

    def test_a_broken_file_of_a_later_slice_leaves_the_earlier_slices(self, make_feed: MakeFeed) -> None:
        feed = make_feed(watermark={"checkpoint": {"interval_files": 2}})
        for number, name in enumerate(("a", "b", "c")):
            feed.put(f"{name}.ndjson", number)
        feed.put_bytes("d.ndjson.gz", b"not gzip")
        outcome = feed.run()
        assert (outcome.status, outcome.files, feed.ids, feed.path) == ("failed", 3, [0, 1, 2], "c.ndjson")


class TestRecords:
    def test_a_bad_record_is_quoted_where_somebody_asks_for_it(self, make_feed: MakeFeed) -> None:
        feed = make_feed(show_bad_records=True)
        feed.put_text("a.ndjson", '{"id": "abc"}\n')
        error = feed.fail()
        assert """field id: expected bigint, found text in '{"id": "abc"}'""" in error.message


class TestVanished:
    @pytest.mark.each_case
    @pytest.mark.parametrize(
        ("step", "rows", "code", "whys", "ids"),
        [
            pytest.param(Step.PLANNED, [], "file_vanished", ["run"], [1, 3], id="vanished after the listing"),
            pytest.param(Step.INTENT_PUT, [], "file_vanished", ["abandon", "run"], [1, 3], id="vanished after the intent"),
            pytest.param(Step.PLANNED, [20, 21], "file_changed", ["run"], [1, 3, 20, 21], id="changed after the listing"),
        ],
    )  # fmt: skip
    def test_a_file_that_is_another_one_when_it_is_read_is_left_to_the_next_run(
        self, feed: Feed, step: Step, rows: list[int], code: str, whys: list[str], ids: list[int]
    ) -> None:
        for number, name in enumerate("abc", 1):
            feed.put(f"{name}.ndjson", number)
        change = partial(feed.put, "b.ndjson", *rows) if rows else (feed.landing / "b.ndjson").unlink
        _fails_at_b(feed, feed.run(_once(step, change)), code)
        assert [entry.why for entry in feed.entries] == whys
        feed.load()
        assert feed.ids == ids

    def test_a_file_of_a_later_slice_that_vanishes_before_it_is_read_is_named(self, feed: Feed) -> None:
        feed.put("0.ndjson", 0)
        feed.load()
        for number, name in enumerate("abc", 1):
            feed.put(f"{name}.ndjson", number)
        outcome = feed.run(_once(Step.INTENT_PUT, (feed.landing / "b.ndjson").unlink))
        _fails_at_b(feed, outcome, "file_vanished", before=[0, 1])
        assert [entry.why for entry in feed.entries] == ["run", "abandon", "run"]
        feed.load()
        assert feed.ids == [0, 1, 3]

    def test_the_whole_landing_zone_vanishes(self, feed: Feed) -> None:
        feed.put("a.ndjson", 1)
        outcome = feed.run(_once(Step.PLANNED, lambda: feed.landing.rename(feed.folder / "gone")))
        assert (outcome.status, outcome.error and outcome.error.exit_code, feed.newest) == ("failed", 1, None)
        (feed.folder / "gone").rename(feed.landing)
        feed.load()
        assert feed.ids == [1]


class TestChanged:
    def test_a_change_of_the_same_size_is_seen_too(self, feed: Feed) -> None:
        feed.put("a.ndjson", 1)
        feed.put("b.ndjson", 2)
        outcome = feed.run(_once(Step.PLANNED, lambda: feed.put("b.ndjson", 9)))
        _fails_at_b(feed, outcome, "file_changed")

    def test_a_file_that_changes_while_it_is_read_is_in_the_table_once_and_is_named(self, feed: Feed) -> None:
        feed.put("a.ndjson", 1)
        feed.put("b.ndjson", 2)
        outcome = feed.run(_once(Step.WRITTEN, lambda: feed.put("b.ndjson", 9)))
        assert outcome.error is not None
        assert (outcome.error.code, outcome.error.exit_code) == ("file_changed_while_read", 1)
        assert "b.ndjson" in outcome.error.message
        assert (feed.ids, feed.path) == ([1, 2], "b.ndjson")
        assert feed.load().status == "nothing"


def test_the_command_line_names_the_file_and_exits_1(feed: Feed) -> None:
    feed.put("a.ndjson", 1)
    feed.put_bytes("b.ndjson.gz", b"not gzip")
    answer = feed.cli("run", "flow")
    assert answer.code == 1
    (document,) = answer.json
    assert (document["status"], document["rows"], document["watermark_after"]) == (
        "failed",
        1,
        {"path": "a.ndjson"},
    )
    assert document["error"]["code"] == "bad_file"
    assert "b.ndjson.gz" in document["error"]["message"]
    assert "\n" not in document["error"]["message"], "a line for people, not a stack"


@pytest.mark.parametrize(
    ("form", "name", "data", "reason"),
    [
        ("csv", "1.csv.gz", gzip.compress(random.Random(1).randbytes(9999), mtime=0)[:5000], "it cannot be read: its compressed bytes end too early"),
        ("csv", "1.csv.gz", b"id\n1\n", "it cannot be read: it is not a gzip file"),
        ("json", "1.json", b'[{"id": ' + b"9" * 6000 + b"}]", "found a number beyond its range"),
        ("ndjson", "1.ndjson", b'{"' + b"k" * 60_000 + b'": 1}', "it has a name of 60,000 letters"),
    ],
)  # fmt: skip
def test_a_first_file_that_never_reads_is_bad_and_does_not_wait_for_a_record(
    make_feed: MakeFeed, form: str, name: str, data: bytes, reason: str
) -> None:
    feed = make_feed(source={"format": form, "schema": None})
    (feed.landing / f"0.{form}").touch()
    (feed.landing / name).write_bytes(data)
    outcome = feed.run()
    assert outcome.error is not None
    assert (outcome.status, reason in outcome.error.message) == ("failed", True)
    assert outcome.error.code == ("bad_record" if form == "json" else "bad_file")
    feed.define(on_bad_file="quarantine")
    good = {"csv": "id\n1\n", "json": '[{"id": 1}]', "ndjson": '{"id": 1}\n'}[form]
    feed.put_text(f"2.{form}", good)
    feed.load()
    assert feed.ids == [1]


def test_a_first_load_of_bad_files_quarantines_under_a_declared_schema(make_feed: MakeFeed) -> None:
    feed = make_feed(
        source={"format": "ndjson", "schema": "id long"}, on_bad_file="quarantine", max_bad_files=1
    )
    feed.put_text("a.ndjson", "x\n")
    outcome = feed.load()
    assert (outcome.rows, outcome.quarantined, feed.ids) == (0, 1, [])


@pytest.mark.parametrize(
    ("form", "bad"),
    [
        ("ndjson", '{"id": 1'),
        ("ndjson", '{"id": "x"}\n{"id"\n'),
        ("csv", "id,a\n1,2\n3\n"),
        ("parquet", None),  # a damaged page, which only the write meets
    ],
)
def test_a_first_load_of_bad_files_pins_no_type(make_feed: MakeFeed, form: str, bad: str | None) -> None:
    feed = make_feed(source={"format": form, "schema": None}, on_bad_file="quarantine")
    feed.put_text(f"a.{form}", "")
    for name in ("b", "c"):
        if bad is None:
            feed.put_damaged(f"{name}.{form}")
        else:
            feed.put_text(f"{name}.{form}", bad)
    outcome = feed.load()
    assert (outcome.status, outcome.quarantined) == ("nothing", 0)
    for name in ("b", "c"):
        is_named = [each.startswith(f"{name}.{form} cannot be read; the first") for each in outcome.warnings]
        assert is_named.count(True) == 1
    feed.put_parquet("d.parquet", {"x": "s"})
    feed.put_text("d.csv", "x\ns\n")
    feed.put("d.ndjson", {"x": "s"})
    assert (feed.load().quarantined, feed.rows("x")) == (2, [("s",)])


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("1.json", '[{"a": 1, "a": 2}, {"a": 3}]', "line 1: record 1: field a occurs twice"),
        ("1.json", '[{"a": 1},\n5]', "line 2: record 2: expected a JSON object, found a number"),
        ("1.ndjson", '{"a": 3}\n{"a": 1, "a": 2}\n', "line 2: field a occurs twice"),
    ],
)
def test_a_bad_record_is_told_as_one_where_columns_are_inferred_too(
    make_feed: MakeFeed, name: str, text: str, why: str
) -> None:
    feed = make_feed(source={"format": name.partition(".")[2], "schema": None})
    feed.put_text(name, text)
    error = feed.fail()
    assert (error.code, f"file {name}, {why}" in error.message) == ("bad_record", True), error.message
    assert feed.open_intent is None


def test_a_bad_file_makes_no_other_bad_by_the_type_of_a_new_column(make_feed: MakeFeed) -> None:
    feed = make_feed(
        source={"format": "ndjson", "schema": None}, target={"schema_mode": "merge"}, on_bad_file="quarantine"
    )
    feed.put("a.ndjson", 1)
    feed.load()
    feed.put("b.ndjson", {"id": 2, "n": 2**53 + 1})
    feed.put_text("c.ndjson", '{"id": 3, "n": 1.5}\n{"id"\n')
    assert feed.load().quarantined == 1
    assert feed.rows("id", "n") == [(1, None), (2, 2**53 + 1)]
