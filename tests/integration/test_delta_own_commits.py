"""Strandline's own commits of Delta tables, by the rules that only Delta has: its statistics and partitions, and tables that take another's place (docs/explanation/adr/0016)."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder, write_deltalake
from pyspark.errors import AnalysisException, PySparkException

from partitions.errors import RowsRefused, TargetError
from partitions.file_statistics import FileMatch, match_statistics
from partitions.loads import Replace, Scd2
from partitions.predicate import Among, Between
from resources.connections.places import Place
from resources.tables.delta import own_change, own_keys
from resources.tables.delta.own_limits import extents_of
from tests.integration.test_own_commits import PAIRS, UPSERT
from tests.support.arrow import SCHEMA, ArrowTable, Rows
from tests.support.lakes import APP, DeltaLake, lake_in

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EVERY_TYPE = """SELECT * FROM VALUES
  (1L, 1Y, 2S, 3, 1.5F, 2.5D, 1.50BD, true, 'text', X'00FF', DATE'2026-03-01', TIMESTAMP'2026-03-01 00:00:00.123456',
   TIMESTAMP_NTZ'2026-03-01 01:02:03.000001', named_struct('x', 1, 'y', named_struct('z', 'in')), array(1, 2), map('k', 3), 'é日'),
  (2L, -1Y, -2S, -3, -1.5F, -0.0D, -2.25BD, false, repeat('long', 20), X'', DATE'1969-12-31', TIMESTAMP'1969-12-31 23:59:59.999999',
   TIMESTAMP_NTZ'1969-12-31 23:59:59', named_struct('x', 2, 'y', named_struct('z', 'side')), array(), map(), ''),
  (3L, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)
  AS rows(id, byte, short, int, float, double, decimal, boolean, string, binary, date, instant, local, struct, list, map, other)"""


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DeltaLake:
    made: DeltaLake = lake_in("delta", spark, tmp_path, monkeypatch)
    return made


def _spark_rows(spark: SparkSession, folder: Path) -> list[Any]:
    return sorted(map(tuple, spark.read.format("delta").load(str(folder)).collect()), key=str)


def test_every_type_is_read_back_with_deltas_statistics(spark: SparkSession, lake: DeltaLake) -> None:
    rows, other = (
        spark.sql(EVERY_TYPE).coalesce(1),
        DeltaLake(spark, lake.folder.with_name("delta"), lake.patch),
    )
    lake.write(1, rows)
    lake.write(2, rows.where("id > 1"))
    rows.write.format("delta").save(str(other.folder))
    assert (lake.writers, lake.committed_by) == (["own", "own"], "Strandline (deltalake)")
    assert _spark_rows(spark, lake.folder) == sorted(
        map(tuple, [*rows.collect(), *rows.where("id > 1").collect()]), key=str
    )
    assert [row["other"] for row in lake.query("id, other")] == ["é日", "", "", None, None]
    (own,), (delta,) = lake.statistics(0), other.statistics(0)
    assert own["numRecords"] == delta["numRecords"] == 3
    assert own["nullCount"] == {
        key: count for key, count in delta["nullCount"].items() if key not in ("list", "map")
    }
    # Delta cuts instants to milliseconds, which is wrong by up to one; its texts are cut as ours are.
    for bounds in ("minValues", "maxValues"):
        exact = {key: value for key, value in own[bounds].items() if key not in ("instant", "local")}
        assert exact == {key: value for key, value in delta[bounds].items() if key in exact}
    assert own["minValues"]["instant"] == "1969-12-31T23:59:59.999999Z"
    assert own["maxValues"]["local"] == "2026-03-01T01:02:03.000001"
    schemas = [
        next(action["metaData"]["schemaString"] for action in made.log[0] if "metaData" in action)
        for made in (lake, other)
    ]
    assert json.loads(schemas[0]) == json.loads(schemas[1])


def test_no_row_is_passed_over_by_its_statistics(spark: SparkSession, lake: DeltaLake) -> None:
    lake.write(1, spark.sql(EVERY_TYPE).coalesce(1))
    read = spark.read.format("delta").load(str(lake.folder))
    for condition in (
        "instant >= TIMESTAMP'2026-03-01 00:00:00.123456'",
        "instant <= TIMESTAMP'1969-12-31 23:59:59.999999'",
        "local = TIMESTAMP_NTZ'2026-03-01 01:02:03.000001'",
        "decimal = 1.50",
        "decimal = -2.25",
        "string = repeat('long', 20)",
        "struct.y.z = 'side'",
        "other = 'é日'",
    ):
        assert read.where(condition).count() == 1, condition
    found = QueryBuilder().register("rows", DeltaTable(str(lake.folder)))
    assert (
        found.execute("SELECT id FROM rows WHERE instant >= '2026-03-01T00:00:00.123456Z'")
        .read_all()
        .num_rows
        == 1
    )


def test_days_of_the_old_calendar_are_found_as_sessions_write(spark: SparkSession, lake: DeltaLake) -> None:
    setting = "spark.sql.parquet.datetimeRebaseModeInWrite"
    before = spark.conf.get(setting)
    spark.conf.set(setting, "LEGACY")
    try:
        lake.write(1, spark.sql("SELECT 1L AS id, DATE'1500-01-01' AS day"))
    finally:
        spark.conf.set(setting, str(before))
    assert lake.writers == ["own"]
    assert spark.read.format("delta").load(str(lake.folder)).where("day = DATE'1500-01-01'").count() == 1


def test_values_of_partitions_keep_their_letters(spark: SparkSession, lake: DeltaLake) -> None:
    values = ["a b:c%/d", "x=y", "é", " ", None, "%2F", "a\\b?#"]
    rows = [(number, value) for number, value in enumerate(values)]
    lake.partition_by = ("p", "ts")
    frame = spark.createDataFrame(rows, "id long, p string").selectExpr(
        "id", "p", "TIMESTAMP'2026-01-01 00:00:00.5' AS ts"
    )
    lake.write(1, frame)
    lake.write(2, frame.where("id = 0"), Replace(Among("p", ("a b:c%/d",))))
    assert lake.writers == ["own", "own"]
    assert sum("remove" in action for action in lake.log[1]) == 1
    assert sorted((row[0], row[1]) for row in _spark_rows(spark, lake.folder)) == rows
    assert [(row["id"], row["p"]) for row in lake.query("id, p")] == rows
    assert spark.read.format("delta").load(str(lake.folder)).where(
        "ts = TIMESTAMP'2026-01-01 00:00:00.5'"
    ).count() == len(rows)


@pytest.mark.full
@pytest.mark.parametrize("writer", ["own", "Delta", "OPTIMIZE"])
def test_partitions_are_replaced_with_any_letters(spark: SparkSession, lake: DeltaLake, writer: str) -> None:
    values = ["é", "日", "a b:c%/d", "%20", "x=y+z", "a,b;c&d'(e)!", "~$@*", '{#}?<>"`']
    rows = spark.createDataFrame(list(enumerate(values)), "id long, p string").coalesce(1)
    lake.partition_by = ("p",)
    if writer == "Delta":
        rows.write.format("delta").partitionBy("p").save(str(lake.folder))
    else:
        lake.write(1, rows)
    if writer == "OPTIMIZE":
        lake.write(2, rows)
        spark.sql(f"OPTIMIZE delta.`{lake.folder}`").collect()
    before = len(lake.log)
    for number, value in enumerate(values[:2], start=3):
        lake.write(number, rows.where(f"id = {number - 3}"), Replace(Among("p", (value,))))
    lake.write(5, rows.where("id > 1"), Replace(Among("p", tuple(values[2:]))))
    wanted = list(enumerate(values))
    assert [(row["id"], row["p"]) for row in lake.query("id, p")] == wanted
    assert sorted(map(tuple, _spark_rows(spark, lake.folder))) == wanted
    assert lake.writers[before : before + 2] == (["own"] * 2 if writer == "own" else ["Delta"] * 2)


def test_more_rows_than_are_copied_here_are_replaced_by_delta(lake: DeltaLake) -> None:
    lake.append(1, (1,), (2,))
    lake.patch.setattr(own_change, "MAX_REWRITTEN_BYTES", 0)
    lake.replace(2, Between("id", 2, 3), (2,))
    assert (lake.writers[-1], lake.ids) == ("Delta", [1, 2])


def test_keys_in_more_files_than_are_looked_through_here_are_merged_by_delta(lake: DeltaLake) -> None:
    lake.append(1, (1, "a"), (2, "b"), columns=PAIRS)
    lake.patch.setattr(own_keys, "_MAX_FILES", 0)
    lake.load(2, UPSERT, (2, "e"), columns=PAIRS)
    assert (lake.writers[-1], lake.rows()) == ("Delta", [(1, "a"), (2, "e")])


@pytest.fixture
def two_versions(lake: DeltaLake) -> DeltaLake:
    """A table of two rows; a copy of it with the first alone lies beside it."""
    lake.append(1, (1, "a"), columns=PAIRS)
    lake.copy()
    lake.append(2, (2, "b"), columns=PAIRS)
    return lake


_REMADE = "removed, recreated or restored"


def _put_back(lake: DeltaLake) -> None:
    """The copy's log takes the place of the table's."""
    shutil.copytree(lake.folder.with_name("copy") / "_delta_log", lake.folder / "_delta_log")


def _without_log_once_written(lake: DeltaLake, then: Callable[[], None]) -> None:
    """Have the table's log removed, and this happen, right after the files of the next write are there."""

    def happens() -> None:
        shutil.rmtree(lake.folder / "_delta_log")
        then()

    lake.interrupt("files written", happens)


