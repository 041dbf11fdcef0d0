"""The columns of Parquet files, from their footers."""

from __future__ import annotations

from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.types import ArrayType, LongType, MapType, StringType, StructType

from partitions.path.source import SourceFile
from resources.places import Place
from resources.sources.files.footers import ITEM, VALUE, Footer, footer_of, footers, paths_of, unknown_columns

NS = pa.timestamp("ns")


def _footer(table: pa.Table, **options: Any) -> Footer:
    buffer = BytesIO()
    pq.write_table(table, buffer, **options)
    return footer_of(pq.read_metadata(buffer).schema)


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
    found = footers(Place(str(tmp_path)), [*files, SourceFile("gone.parquet", 9, "", 0)])
    assert list(found) == ["wide.parquet"]
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
    found = unknown_columns(_footer(pa.Table.from_pylist([row])).fields, paths_of(schema))
    assert found == [("S", "new"), ("l", ITEM, "more"), ("other",)]
