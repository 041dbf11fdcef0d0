"""Files that cannot be read, changed or vanished: the run fails naming the file, and what comes before it in order is committed."""

from __future__ import annotations

import bz2
import gzip
import os
import random
from collections.abc import Callable, Sequence
from datetime import date
from decimal import Decimal
from io import BytesIO
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from partitions.errors import BadFile
from resources.outcome import Observer, Outcome, Step
from tests.integration.conftest import MakeFeed
from tests.support.feed import Feed


def _parquet(table: pa.Table, **options: Any) -> bytes:
    """A file with these rows."""
    buffer = BytesIO()
    pq.write_table(table, buffer, **options)
    return buffer.getvalue()


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


class TestUnreadable:
    @pytest.mark.parametrize(
        ("name", "data"),
        [
            ("b.ndjson.gz", gzip.compress(ROWS, mtime=0)[:-200]),
            ("b.ndjson.gz", b"not gzip"),
            ("b.ndjson.bz2", bz2.compress(ROWS)[:-50]),
        ],
        ids=["truncated gzip", "no gzip", "truncated bzip2"],
    )
    def test_a_broken_file_stops_the_watermark_below_it(self, feed: Feed, name: str, data: bytes) -> None:
        feed.put("a.ndjson", 1)
        feed.put_bytes(name, data)
        feed.put("c.ndjson", 3)
        _fails_at_b(feed, feed.run())
        feed.put(name, 2)
        assert feed.load().files == 2
        assert feed.ids == [1, 2, 3]

    @pytest.mark.parametrize("data", [b"PAR1 but not really PAR1", b"x"])
    def test_a_broken_parquet_file_stops_below_it(self, make_feed: MakeFeed, data: bytes) -> None:
        feed = make_feed(source={"format": "parquet"})
        feed.put_parquet("a.parquet", 1)
        feed.put_bytes("b.parquet", data)
        feed.put_parquet("c.parquet", 3)
        _fails_at_b(feed, feed.run())

    def test_parquet_of_another_type_is_named_with_both_types(self, make_feed: MakeFeed) -> None:
        feed = make_feed(source={"format": "parquet", "schema": None})
        feed.put_parquet("a.parquet", 1)
        feed.put_parquet("b.parquet", {"id": "x"})
        _fails_at_b(feed, outcome := feed.run())
        assert "column id: expected bigint, found Parquet's type string. Mend or remove it" in str(
            outcome.error
        )

    @pytest.mark.parametrize("mode", ["strict", "merge", "rescue"])
    def test_parquet_that_no_table_holds_is_passed_over(self, make_feed: MakeFeed, mode: str) -> None:
        feed = make_feed(
            source={"format": "parquet", "schema": None},
            on_bad_file="quarantine",
            target={"schema_mode": mode, "load": "append"},
        )
        wide = pa.array([1], pa.decimal256(60, 2))
        feed.put_bytes("a.parquet", _parquet(pa.table({"id": [1], "c": wide})))
        feed.put_bytes("b.parquet", _parquet(pa.table({"id": [2], "c": [{"x": 1, "X": 2}]})))
        feed.put_bytes("c.parquet", _parquet(pa.table({"id": [3], "a\0b": [3]})))
        feed.put_bytes("d.parquet", _parquet(pa.table({"id": [4]}))[:-4] + b"PARE")
        feed.put_bytes("e.parquet", _parquet(pa.table({})))
        feed.put_parquet("f.parquet", 6)
        rows = pa.table({"id": pa.array(range(1000))})
        data = bytearray(_parquet(rows, write_page_checksum=True, use_dictionary=False, compression="none"))
        data[1000] ^= 1
        feed.put_bytes("g.parquet", bytes(data))
        grouped = _parquet(pa.table({"id": [8], "s": [{"x": 1, "y": 1}]}), store_schema=False)
        feed.put_bytes("h.parquet", _with_footer(grouped, b"\x18\x01s\x15\x04", b"\x18\x01s\x15\x04\x15\x08"))
        spans = _parquet(pa.table({"id": [9], "t": pa.array([b"a" * 12], pa.binary(12))}), store_schema=False)
        feed.put_bytes("i.parquet", _with_footer(spans, b"\x18\x01t\x00", b"\x18\x01t\x25\x2a\x00"))
        assert feed.load().quarantined == 7
        assert feed.ids == [6]
        reasons = {each["path"]: each["reason"] for each in feed.cli("list").json[0]["quarantined"]["files"]}
        assert reasons == {
            "a.parquet": "column c: expected a type that Spark reads, found decimal(60,2), which has more than 38 digits",
            "b.parquet": "expected columns with names of their own, found x and X",
            "c.parquet": r"column a\0b: expected a type that Spark reads, found a name with a NUL",
            "d.parquet": "it is encrypted",
            "g.parquet": "cannot be read: a page has another checksum than the one beside it: it is damaged",
            "h.parquet": "its footer gives a column a type that Parquet does not have there",
            "i.parquet": "column t: expected a type that Spark reads, found an interval, which no table holds",
        }

    @pytest.mark.parametrize("by_dictionary", [True, False])
    def test_decimals_of_parquet_may_be_any_bytes(self, make_feed: MakeFeed, by_dictionary: bool) -> None:
        numbers = [150, -99_999, None, 150]
        values = [number and number.to_bytes(8, "big", signed=True) for number in numbers]
        table = pa.table({"id": [1, 2, 3, 4], "d": values})
        data = _parquet(table, store_schema=False, write_statistics=False, use_dictionary=by_dictionary)
        decimal = b"\x18\x01d\x25\x0a\x15\x04\x15\x24\x00"  # of 18 digits, 2 of them behind the point
        feed = make_feed(source={"format": "parquet", "schema": None})
        feed.put_bytes("a.parquet", _with_footer(data, b"\x18\x01d\x00", decimal))
        feed.load()
        assert feed.rows("id", "d") == [
            (1, Decimal("1.50")),
            (2, Decimal("-999.99")),
            (3, None),
            (4, Decimal("1.50")),
        ]

    @pytest.mark.parametrize("mode", ["strict", "merge", "rescue"])
    def test_a_uuid_is_text_and_a_time_past_9999_is_none(self, make_feed: MakeFeed, mode: str) -> None:
        feed = make_feed(
            source={"format": "parquet", "schema": None},
            on_bad_file="quarantine",
            target={"schema_mode": mode, "load": "append"},
        )
        text = "00112233-4455-6677-8899-aabbccddeeff"
        uuids = pa.array([UUID(text).bytes], pa.uuid())
        day, far = (pa.array([days], pa.int32()).cast(pa.date32()) for days in (2_932_896, 2_932_897))
        feed.put_bytes("a.parquet", _parquet(pa.table({"id": [1], "u": uuids, "day": day})))
        feed.put_bytes("b.parquet", _parquet(pa.table({"id": [2], "u": uuids, "day": far})))
        feed.load()
        first = (1, text, date(9999, 12, 31))
        if mode == "rescue":
            rescued = '{"day":"+10000-01-01"}'
            assert feed.rows("id", "u", "day", "_rescued_data") == [(*first, None), (2, text, None, rescued)]
        else:
            assert feed.rows("id", "u", "day") == [first]

    @pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may read every file")
    def test_a_file_that_may_not_be_read_stops_the_watermark_below_it(self, feed: Feed) -> None:
        feed.put("a.ndjson", 1)
        feed.put("b.ndjson", 2)
        (feed.landing / "b.ndjson").chmod(0)
        feed.put("c.ndjson", 3)
        _fails_at_b(feed, feed.run())

    def test_a_broken_file_among_those_that_tell_the_schema_is_named(self, make_feed: MakeFeed) -> None:
        feed = make_feed(source={"schema": None})
        feed.put("a.ndjson", 1)
        feed.put_bytes("b.ndjson.gz", gzip.compress(ROWS, mtime=0)[:-200])
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

    def test_several_broken_files_stop_at_the_first_in_order(self, feed: Feed) -> None:
        feed.put("a.ndjson", 1)
        for name in ("b", "c", "d"):
            feed.put_bytes(f"{name}.ndjson.gz", b"not gzip")
        _fails_at_b(feed, feed.run())