@pytest.mark.parametrize("key", [2, 9], ids=["changed", "new"])
def test_a_copy_of_the_table_that_has_grown_to_the_same_version_is_another_one(
    two_versions: DeltaLake, key: int
) -> None:
    def grows() -> None:
        _put_back(two_versions)
        two_versions.insert((key, "theirs"))

    _without_log_once_written(two_versions, grows)
    two_versions.load(3, UPSERT, (key, "c"), columns=PAIRS)
    assert two_versions.rows() == [(1, "a"), (key, "c")]


@pytest.mark.parametrize("act", ["restored", "made again", "removed"])
def test_keys_change_no_rows_in_a_table_that_took_the_place_of_theirs(
    two_versions: DeltaLake, act: str
) -> None:
    def happens() -> None:
        if act == "restored":
            _put_back(two_versions)
        elif act == "made again":
            for number in range(4):
                two_versions.insert((number, "theirs"))

    _without_log_once_written(two_versions, happens)
    with pytest.raises(TargetError, match=_REMADE):
        two_versions.load(3, UPSERT, (2, "c"), columns=PAIRS)
    if act == "removed":
        assert not (two_versions.folder / "_delta_log").exists()
    else:
        theirs = [(number, "theirs") for number in range(4)]
        assert two_versions.rows() == (theirs if act == "made again" else [(1, "a")])


