"""Strandline's own commits of Iceberg tables, by the rules that only Iceberg has: its snapshots, metadata and manifests, and what asks for Spark (docs/reference/iceberg.md)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F

from partitions.errors import RowsRefused, TargetError
from partitions.loads import Replace
from partitions.predicate import Among, Between
from resources.connections.places import Place
from resources.tables import changed_rows
from resources.tables.data_files import written as data_files
from resources.tables.iceberg import own_commit
from resources.tables.iceberg.catalog import FolderCatalog
from resources.tables.iceberg.metadata import Metadata
from tests.integration.test_own_commits import EVERY_COLUMN, EVERY_VALUE, HISTORY, PAIRS, UPSERT, VERSIONS
from tests.support.iceberg import iceberg_rows
from tests.support.lakes import APP, IcebergLake, lake_in

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

local = datetime.fromisoformat


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> IcebergLake:
    made: IcebergLake = lake_in("iceberg", spark, tmp_path, monkeypatch)
    return made


def test_the_bounds_of_an_append_are_those_that_sparks_own_commit_has(lake: IcebergLake) -> None:
    lake.append(1, columns=EVERY_COLUMN)
    lake.append(2, *EVERY_VALUE, columns=EVERY_COLUMN)
    other = IcebergLake(lake.spark, lake.folder.with_name("other"), lake.patch)
    other.append(1, *EVERY_VALUE, columns=EVERY_COLUMN)  # makes the table, which is Spark's to do
    bounds = "SELECT lower_bounds, upper_bounds, null_value_counts, record_count FROM {t}.files"
    (mine,), (theirs,) = lake.sql(bounds), other.sql(bounds)
    commit = max(mine["lower_bounds"])
    for column in theirs["null_value_counts"]:
        assert mine["null_value_counts"][column] == theirs["null_value_counts"][column], column
    for side in ("lower_bounds", "upper_bounds"):
        for column, bound in mine[side].items():
            assert column == commit or bound == theirs[side].get(column, bound), (side, column)
    assert mine["record_count"] == 3
    assert [row["_commit"] for row in iceberg_rows(lake.folder, ["_commit"])] == [f"{APP}:0000000002"] * 3


@pytest.mark.parametrize("kind", ["INT96", "TIMESTAMP_MILLIS"])
def test_times_that_a_session_writes_for_other_readers_are_left_to_spark(
    lake: IcebergLake, kind: str
) -> None:
    columns, rows = (
        "id long, at timestamp",
        [(1, local("2026-01-01")), (2, local("1500-01-01 00:00:00.000001"))],
    )
    lake.append(1, rows[0], columns=columns)
    lake.spark.conf.set("spark.sql.parquet.outputTimestampType", kind)
    try:
        lake.append(2, rows[1], columns=columns)
    finally:
        lake.spark.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
    assert (lake.own, lake.ids, lake.strays) == ([False], [1, 2], set())
    assert {row["at"].microsecond for row in iceberg_rows(lake.folder, ["at"])} == {0, 1}


@pytest.mark.parametrize(
    "value",
    [
        "date'+10000-01-01'",
        "date'-0005-01-01'",
        "timestamp'+12000-01-01 00:00:00'",
        "timestamp_ntz'+12000-01-01 00:00:00'",
        "CAST(X'C328' AS string)",
        "CONCAT(REPEAT('a', 15), DECODE(X'ED9FBF', 'utf-8'), 'bb')",
    ],
)
def test_values_that_python_has_no_word_for_are_left_to_spark(lake: IcebergLake, value: str) -> None:
    rows = lake.spark.sql(f"SELECT 2L id, {value} x")
    lake.append(1, (1, None), columns=f"id long, x {rows.schema['x'].dataType.simpleString()}")
    lake.write(2, rows)
    assert (lake.own, lake.strays) == ([False], set())
    assert [row["id"] for row in lake.sql(f"SELECT id FROM {{t}} WHERE x = {value}")] == [2]


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        ("CASE id WHEN 0 THEN 100D WHEN 1 THEN DOUBLE('NaN') ELSE 5D END", "100D"),
        ("IF(id < 1000, 'a', REPEAT('q', 5000))", "REPEAT('q', 5000)"),
    ],
    ids=["NaN", "long texts"],
)
def test_rows_without_bounds_in_a_file_are_found(lake: IcebergLake, value: str, wanted: str) -> None:
    rows = lake.spark.range(3000).selectExpr("id", f"{value} AS x").coalesce(1)
    lake.append(1, columns=f"id long, x {rows.schema['x'].dataType.simpleString()}")
    lake.spark.conf.set("parquet.block.size", "1")  # many groups of rows in one file
    try:
        lake.write(2, rows)
    finally:
        lake.spark.conf.unset("parquet.block.size")
    expected = rows.where(f"x = {wanted}").count()
    assert lake.own == [True]
    assert lake.sql(f"SELECT count(*) n FROM {{t}} WHERE x = {wanted}")[0]["n"] == expected > 0


def test_a_replacement_is_one_snapshot_on_the_one_before(lake: IcebergLake) -> None:
    for number, ids in enumerate([(1, 2), (3, 4), (5,), (6, 7)], 1):
        lake.append(number, *((each,) for each in ids))
    lake.replace(5, Between("id", 2, 6), (3,), (3,), (5,))
    newest, before = list(lake.metadata.lineage())[:2]
    assert (newest.parent, newest.operation) == (before.id, "overwrite")
    assert (newest.count("total-records"), newest.count("total-data-files")) == (6, 3)
    tagged = lake.tagged(5)
    assert (tagged.rows, tagged.removed, tagged.uncounted) == (3, 4, False)
    commits = lake.sql("SELECT id, _commit FROM {t} WHERE id IN (1, 6, 7)")
    assert {(row["id"], int(row["_commit"][-10:])) for row in commits} == {(1, 1), (6, 4), (7, 4)}
    entries = lake.sql("SELECT status, snapshot_id FROM {t}.entries")
    assert sorted(tuple(row) for row in entries) == sorted(
        [(2, newest.id)] * 3 + [(1, newest.id)] * 2 + [(1, before.id)]
    )
    lake.append(6, (8,))
    lake.replace(7, Between("id", 8, 9))
    assert next(lake.metadata.lineage()).operation == "delete"
    lake.sql("INSERT INTO {t} VALUES (77, NULL)")  # Spark goes on from there
    lake.call("expire_snapshots", older_than="TIMESTAMP '2999-01-01 00:00:00'", retain_last=1)
    assert lake.ids == [1, 3, 3, 5, 6, 7, 77]


def test_a_change_by_keys_is_one_snapshot_on_the_one_before(lake: IcebergLake) -> None:
    lake.append(1, (1, "a"), (2, "c"), columns=PAIRS)
    lake.append(2, (3, "d"), columns=PAIRS)
    lake.load(3, UPSERT, (2, "y"), (9, "z"), columns=PAIRS)
    newest, before = list(lake.metadata.lineage())[:2]
    assert (newest.parent, newest.operation) == (before.id, "overwrite")
    assert (newest.count("total-records"), newest.count("deleted-data-files")) == (4, 1)
    assert lake.rows("id, CAST(right(_commit, 10) AS int)") == [(1, 1), (2, 3), (3, 2), (9, 3)]
    lake.load(4, UPSERT, (4, "d"), columns=PAIRS)
    assert next(lake.metadata.lineage()).operation == "append"


def test_versions_that_end_are_of_the_commit_that_ended_them(lake: IcebergLake) -> None:
    lake.load(1, VERSIONS, (1, 1, "a"), (2, 1, "b"), columns=HISTORY)
    lake.load(2, VERSIONS, (4, 1, "x"), columns=HISTORY)
    lake.load(3, VERSIONS, (1, 3, "z"), columns=HISTORY)
    assert lake.rows("id, fact, CAST(right(_commit, 10) AS int)") == [
        (1, "a", 3),
        (1, "z", 3),
        (2, "b", 1),
        (4, "x", 2),
    ]


def test_rows_without_values_or_statistics_are_looked_at_one_by_one(lake: IcebergLake) -> None:
    columns = "id long, unit string, x double"
    lake.append(1, (1, "a", 1.0), columns=columns)
    lake.append(2, (2, None, 1.0), (3, "a" * 40, float("nan")), (4, "a", None), columns=columns)
    lake.replace(3, Among("unit", ("a",)), (5, "a", 2.0), columns=columns)
    assert (lake.own, lake.ids) == ([True, True], [2, 3, 5])
    lake.replace(4, Between("x", 0.0, 9.0, upper_inclusive=True), columns=columns)
    assert (lake.own, lake.ids) == ([True] * 3, [3])
    lake.replace(5, Among("unit", (None,)), (6, None, 0.0), columns=columns)
    assert (lake.own, lake.ids) == ([True] * 4, [3, 6])


def test_counts_of_a_commit_are_those_it_had_also_after_the_one_before_was_expired(lake: IcebergLake) -> None:
    lake.append(1, (1,), (2,), (3,))
    lake.append(2, (4,))
    lake.call("expire_snapshots", older_than="TIMESTAMP '2999-01-01 00:00:00'", retain_last=1)
    tagged = lake.tagged(2)
    assert (tagged.rows, tagged.removed, tagged.uncounted) == (1, 0, False)
    lake.replace(3, Between("id", 1, 3), (1,))
    lake.call("expire_snapshots", older_than="TIMESTAMP '2999-01-01 00:00:00'", retain_last=1)
    tagged = lake.tagged(3)
    assert (tagged.rows, tagged.removed, tagged.uncounted) == (1, 2, False)


def test_rows_that_stay_of_a_table_whose_path_looks_like_a_pattern_are_there(lake: IcebergLake) -> None:
    odd = IcebergLake(lake.spark, lake.folder.parent.parent / "br[1]{a,b}" / "t", lake.patch)
    odd.append(1, (1,), (2,))
    odd.replace(2, Between("id", 2, 3), (2,))
    assert (odd.own, sorted(row["id"] for row in iceberg_rows(odd.folder, ["id"]))) == ([False], [1, 2])


def test_rows_that_stay_keep_their_values_whatever_the_slice_says_of_its_columns(lake: IcebergLake) -> None:
    columns = "id long, name string, s struct<a: int>"
    lake.append(1, (1, "ab", (70_000,)), (2, "cd", (300,)), columns=columns)
    rows = lake.spark.createDataFrame([(2, "ef", (7,))], "id long, name string, s struct<a: tinyint>").select(
        "id", F.col("name").alias("name", metadata={"__CHAR_VARCHAR_TYPE_STRING": "char(5)"}), "s"
    )
    lake.write(2, rows, Replace(Between("id", 2, 3)))
    assert lake.own == [True]
    found = lake.sql("SELECT id, name, s.a AS a FROM {t} ORDER BY id")
    assert [(row["id"], row["name"].rstrip(), row["a"]) for row in found] == [(1, "ab", 70_000), (2, "ef", 7)]
    assert found[0]["name"] == "ab"


def test_a_damaged_file_whose_rows_stay_stops_the_commit(lake: IcebergLake) -> None:
    lake.append(1)
    lake.append(2, *((id_,) for id_ in range(2000)))
    (file,) = (path for path in (lake.folder / "data").rglob("*.parquet") if path.stat().st_size > 2000)
    data = bytearray(file.read_bytes())
    for at in range(4, len(data) // 2):
        data[at] ^= 0x5A
    file.write_bytes(bytes(data))
    lake.spark.conf.set("spark.sql.files.ignoreCorruptFiles", "true")
    try:
        with pytest.raises(Exception, match=r"\.parquet|expected 2,000 rows"):
            lake.replace(3, Between("id", 5, 6), (5,))
    finally:
        lake.spark.conf.unset("spark.sql.files.ignoreCorruptFiles")
    assert (lake.table().tip(APP).highest_tag, lake.strays) == (2, set())


@pytest.mark.parametrize("name", ["_part.parquet", ".part.parquet", "part._COPYING_", "a{1,2}[x]*.parquet"])
@pytest.mark.each_case
def test_rows_stay_whatever_their_files_name(
    lake: IcebergLake, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    lake.append(1)
    find = data_files.find_written_files

    def renamed(place: Place, folder: str, rows: DataFrame) -> list[data_files.WrittenFile]:
        (found,) = find(place, folder, rows)
        assert place.local is not None
        new = f"{folder}/{name}"
        (place.local / found.path).rename(place.local / new)
        return [found._replace(path=new)]

    monkeypatch.setattr(own_commit, "find_written_files", renamed)
    lake.append(2, (1,), (2,), (3,))
    monkeypatch.setattr(own_commit, "find_written_files", find)
    lake.replace(3, Between("id", 2, 3), (2,))
    # Spark's readers of files do not find them, so the replacement is left to Iceberg's.
    assert (lake.own, lake.ids) == ([True, False], [1, 2, 3])


def test_files_without_a_column_of_the_table_are_copied_by_spark(lake: IcebergLake) -> None:
    lake.append(1, (1,), (2,), (3,))
    lake.append(2, (4,))
    lake.sql("ALTER TABLE {t} ADD COLUMN more int")
    lake.replace(3, Between("id", 2, 3), (2, 7), columns="id long, more int")
    assert (lake.own, lake.ids, lake.strays) == ([True, False], [1, 2, 3, 4], set())
    lake.replace(4, Between("id", 4, 5), (4, 8), columns="id long, more int")  # all of a file
    assert (lake.own[-1], lake.ids, lake.strays) == (True, [1, 2, 3, 4], set())


def test_a_table_with_deletes_beside_its_files_is_changed_by_spark(lake: IcebergLake) -> None:
    lake.append(1, (1,), (2,), (3,))
    lake.sql("ALTER TABLE {t} SET TBLPROPERTIES ('write.delete.mode' = 'merge-on-read')")
    lake.sql("DELETE FROM {t} WHERE id = 1")
    lake.sql("ALTER TABLE {t} UNSET TBLPROPERTIES ('write.delete.mode')")
    assert lake.sql("SELECT count(*) n FROM {t}.delete_files")[0]["n"] == 1
    lake.replace(2, Between("id", 2, 3), (2,))
    assert (lake.own, lake.ids) == ([False], [2, 3])


def _versions(lake: IcebergLake) -> list[tuple[Any, ...]]:
    return lake.rows("id, fact, _valid_from, _valid_to, _is_current")


def test_columns_that_came_without_rows_are_there_when_keys_are_looked_for(lake: IcebergLake) -> None:
    taking = lake.table().with_schema_mode("merge")
    lake.load(1, VERSIONS, (1, 1, "a"), (2, 1, "a"), columns=HISTORY)
    rows = lake.spark.createDataFrame([(1, 2, "a", 5), (2, 2, "a", None)], f"{HISTORY}, more int")
    lake.write(2, rows, VERSIONS, table=taking)
    assert lake.rows("id, more, _valid_from, _is_current") == [
        (1, 5, 2, True),
        (1, None, 1, False),
        (2, None, 1, True),
    ]


@pytest.mark.parametrize(
    ("statements", "expected"),
    [
        (["RENAME COLUMN id TO x", "RENAME COLUMN n TO id", "RENAME COLUMN x TO n"], [(7, 77)]),
        (["DROP COLUMN id", "ADD COLUMN id long"], [(7, 77), (None, 7)]),
    ],
    ids=["exchanged", "made again"],
)
@pytest.mark.each_case
def test_keys_are_those_that_the_names_mean_now(
    lake: IcebergLake, statements: list[str], expected: list[tuple[Any, ...]]
) -> None:
    lake.append(1, (5, 7), columns="id long, n long")
    for statement in statements:
        lake.sql(f"ALTER TABLE {{t}} {statement}")
    lake.load(2, UPSERT, (7, 77), columns="id long, n long")
    assert lake.rows("id, n") == expected


def test_a_history_that_was_doubled_stops_a_load_and_loses_nothing(lake: IcebergLake) -> None:
    lake.load(1, VERSIONS, (1, 1, "a"), (2, 1, "a"), columns=HISTORY)
    lake.sql("INSERT INTO {t} SELECT * FROM {t}")
    before = _versions(lake)
    with pytest.raises(Exception, match="MERGE_CARDINALITY_VIOLATION"):
        lake.load(2, VERSIONS, (1, 2, "a"), (2, 5, "b"), columns=HISTORY)
    assert _versions(lake) == before


def test_columns_of_the_history_are_found_in_any_case(lake: IcebergLake) -> None:
    lake.load(1, VERSIONS, (1, 1, "a"), columns=HISTORY)
    for old, new in (("_valid_to", "x"), ("x", "_VALID_TO"), ("_is_current", "x"), ("x", "_Is_Current")):
        lake.sql(f"ALTER TABLE {{t}} RENAME COLUMN {old} TO {new}")
    lake.load(2, VERSIONS, (2, 1, "a"), columns=HISTORY)
    lake.call("rewrite_data_files", options="map('rewrite-all','true')")
    lake.load(3, VERSIONS, (1, 5, "b"), columns=HISTORY)
    assert lake.own[-1]
    assert _versions(lake) == [(1, "a", 1, 5, False), (1, "b", 5, None, True), (2, "a", 1, None, True)]


@pytest.mark.parametrize(
    ("columns", "row"),
    [
        (f"{HISTORY}, more int", (1, 2, "b", 5)),
        ("id long, at long, fact int", (1, 2, 5)),
        ("id long, at string, fact string", (1, "x", "a")),
        ("id long, at long, fact string, _file string", (1, 2, "a", "f")),
    ],
    ids=["unknown", "another type", "another time", "reserved"],
)
@pytest.mark.each_case
def test_unfit_versions_are_refused_in_words(lake: IcebergLake, columns: str, row: tuple[Any, ...]) -> None:
    lake.load(1, VERSIONS, (1, 1, "a"), columns=HISTORY)
    with pytest.raises(RowsRefused, match="expected"):
        lake.load(2, VERSIONS, row, columns=columns)
    assert (_versions(lake), lake.strays) == ([(1, "a", 1, None, True)], set())


@pytest.mark.full
@pytest.mark.parametrize("step", ["find_changes", "write_files"])
@pytest.mark.each_case
def test_files_joined_meanwhile_are_searched(
    lake: IcebergLake, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    lake.append(1, (1, "a"), (2, "b"), columns=PAIRS)
    lake.append(2, (3, "c"), columns=PAIRS)
    go_on = vars(own_commit)[step]

    def joined(*arguments: Any, **more: Any) -> Any:
        monkeypatch.setattr(own_commit, step, go_on)
        lake.call("rewrite_data_files", options="map('rewrite-all','true')")
        lake.call("expire_snapshots", older_than="TIMESTAMP '2999-01-01 00:00:00'", retain_last=1)
        return go_on(*arguments, **more)

    monkeypatch.setattr(own_commit, step, joined)
    lake.load(3, UPSERT, (2, "x"), columns=PAIRS)
    assert lake.rows() == [(1, "a"), (2, "x"), (3, "c")]


def test_a_damaged_file_of_changed_keys_stops_commits(
    lake: IcebergLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.append(1, (1, "a"), (2, "b"), columns=PAIRS)
    monkeypatch.setattr(
        changed_rows.KeyedChanges,
        "rewrite",
        lambda self, part, there: _of(self, part.where("id <> 1"), there),
    )
    with pytest.raises(TargetError, match=r"expected 3 rows in the slice and in the files .* found 2"):
        lake.load(2, UPSERT, (2, "x"), (3, "y"), columns=PAIRS)
    assert (lake.rows(), lake.strays) == ([(1, "a"), (2, "b")], set())


_of = changed_rows.KeyedChanges.rewrite


def test_files_keep_their_snapshots_number(lake: IcebergLake) -> None:
    lake.append(1, (1,))
    lake.act_before_commits(*[lambda: lake.sql("INSERT INTO {t} VALUES (77, NULL)")] * 2)
    lake.append(2, (2,))
    entries = lake.sql("SELECT snapshot_id, sequence_number FROM {t}.entries")
    assert {tuple(row) for row in entries} == {(each.id, each.sequence) for each in lake.metadata.lineage()}
    assert [snapshot.count("total-records") for snapshot in lake.metadata.lineage()] == [4, 3, 2, 1]


def test_a_version_of_a_free_number_is_not_put(lake: IcebergLake) -> None:
    lake.append(1, (1,))
    lake.sql("ALTER TABLE {t} SET TBLPROPERTIES ('write.metadata.previous-versions-max' = '2')")
    lake.act_before_commits(lambda: [lake.sql("INSERT INTO {t} VALUES (77, NULL)") for _ in range(5)])
    with pytest.raises(TargetError, match="others committed many times"):
        lake.append(2, (2,))
    assert lake.ids == [1, *[77] * 5]
    lake.append(2, (2,))
    assert lake.ids == [1, 2, *[77] * 5]


def test_a_remade_table_takes_no_older_version(lake: IcebergLake) -> None:
    lake.append(1, (1,))
    lake.act_before_commits(lake.make_again)
    with pytest.raises(TargetError, match="the table was dropped"):
        lake.append(2, (2,))
    assert lake.ids == [7]


def test_a_writer_that_slept_before_its_hint_leaves_that_of_the_newest_version(lake: IcebergLake) -> None:
    lake.append(1, (1,))
    lake.sql("ALTER TABLE {t} SET TBLPROPERTIES ('write.metadata.previous-versions-max' = '2')")
    for number in range(2, 7):
        lake.append(number, (number,))
    FolderCatalog(Place(str(lake.folder)))._write_hint(3)
    assert (lake.folder / "metadata/version-hint.text").read_text() == str(lake.metadata.version)
    assert lake.ids == [1, 2, 3, 4, 5, 6]


def test_an_append_that_landed_unknown_keeps_its_files(
    lake: IcebergLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if the request was repeated on its way: the second answer is that the number is taken."""
    put = FolderCatalog.add_snapshot

    def asked_twice(self: FolderCatalog, before: Metadata, snapshot: Mapping[str, Any]) -> bool:
        return put(self, before, snapshot) and put(self, before, snapshot)

    lake.append(1, (1,))
    monkeypatch.setattr(FolderCatalog, "add_snapshot", asked_twice)
    lake.append(2, (2,))
    assert lake.ids == [1, 2]


def test_spark_joins_manifests_when_there_are_as_many_as_the_table_wants(lake: IcebergLake) -> None:
    lake.append(1, (1,))
    lake.sql("ALTER TABLE {t} SET TBLPROPERTIES ('commit.manifest.min-count-to-merge' = '4')")
    for number in (2, 3, 4, 5):
        lake.append(number, (number,))
    assert lake.own == [True, True, False, True]
    assert len(lake.sql("SELECT path FROM {t}.manifests")) == 2
    assert lake.ids == [1, 2, 3, 4, 5]


def test_no_more_files_of_metadata_stay_than_the_table_keeps(lake: IcebergLake) -> None:
    lake.append(1, (1,))
    lake.sql("ALTER TABLE {t} SET TBLPROPERTIES ('write.metadata.previous-versions-max' = '2')")
    for number in range(2, 7):
        lake.append(number, (number,))
    assert len(list((lake.folder / "metadata").glob("v*.metadata.json"))) == 3
    assert len(lake.metadata.raw["metadata-log"]) == 2
    lake.sql("INSERT INTO {t} VALUES (77, NULL)")  # Spark goes on from there
    assert lake.ids == [1, 2, 3, 4, 5, 6, 77]
