"""Which formats of files there are."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from partitions.dataflow import Dataflow
from partitions.sources import FilesSource
from partitions.sources.formats import FORMATS
from resources.connections.places import Place
from resources.sources.files.formats.registry import READERS, packages_of
from resources.spark.engine import SparkEngine
from resources.spark_runtime import AVRO_PACKAGE, DELTA_PACKAGE


def _flow(**source: Any) -> Dataflow:
    given = {"type": "files", "path": "./landing", **source}
    return Dataflow.model_validate({"name": "flow", "source": given, "watermark": {"type": "path"}})


def test_each_word_for_a_format_has_its_endings_and_its_reader() -> None:
    words = set(get_args(FilesSource.model_fields["format"].annotation))
    assert set(FORMATS) == set(READERS) == words


@pytest.mark.parametrize(
    ("form", "endings"),
    [
        ("parquet", (".parquet",)),
        ("avro", (".avro",)),
        ("json", (".json", ".json.gz", ".json.bz2", ".json.zst")),
        ("excel", (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")),
    ],
)
def test_text_may_be_compressed_and_others_compress(form: str, endings: tuple[str, ...]) -> None:
    assert _flow(format=form).files.endings == endings


def test_only_avro_needs_a_jar_of_its_own() -> None:
    packages = {form: packages_of(_flow(format=form, options={"rowTag": "r"} if form == "xml" else {})) for form in FORMATS}  # fmt: skip
    assert {form: found for form, found in packages.items() if found} == {"avro": (AVRO_PACKAGE,)}
    engine = SparkEngine().with_places([Place("/x")], packages["avro"])
    assert engine.packages == (DELTA_PACKAGE, AVRO_PACKAGE)