def test_rows_of_another_type_are_left_to_delta(spark: SparkSession, lake: DeltaLake) -> None:
    lake.write(1, spark.range(1))
    with pytest.raises(AnalysisException, match="DELTA_FAILED_TO_MERGE_FIELDS"):
        lake.write(2, spark.sql("SELECT 7 AS id"))
    assert (lake.writers, len(lake.folders)) == (["own"], 1)


@pytest.mark.full
def test_deltas_own_tools_go_on_with_the_table(spark: SparkSession, lake: DeltaLake) -> None:
    for number in range(1, 13):
        lake.write(number, spark.range(number, number + 1).coalesce(1))
    assert (lake.folder / "_delta_log" / "_last_checkpoint").exists()
    left = lake.folder / "0000000013-of-a-dead-process"
    left.mkdir()
    shutil.copy(next(lake.folder.glob("0000000012-*/*.parquet")), left / "part-0.parquet")
    name = f"delta.`{lake.folder}`"
    spark.sql(f"OPTIMIZE {name}").collect()
    session = spark.newSession() if hasattr(spark, "newSession") and not hasattr(spark, "client") else spark
    session.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    session.sql(f"VACUUM {name} RETAIN 0 HOURS").collect()
    assert [row["id"] for row in lake.query("id")] == list(range(1, 13))
    assert not list(lake.folder.glob("0000000013-*/*.parquet"))
    history = spark.sql(f"DESCRIBE HISTORY {name}").where("operation = 'WRITE'").collect()
    assert {row["operationMetrics"]["numOutputRows"] for row in history} == {"1"}
    lake.write(13, spark.range(13, 14))
    spark.range(14, 15).write.format("delta").mode("append").save(str(lake.folder))
    assert [row["id"] for row in lake.query("id")] == list(range(1, 15))


