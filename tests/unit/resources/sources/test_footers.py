"""The columns of Parquet files, from their footers."""

from __future__ import annotations

from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql.types import ArrayType, LongType, MapType, StringType, StructType

from partitions.path.source import SourceFile
from partitions.records.conversions import ITEM, VALUE
from resources.connections.places import Place
from resources.sources.files.field_paths import field_paths, find_unknown_columns
from resources.sources.files.footers import Footer, parse_footer, read_footers

NS = pa.timestamp("ns")


def _footer(table: pa.Table, **options: Any) -> Footer:
    buffer = BytesIO()
    pq.write_table(table, buffer, **options)
    return parse_footer(pq.read_metadata(buffer))


def test_all_fields_are_told_at_any_depth() -> None:
    table = pa.table({"a": [1], "s": [{"x": 1, "l": [{"y": "z"}]}]})
    assert _footer(table).fields == {("a",), ("s",), ("s", "x"), ("s", "l"), ("s", "l", ITEM, "y")}


def test_times_with_nanoseconds_are_told_wherever_they_are() -> None:
    when = datetime(2026, 1, 1, tzinfo=UTC)
    kinds = pa.schema(
        [
            ("local", NS),
            ("instant", pa.timestamp("ns", "Europe/Berlin")),
            ("micros", pa.timestamp("us")),
            ("number", pa.int64()),
            ("s", pa.struct([("k", pa.int64()), ("at", NS)])),
            ("l", pa.list_(NS)),
            ("m", pa.map_(pa.string(), NS)),
        ]
    )
    row = [when, when, when, 1, {"k": 1, "at": when}, [when], [("k", when)]]
    table = pa.Table.from_pylist([dict(zip(kinds.names, row, strict=True))], kinds)
    assert _footer(table).nanoseconds == {
        ("local",): False,
        ("instant",): True,
        ("s", "at"): False,
        ("l", ITEM): False,
        ("m", VALUE): False,
    }


def test_old_times_of_96_bits_are_no_nanoseconds_since_spark_reads_them() -> None:
    table = pa.table({"at": pa.array([0], NS)})
    assert _footer(table, use_deprecated_int96_timestamps=True).nanoseconds == {}


def test_a_footer_longer_than_the_first_look_is_read_whole(tmp_path: Path) -> None:
    names = [f"a column with quite a long name, number {number}" for number in range(3000)]
    pq.write_table(pa.table({name: [1] for name in names}), tmp_path / "wide.parquet")
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 but not really PAR1")
    files = [SourceFile(path.name, path.stat().st_size, "", 0) for path in sorted(tmp_path.glob("*.parquet"))]
    found = read_footers(Place(str(tmp_path)), [*files, SourceFile("gone.parquet", 9, "", 0)])
    assert set(found) == {"bad.parquet", "wide.parquet"}
    assert len(found["wide.parquet"].fields) == 3000


def test_unknown_columns_are_told_without_those_inside_them_and_whatever_their_case() -> None:
    inner = StructType().add("x", LongType())
    schema = (
        StructType()
        .add("ID", LongType())
        .add("s", inner)
        .add("l", ArrayType(inner))
        .add("m", MapType(StringType(), inner))
    )
    row = {"id": 1, "S": {"X": 1, "new": 1}, "l": [{"x": 1, "more": {"deep": 1}}], "other": {"a": 1}}
    found = find_unknown_columns(_footer(pa.Table.from_pylist([row])).fields, field_paths(schema))
    assert found == [("S", "new"), ("l", ITEM, "more"), ("other",)]


GOOD = BytesIO()
pq.write_table(pa.table({"id": [1]}), GOOD)
DATA = GOOD.getvalue()


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        (DATA, None),
        (DATA[:-1], "expected a Parquet file, which ends with PAR1, found another format or a part of a file"),
        (b"id\n1\n", "expected a Parquet file, which ends with PAR1, found another format or a part of a file"),
        (DATA[:-4] + b"PARE", "it is encrypted"),
        (DATA[:-8] + b"\xff\xff\x00\x00PAR1", "its footer is damaged: it is longer than the file"),
        (DATA[:-300] + b"\xff" * 292 + DATA[-8:], "its footer is damaged"),
        (DATA[:-8] + bytes(28) + (int.from_bytes(DATA[-8:-4], "little") + 28).to_bytes(4, "little") + b"PAR1", "some of its columns are encrypted"),
    ],
)  # fmt: skip
def test_a_footer_that_does_not_read_tells_why(tmp_path: Path, data: bytes, fault: str | None) -> None:
    (tmp_path / "a.parquet").write_bytes(data)
    (footer,) = read_footers(Place(str(tmp_path)), [SourceFile("a.parquet", len(data), "", 0)]).values()
    assert footer.fault == fault