class TestRecords:
    @pytest.mark.parametrize(
        ("form", "good", "bad", "line", "why"),
        [
            (
                "ndjson",
                '{"id": 1}\n',
                '{"id": 2}\n\n{"id": 3',
                3,
                "expected a JSON object, found text that is none",
            ),
            ("ndjson", '{"id": 1}\n', '{"id": 2}\n"secret"\n', 2, "expected a JSON object, found text"),
            ("ndjson", '{"id": 1}\n', '{"id": "secret"}\n', 1, "field id: expected bigint, found text"),
            ("csv", "id\n1\n", "id\n2\n3,secret\n", 3, "expected 1 value, found 2"),
            ("csv", "id\n1\n", "id\n2\nsecret\n", 3, "field id: expected bigint, found other text"),
        ],
    )
    def test_a_bad_record_is_told_by_line_and_field_and_not_quoted_if_hidden(
        self, make_feed: MakeFeed, form: str, good: str, bad: str, line: int, why: str
    ) -> None:
        feed = make_feed(source={"format": form}, show_bad_records=False)
        feed.put_text(f"a.{form}", good)
        feed.put_text(f"b.{form}.gz", bad)
        feed.put_text(f"c.{form}", good)
        outcome = feed.run()
        _fails_at_b(feed, outcome, "bad_record")
        assert outcome.error is not None
        assert f"b.{form}.gz, line {line}: {why}" in outcome.error.message
        assert "secret" not in outcome.error.message

    def test_a_bad_record_is_quoted_where_somebody_asks_for_it(self, make_feed: MakeFeed) -> None:
        feed = make_feed(show_bad_records=True)
        feed.put_text("a.ndjson", '{"id": "abc"}\n')
        error = feed.fail()
        assert """field id: expected bigint, found text in '{"id": "abc"}'""" in error.message

    @pytest.mark.parametrize(
        ("bad", "why"),
        [
            ('[{"id": 2}, {"id": "secret"}]', "line 1: record 2: field id: expected bigint, found text"),
            ('{"id": {"secret": 1}}', "line 1: field id: expected bigint, found an object"),
        ],
    )
    def test_bad_json_is_named_by_record_and_field(self, make_feed: MakeFeed, bad: str, why: str) -> None:
        feed = make_feed(source={"format": "json"}, show_bad_records=False)
        feed.put_text("a.json", '[{"id": 1}]')
        feed.put_text("b.json", bad)
        feed.put_text("c.json", '{"id": 3}')
        outcome = feed.run()
        _fails_at_b(feed, outcome, "bad_record")
        assert outcome.error is not None
        assert f"b.json, {why}" in outcome.error.message
        assert "secret" not in outcome.error.message