@pytest.mark.parametrize("column", ["_day", ".day"])
def test_rows_of_hidden_looking_partitions_stay(spark: SparkSession, lake: DeltaLake, column: str) -> None:
    lake.partition_by = (column,)
    for number in (1, 2):
        lake.write(number, spark.sql(f"SELECT {number}L AS id, 'x' AS `{column}`"))
    assert lake.writers == ["own", "own"]
    assert _spark_rows(spark, lake.folder) == [(1, "x"), (2, "x")]


def test_versions_partitioned_by_currency_are_kept(spark: SparkSession, lake: DeltaLake) -> None:
    lake.partition_by = ("_is_current",)
    lake.write(1, spark.sql("SELECT 1L AS id, 'a' AS value, 1 AS at"), Scd2(("id",), "at"))
    assert _spark_rows(spark, lake.folder) == [(1, "a", 1, 1, None, True)]


def test_columns_of_partitions_are_found_in_any_case(spark: SparkSession, lake: DeltaLake) -> None:
    lake.partition_by = ("P",)
    for number in (1, 2):
        lake.write(number, spark.sql(f"SELECT {number}L AS id, 'x' AS p"))
    assert lake.writers == ["own", "own"]
    assert _spark_rows(spark, lake.folder) == [(1, "x"), (2, "x")]


def test_partitions_by_bytes_are_left_to_delta(spark: SparkSession, lake: DeltaLake) -> None:
    lake.partition_by = ("p",)
    rows = spark.sql("SELECT * FROM VALUES (1L, X'61'), (2L, X'62'), (3L, NULL) AS rows(id, p)").coalesce(1)
    lake.write(1, rows)
    lake.write(2, rows)
    assert lake.writers == ["Delta", "Delta"]
    assert [row["id"] for row in lake.query("id")] == [1, 1, 2, 2, 3, 3]


@pytest.mark.parametrize(
    ("partition_by", "kind", "value", "asked"),
    [
        (("p",), "INT", "1", "1"),
        ((), "DATE", "2026-01-01", "2026-01-01"),
        (("p",), "DOUBLE", "0.1", Decimal("0.1")),
    ],
)
def test_rows_of_a_value_that_is_given_as_another_type_are_replaced(
    spark: SparkSession, lake: DeltaLake, partition_by: tuple[str, ...], kind: str, value: str, asked: Any
) -> None:
    lake.partition_by = partition_by
    rows = spark.sql(f"SELECT id, CAST('{value}' AS {kind}) AS p FROM VALUES 1L, 2L AS rows(id)").coalesce(1)
    lake.write(1, rows)
    lake.write(2, rows.where("id = 1"), Replace(Among("p", (asked,))))
    assert [row["id"] for row in lake.query("id")] == [1]


def test_a_dotted_column_is_no_field_of_a_struct(lake: DeltaLake) -> None:
    for number, (column, nested) in enumerate([(1, 100), (100, 1)], start=1):
        rows = f"SELECT {number}L AS id, {column} AS `a.b`, named_struct('b', {nested}) AS a"
        lake.write(number, lake.spark.sql(rows).coalesce(1))
    rows = "SELECT 3L AS id, 1 AS `a.b`, named_struct('b', 7) AS a"
    lake.write(3, lake.spark.sql(rows), Replace(Among("a.b", (1,))))
    assert lake.ids == [2, 3]


