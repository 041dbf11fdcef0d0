"""Which files of an Iceberg table any Parquet reader reads as Iceberg does."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table
from pyiceberg.types import LongType, StringType, UUIDType

from resources.connections.places import Place
from resources.tables.iceberg.file_reads import plain_keys
from resources.tables.iceberg.file_sets import FileSets
from resources.tables.iceberg.metadata import Metadata

ROWS = pa.table({"id": pa.array([1, 2], pa.int64()), "v": ["a", "b"]})


@pytest.fixture
def catalog(tmp_path: Path) -> SqlCatalog:
    made = SqlCatalog("c", uri=f"sqlite:///{tmp_path}/c.db", warehouse=str(tmp_path / "lake"))
    made.create_namespace("bronze")
    return made


@pytest.fixture
def table(catalog: SqlCatalog) -> Table:
    made = catalog.create_table("bronze.events", ROWS.schema)
    made.append(ROWS)
    return made


def keys(table: Table, place: Path | None = None) -> list[str] | None:
    table.refresh()
    location = table.metadata_location
    metadata = Metadata.parse(Path(location.removeprefix("file://")).read_bytes(), location)
    assert metadata.current is not None
    files = FileSets(metadata).files(metadata.current.id)
    folder = place or Path(table.location().removeprefix("file://"))
    return plain_keys(Place(str(folder)), metadata, metadata.current.id, files)


def data_file(table: Table) -> Path:
    (path,) = table.inspect.files()["file_path"].to_pylist()
    return Path(path.removeprefix("file://"))


def test_a_file_with_the_columns_of_its_table_is_plain(table: Table) -> None:
    assert keys(table) == [f"data/{data_file(table).name}"]


def test_a_file_from_before_a_change_of_columns_is_not(table: Table) -> None:
    with table.update_schema() as change:
        change.add_column("w", LongType())
    assert keys(table) is None


def test_a_file_from_before_a_new_name_of_a_column_is_not(table: Table) -> None:
    with table.update_schema() as change:
        change.rename_column("v", "w")
    table.append(ROWS.rename_columns(["id", "w"]))
    assert keys(table) is None


def test_a_column_that_was_dropped_and_added_again_is_another_one(table: Table) -> None:
    with table.update_schema() as change:
        change.delete_column("v")
    with table.update_schema() as change:
        change.add_column("v", StringType())
    table.append(ROWS)
    assert keys(table) is None


def test_a_type_that_plain_files_hold_otherwise_is_not_plain(catalog: SqlCatalog, table: Table) -> None:
    with table.update_schema() as change:
        change.add_column("u", UUIDType())
    table.append(ROWS.append_column("u", pa.array([None, None], pa.binary(16))))
    assert keys(table) is None


def test_a_file_without_ids_of_columns_is_not_plain(table: Table) -> None:
    pq.write_table(ROWS, data_file(table))
    assert keys(table) is None


def test_a_file_that_is_gone_or_lies_elsewhere_is_left_to_iceberg(table: Table, tmp_path: Path) -> None:
    assert keys(table, tmp_path / "other") is None
    data_file(table).unlink()
    assert keys(table) is None
