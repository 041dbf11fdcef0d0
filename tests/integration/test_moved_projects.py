"""A project in another folder: it goes on unchanged, or stops by name before it writes (docs/how-to/moving-and-restoring.md)."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from resources.connections.iceberg_rest import RestCatalogServer
from resources.connections.places import Place
from resources.tables.iceberg.catalog import FolderCatalog
from resources.tables.iceberg.relocation import MovedTable
from resources.tables.iceberg.table import IcebergTable
from scripts.postgres import Postgres
from tests.integration.conftest import MakeFeed
from tests.support.catalogs import known_to_database, known_to_server
from tests.support.feed import NAME, Feed
from tests.support.moves import move, set_place, tree

RELOCATE = ("strandline relocate",)
UPSERT = {"load": "merge_upsert", "merge_keys": ["id"]}


def loaded(feed: Feed) -> Feed:
    """The dataflow with rows 1 and 2, each by a file and a commit of its own."""
    for number in (1, 2):
        feed.put(f"{number}.ndjson", number)
        feed.load()
    return feed


def goes_on(feed: Feed) -> None:
    """Load one more file, and require each row once."""
    feed.put("3.ndjson", 3)
    feed.load()
    assert feed.ids == [1, 2, 3]
    assert feed.load().status == "nothing"


@pytest.mark.without_jvm
@pytest.mark.parametrize("moves", [True, False], ids=["moved", "copied"])
def test_a_delta_project_goes_on_in_another_folder(feed: Feed, tmp_path: Path, moves: bool) -> None:
    loaded(feed)
    elsewhere = move(feed, tmp_path / "elsewhere") if moves else feed.copy(tmp_path / "elsewhere")
    goes_on(elsewhere)
    if not moves:
        assert feed.ids == [1, 2]
        goes_on(feed)


@pytest.mark.parametrize("moves", [True, False], ids=["moved", "copied"])
def test_a_parquet_project_goes_on_in_another_folder(
    make_feed: MakeFeed, tmp_path: Path, moves: bool
) -> None:
    feed = loaded(make_feed(target={"format": "parquet"}))
    elsewhere = move(feed, tmp_path / "elsewhere") if moves else feed.copy(tmp_path / "elsewhere")
    goes_on(elsewhere)
    if not moves:
        goes_on(feed)


@pytest.mark.remedy("table_moved", "relocate")
@pytest.mark.each_case
@pytest.mark.parametrize("moves", [True, False], ids=["moved", "copied"])
def test_a_moved_iceberg_table_stops_by_name_and_goes_on_relocated(
    make_feed: MakeFeed, tmp_path: Path, moves: bool
) -> None:
    feed = loaded(make_feed(target={"format": "iceberg"} | (UPSERT if moves else {})))
    elsewhere = move(feed, tmp_path / "elsewhere") if moves else feed.copy(tmp_path / "elsewhere")
    elsewhere.put("3.ndjson", 3)
    before, untouched = tree(elsewhere.folder), tree(feed.folder)
    error = elsewhere.fail()
    assert (error.code, error.choices) == ("table_moved", RELOCATE)
    assert str(feed.table) in error.message
    assert elsewhere.cli("plan", NAME).error["code"] == "table_moved"
    assert elsewhere.cli("state", "adopt", NAME, "--reason", "x", "--yes").error["code"] == "table_moved"
    checks = {check["check"]: check for check in elsewhere.cli("doctor", "--no-spark").json["checks"]}
    assert checks[f"table {NAME}"]["todo"] == "strandline relocate"
    assert tree(elsewhere.folder) == before
    assert tree(feed.folder) == untouched
    (table,) = elsewhere.command("relocate", "--yes").json["tables"]
    assert (table["table"], table["before"], table["after"], table["rows"]) == (
        f"bronze/{NAME}",
        str(feed.table),
        str(elsewhere.table),
        2,
    )
    assert elsewhere.ids == [1, 2]
    goes_on(elsewhere)
    assert elsewhere.command("relocate", "--yes").json == {"tables": []}
    assert tree(feed.folder) == untouched
    metadata = IcebergTable(Place(str(elsewhere.table)))._catalog.newest()
    assert metadata is not None
    lists = [snapshot["manifest-list"] for snapshot in metadata.raw["snapshots"]]
    assert all(address.startswith(f"{elsewhere.table}/metadata/") for address in lists)
    if not moves:
        goes_on(feed)


@pytest.mark.parametrize("part", ["write", "publish"])
@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_relocation_that_dies_is_finished_by_the_same_command(
    make_feed: MakeFeed, tmp_path: Path, part: str, moment: str
) -> None:
    elsewhere = move(loaded(make_feed(target={"format": "iceberg"})), tmp_path / "elsewhere")
    owner, name = (MovedTable, "write") if part == "write" else (FolderCatalog, "publish_moved")
    real = getattr(owner, name)

    def dies(*arguments: Any) -> None:
        if moment == "after":
            real(*arguments)
        raise KeyboardInterrupt

    with patch.object(owner, name, dies):
        assert elsewhere.cli("relocate", "--yes").code != 0
    if (part, moment) != ("publish", "after"):
        assert elsewhere.fail().code == "table_moved"
    elsewhere.command("relocate", NAME, "--yes")
    goes_on(elsewhere)


def test_a_table_that_was_not_copied_whole_is_not_relocated(make_feed: MakeFeed, tmp_path: Path) -> None:
    feed = loaded(make_feed(target={"format": "iceberg", "partition_by": ["id"]}))
    elsewhere = feed.copy(tmp_path / "elsewhere")
    (lost,) = elsewhere.table.glob("data/id=2/*.parquet")
    data = lost.read_bytes()
    before = tree(elsewhere.folder)
    for damage, words in (
        (lambda: lost.unlink(), "expected the file data/id=2/"),
        (lambda: lost.write_bytes(data[:-9]), "the copy is incomplete"),
        (lambda: lost.write_bytes(data[:-4] + b"XXXX"), "cannot be relocated"),
    ):
        damage()
        error = elsewhere.cli("relocate", "--yes").error
        assert error["code"] == "target"
        assert words in error["message"]
        assert elsewhere.fail().code == "table_moved"
    lost.write_bytes(data)
    assert {path for path in tree(elsewhere.folder) if path.endswith("metadata.json")} == {
        path for path in before if path.endswith("metadata.json")
    }
    elsewhere.command("relocate", "--yes")
    goes_on(elsewhere)


@pytest.mark.full
def test_deletes_that_name_files_are_refused_by_name(make_feed: MakeFeed, tmp_path: Path) -> None:
    from tests.support.iceberg import foreign_table

    feed = loaded(make_feed(target={"format": "iceberg"}))
    spark = feed.engine.session()
    name = foreign_table(spark, feed.table)
    spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('write.delete.mode' = 'merge-on-read')")
    feed.put("4.ndjson", 4, 5)
    feed.load()
    spark.sql(f"DELETE FROM {name} WHERE id = 5")
    elsewhere = move(feed, tmp_path / "elsewhere")
    error = elsewhere.cli("relocate", "--yes").error
    assert "lists deleted rows of other files" in error["message"]
    move(elsewhere, feed.folder)
    assert feed.ids == [1, 2, 4]


@pytest.mark.postgres
@pytest.mark.full
def test_a_moved_lake_of_a_database_is_named_there_again(
    make_feed: MakeFeed, postgres: Postgres, tmp_path: Path
) -> None:
    feed = loaded(known_to_database(make_feed(target={"format": "iceberg"}), postgres))
    elsewhere = feed.copy(tmp_path / "elsewhere")
    set_place(elsewhere, lake=str(elsewhere.folder / "lake"))
    assert elsewhere.fail().code == "table_moved"
    elsewhere.command("relocate", "--yes")
    elsewhere.put("3.ndjson", 3)
    elsewhere.load()
    assert elsewhere.rows_by_spark("id") == [(1,), (2,), (3,)]
    feed.put("4.ndjson", 4)
    feed.load()
    assert feed.rows_by_spark("id") == [(1,), (2,), (4,)]


@pytest.mark.full
def test_a_moved_lake_of_a_server_is_named_there_again_and_a_copy_is_refused(
    make_feed: MakeFeed, rest: RestCatalogServer, tmp_path: Path
) -> None:
    feed = loaded(known_to_server(make_feed(target={"format": "iceberg"}), rest))
    copied = feed.copy(tmp_path / "copied")
    set_place(copied, lake=str(copied.folder / "lake"))
    assert copied.fail().code == "table_moved"
    assert "this one is a copy of it" in copied.cli("relocate", "--yes").error["message"]
    moved = move(feed, tmp_path / "moved")
    set_place(moved, lake=str(moved.folder / "lake"))
    assert moved.fail().code == "table_moved"
    moved.command("relocate", "--yes")
    moved.put("3.ndjson", 3)
    moved.load()
    assert moved.rows_by_spark("id") == [(1,), (2,), (3,)]