def test_a_null_in_a_required_field_is_left_to_delta(spark: SparkSession, lake: DeltaLake) -> None:
    spark.sql(f"CREATE TABLE delta.`{lake.folder}` (id BIGINT, s STRUCT<a: INT NOT NULL>) USING delta")
    with pytest.raises(PySparkException, match="DELTA_NOT_NULL_CONSTRAINT_VIOLATED"):
        lake.write(1, spark.sql("SELECT 1L AS id, named_struct('a', CAST(NULL AS INT)) AS s"))
    assert _spark_rows(spark, lake.folder) == []


# What follows needs no engine: rows are Arrow's.


def test_bounds_of_long_decimals_are_not_trusted_since_other_writers_round_them(tmp_path: Path) -> None:
    value = Decimal("0.123456789012345678")
    write_deltalake(str(tmp_path), pa.table({"d": pa.array([value], pa.decimal128(38, 18))}))
    (file,) = pa.table(DeltaTable(str(tmp_path)).get_add_actions(flatten=True)).to_pylist()
    load = Replace(Between("d", Decimal("0.123456789012345679"), None))
    assert match_statistics(load.where, extents_of(file, load.where)) is not FileMatch.ALL


class ArrowLake(DeltaLake):
    """A Delta table that rows of Arrow's are written to."""

    def table(self) -> ArrowTable:
        return ArrowTable(Place(str(self.folder)), self.partition_by)

    def arrow(self, number: int, *ids: int, app: str = APP) -> None:
        """Append rows of these ids."""
        rows = Rows(pa.Table.from_pylist([{"id": each} for each in ids], schema=SCHEMA))
        self.write(number, rows, app=app)

    @property
    def ids(self) -> list[int]:
        return [row["id"] for row in self.query("id")]


@pytest.fixture
def arrow_lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ArrowLake:
    return ArrowLake(None, tmp_path / "t", monkeypatch)  # type: ignore[arg-type]


def test_a_table_that_is_removed_meanwhile_is_not_made_again(arrow_lake: ArrowLake) -> None:
    arrow_lake.arrow(1, 1)
    arrow_lake.interrupt("before the files", lambda: shutil.rmtree(arrow_lake.folder))
    with pytest.raises(TargetError, match=_REMADE):
        arrow_lake.arrow(2, 2)
    assert not (arrow_lake.folder / "_delta_log").exists()
    assert not list(arrow_lake.folder.rglob("*.parquet"))


def test_a_table_that_is_restored_from_a_copy_meanwhile_is_not_written_to(arrow_lake: ArrowLake) -> None:
    arrow_lake.arrow(1, 1)
    copy = arrow_lake.copy()
    arrow_lake.arrow(2, 2)

    def damage() -> None:
        shutil.rmtree(arrow_lake.folder)
        shutil.copytree(copy, arrow_lake.folder)

    arrow_lake.interrupt("before the files", damage)
    with pytest.raises(TargetError, match=_REMADE):
        arrow_lake.arrow(3, 3)
    assert arrow_lake.ids == [1]


def test_a_table_that_somebody_else_makes_first_is_refused(arrow_lake: ArrowLake) -> None:
    theirs = pa.Table.from_pylist([{"id": 77}], schema=SCHEMA)
    arrow_lake.interrupt("before the commit", lambda: write_deltalake(str(arrow_lake.folder), theirs))
    with pytest.raises(RowsRefused, match="expected no table"):
        arrow_lake.arrow(1, 1)
    assert (arrow_lake.ids, arrow_lake.folders) == ([77], [])


def test_of_many_writers_at_once_each_lands_once(arrow_lake: ArrowLake) -> None:
    arrow_lake.arrow(1, 0)

    def write(writer: int) -> None:
        for number in range(1, 4):
            # Two writers have each app id, as a run and the recovery of the same run have.
            arrow_lake.arrow(number, 100 * (writer % 3) + number, app=f"app {writer % 3}")

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(write, range(6)))
    assert arrow_lake.ids == sorted([0, *(100 * app + number for app in range(3) for number in range(1, 4))])
    assert len(arrow_lake.folders) == 10