@pytest.mark.parametrize(
    ("column", "why"),
    [
        (pa.array([1.5], pa.float16()), {"c": "float16"}),
        (pa.array([[{"x": 1.5}]], pa.list_(pa.struct([("x", pa.float16())]))), {"c.x": "float16"}),
        (pa.array([1], pa.decimal256(60, 2)), {"c": "decimal(60,2), which has more than 38 digits"}),
        (pa.array([[(1, 2)]], pa.map_(pa.time64("us"), pa.int64())), {"c": "time64[us] as the key of a map"}),
        (pa.array([{"x\0": 1}]), {r"c.x\0": "a name with a NUL"}),
        (pa.array([bytes(16)], pa.uuid()), {}),
    ],
)
def test_types_and_names_that_no_table_holds_are_told_at_any_depth(column: Any, why: dict[str, str]) -> None:
    assert _footer(pa.table({"c": column})).unreadable == why


def test_names_that_differ_in_case_only_are_told_at_any_depth() -> None:
    assert _footer(pa.Table.from_arrays([pa.array([1])] * 2, ["a", "A"])).doubled_names == ("a", "A")
    assert _footer(pa.table({"s": [[{"x": 1, "X": 2}]]})).doubled_names == ("x", "X")
    assert _footer(pa.table({"s": [{"x": 1}], "x": [1]})).doubled_names is None


DAYS = {"first": -719_162, "last": 2_932_896}


@pytest.mark.parametrize(
    ("kind", "value", "told"),
    [
        (pa.date32(), DAYS["first"], "date"),
        (pa.date32(), DAYS["last"], "date"),
        (pa.date32(), DAYS["first"] - 1, "date(any)"),
        (pa.date32(), DAYS["last"] + 1, "date(any)"),
        (pa.date32(), None, "date"),
        (pa.timestamp("us"), (DAYS["last"] + 1) * 86_400_000_000 - 1, "timestamp_ntz"),
        (pa.timestamp("us"), (DAYS["last"] + 1) * 86_400_000_000, "timestamp_ntz(any)"),
        (pa.timestamp("ms", "UTC"), DAYS["first"] * 86_400_000, "timestamp"),
        (pa.timestamp("ms", "UTC"), DAYS["first"] * 86_400_000 - 1, "timestamp(any)"),
        (pa.timestamp("ns", "UTC"), 2**62, "timestamp"),
    ],
)
def test_statistics_prove_that_times_lie_in_the_years_1_to_9999(kind: Any, value: Any, told: str) -> None:
    whole = pa.int32() if pa.types.is_date32(kind) else pa.int64()
    table = pa.table(
        {"c": pa.array([value, 0], whole).cast(kind) if value is not None else pa.nulls(1, kind)}
    )
    assert _footer(table).types == {"c": told}
    if value is not None and kind.bit_width == 64 and kind.unit != "ns":
        assert str(_footer(table, write_statistics=False).types["c"]).endswith("(any)")


def test_a_uuid_a_variant_and_rows_are_told() -> None:
    row = '{"type":"struct","fields":[{"name":"v","type":"variant"},{"name":"id","type":"long"}]}'
    variant = pa.struct([pa.field("metadata", pa.binary(), False), pa.field("value", pa.binary(), False)])
    table = pa.table(
        {"id": pa.array([b"x" * 16], pa.uuid()), "v": pa.array([{"metadata": b"", "value": b""}], variant)}
    )
    footer = _footer(table.replace_schema_metadata({"org.apache.spark.sql.parquet.row.metadata": row}))
    assert (footer.types, footer.is_empty) == ({"id": "uuid", "v": "variant"}, False)
    assert footer.fields == {("id",), ("v",)}
    assert _footer(pa.table({})).is_empty