class TestVanished:
    def test_a_file_that_vanished_is_named_and_the_next_run_goes_on(self, feed: Feed) -> None:
        for number, name in enumerate("abc", 1):
            feed.put(f"{name}.ndjson", number)
        outcome = feed.run(_once(Step.PLANNED, (feed.landing / "b.ndjson").unlink))
        _fails_at_b(feed, outcome, "file_vanished")
        feed.load()
        assert feed.ids == [1, 3]

    def test_a_file_that_vanishes_before_it_is_read_is_named(self, feed: Feed) -> None:
        for number, name in enumerate("abc", 1):
            feed.put(f"{name}.ndjson", number)
        outcome = feed.run(_once(Step.INTENT_PUT, (feed.landing / "b.ndjson").unlink))
        _fails_at_b(feed, outcome, "file_vanished")
        assert [entry.why for entry in feed.entries] == ["abandon", "run"], (
            "the number of the first try was given up"
        )
        feed.load()
        assert feed.ids == [1, 3]

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
    def test_a_file_that_changed_after_the_listing_is_not_loaded_by_this_run(self, feed: Feed) -> None:
        for number, name in enumerate("abc", 1):
            feed.put(f"{name}.ndjson", number)
        outcome = feed.run(_once(Step.PLANNED, lambda: feed.put("b.ndjson", 20, 21)))
        _fails_at_b(feed, outcome, "file_changed")
        feed.load()
        assert feed.ids == [1, 3, 20, 21]

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
        ("csv", "1.csv.gz", gzip.compress(random.Random(1).randbytes(9999), mtime=0)[:5000], "it does not read: its compressed bytes end too early"),
        ("csv", "1.csv.gz", b"id\n1\n", "it does not read: its bytes are none that gzip has packed"),
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
    feed = make_feed(source={"format": "ndjson", "schema": "id long"}, on_bad_file="quarantine")
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
        is_named = [each.startswith(f"{name}.{form} cannot be read, and is") for each in outcome.warnings]
        assert is_named.count(True) == 1
    feed.put_parquet("d.parquet", {"x": "s"})
    feed.put_text("d.csv", "x\ns\n")
    feed.put("d.ndjson", {"x": "s"})
    assert (feed.load().quarantined, feed.rows("x")) == (2, [("s",)])


@pytest.mark.parametrize(
    ("form", "bad", "sound"),
    [
        ("ndjson", '{"id": 1, "x": 1.5}\n{"id": 2\n', '{"id": 3, "x": 4}\n'),
        ("csv", "id,x\n1,a\n2,b,c\n", "id,x\n3,4\n"),
    ],
)
def test_types_come_from_files_that_load_alone(make_feed: MakeFeed, form: str, bad: str, sound: str) -> None:
    feed = make_feed(source={"format": form, "schema": None}, on_bad_file="quarantine")
    feed.put_text(f"a.{form}", bad)
    feed.put_text(f"b.{form}", sound)
    assert feed.load().quarantined == 1
    assert feed.rows("id", "x") == [(3, 4)]
    assert type(feed.rows("x")[0][0]) is int


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("1.json", '[{"a": 1, "a": 2}, {"a": 3}]', "line 1: record 1: field a stands twice in it"),
        ("1.json", '[{"a": 1},\n5]', "line 2: record 2: expected a JSON object, found a number"),
        ("1.ndjson", '{"a": 3}\n{"a": 1, "a": 2}\n', "line 2: field a stands twice in it"),
    ],
)
def test_a_bad_record_is_told_as_one_where_columns_are_inferred_too(
    make_feed: MakeFeed, name: str, text: str, why: str
) -> None:
    feed = make_feed(source={"format": name.partition(".")[2], "schema": None})
    feed.put_text(name, text)
    error = feed.run().error
    assert error is not None
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
