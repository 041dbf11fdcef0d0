"""Versions of Delta tables that Spark reads from their files: the same rows as Delta's own reading gives, or Delta reads them (docs/explanation/adr/0025)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import given
from hypothesis import strategies as st

from partitions.predicate import NOTHING, AllOf, Among, AnyOf, Between, HasValue, Predicate
from resources.connections.places import Place
from resources.dialects.arrow import arrow_expression
from resources.dialects.predicates import predicate_sql
from resources.dialects.spark import SPARK
from resources.outcome import Step
from resources.spark.engine import SparkEngine
from resources.tables.delta.file_reads import _matching_files, read_files
from resources.tables.delta.log import DeltaLog
from resources.tables.delta.table import DeltaLakeTable
from tests.support.columns import at, on_lake
from tests.support.window_feed import instant

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("at", pa.timestamp("us", "UTC")),
        ("local", pa.timestamp("us")),
        ("day", pa.date32()),
        ("text", pa.string()),
        ("price", pa.decimal128(12, 2)),
        ("long_price", pa.decimal128(30, 10)),
        ("share", pa.float64()),
        ("flag", pa.bool_()),
        ("inner", pa.struct([("id", pa.int64()), ("tags", pa.list_(pa.string()))])),
    ]
)


def _row(number: int, **values: Any) -> dict[str, Any]:
    moment = NOON + timedelta(days=number, microseconds=number)
    row = {
        "id": number,
        "at": moment,
        "local": moment.replace(tzinfo=None),
        "day": moment.date(),
        "text": f"{'order ' * 8}{number}",
        "price": Decimal(number) / 100,
        "long_price": Decimal(f"{number}.0123456789") + 10**18,
        "share": float(number),
        "flag": number % 2 == 0,
        "inner": {"id": -number, "tags": [str(number), None]},
    }
    return row | values


def _write(
    folder: Path, *rows: Mapping[str, Any], schema: pa.Schema = SCHEMA, more: Mapping[str, Any] | None = None
) -> None:
    """Append rows in a file of their own."""
    table = pa.Table.from_pylist([dict(row) for row in rows], schema)
    write_deltalake(str(folder), table, mode="append", **(more or {}))


def _place(folder: Path) -> Place:
    return Place.parse(str(folder), folder.parent)


def _newest(folder: Path) -> int:
    return int(DeltaTable(str(folder)).version())


def _assert_same(
    spark: SparkSession,
    folder: Path,
    *asked: Predicate,
    version: int | None = None,
    from_files: bool = True,
    in_arrow: bool = True,
) -> None:
    """The rows that Delta gives, whoever has read them; and the columns."""
    place = _place(folder)
    at_version = _newest(folder) if version is None else version
    whole = DeltaLakeTable(place).contents.read(spark, at_version)
    for rows in asked:
        condition = predicate_sql(rows, SPARK)
        found = read_files(DeltaLog(place), spark, at_version, rows)
        assert (found is not None) is from_files, rows
        read = DeltaLakeTable(place).contents.read(spark, at_version, rows).where(condition)
        assert [(each.name, each.dataType) for each in read.schema] == [
            (each.name, each.dataType) for each in whole.schema
        ]
        expected = sorted(map(repr, whole.where(condition).collect()))
        assert sorted(map(repr, read.collect())) == expected, rows
        if in_arrow:
            arrow = DeltaLakeTable(place).contents.arrow_rows(at_version, rows).read_all()
            assert _sorted(arrow) == _sorted(whole.where(condition).toArrow().cast(arrow.schema)), rows


def _sorted(rows: pa.Table) -> list[str]:
    return sorted(map(repr, rows.to_pylist()))


ASKED = (
    Between("at", NOON + timedelta(days=2), NOON + timedelta(days=4, microseconds=4), upper_inclusive=True),
    Between("at", NOON + timedelta(days=2, microseconds=2), None, lower_inclusive=False),
    Between("local", NOON.replace(tzinfo=None), NOON.replace(tzinfo=None, year=2027)),
    Between("day", date(2026, 1, 3), None, lower_inclusive=False),
    Between("text", f"{'order ' * 8}3", f"{'order ' * 8}5"),
    Among("text", (f"{'order ' * 8}4", None)),
    Between("price", Decimal("0.02"), Decimal("0.04"), upper_inclusive=True),
    Between("share", 3.0, None, lower_inclusive=False),
    Between("share", None, 2.0),
    Among("flag", (True,)),
    Among("id", (None,)),
    HasValue("at"),
    AnyOf((Between("id", 4, None), AllOf((Between("share", None, 2.0), HasValue("day"))))),
    NOTHING,
)


@pytest.mark.full
def test_rows_of_each_type_are_those_that_delta_reads(tmp_path: Path, engine: SparkEngine) -> None:
    folder = tmp_path / "rows"
    empty = dict.fromkeys(SCHEMA.names)
    _write(folder, _row(1), _row(2))
    _write(folder, _row(3), empty)
    _write(folder, _row(4, share=float("nan")), _row(5, share=float("-inf"), text="\U0010ffff" * 40))
    _write(folder, empty)
    _write(folder, _row(-30_000), _row(6, text=""))
    _assert_same(engine.session(), folder, *ASKED)


def test_bounds_that_delta_rs_has_rounded_leave_no_row_out(tmp_path: Path, engine: SparkEngine) -> None:
    """Delta trusts them: of these rows it finds none."""
    folder = tmp_path / "rows"
    _write(folder, _row(1), _row(2))
    _write(folder, _row(3), _row(4))
    rows = Between("long_price", Decimal("1000000000000000002.5"), None)
    read = (
        DeltaLakeTable(_place(folder))
        .contents.read(engine.session(), 1, rows)
        .where(predicate_sql(rows, SPARK))
    )
    assert sorted(row["id"] for row in read.collect()) == [3, 4]


@pytest.mark.full
def test_an_older_version_is_read_as_it_was(tmp_path: Path, engine: SparkEngine) -> None:
    folder = tmp_path / "rows"
    _write(folder, _row(1), _row(2))
    _write(folder, _row(3))
    DeltaTable(str(folder)).delete("id = 2")
    for version in range(3):
        _assert_same(engine.session(), folder, Between("id", 2, None), version=version)


def test_a_column_that_came_later_is_null_in_older_files(tmp_path: Path, engine: SparkEngine) -> None:
    folder = tmp_path / "rows"
    _write(folder, _row(1))
    wider = SCHEMA.append(pa.field("more", pa.string()))
    _write(folder, _row(2, more="x"), schema=wider, more={"schema_mode": "merge"})
    _assert_same(engine.session(), folder, Between("id", 1, None), HasValue("more"), Among("more", (None,)))


@pytest.mark.full
def test_statistics_that_are_missing_leave_no_file_out(tmp_path: Path, engine: SparkEngine) -> None:
    folder = tmp_path / "rows"
    _write(folder, _row(1), more={"configuration": {"delta.dataSkippingNumIndexedCols": "1"}})
    _write(folder, _row(2))
    _assert_same(engine.session(), folder, *ASKED)
    log = folder / "_delta_log" / f"{1:020d}.json"
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    for line in lines:
        if "add" in line:
            line["add"].pop("stats")
    log.write_text("\n".join(map(json.dumps, lines)))
    _assert_same(engine.session(), folder, *ASKED)


@pytest.mark.full
@pytest.mark.parametrize("column", ["text", "day", "id"])
def test_values_of_partitions_are_those_of_the_log(tmp_path: Path, engine: SparkEngine, column: str) -> None:
    folder = tmp_path / "rows"
    for rows in ([_row(1, text="a"), _row(2, text="b.c")], [_row(3, text="a") | {column: None}]):
        _write(folder, *rows, more={"partition_by": [column]})
    asked = (
        Between("at", NOON, None),
        Among("text", ("a",)),
        Among("text", (None,)),
        Between("day", date(2026, 1, 3), None),
        Between("id", 2, None),
        Among("id", (1, None)),
    )
    _assert_same(engine.session(), folder, *asked)


@pytest.mark.parametrize(
    ("column", "value"),
    [("at", NOON), ("share", 0.5), ("flag", True), ("price", Decimal("1.50")), ("text", "a b")],
)
def test_partitions_that_are_written_in_several_ways_are_left_to_delta(
    tmp_path: Path, engine: SparkEngine, column: str, value: object
) -> None:
    folder = tmp_path / "rows"
    _write(folder, _row(1, **{column: value}), _row(2), more={"partition_by": [column]})
    _assert_same(engine.session(), folder, Between("id", 1, None), from_files=False)


def _sql(statements: str) -> Callable[[SparkSession, Path], None]:
    def ask(spark: SparkSession, folder: Path) -> None:
        for statement in statements.split(";"):
            spark.sql(statement.format(f"delta.`{folder}`")).collect()

    return ask


FEATURES: dict[str, Callable[[SparkSession, Path], None]] = {
    "deletion vectors": _sql(
        "CREATE TABLE {0} (id BIGINT, n BIGINT) USING delta TBLPROPERTIES (delta.enableDeletionVectors = true);"
        "INSERT INTO {0} SELECT id, id FROM range(0, 100, 1, 1);DELETE FROM {0} WHERE n < 50"
    ),
    "column mapping": _sql(
        "CREATE TABLE {0} (id BIGINT, m BIGINT) USING delta TBLPROPERTIES (delta.columnMapping.mode = 'name');"
        "INSERT INTO {0} SELECT id, id FROM range(5);ALTER TABLE {0} RENAME COLUMN m TO n"
    ),
    "wider types": _sql(
        "CREATE TABLE {0} (id INT, n INT) USING delta TBLPROPERTIES (delta.enableTypeWidening = true);"
        "INSERT INTO {0} VALUES (1, 1);ALTER TABLE {0} ALTER COLUMN id TYPE BIGINT;INSERT INTO {0} VALUES (5000000000, 2)"
    ),
    "texts of a length": _sql(
        "CREATE TABLE {0} (id BIGINT, n CHAR(3)) USING delta;INSERT INTO {0} VALUES (1, 'a')"
    ),
}


@pytest.mark.parametrize("feature", FEATURES)
def test_tables_that_ask_more_are_left_to_delta(tmp_path: Path, engine: SparkEngine, feature: str) -> None:
    folder, spark = tmp_path / "rows", engine.session()
    FEATURES[feature](spark, folder)
    in_arrow = feature != "texts of a length"  # Spark alone fills them up with blanks
    _assert_same(spark, folder, Between("id", 1, None), NOTHING, from_files=False, in_arrow=in_arrow)


@pytest.mark.full
def test_a_table_of_files_elsewhere_is_left_to_delta(tmp_path: Path, engine: SparkEngine) -> None:
    spark, other, folder = engine.session(), tmp_path / "other", tmp_path / "rows"
    spark.range(5).write.format("delta").save(str(other))
    spark.sql(f"CREATE TABLE delta.`{folder}` SHALLOW CLONE delta.`{other}`").collect()
    _assert_same(spark, folder, Between("id", 1, None), from_files=False)


def test_a_reader_that_is_newer_than_this_one_is_left_to_delta(tmp_path: Path, engine: SparkEngine) -> None:
    folder = tmp_path / "rows"
    _write(folder, _row(1))
    log = folder / "_delta_log" / f"{0:020d}.json"
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    for line in lines:
        if "protocol" in line:
            line["protocol"] = {
                "minReaderVersion": 3,
                "minWriterVersion": 7,
                "readerFeatures": ["timestampNtz", "rowsElsewhere"],
                "writerFeatures": ["timestampNtz", "rowsElsewhere"],
            }
    log.write_text("\n".join(map(json.dumps, lines)))
    assert read_files(DeltaLog(_place(folder)), engine.session(), 0, Between("id", 1, None)) is None


@pytest.mark.full
def test_many_files_are_left_to_delta(tmp_path: Path, engine: SparkEngine) -> None:
    folder = tmp_path / "rows"
    small = pa.schema([("id", pa.int64())])
    for number in range(33):
        _write(folder, {"id": number}, schema=small)
    spark = engine.session()
    _assert_same(spark, folder, Between("id", 0, None), from_files=False)
    _assert_same(spark, folder, Between("id", 1, None), Between("id", 40, None))


@pytest.mark.parametrize("name", ["a b", "a{b}", "größe", "a'b"])
def test_a_table_of_an_odd_name_is_read(tmp_path: Path, engine: SparkEngine, name: str) -> None:
    folder = tmp_path / name
    _write(folder, _row(1))
    _write(folder, _row(2))
    place = _place(folder)
    read = DeltaLakeTable(place).contents.read(engine.session(), 1, Between("id", 2, None)).where("id >= 2")
    assert [row["id"] for row in read.collect()] == [2]


@pytest.mark.parametrize("step", [Step.PLANNED, Step.INTENT_PUT])
def test_a_vanished_planned_file_is_loaded_later(tmp_path: Path, engine: SparkEngine, step: Step) -> None:
    flow, table = on_lake(tmp_path, engine)
    table.add({"id": 1, "at": at(1), "value": 1})
    flow.run()
    table.add({"id": 2, "at": at(2), "value": 2})
    table.add({"id": 3, "at": at(3), "value": 3})
    before = flow.watermark
    (path,) = [path for path, ids in table.files().items() if ids == [2]]
    gone = path.with_suffix(".gone")

    def observer(heard: Step, _: str) -> None:
        if heard is step and path.exists():
            path.rename(gone)

    error = flow.feed.fail(observer, now=instant("2026-06-01"))
    assert error.code == "unreadable_version"
    assert "table raw/rows: version 2 cannot be read" in error.message
    assert flow.watermark == before
    assert flow.ids == [1]
    gone.rename(path)
    assert flow.run().rows == 2
    assert flow.ids == [1, 2, 3]


def test_a_file_that_goes_before_spark_lists_it_is_an_error(tmp_path: Path, engine: SparkEngine) -> None:
    folder = tmp_path / "rows"
    _write(folder, _row(1))
    _write(folder, _row(2))
    _in_files(folder).unlink()
    with pytest.raises(Exception, match="PATH_NOT_FOUND"):
        _read(engine, folder).collect()


def test_a_file_that_goes_after_spark_has_listed_it_is_an_error(tmp_path: Path, engine: SparkEngine) -> None:
    folder = tmp_path / "rows"
    _write(folder, _row(1))
    _write(folder, _row(2))
    found = _read(engine, folder)
    _ = found.schema
    _in_files(folder).unlink()
    with pytest.raises(Exception, match=r"PATH_NOT_FOUND|FILE_NOT_EXIST"):
        found.collect()


def _in_files(folder: Path) -> Path:
    return next(folder.glob("*.parquet"))


def _read(engine: SparkEngine, folder: Path) -> DataFrame:
    found = read_files(DeltaLog(_place(folder)), engine.session(), 1, Between("id", 1, None))
    assert found is not None
    return found


_INSTANTS = st.timedeltas(timedelta(days=-20_000), timedelta(days=2_000)).map(lambda since: NOON + since)
_TEXTS = st.one_of(
    st.text(max_size=4),
    st.text(st.characters(exclude_categories=["Cs"]), min_size=30, max_size=40),
    st.sampled_from(["x" * 32, "x" * 33, "x" * 31 + "\U0010ffff" * 3]),
)
_OF_TYPE: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "whole": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "at": (pa.timestamp("us", "UTC"), _INSTANTS),
    "day": (pa.date32(), st.dates(date(1960, 1, 1), date(2030, 1, 1))),
    "text": (pa.string(), _TEXTS),
    "price": (pa.decimal128(18, 3), st.decimals(-(10**14), 10**14, places=3)),
    "share": (pa.float64(), st.floats()),
}


@st.composite
def _files_and_rows(draw: st.DrawFn) -> tuple[str, list[list[Any]], Predicate]:
    """Values of a column, by file, and rows that are asked for: around the values, so that bounds meet them."""
    column = draw(st.sampled_from(sorted(_OF_TYPE)))
    values = _OF_TYPE[column][1]
    files = draw(
        st.lists(st.lists(st.one_of(st.none(), values), min_size=1, max_size=3), min_size=1, max_size=4)
    )
    there = [value for file in files for value in file if value is not None and value == value]
    bound = st.one_of(values, st.sampled_from(there)) if there else values
    finite = bound.filter(lambda value: not isinstance(value, float) or abs(value) < float("inf"))
    return column, files, draw(_predicates(column, finite))


def _predicates(column: str, bound: st.SearchStrategy[Any]) -> st.SearchStrategy[Predicate]:
    between = st.builds(
        lambda lower, upper, a, b: Between(column, lower, upper, a, b),
        bound,
        st.one_of(st.none(), bound),
        st.booleans(),
        st.booleans(),
    )
    below = st.builds(lambda upper, b: Between(column, None, upper, True, b), bound, st.booleans())
    among = st.lists(st.one_of(st.none(), bound), max_size=2, unique=True).map(
        lambda values: Among(column, tuple(values))
    )
    one: st.SearchStrategy[Predicate] = st.one_of(between, below, among, st.just(HasValue(column)))
    several = st.lists(one, max_size=3).map(tuple)
    return st.one_of(one, st.builds(AnyOf, several), st.builds(AllOf, several))


@given(_files_and_rows())
def test_no_file_is_left_out_that_holds_a_row(drawn: tuple[str, list[list[Any]], Predicate]) -> None:
    """As its Parquet file says, whatever its statistics do."""
    column, files, rows = drawn
    schema = pa.schema([(column, _OF_TYPE[column][0])])
    with TemporaryDirectory() as name:
        folder = Path(name) / "rows"
        for values in files:
            _write(folder, *({column: value} for value in values), schema=schema)
        table = DeltaTable(str(folder))
        kept = {file["path"] for file in _matching_files(table, (), rows=rows)}
        for path in folder.glob("*.parquet"):
            held = pq.read_table(path).cast(schema).filter(arrow_expression(rows, schema)).num_rows
            assert not held or path.name in kept, path.name
