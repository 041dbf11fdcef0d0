"""What the reader of commits promises of every lake table, whoever writes it (docs/reference/streams.md)."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Literal

import pytest
from pyspark.sql import functions as F

from partitions.errors import NeedsDecision
from partitions.loads import Append, Load, Replace, ReplaceAll
from partitions.predicate import Among
from resources.connections.places import Place
from resources.tables.contract.commit_log import CHANGE, VERSION, ReadPosition, TellsCommits
from resources.tables.contract.commits import Tag
from resources.tables.data_files.changed_values import changed_values
from resources.tables.registry import open_table
from tests.support.commit_histories import (
    TABLES,
    SqlTable,
    changed,
    check_net_changes,
    multiset,
    random_statement,
)
from tests.support.equality import delete_by_values

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MakeTable = Callable[[str], SqlTable]

EACH_TABLE = [
    pytest.param(name, marks=pytest.mark.full) if "feed" in name else pytest.param(name) for name in TABLES
]
"""The names of ``TABLES``; those with a feed take Spark a minute, so `make test` has others."""


@pytest.fixture
def make_table(spark: SparkSession, tmp_path: Path) -> MakeTable:
    """Create a table of one of the ``TABLES``."""

    def make(name: str) -> SqlTable:
        format_, properties, parts = TABLES[name]
        return SqlTable.create(spark, tmp_path / name.replace(", ", "-"), format_, properties, parts=parts)

    return make


@pytest.mark.parametrize("name", EACH_TABLE)
def test_rows_before_and_net_change_are_the_rows_after_each_commit(make_table: MakeTable, name: str) -> None:
    table = make_table(name)
    table.insert(1, number="0.0d")
    table.insert(2, 3, number="double('NaN')")
    table.insert(4, 4, 5, number="NULL")
    table.sql("UPDATE {T} SET number = double('-0.0') WHERE id = 1")
    table.sql("DELETE FROM {T} WHERE id = 4")
    table.sql("UPDATE {T} SET text = text, _run_id = 'later' WHERE id >= 2")
    table.sql(
        "MERGE INTO {T} t USING (SELECT 5 AS id UNION ALL SELECT 7) s ON t.id = s.id "
        "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id, part) VALUES (s.id, 0)"
    )
    table.sql(
        "MERGE INTO {T} t USING (SELECT 3 AS id UNION ALL SELECT 8) s ON t.id = s.id "
        "WHEN MATCHED AND t.id > 100 THEN DELETE WHEN NOT MATCHED THEN INSERT (id, part) VALUES (s.id, 1)"
    )
    table.sql("ALTER TABLE {T} ADD COLUMN note string")
    table.sql("UPDATE {T} SET note = 'new' WHERE id = 3")
    table.sql("INSERT OVERWRITE {T} SELECT * FROM {T} WHERE id < 8")
    changes = check_net_changes(table)
    inserted, deleted = changed(table.net(*[change.commit for change in changes]))
    assert inserted.total() == sum(change.inserted.total() for change in changes)
    assert deleted.total() == sum(change.deleted.total() for change in changes)
    assert sum(change.commit.kind == "appends" for change in changes) >= 3


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", ["delta, deletion vectors", "iceberg 3, deletion vectors"])
def test_any_history_is_the_sum_of_its_net_changes(make_table: MakeTable, name: str, seed: int) -> None:
    _check_random_history(make_table(name), seed, 6)


@pytest.mark.full
@pytest.mark.parametrize("seed", range(100, 105))
@pytest.mark.parametrize("name", TABLES)
def test_a_long_history_is_the_sum_of_its_net_changes(make_table: MakeTable, name: str, seed: int) -> None:
    _check_random_history(make_table(name), seed, 25)


def _check_random_history(table: SqlTable, seed: int, statements: int) -> None:
    random = Random(seed)
    table.insert(*range(5))
    for _ in range(statements):
        table.sql(random_statement(random, table.format))
    changes = check_net_changes(table)
    inserted, deleted = changed(table.net(*[change.commit for change in changes]))
    assert inserted.total() - deleted.total() == sum(
        change.inserted.total() - change.deleted.total() for change in changes
    )


@pytest.mark.full
def test_the_feed_the_difference_of_files_and_sparks_own_feed_agree(make_table: MakeTable) -> None:
    with_feed, without = make_table("delta, feed"), make_table("delta, deletion vectors")
    for table in (with_feed, without):
        table.insert(1, 2, 3, 3)
        table.sql("UPDATE {T} SET text = 'x' WHERE id = 1")
        table.sql("UPDATE {T} SET text = text WHERE id = 2")
        table.sql("DELETE FROM {T} WHERE id = 3")
        table.sql(
            "MERGE INTO {T} t USING (SELECT 1 AS id UNION ALL SELECT 9) s ON t.id = s.id "
            "WHEN MATCHED THEN UPDATE SET amount = 2 WHEN NOT MATCHED THEN INSERT (id, part) VALUES (9, 0)"
        )
    for one, other in zip(
        *(table.commits.since(None).commits for table in (with_feed, without)), strict=True
    ):
        feed = with_feed.spark.read.format("delta").option("readChangeFeed", "true")
        rows = (
            feed.option("startingVersion", one.version)
            .option("endingVersion", one.version)
            .load(str(with_feed.folder))
        )
        is_new = F.col("_change_type").isin("insert", "update_postimage")
        sides = [
            multiset(rows.where(side).drop("_change_type", "_commit_version", "_commit_timestamp"))
            for side in (is_new, ~is_new)
        ]
        inserted, deleted = sides[0] - sides[1], sides[1] - sides[0]
        for table, commit in ((with_feed, one), (without, other)):
            assert changed(table.net(commit)) == (inserted, deleted), commit


@pytest.mark.parametrize(
    "name", [pytest.param("delta, feed, names, vectors", marks=pytest.mark.full), "iceberg, merge on read"]
)
def test_each_file_of_a_version_is_read_alone_with_its_deletes(make_table: MakeTable, name: str) -> None:
    table = make_table(name)
    for ids in ((1, 2, 3), (4, 5, 6)):
        table.insert(*ids)
    table.sql("DELETE FROM {T} WHERE id IN (2, 4)")
    table.sql("ALTER TABLE {T} RENAME COLUMN text TO label")
    (*_, commit) = table.commits.since(None).commits
    files = table.commits.snapshot_files(commit.read_position)
    table.sql("DELETE FROM {T} WHERE id = 6")
    read: Counter[Any] = Counter()
    for file in files:
        rows = table.commits.read_files(
            table.spark, commit.read_position, [file.path], table.folder_for_reads
        )
        assert file.rows in (None, rows.count())
        read.update(multiset(rows))
    assert list(files) == sorted(files)
    assert len(files) >= 2
    assert read == multiset(table.read(commit))
    assert sum(dict(key)["id"] != "'2'" for key in read) == 4


@pytest.mark.parametrize("format_", ["delta", "iceberg", "parquet"])
def test_loads_by_strandline_are_told_by_their_lists_and_give_their_net_change(
    spark: SparkSession, tmp_path: Path, format_: Literal["delta", "iceberg", "parquet"]
) -> None:
    place = Place(str(tmp_path / "lake" / "bronze" / "events"))
    Path(place.url).parent.mkdir(parents=True)
    table = open_table(format_, place)
    loads: list[tuple[list[tuple[Any, ...]], Load]] = [
        ([(1, "a", 0.0), (2, "b", 1.0), (3, "b", float("nan"))], Append()),
        ([(4, "a", 0.0)], Append()),
        ([(4, "a", 0.0), (1, "a", -0.0)], Replace(Among("unit", ("a",)))),
        ([(2, "b", 1.0), (3, "b", float("nan"))], Replace(Among("unit", ("b",)))),
        ([(9, "z", 1.0)], ReplaceAll()),
    ]
    for number, (rows, load) in enumerate(loads, start=1):
        base = table.contents.newest_version() if number > 1 else None
        frame = spark.createDataFrame(rows, "id long, unit string, value double")
        table.write(frame, load, Tag("app", number, f"owner-{number}"), "{}", base=base)
    assert isinstance(table, TellsCommits)
    commits = [commit for commit in table.commits.since(None).commits if commit.kind != "nothing"]
    changes = [
        changed(table.commits.net_changes(spark, [commit], lambda: Place(str(tmp_path))))
        for commit in commits
    ]
    counts = [(inserted.total(), deleted.total()) for inserted, deleted in changes]
    assert counts == [(3, 0), (1, 0), (1, 1), (0, 0), (1, 4)]
    assert [commit.kind for commit in commits] == ["appends"] * 2 + ["rewrites"] * 3
    table.commits.check_files(commits)
    position, read = commits[2].read_position, Counter[Any]()
    for file in table.commits.snapshot_files(position):
        read.update(
            multiset(table.commits.read_files(spark, position, [file.path], lambda: Place(str(tmp_path))))
        )
    assert read == multiset(table.contents.read(spark, table.commits.version_of(position)))


@pytest.mark.full
@pytest.mark.parametrize("name", ["delta, deletion vectors", "iceberg 3, deletion vectors"])
def test_arrow_reads_the_rows_that_a_deletion_vector_hides(make_table: MakeTable, name: str) -> None:
    table = make_table(name)
    table.insert(*range(10))
    table.sql("DELETE FROM {T} WHERE id IN (2, 5)")
    table.sql("DELETE FROM {T} WHERE id = 4")
    told = []
    for commit in table.commits.since(None).commits[-2:]:
        values = changed_values(table.commits.changed_files([commit]), ["id"])
        assert values is not None
        told.append(sorted(row["id"] for row in values.rows.to_pylist()))
    assert told == [[2, 5], [4]]


def test_equality_deletes_of_another_engine_are_a_net_change(make_table: MakeTable) -> None:
    table = make_table("iceberg, merge on read")
    table.insert(1, 2, 3)
    delete_by_values(table.folder, "id", [2, 9])
    table.insert(2)
    delete_by_values(table.folder, "id", [3])
    changes = check_net_changes(table)
    assert [change.deleted.total() for change in changes] == [0, 1, 0, 1]


@pytest.mark.full
@pytest.mark.parametrize("name", ["delta, feed, names, vectors", "iceberg, copy on write"])
def test_a_dropped_column_of_older_files_is_no_change_of_rows(make_table: MakeTable, name: str) -> None:
    table = make_table(name)
    table.insert(1, 2)
    table.sql("ALTER TABLE {T} DROP COLUMN amount")
    table.sql("INSERT OVERWRITE {T} SELECT * FROM {T} WHERE id < 9")
    changes = check_net_changes(table)
    assert (changes[-1].inserted.total(), changes[-1].deleted.total()) == (0, 0)


@pytest.mark.parametrize("name", ["delta", "iceberg, copy on write"])
def test_going_back_to_an_earlier_version_is_a_change_like_others(make_table: MakeTable, name: str) -> None:
    table = make_table(name)
    table.insert(1, 2)
    start = table.commits.since(None).commits[-1]
    table.sql("DELETE FROM {T} WHERE id = 1")
    table.insert(3)
    read = table.commits.since(None).commits[-1]
    if table.format == "delta":
        table.sql(f"RESTORE TABLE {{T}} TO VERSION AS OF {start.version}")
    else:
        table.sql(f"CALL {{C}}.system.rollback_to_snapshot('bronze.events', {start.id})")
    table.insert(4)
    logged = table.commits.since(read.read_position)
    inserted, deleted = changed(table.net(*logged.commits))
    assert multiset(table.read(read)) + inserted - deleted == multiset(table.read(logged.commits[-1]))
    assert (inserted.total(), deleted.total()) == (2, 1)
    assert [commit.kind for commit in logged.commits] == ["rewrites", "appends"]
    first = logged.commits[0]
    assert table.commits.since(read.read_position, first.read_position).commits == (first,)


def test_changes_are_in_the_newest_columns_with_values_cast_or_null(make_table: MakeTable) -> None:
    table = make_table("delta")
    table.insert(1, 2)
    table.sql("ALTER TABLE {T} ADD COLUMN struct.z int")
    table.sql("UPDATE {T} SET struct = named_struct('x', 2, 'y', 0.5d, 'z', 7) WHERE id = 2")
    rows = table.read(table.commits.since(None).commits[-1]).selectExpr("id", "struct", "5 AS text", "part")
    writer = rows.write.format("delta").mode("overwrite").option("overwriteSchema", "true")
    writer.partitionBy("part").save(str(table.folder))
    commits = table.commits.since(None).commits
    net = (
        table.net(*commits)
        .orderBy(VERSION, CHANGE, "id")
        .selectExpr(VERSION, CHANGE, "id", "struct.x", "struct.z", "text")
    )
    assert [tuple(row) for row in net.collect()] == [
        (1, "insert", 1, 1, None, None),
        (1, "insert", 2, 2, None, None),
        (3, "delete", 2, 2, None, None),
        (3, "insert", 2, 2, 7, None),
        (4, "delete", 1, 1, None, None),
        (4, "delete", 2, 2, 7, None),
        (4, "insert", 1, 1, None, 5),
        (4, "insert", 2, 2, 7, 5),
    ]


def test_files_that_were_vacuumed_are_named_before_a_row_is_read(make_table: MakeTable) -> None:
    table = make_table("delta")
    table.insert(1)
    table.sql("UPDATE {T} SET text = 'x'")
    commits = table.commits.since(ReadPosition(0)).commits
    table.commits.check_files(commits)
    table.spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    table.sql("VACUUM {T} RETAIN 0 HOURS")
    with pytest.raises(NeedsDecision, match=r"version 1 .*part-.* cleaned before they were read") as error:
        table.commits.check_files(commits)
    assert error.value.code == "versions_gone"


def test_a_change_from_an_expired_snapshot_is_gone_and_an_append_after_it_is_not(
    make_table: MakeTable,
) -> None:
    table = make_table("iceberg, copy on write")
    table.insert(1)
    table.insert(2)
    table.sql("DELETE FROM {T} WHERE id = 2")
    first, second, third = table.commits.since(None).commits
    # Spark keeps what the newest snapshot needs
    table.sql(
        f"CALL {{C}}.system.expire_snapshots(table => 'bronze.events', snapshot_ids => array({first.id}))"
    )
    assert changed(table.net(second))[0].total() == 1
    table.sql(
        f"CALL {{C}}.system.expire_snapshots(table => 'bronze.events', snapshot_ids => array({second.id}))"
    )
    with pytest.raises(NeedsDecision, match=f"snapshot {second.id}, .* expired") as error:
        table.net(third)
    assert error.value.code == "versions_gone"


def test_a_table_that_another_one_replaced_has_another_id(make_table: MakeTable) -> None:
    table = make_table("delta")
    table.insert(1)
    logged = table.commits.since(None)
    shutil.rmtree(table.folder)
    table.sql("CREATE TABLE {T} (id bigint) USING delta")
    assert table.commits.since(None).table != logged.table
    table.sql("INSERT INTO {T} VALUES (1)")
    with pytest.raises(NeedsDecision) as error:
        table.commits.since(logged.commits[-1].read_position)
    assert error.value.code == "source_replaced"
