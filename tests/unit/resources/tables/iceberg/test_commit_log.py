"""What the metadata of an Iceberg table alone says of each commit, as pyiceberg writes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog

from partitions.errors import NeedsDecision
from resources.connections.places import Place
from resources.tables.contract.commit_log import ReadPosition
from resources.tables.iceberg.catalog import Catalog
from resources.tables.iceberg.commit_log import IcebergCommits
from resources.tables.iceberg.file_sets import FileSets
from resources.tables.iceberg.metadata import Metadata


class _Table:
    """A table that pyiceberg writes, in a catalog of its own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._catalog = SqlCatalog("c", uri=f"sqlite:///{folder}/c.db", warehouse=str(folder / "lake"))
        self._catalog.create_namespace("bronze")
        schema = pa.schema([("id", pa.int64())])
        self.table = self._catalog.create_table("bronze.events", schema)

    def append(self, *ids: int) -> None:
        self.table.append(pa.table({"id": pa.array(ids, pa.int64())}))

    def newest(self) -> Metadata:
        location = self._catalog.load_table("bronze.events").metadata_location
        return Metadata.parse(Path(location.removeprefix("file://")).read_bytes(), location)

    @property
    def commits(self) -> IcebergCommits:
        return IcebergCommits(Place(str(self._folder)), cast("Catalog", self))


@pytest.fixture
def table(tmp_path: Path) -> _Table:
    (tmp_path / "lake").mkdir()
    return _Table(tmp_path)


def test_a_commit_is_told_by_its_summary(table: _Table) -> None:
    empty = table.commits.position_of(table.newest().version_id)
    table.append(1, 2)
    table.append(3)
    table.table.delete("id = 1")
    table.table.overwrite(pa.table({"id": pa.array([9], pa.int64())}))
    logged = table.commits.since(empty)
    assert logged.commits == table.commits.since(None).commits
    assert [(commit.kind, commit.rows) for commit in logged.commits][:3] == [
        ("appends", 2),
        ("appends", 1),
        ("rewrites", None),
    ]
    assert all(commit.changes is None for commit in logged.commits if commit.kind == "appends")
    assert logged.commits[1].description.endswith("(append) adds 1 row")
    assert logged.table == table.newest().uuid
    numbers = [commit.version for commit in logged.commits]
    assert numbers == sorted(numbers)


def test_the_difference_of_two_snapshots_is_that_of_their_files(table: _Table) -> None:
    table.append(1, 2)
    table.append(3)
    table.table.delete("id = 1")
    first, second, third = table.commits.since(None).commits
    sets = FileSets(table.newest())
    went, came = sets.difference(int(second.id), int(third.id))
    assert ([file.file["record_count"] for file in went], [file.file["record_count"] for file in came]) == (
        [2],
        [1],
    )
    went, came = sets.difference(int(first.id), int(second.id))
    assert (went, [file.file["record_count"] for file in came]) == ([], [1])
    assert [file.rows for file in table.commits.snapshot_files(third.read_position)] in ([1, 1],)


def test_a_rollback_is_one_change_from_the_position_to_an_earlier_snapshot(table: _Table) -> None:
    table.append(1)
    table.append(2)
    first, second = table.commits.since(None).commits
    table.table.manage_snapshots().rollback_to_snapshot(int(first.id)).commit()
    table.append(3)
    back, added = table.commits.since(second.read_position).commits
    assert (back.rolls_back, back.kind, back.id, back.before) == (
        True,
        "rewrites",
        first.id,
        second.read_position,
    )
    assert (added.kind, added.rows) == ("appends", 1)
    assert table.commits.since(back.read_position).commits == (added,)
    assert table.commits.since(second.read_position, back.read_position).commits == (back,)


def test_a_position_that_the_table_never_had_belongs_to_another_one(table: _Table) -> None:
    table.append(1)
    with pytest.raises(NeedsDecision) as error:
        table.commits.since(ReadPosition(1, "42"))
    assert error.value.code == "source_replaced"


def test_a_table_of_version_1_is_refused(table: _Table) -> None:
    metadata = table.newest()
    raw: dict[str, Any] = {**metadata.raw, "format-version": 1}
    table.newest = lambda: Metadata(raw, metadata.location)  # type: ignore[method-assign]
    with pytest.raises(Exception, match="format version 1"):
        table.commits.since(None)


def test_a_commit_whose_writer_counts_nothing_is_told_by_its_files(table: _Table) -> None:
    table.append(1, 2)
    table.append(3)
    table.table.delete("id = 1")
    counted = table.commits.since(None)
    metadata = table.newest()
    snapshots = [
        {**snapshot, "summary": {"operation": snapshot["summary"]["operation"]}}
        for snapshot in metadata.raw["snapshots"]
    ]
    bare = Metadata({**metadata.raw, "snapshots": snapshots}, metadata.location)
    table.newest = lambda: bare  # type: ignore[method-assign]
    told = table.commits.since(None)
    facts = [[(c.kind, c.files, c.rows, c.only_inserts) for c in log.commits] for log in (told, counted)]
    assert facts[0] == facts[1]
    assert [c.kind for c in told.commits] == ["appends", "appends", "rewrites"]
    (behind,) = table.commits.since(counted.commits[1].read_position).commits
    assert (behind.id, behind.files) == (told.commits[2].id, told.commits[2].files)


def test_a_rollback_to_a_snapshot_without_files_has_rows_to_read(table: _Table) -> None:
    table.append(1)
    table.table.delete("id = 1")
    table.append(2)
    _, emptied, filled = table.commits.since(None).commits
    table.table.manage_snapshots().rollback_to_snapshot(int(emptied.id)).commit()
    (back,) = table.commits.since(filled.read_position).commits
    assert back.rolls_back
    assert back.files > 0


def test_numbers_of_commits_never_fall_below_the_position(table: _Table) -> None:
    table.append(1)
    table.append(2)
    table.append(3)
    first, second, third = table.commits.since(None).commits
    snapshots = table.table.manage_snapshots()
    snapshots.rollback_to_snapshot(int(first.id)).commit()
    (back,) = table.commits.since(third.read_position).commits
    newest = table.newest()
    forward = Metadata({**newest.raw, "current-snapshot-id": int(third.id), "refs": {}}, newest.location)
    table.newest = lambda: forward  # type: ignore[method-assign]
    again = table.commits.since(back.read_position).commits
    assert [commit.id for commit in again] == [second.id, third.id]
    assert [commit.version for commit in again] == [third.version, third.version]
    (last,) = table.commits.since(again[0].read_position).commits
    assert last.read_position == again[1].read_position


def test_a_table_without_a_snapshot_has_a_position_before_its_first_one(table: _Table) -> None:
    uuid, position = table.commits.newest()
    assert uuid == table.newest().uuid
    assert table.commits.snapshot_files(position) == ()
    assert table.commits.since(position).commits == ()
    table.append(1)
    assert [commit.kind for commit in table.commits.since(position).commits] == ["appends"]
