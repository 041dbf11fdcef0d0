"""One text as one value, as Spark's readers of CSV and XML take it."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DataType

from partitions.records.csv_form import UNUSED_CHARACTER
from resources.sources.files.custom_formats import data_type_of
from resources.sources.files.text_values import parse_text

TEXTS = [
    "7", " 7", "7 ", "+7", "007", "1e3", "1.50", "1,5", "1.234,5", "-0", "NaN", "true", "True", "2026-01-02", "02.01.2026", "2026-01-02T03:04:05.5",
    "99999999999999999999", 'a"b', '"', '""', "\\", '\\"', "a,b", "a;b", "#7", "\u00017", "7\u0001", "a\nb", "a\r\nb", "\u00a07", "é", "n/a",
]  # fmt: skip
TYPES = ["long", "double", "decimal(6,2)", "boolean", "date", "timestamp", "timestamp_ntz", "string"]


@pytest.mark.parametrize(
    "options",
    [{}, {"dateFormat": "dd.MM.yyyy", "locale": "de", "nullValue": "n/a", "sep": ";", "comment": "#", "quote": "'", "escape": "\\"}],
)  # fmt: skip
def test_a_text_is_the_value_that_a_file_of_it_has(
    spark: SparkSession, tmp_path: Path, options: dict[str, str]
) -> None:
    with (tmp_path / "a.csv").open("w", newline="") as file:
        csv.writer(file, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(
            [number, text] for number, text in enumerate(TEXTS)
        )
    of_value = {
        name: value for name, value in options.items() if name in ("dateFormat", "locale", "nullValue")
    }
    reader = spark.read.options(
        **of_value, escape='"', charToEscapeQuoteEscaping=UNUSED_CHARACTER, multiLine="true", lineSep="\n"
    )
    texts = spark.createDataFrame([*enumerate(TEXTS)], "number int, text string")

    def rows(frame: Any) -> list[Any]:
        return [repr(row["c"]) for row in frame.orderBy("number").collect()]  # NaN is not itself

    for kind in TYPES:
        data_type: DataType = data_type_of(kind)
        of_file = reader.schema(f"number int, c {data_type.simpleString()}").csv(str(tmp_path))
        of_texts = texts.select("number", parse_text(F.col("text"), data_type, options).alias("c"))
        assert list(zip(TEXTS, rows(of_texts), strict=True)) == list(
            zip(TEXTS, rows(of_file), strict=True)
        ), kind
