from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from partitions.errors import ConfigurationError, SourceError
from resources.connections.places import Place
from resources.tables import registry as tables
from resources.tables.delta.table import DeltaLakeTable
from resources.tables.registry import find_table, refuse_other_formats


class _Other(DeltaLakeTable):
    """A table of another format: a Delta table in a folder of its own, below its place."""

    def __init__(self, place: Place, partition_by: Sequence[str] = ()) -> None:
        super().__init__(place.child("other"), partition_by)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setattr(tables, "FORMATS", {"delta": DeltaLakeTable, "other": _Other})
    return Place(str(tmp_path / "table"))


def _write(place: Place, row: int) -> None:
    write_deltalake(place.url, pa.table({"id": [row]}))


def _ids(place: Place) -> list[int]:
    return [row["id"] for row in find_table(place).contents.distinct_rows(["id"])]


def test_a_table_is_found_whatever_its_format(place: Place, tmp_path: Path) -> None:
    _write(place, 1)
    second = Place(str(tmp_path / "second"))
    _write(second.child("other"), 2)
    assert (_ids(place), _ids(second)) == ([1], [2])


def test_a_table_that_is_not_there_says_so_when_it_is_read(place: Place) -> None:
    table = find_table(place)
    with pytest.raises(SourceError) as refused:
        table.contents.newest_version()
    assert refused.value.code == "source_missing"


def test_a_table_is_not_made_where_one_of_another_format_lies(place: Place) -> None:
    refuse_other_formats("delta", place)
    _write(place.child("other"), 1)
    refuse_other_formats("other", place)
    with pytest.raises(ConfigurationError, match="found one of format other") as refused:
        refuse_other_formats("delta", place)
    assert refused.value.code == "other_format"


def test_of_tables_of_two_formats_at_one_place_none_is_read(place: Place) -> None:
    _write(place.child("other"), 1)
    _write(place, 2)
    with pytest.raises(SourceError, match="found tables of delta and other"):
        find_table(place)
