"""What an Iceberg table tells without Spark where another engine has deleted rows by their values (docs/reference/iceberg.md, Limits)."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog

from partitions.errors import SourceError
from resources.connections.places import Place
from resources.tables.iceberg.commit import OWNS_COLUMN, commit_value
from resources.tables.iceberg.commit_column import highest_number
from resources.tables.iceberg.metadata import Metadata
from resources.tables.iceberg.table import IcebergTable
from tests.support.equality import delete_by_values


@pytest.fixture
def table(tmp_path: Path) -> IcebergTable:
    """A table with rows of two commits and one of another writer, of which one row was deleted by its value."""
    folder = tmp_path / "bronze" / "t"
    catalog = SqlCatalog("tests", uri="sqlite://", warehouse=str(tmp_path))
    catalog.create_namespace("bronze")
    columns = pa.schema([("id", pa.int64()), ("_commit", pa.string())])
    properties = {OWNS_COLUMN: "_commit", "write.metadata.metrics.column._commit": "full"}
    made = catalog.create_table("bronze.t", columns, location=str(folder), properties=properties)
    for id_, commit in ((1, commit_value("app", 1)), (2, commit_value("app", 2)), (77, None)):
        made.append(pa.table({"id": [id_], "_commit": pa.array([commit], pa.string())}, columns))
    shutil.copy(made.metadata_location.removeprefix("file://"), folder / "metadata" / "v1.metadata.json")
    delete_by_values(folder, "id", [1])
    return IcebergTable(Place(str(folder)))


def _metadata(table: IcebergTable) -> Metadata:
    metadata = table._catalog.newest()
    assert metadata is not None
    return metadata


def test_rows_are_not_counted_and_the_error_says_what_makes_them_readable(table: IcebergTable) -> None:
    with pytest.raises(SourceError, match=r"maintenance\.optimize") as refused:
        table.contents.count_rows()
    assert refused.value.code == "equality_deletes"


def test_what_manifests_tell_of_files_is_told(table: IcebergTable) -> None:
    assert sorted(table.contents.file_maxima(table.contents.newest_version(), "id")) == [
        (1, 1),
        (2, 1),
        (77, 1),
    ]
    assert [highest_number(_metadata(table), app_id) for app_id in ("app", "other")] == [2, None]
    assert highest_number(_metadata(table), "app", below=2) == 1
