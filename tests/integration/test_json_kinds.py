"""Each kind of JSON value beside each declared type: it is loaded exactly, or its record is bad, by line and field."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import product
from typing import Any, NamedTuple

import pytest
from deltalake import DeltaTable
from pyspark.sql.types import VariantVal

from tests.integration.conftest import MakeFeed
from tests.support.feed import Feed

Json = Any
Type = str | tuple[str, "Type"]
"""A simple type, or ``array``, ``map`` or ``struct`` with the type of the parts; a struct has the field ``x``."""

FULL = pytest.mark.full
DAY, INSTANT, BYTES = "2026-01-02", "2026-01-02T03:04:05Z", "YWI="


class Misfit(Exception):
    """A value that a type does not hold."""


def written(value: Json) -> str:
    return json.dumps(value, separators=(",", ":"))


def _of_text(read: Callable[[str], Any]) -> Callable[[Json], Any]:
    def value(text: Json) -> Any:
        try:
            return read(text)
        except (TypeError, ValueError, ArithmeticError):
            raise Misfit from None

    return value


def _whole(value: Json) -> int:
    if type(value) is not int:
        raise Misfit
    return value


def _fraction(value: Json) -> float:
    if type(value) not in (int, float):
        raise Misfit
    return float(value)


def _decimal(value: Json) -> Any:
    if type(value) not in (int, float, str):
        raise Misfit
    return _of_text(Decimal)(str(value))


def _boolean(value: Json) -> bool:
    if type(value) is not bool:
        raise Misfit
    return value


def _instant(value: Json) -> Any:
    if type(value) is int:
        return datetime.fromtimestamp(value, UTC)
    if value == DAY:
        return datetime(2026, 1, 2, tzinfo=UTC)
    return _of_text(datetime.fromisoformat)(value)


LEAVES: Mapping[str, Callable[[Json], Any]] = {
    "boolean": _boolean,
    "long": _whole,
    "double": _fraction,
    "decimal(10,2)": _decimal,
    "date": _of_text(date.fromisoformat),
    "timestamp": _instant,
    "binary": _of_text(lambda text: b64decode(text, validate=True)),
    "string": lambda value: value if isinstance(value, str) else written(value),
    "variant": lambda value: value,
}
"""By type: what a value that is not null becomes."""


def expected(value: Json, data_type: Type) -> Any:
    """Return what a value becomes in a column of a type.

    Raises:
        Misfit: the type does not hold the value.
    """
    if isinstance(data_type, str):
        # Within a variant a null is a value.
        return None if value is None else LEAVES[data_type](value)
    kind, part = data_type
    if value is None:
        return None
    if kind == "array" and isinstance(value, list):
        return [expected(item, part) for item in value]
    if kind == "map" and isinstance(value, dict):
        return {name: expected(item, part) for name, item in value.items()}
    if kind == "struct" and isinstance(value, dict):
        return {"x": expected(value.get("x"), part)}
    raise Misfit


def ddl(data_type: Type) -> str:
    if isinstance(data_type, str):
        return data_type
    kind, part = data_type
    return {"array": "array<{}>", "map": "map<string, {}>", "struct": "struct<x: {}>"}[kind].format(ddl(part))


CONTAINERS = ("array", "map", "struct")
TYPES: list[Type] = [
    *LEAVES,
    *((kind, leaf) for kind in CONTAINERS for leaf in LEAVES),
    *((outer, (inner, leaf)) for outer in CONTAINERS for inner in CONTAINERS for leaf in ("long", "string")),
    ("array", ("struct", ("map", ("array", "long")))),
]
SCALARS: list[Json] = [None, True, 7, 1.5, "", "a", "7", DAY, INSTANT, BYTES]


def values() -> Iterator[Json]:
    """Yield each kind of value, and each within arrays and objects."""
    simple: list[Json] = [*SCALARS, [], {}]
    yield from simple
    for value in simple:
        yield [value]
        yield {"x": value}
    inner: list[Json] = [None, 7, "a", [], {}, [7], {"x": 7}]
    for value in inner:
        yield from ([[value]], [{"x": value}], {"x": [value]}, {"x": {"x": value}}, [7, value], [value, None])
    parts: list[Json] = [[], {}, [7]]
    yield from ([{"x": {"x": value}}] for value in parts)


class Record(NamedTuple):
    """A record with a value in one column.

    Attributes:
        text: the record as it is written.
        column: the column.
        row: the values of its row that are not NULL; None if the column's type does not hold the value.
    """

    text: str
    column: str
    row: dict[str, Any] | None


def records() -> Iterator[Record]:
    """Yield a record of each value in each column; ``n`` is its number."""
    pairs = product(enumerate(TYPES), values())
    for n, ((number, data_type), value) in enumerate(pairs):
        column, row = f"c{number}", None
        with suppress(Misfit):
            held = expected(value, data_type)
            row = {"n": n} | ({} if held is None else {column: held})
        yield Record(written({"n": n, column: value}), column, row)


RECORDS = list(records())
COLUMNS = [f"c{number}" for number in range(len(TYPES))]
NESTED = COLUMNS[len(LEAVES) :]
OF_TEXTS = [name for name in NESTED if "string" in ddl(TYPES[int(name[1:])]).replace("map<string, ", "")]
SCHEMA = ", ".join(
    ["n long", *(f"{name} {ddl(data_type)}" for name, data_type in zip(COLUMNS, TYPES, strict=True))]
)


def _plain(value: Any) -> Any:
    """Return a value of Spark as one of Python."""
    match value:
        case VariantVal():
            return value.toPython()
        case bytearray():
            return bytes(value)
        case dict():
            return {name: _plain(part) for name, part in value.items()}
        case list():
            return [_plain(part) for part in value]
        case datetime():
            return value.astimezone(UTC)
    return value


def loaded(feed: Feed) -> dict[int, dict[str, Any]]:
    """Return the values of each row that are not NULL, by its number."""
    table = feed.platform.table(feed.dataflow)
    session = feed.platform.engine(feed.dataflow).session()
    rows = table.contents.read(session, table.contents.newest_version()).select("n", *COLUMNS).collect()
    plain = [{name: _plain(value) for name, value in row.asDict(recursive=True).items()} for row in rows]
    return {row["n"]: {name: value for name, value in row.items() if value is not None} for row in plain}


def bad_records(feed: Feed) -> dict[int, str]:
    """Return the reasons of the records that were set aside, by position."""
    table = DeltaTable(f"{feed.table}_bad_records").to_pyarrow_table(columns=["position", "reason"])
    return {row["position"]: row["reason"] for row in table.to_pylist()}


def test_each_value_is_exact_or_its_record_is_bad_by_line_and_field(make_feed: MakeFeed) -> None:
    feed = make_feed(source={"schema": SCHEMA}, max_bad_records=100_000)
    feed.put_text("a.ndjson", "".join(f"{record.text}\n" for record in RECORDS))
    feed.load()
    rows, bad = loaded(feed), bad_records(feed)
    for number, record in enumerate(RECORDS):
        assert rows.get(number) == record.row, record
        assert (number + 1 in bad) == (record.row is None), record
        assert bad.get(number + 1, "field " + record.column).startswith(f"field {record.column}"), record
    assert len(rows) + len(bad) == len(RECORDS)


@pytest.mark.full
def test_each_value_of_a_document_is_exact_or_the_file_is_bad_by_its_records(make_feed: MakeFeed) -> None:
    feed = make_feed(
        source={"format": "json", "schema": SCHEMA}, on_bad_file="quarantine", max_bad_files=len(RECORDS)
    )
    sound = [record for record in RECORDS if record.row is not None]
    feed.put_text("a.json", f"[{','.join(record.text for record in sound)}]")
    bad = {record.column: record for record in RECORDS if record.row is None and record.column in NESTED}
    for column, record in bad.items():
        feed.put_text(f"{column}.json", f'[{{"n": 0}},\n{record.text}]')
    feed.load()
    assert loaded(feed) == {json.loads(record.text)["n"]: record.row for record in sound}
    reasons = feed.quarantined
    assert set(reasons) == {f"{column}.json" for column in bad}
    for column, record in bad.items():
        assert f"line 2: record 2: field {column}" in reasons[f"{column}.json"], record


@pytest.mark.full
def test_what_does_not_fit_is_rescued_as_it_is_written(make_feed: MakeFeed) -> None:
    feed = make_feed(source={"schema": SCHEMA}, target={"schema_mode": "rescue"})
    feed.put_text("a.ndjson", "".join(f"{record.text}\n" for record in RECORDS))
    feed.load()
    rows, rescued = loaded(feed), dict(feed.rows_by_spark("n", "_rescued_data"))
    for number, record in enumerate(RECORDS):
        value = json.loads(record.text)[record.column]
        kept = ({"n": number}, written({record.column: value}))
        as_value = [] if record.row is None else [(record.row, None)]
        # A number within a list or object that becomes text keeps its spelling.
        as_written = [kept] if record.row is None or record.column in OF_TEXTS else []
        assert (rows[number], rescued[number]) in as_value + as_written, record


@pytest.mark.parametrize(
    ("data_type", "value", "place"),
    [
        ("array<int>", "{}", "a"),
        ("array<string>", '{"x": "y"}', "a"),
        ("array<variant>", '{"x": 1}', "a"),
        ("struct<x: array<int>>", '{"x": {}}', "a.x"),
        ("map<string, array<int>>", '{"k": {}}', "a"),
        ("array<array<int>>", "[[1], {}]", "a"),
        ("array<struct<x: array<int>>>", '[{"x": [1]}, {"x": {}}]', "a.x"),
        ("struct<x: int>", "[]", "a"),
        ("map<string, int>", "[]", "a"),
    ],
)
def test_a_record_of_another_kind_is_bad_and_the_others_are_loaded(
    make_feed: MakeFeed, data_type: str, value: str, place: str
) -> None:
    feed = make_feed(source={"schema": f"id long, a {data_type}"}, max_bad_records=1)
    feed.put_text("a.ndjson", f'{{"id": 1}}\n{{"id": 2, "a": {value}}}\n{{"id": 3, "a": null}}\n')
    feed.load()
    assert feed.ids == [1, 3]
    assert list(bad_records(feed)) == [2]
    feed.define(max_bad_records=0)
    feed.decide("reset", "--replace")
    error = feed.fail()
    assert f"file a.ndjson, line 2: field {place}: expected " in error.message
    assert feed.ids == [1, 3]


def test_a_pinned_list_refuses_an_object_and_its_file_goes_to_quarantine(make_feed: MakeFeed) -> None:
    feed = make_feed(source={"schema": None}, on_bad_file="quarantine")
    feed.put_text("1.ndjson", '{"id": 1, "a": [1]}\n')
    feed.load()
    feed.put_text("2.ndjson", '{"id": 2, "a": {}}\n')
    feed.put_text("3.ndjson", '{"id": 3, "a": []}\n')
    feed.load()
    assert feed.rows("id", "a") == [(1, [1]), (3, [])]
    (reason,) = feed.quarantined.values()
    assert "line 1: field a: expected array, found an object" in reason
