"""The product's own commits of Delta tables: what they hold, who else can read them, and what they do where others write (docs/adr/0016)."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder, write_deltalake
from pyspark.errors import AnalysisException, PySparkException

from partitions.errors import RowsRefused, TargetError
from partitions.file_statistics import Match, match_of
from partitions.loads import Append, ByValue, Load, Replace, ReplaceKeys, Scd2, Upsert
from partitions.predicate import Among, Between
from resources.connections.places import Place
from resources.tables.contract.commits import Tag
from resources.tables.data_files import written as data_files
from resources.tables.delta import own_change, own_commit, own_keys
from resources.tables.delta.log import DeltaLog
from resources.tables.delta.own_change import Change
from resources.tables.delta.own_commit import OwnCommit
from resources.tables.delta.own_limits import extents_of
from resources.tables.delta.table import DeltaLakeTable
from tests.support.arrow import SCHEMA, ArrowTable, Rows, Writer

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

APP = "app"

EVERY_TYPE = """SELECT * FROM VALUES
  (1L, 1Y, 2S, 3, 1.5F, 2.5D, 1.50BD, true, 'text', X'00FF', DATE'2026-03-01', TIMESTAMP'2026-03-01 00:00:00.123456',
   TIMESTAMP_NTZ'2026-03-01 01:02:03.000001', named_struct('x', 1, 'y', named_struct('z', 'in')), array(1, 2), map('k', 3), 'é日'),
  (2L, -1Y, -2S, -3, -1.5F, -0.0D, -2.25BD, false, repeat('long', 20), X'', DATE'1969-12-31', TIMESTAMP'1969-12-31 23:59:59.999999',
   TIMESTAMP_NTZ'1969-12-31 23:59:59', named_struct('x', 2, 'y', named_struct('z', 'side')), array(), map(), ''),
  (3L, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)
  AS rows(id, byte, short, int, float, double, decimal, boolean, string, binary, date, instant, local, struct, list, map, other)"""


class Table:
    """A table that numbers are written to."""

    def __init__(
        self, folder: Path, partition_by: tuple[str, ...] = (), kind: type[DeltaLakeTable] = DeltaLakeTable
    ) -> None:
        self.folder = folder
        self.table = kind(Place(str(folder)), partition_by)

    def write(self, number: int, rows: Any, load: Load | None = None, app: str = APP) -> None:
        base = self.table.tip(app).version
        self.table.write(
            rows, load or Append(), Tag(app, number, f"owner {number} of {app}"), "{}", base=base
        )

    @property
    def log(self) -> list[list[dict[str, Any]]]:
        """The actions of each commit that is there."""
        files = sorted((self.folder / "_delta_log").glob("*.json"))
        return [[json.loads(line) for line in file.read_text().splitlines()] for file in files]

    @property
    def writers(self) -> list[str]:
        """Of each commit: ``own`` or ``Delta``."""
        said = [
            next(action["commitInfo"] for action in commit if "commitInfo" in action) for commit in self.log
        ]
        return ["own" if each["engineInfo"].startswith("delta-rs") else "Delta" for each in said]

    @property
    def committed_by(self) -> str | None:
        """What the newest commit under the app's tag says of its writer."""
        return self.table.head(None, APP).tagged[-1].committed_by

    @property
    def folders(self) -> list[str]:
        """Folders of data files below the table."""
        return sorted(
            path.name for path in self.folder.iterdir() if not path.name.startswith("_") and path.is_dir()
        )

    def statistics(self, version: int) -> list[dict[str, Any]]:
        return [
            json.loads(action["add"]["stats"], parse_float=str)
            for action in self.log[version]
            if "add" in action
        ]

    def query(self, columns: str) -> list[dict[str, Any]]:
        """Rows as another engine reads them."""
        query = QueryBuilder().register("rows", DeltaTable(str(self.folder)))
        found: list[dict[str, Any]] = pa.table(
            query.execute(f"SELECT {columns} FROM rows ORDER BY 1").read_all()
        ).to_pylist()
        return found


def _spark_rows(spark: SparkSession, folder: Path) -> list[Any]:
    return sorted(map(tuple, spark.read.format("delta").load(str(folder)).collect()), key=str)


def test_every_type_is_read_back_with_deltas_statistics(spark: SparkSession, tmp_path: Path) -> None:
    table, rows = Table(tmp_path / "own"), spark.sql(EVERY_TYPE).coalesce(1)
    table.write(1, rows)
    table.write(2, rows.where("id > 1"))
    rows.write.format("delta").save(str(tmp_path / "delta"))
    assert (table.writers, table.committed_by) == (["own", "own"], "Strandline (deltalake)")
    assert _spark_rows(spark, table.folder) == sorted(
        map(tuple, [*rows.collect(), *rows.where("id > 1").collect()]), key=str
    )
    assert [row["other"] for row in table.query("id, other")] == ["é日", "", "", None, None]
    (own,), (delta,) = table.statistics(0), Table(tmp_path / "delta").statistics(0)
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
        next(
            action["metaData"]["schemaString"]
            for action in Table(tmp_path / name).log[0]
            if "metaData" in action
        )
        for name in ("own", "delta")
    ]
    assert json.loads(schemas[0]) == json.loads(schemas[1])


def test_no_row_is_passed_over_by_its_statistics(spark: SparkSession, tmp_path: Path) -> None:
    table = Table(tmp_path / "t")
    table.write(1, spark.sql(EVERY_TYPE).coalesce(1))
    read = spark.read.format("delta").load(str(table.folder))
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
    found = QueryBuilder().register("rows", DeltaTable(str(table.folder)))
    assert (
        found.execute("SELECT id FROM rows WHERE instant >= '2026-03-01T00:00:00.123456Z'")
        .read_all()
        .num_rows
        == 1
    )


def test_days_of_the_old_calendar_are_found_as_sessions_write(spark: SparkSession, tmp_path: Path) -> None:
    table, setting = Table(tmp_path / "t"), "spark.sql.parquet.datetimeRebaseModeInWrite"
    before = spark.conf.get(setting)
    spark.conf.set(setting, "LEGACY")
    try:
        table.write(1, spark.sql("SELECT 1L AS id, DATE'1500-01-01' AS day"))
    finally:
        spark.conf.set(setting, str(before))
    assert table.writers == ["own"]
    assert spark.read.format("delta").load(str(table.folder)).where("day = DATE'1500-01-01'").count() == 1


def test_values_of_partitions_keep_their_letters(spark: SparkSession, tmp_path: Path) -> None:
    values = ["a b:c%/d", "x=y", "é", " ", None, "%2F", "a\\b?#"]
    rows = [(number, value) for number, value in enumerate(values)]
    table = Table(tmp_path / "t", ("p", "ts"))
    frame = spark.createDataFrame(rows, "id long, p string").selectExpr(
        "id", "p", "TIMESTAMP'2026-01-01 00:00:00.5' AS ts"
    )
    table.write(1, frame)
    table.write(2, frame.where("id = 0"), Replace(Among("p", ("a b:c%/d",))))
    assert table.writers == ["own", "own"]
    assert sum("remove" in action for action in table.log[1]) == 1
    assert sorted((row[0], row[1]) for row in _spark_rows(spark, table.folder)) == rows
    assert [(row["id"], row["p"]) for row in table.query("id, p")] == rows
    assert spark.read.format("delta").load(str(table.folder)).where(
        "ts = TIMESTAMP'2026-01-01 00:00:00.5'"
    ).count() == len(rows)


@pytest.mark.full
@pytest.mark.parametrize("writer", ["own", "Delta", "OPTIMIZE"])
def test_partitions_are_replaced_with_any_letters(spark: SparkSession, tmp_path: Path, writer: str) -> None:
    values = ["é", "日", "a b:c%/d", "%20", "x=y+z", "a,b;c&d'(e)!", "~$@*", '{#}?<>"`']
    rows = spark.createDataFrame(list(enumerate(values)), "id long, p string").coalesce(1)
    table = Table(tmp_path / "t", ("p",))
    if writer == "Delta":
        rows.write.format("delta").partitionBy("p").save(str(table.folder))
    else:
        table.write(1, rows)
    if writer == "OPTIMIZE":
        table.write(2, rows)
        spark.sql(f"OPTIMIZE delta.`{table.folder}`").collect()
    before = len(table.log)
    for number, value in enumerate(values[:2], start=3):
        table.write(number, rows.where(f"id = {number - 3}"), Replace(Among("p", (value,))))
    table.write(5, rows.where("id > 1"), Replace(Among("p", tuple(values[2:]))))
    wanted = list(enumerate(values))
    assert [(row["id"], row["p"]) for row in table.query("id, p")] == wanted
    assert sorted(map(tuple, _spark_rows(spark, table.folder))) == wanted
    assert table.writers[before : before + 2] == (["own"] * 2 if writer == "own" else ["Delta"] * 2)


def test_files_are_replaced_whole_or_in_part(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = Table(tmp_path / "t")
    for number, ids in enumerate((range(10), range(10, 20), range(20, 30)), start=1):
        table.write(number, spark.range(ids.start, ids.stop).coalesce(1))
    table.write(4, spark.range(12, 14).coalesce(1), Replace(Between("id", 10, 20)))
    table.write(5, spark.range(40, 41), Replace(Between("id", 40, 50)))
    assert [row["id"] for row in table.query("id")] == [*range(10), 12, 13, *range(20, 30), 40]
    table.write(6, spark.range(25, 26).coalesce(1), Replace(Between("id", 5, 28)))
    assert [row["id"] for row in table.query("id")] == [*range(5), 25, 28, 29, 40]
    assert table.writers == ["own"] * 6
    counted = [table.table.counted(each, 0) for each in table.table.head(None, APP).tagged]
    assert [(each.rows, each.removed) for each in counted][3:] == [(2, 10), (1, 0), (1, 15)]
    monkeypatch.setattr(own_change, "MOST_COPIED", 0)
    table.write(7, spark.range(29, 30).coalesce(1), Replace(Between("id", 29, 30)))
    assert table.writers[-1] == "Delta"
    assert [row["id"] for row in table.query("id")] == [*range(5), 25, 28, 29, 40]


COLUMNS = "id long, unit string"


def _pairs(table: Table) -> list[tuple[Any, ...]]:
    return sorted((tuple(row.values()) for row in table.query("id, unit")), key=str)


@pytest.mark.parametrize("load", [Upsert(("id",), ()), ReplaceKeys(("id",))], ids=["upsert", "replace keys"])
def test_a_change_by_keys_leaves_files_without_them(spark: SparkSession, tmp_path: Path, load: Load) -> None:
    table = Table(tmp_path / "t")
    for number, rows in enumerate([[(1, "a"), (None, "b")], [(2, "c"), (3, "d")], [(4, "e")]], 1):
        table.write(number, spark.createDataFrame(rows, COLUMNS).coalesce(1))
    table.write(4, spark.createDataFrame([(None, "x"), (3, "y"), (9, "z")], COLUMNS), load)
    assert table.writers == ["own"] * 4
    assert _pairs(table) == [(1, "a"), (2, "c"), (3, "y"), (4, "e"), (9, "z"), (None, "x")]
    assert _spark_rows(spark, table.folder) == _pairs(table)
    actions = [next(iter(action)) for action in table.log[3]]
    assert actions.count("remove") == 2
    (counted,) = [each for each in table.table.head(None, APP).tagged if each.number == 4]
    assert (counted.rows, counted.removed) == (3, 2)
    table.write(5, spark.createDataFrame([(10, "n")], COLUMNS), load)
    assert "remove" not in [next(iter(action)) for action in table.log[4]]
    table.write(5, spark.createDataFrame([(10, "zombie")], COLUMNS), load)
    assert (len(table.log), _pairs(table)[1]) == (5, (10, "n"))


def test_versions_end_and_begin_in_a_commit_of_our_own(spark: SparkSession, tmp_path: Path) -> None:
    table, load, columns = Table(tmp_path / "t"), Scd2(("id",), "at"), "id long, at long, fact string"
    slices = [
        [(1, 1, "a"), (2, 1, "b"), (3, 1, "c"), (3, 5, "d")],
        [(4, 1, "x")],
        [(1, 3, "z"), (2, 2, "b"), (3, 5, "c"), (5, 9, "n")],
    ]
    for number, rows in enumerate(slices, 1):
        table.write(number, spark.createDataFrame(rows, columns), load)
    assert table.writers == ["own"] * 3
    found = table.query("id, fact, _valid_from, _valid_to, _is_current")
    assert sorted((tuple(row.values()) for row in found), key=str) == [
        (1, "a", 1, 3, False),
        (1, "z", 3, None, True),
        (2, "b", 1, None, True),
        (3, "c", 1, None, True),
        (4, "x", 1, None, True),
        (5, "n", 9, None, True),
    ]
    (counted,) = [each for each in table.table.head(None, APP).tagged if each.number == 3]
    assert (counted.rows, counted.removed) == (4, 3)


@pytest.mark.full
def test_what_a_change_by_keys_cannot_say_is_a_merge_of_delta(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = Table(tmp_path / "t")
    table.write(1, spark.createDataFrame([(1, "a"), (1, "b"), (2, "c")], COLUMNS))
    table.write(2, spark.createDataFrame([(1, "x")], COLUMNS), Upsert(("id",), ()))
    assert (table.writers[-1], _pairs(table)) == ("Delta", [(1, "x"), (1, "x"), (2, "c")])  # each row stays
    later = Upsert(("id",), (), guard=(ByValue("unit"),))
    table.write(3, spark.createDataFrame([(2, "b"), (3, "n")], COLUMNS), later)
    assert (table.writers[-1], _pairs(table)[2:]) == ("Delta", [(2, "c"), (3, "n")])  # what is later stays
    table.write(4, spark.createDataFrame([(2, "d")], COLUMNS), later)
    assert (table.writers[-1], _pairs(table)[2:]) == ("own", [(2, "d"), (3, "n")])
    monkeypatch.setattr(own_keys, "_MOST_FILES", 0)
    table.write(5, spark.createDataFrame([(2, "e")], COLUMNS), Upsert(("id",), ()))
    assert (table.writers[-1], _pairs(table)[2:]) == ("Delta", [(2, "e"), (3, "n")])


@pytest.mark.parametrize("key", ["İL", "a.b", "_metadata"])
@pytest.mark.each_case
def test_keys_are_found_by_any_name(spark: SparkSession, tmp_path: Path, key: str) -> None:
    table = Table(tmp_path / "t")
    columns = f"`{key}` string, at long"
    for number, rows in enumerate([[("x", 1), ("y", 1)], [("y", 2)]], 1):
        table.write(number, spark.createDataFrame(rows, columns), Scd2((key,), "at"))
    table.write(3, spark.createDataFrame([("z", 3), ("z", 4)], columns), Scd2((key,), "at"))
    assert table.writers == ["own"] * 3
    found = (
        spark.read.format("delta").load(str(table.folder)).select(f"`{key}`", "_valid_from", "_is_current")
    )
    assert sorted(map(tuple, found.collect())) == [("x", 1, True), ("y", 1, True), ("z", 3, True)]


@pytest.fixture
def two_versions(spark: SparkSession, tmp_path: Path) -> Table:
    """A table of two rows; a copy of it with the first alone lies beside it."""
    table = Table(tmp_path / "t")
    table.write(1, spark.createDataFrame([(1, "a")], COLUMNS))
    shutil.copytree(table.folder, tmp_path / "copy")
    table.write(2, spark.createDataFrame([(2, "b")], COLUMNS))
    return table


def _put_back(table: Table) -> None:
    """The copy's log takes the place of the table's."""
    shutil.copytree(table.folder.with_name("copy") / "_delta_log", table.folder / "_delta_log")


def _their_row(table: Table, number: int) -> None:
    """Another writer appends a row, or makes the table with it."""
    theirs = pa.table({"id": pa.array([number], pa.int64()), "unit": ["theirs"]})
    write_deltalake(str(table.folder), theirs, mode="append")


def _without_log_once_written(
    monkeypatch: pytest.MonkeyPatch, table: Table, then: Callable[[], None]
) -> None:
    """Have the table's log removed, and this happen, right after the files of the next write are there."""
    write = data_files.write_files

    def written(*arguments: Any, **more: Any) -> None:
        monkeypatch.setattr(own_commit, "write_files", write)
        write(*arguments, **more)
        shutil.rmtree(table.folder / "_delta_log")
        then()

    monkeypatch.setattr(own_commit, "write_files", written)


@pytest.mark.parametrize("key", [2, 9], ids=["changed", "new"])
def test_a_copy_of_the_table_that_has_grown_to_the_same_version_is_another_one(
    spark: SparkSession, two_versions: Table, monkeypatch: pytest.MonkeyPatch, key: int
) -> None:
    def grows() -> None:
        _put_back(two_versions)
        _their_row(two_versions, key)

    _without_log_once_written(monkeypatch, two_versions, grows)
    two_versions.write(3, spark.createDataFrame([(key, "c")], COLUMNS), Upsert(("id",), ()))
    assert _pairs(two_versions) == [(1, "a"), (key, "c")]


@pytest.mark.parametrize("act", ["restored", "made again", "removed"])
def test_keys_change_no_rows_in_a_table_that_took_the_place_of_theirs(
    spark: SparkSession, two_versions: Table, monkeypatch: pytest.MonkeyPatch, act: str
) -> None:
    def happens() -> None:
        if act == "restored":
            _put_back(two_versions)
        elif act == "made again":
            for number in range(4):
                _their_row(two_versions, number)

    _without_log_once_written(monkeypatch, two_versions, happens)
    with pytest.raises(TargetError, match="removed, made again or restored"):
        two_versions.write(3, spark.createDataFrame([(2, "c")], COLUMNS), Upsert(("id",), ()))
    if act == "removed":
        assert not (two_versions.folder / "_delta_log").exists()
    else:
        theirs = [(number, "theirs") for number in range(4)]
        assert _pairs(two_versions) == (theirs if act == "made again" else [(1, "a")])


@pytest.mark.parametrize("act", ["others", "written", "fenced"])
def test_rows_of_keys_that_come_meanwhile_are_changed_too_and_a_number_lands_once(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, act: str
) -> None:
    table, load, write = Table(tmp_path / "t"), Upsert(("id",), ()), data_files.write_files
    table.write(1, spark.createDataFrame([(1, "a")], COLUMNS))
    theirs = pa.table({"id": pa.array([2, 7], pa.int64()), "unit": ["theirs", "theirs"]})

    def happens() -> None:
        match act:
            case "others":
                write_deltalake(str(table.folder), theirs, mode="append")
            case "written":
                Table(table.folder).write(2, spark.createDataFrame([(2, "first")], COLUMNS), load)
            case _:
                fence = Tag(APP, 2, "fence", gives_up=True)
                DeltaLakeTable(Place(str(table.folder))).give_up(spark, fence, "{}", None)

    def written(*arguments: Any, **more: Any) -> None:
        write(*arguments, **more)
        monkeypatch.setattr(own_commit, "write_files", write)
        happens()

    monkeypatch.setattr(own_commit, "write_files", written)
    table.write(2, spark.createDataFrame([(2, "b")], COLUMNS), load)
    expected = {
        "others": [(1, "a"), (2, "b"), (7, "theirs")],
        "written": [(1, "a"), (2, "first")],
        "fenced": [(1, "a")],
    }
    assert _pairs(table) == expected[act]
    known = pa.table(DeltaTable(str(table.folder)).get_add_actions()).to_pylist()
    named = {path.partition("/")[0] for file in known if "/" in (path := file["path"])}
    removed = {
        action["remove"]["path"].partition("/")[0]
        for commit in table.log
        for action in commit
        if "remove" in action
    }
    assert set(table.folders) <= named | removed


def test_rows_beyond_what_is_replaced_leave_nothing(spark: SparkSession, tmp_path: Path) -> None:
    table = Table(tmp_path / "t")
    table.write(1, spark.range(10))
    before = table.folders
    for rows in (spark.range(5, 25), spark.sql("SELECT CAST(NULL AS BIGINT) AS id")):
        with pytest.raises(RowsRefused) as refused:
            table.write(2, rows, Replace(Between("id", 20, 30)))
        assert table.table.refuses_rows_outside(refused.value)
    assert (table.folders, len(table.log)) == (before, 1)


@pytest.mark.full
@pytest.mark.parametrize(
    ("asks", "reason"),
    [
        pytest.param("ALTER TABLE {t} ADD CONSTRAINT positive CHECK (id >= 0)", "the table sets delta.constraints.positive", id="constraint"),
        pytest.param("ALTER TABLE {t} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')", "the table has the feature columnMapping", id="column mapping"),
        pytest.param("ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableRowTracking' = 'true')", "the table has the feature domainMetadata, rowTracking", id="row tracking"),
        pytest.param("ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')", "the table has the feature changeDataFeed", id="change data feed"),
        pytest.param("ALTER TABLE {t} ALTER COLUMN id SET NOT NULL", "the rows have other columns or types than the table", id="not null"),
        pytest.param("ALTER TABLE {t} ADD COLUMN more INT", "the rows have other columns or types than the table", id="another column"),
    ],
)  # fmt: skip
def test_a_table_that_asks_more_is_left_to_delta_which_says_why(
    spark: SparkSession, tmp_path: Path, asks: str, reason: str
) -> None:
    table = Table(tmp_path / "t")
    if "NOT NULL" in asks:
        spark.sql(f"CREATE TABLE delta.`{table.folder}` (id BIGINT NOT NULL) USING delta")
    else:
        table.write(1, spark.range(2))
        spark.sql(asks.format(t=f"delta.`{table.folder}`"))
    before = len(table.log)
    table.write(2, spark.range(2, 4))
    table.write(2, spark.range(2, 4))
    assert (table.writers[before:], table.committed_by) == (["Delta"], f"Spark: {reason}")
    assert {2, 3} <= {row[0] for row in spark.read.format("delta").load(str(table.folder)).collect()}


def test_rows_of_another_type_are_left_to_delta(spark: SparkSession, tmp_path: Path) -> None:
    table = Table(tmp_path / "t")
    table.write(1, spark.range(1))
    with pytest.raises(AnalysisException, match="DELTA_FAILED_TO_MERGE_FIELDS"):
        table.write(2, spark.sql("SELECT 7 AS id"))
    assert (table.writers, len(table.folders)) == (["own"], 1)


@pytest.mark.full
def test_deltas_own_tools_go_on_with_the_table(spark: SparkSession, tmp_path: Path) -> None:
    table = Table(tmp_path / "t")
    for number in range(1, 13):
        table.write(number, spark.range(number, number + 1).coalesce(1))
    assert (table.folder / "_delta_log" / "_last_checkpoint").exists()
    left = table.folder / "0000000013-of-a-dead-process"
    left.mkdir()
    shutil.copy(next(table.folder.glob("0000000012-*/*.parquet")), left / "part-0.parquet")
    name = f"delta.`{table.folder}`"
    spark.sql(f"OPTIMIZE {name}").collect()
    session = spark.newSession() if hasattr(spark, "newSession") and not hasattr(spark, "client") else spark
    session.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    session.sql(f"VACUUM {name} RETAIN 0 HOURS").collect()
    assert [row["id"] for row in table.query("id")] == list(range(1, 13))
    assert not list(table.folder.glob("0000000013-*/*.parquet"))
    history = spark.sql(f"DESCRIBE HISTORY {name}").where("operation = 'WRITE'").collect()
    assert {row["operationMetrics"]["numOutputRows"] for row in history} == {"1"}
    table.write(13, spark.range(13, 14))
    spark.range(14, 15).write.format("delta").mode("append").save(str(table.folder))
    assert [row["id"] for row in table.query("id")] == list(range(1, 15))


@pytest.mark.parametrize("column", ["_day", ".day"])
def test_rows_of_hidden_looking_partitions_stay(spark: SparkSession, tmp_path: Path, column: str) -> None:
    table = Table(tmp_path / "t", (column,))
    for number in (1, 2):
        table.write(number, spark.sql(f"SELECT {number}L AS id, 'x' AS `{column}`"))
    assert table.writers == ["own", "own"]
    assert _spark_rows(spark, table.folder) == [(1, "x"), (2, "x")]


def test_versions_partitioned_by_currency_are_kept(spark: SparkSession, tmp_path: Path) -> None:
    table = Table(tmp_path / "t", ("_is_current",))
    table.write(1, spark.sql("SELECT 1L AS id, 'a' AS value, 1 AS at"), Scd2(("id",), "at"))
    assert _spark_rows(spark, table.folder) == [(1, "a", 1, 1, None, True)]


def test_columns_of_partitions_are_found_in_any_case(spark: SparkSession, tmp_path: Path) -> None:
    table = Table(tmp_path / "t", ("P",))
    for number in (1, 2):
        table.write(number, spark.sql(f"SELECT {number}L AS id, 'x' AS p"))
    assert table.writers == ["own", "own"]
    assert _spark_rows(spark, table.folder) == [(1, "x"), (2, "x")]


def test_partitions_by_bytes_are_left_to_delta(spark: SparkSession, tmp_path: Path) -> None:
    table = Table(tmp_path / "t", ("p",))
    rows = spark.sql("SELECT * FROM VALUES (1L, X'61'), (2L, X'62'), (3L, NULL) AS rows(id, p)").coalesce(1)
    table.write(1, rows)
    table.write(2, rows)
    assert table.writers == ["Delta", "Delta"]
    assert [row["id"] for row in table.query("id")] == [1, 1, 2, 2, 3, 3]


@pytest.mark.parametrize(
    ("partition_by", "kind", "value", "asked"),
    [
        (("p",), "INT", "1", "1"),
        ((), "DATE", "2026-01-01", "2026-01-01"),
        (("p",), "DOUBLE", "0.1", Decimal("0.1")),
    ],
)
def test_rows_of_a_value_that_is_given_as_another_type_are_replaced(
    spark: SparkSession, tmp_path: Path, partition_by: tuple[str, ...], kind: str, value: str, asked: Any
) -> None:
    table = Table(tmp_path / "t", partition_by)
    rows = spark.sql(f"SELECT id, CAST('{value}' AS {kind}) AS p FROM VALUES 1L, 2L AS rows(id)").coalesce(1)
    table.write(1, rows)
    table.write(2, rows.where("id = 1"), Replace(Among("p", (asked,))))
    assert [row["id"] for row in table.query("id")] == [1]


def test_a_dotted_column_is_no_field_of_a_struct(spark: SparkSession, tmp_path: Path) -> None:
    table = Table(tmp_path / "t")
    for number, (column, nested) in enumerate([(1, 100), (100, 1)], start=1):
        rows = f"SELECT {number}L AS id, {column} AS `a.b`, named_struct('b', {nested}) AS a"
        table.write(number, spark.sql(rows).coalesce(1))
    rows = "SELECT 3L AS id, 1 AS `a.b`, named_struct('b', 7) AS a"
    table.write(3, spark.sql(rows), Replace(Among("a.b", (1,))))
    assert [row["id"] for row in table.query("id")] == [2, 3]


def test_a_null_in_a_required_field_is_left_to_delta(spark: SparkSession, tmp_path: Path) -> None:
    table = Table(tmp_path / "t")
    spark.sql(f"CREATE TABLE delta.`{table.folder}` (id BIGINT, s STRUCT<a: INT NOT NULL>) USING delta")
    with pytest.raises(PySparkException, match="DELTA_NOT_NULL_CONSTRAINT_VIOLATED"):
        table.write(1, spark.sql("SELECT 1L AS id, named_struct('a', CAST(NULL AS INT)) AS s"))
    assert _spark_rows(spark, table.folder) == []


# What follows needs no engine: rows are Arrow's.


def test_bounds_of_long_decimals_are_not_trusted_since_other_writers_round_them(tmp_path: Path) -> None:
    value = Decimal("0.123456789012345678")
    write_deltalake(str(tmp_path), pa.table({"d": pa.array([value], pa.decimal128(38, 18))}))
    (file,) = pa.table(DeltaTable(str(tmp_path)).get_add_actions(flatten=True)).to_pylist()
    load = Replace(Between("d", Decimal("0.123456789012345679"), None))
    assert match_of(load.where, extents_of(file, load.where)) is not Match.ALL


def _rows(*ids: int) -> Rows:
    return Rows(pa.Table.from_pylist([{"id": each} for each in ids], schema=SCHEMA))


class _Interrupted(ArrowTable):
    """A table that something happens to right before the next commit, or while the rows of the next one are written."""

    happens: Callable[[], None] | None = None
    meanwhile: Callable[[], None] | None = None

    def write(self, rows: Any, *given: Any, **named: Any) -> None:
        meanwhile, self.meanwhile = self.meanwhile, None
        super().write(cast("DataFrame", _Slow(rows.table, meanwhile=meanwhile)), *given, **named)

    def hear(self, when: str, write: Any) -> None:
        happens, self.happens = self.happens, None
        if happens:
            happens()


@dataclass(frozen=True)
class _Slow(Rows):
    """Rows that take a while to be written."""

    meanwhile: Callable[[], None] | None = None

    @property
    def write(self) -> Writer:
        if self.meanwhile:
            self.meanwhile()
        return super().write


@pytest.fixture
def interrupted(tmp_path: Path) -> Table:
    table = Table(tmp_path / "t", kind=_Interrupted)
    table.write(1, _rows(1))
    return table


def _happens(table: Table, happens: Callable[[], None]) -> None:
    assert isinstance(table.table, _Interrupted)
    table.table.happens = happens


def _happens_meanwhile(table: Table, happens: Callable[[], None]) -> None:
    assert isinstance(table.table, _Interrupted)
    table.table.meanwhile = happens


def _ids(table: Table) -> list[int]:
    return [row["id"] for row in table.query("id")]


def test_a_version_that_another_writer_takes_first_costs_a_second_look(interrupted: Table) -> None:
    _happens(interrupted, lambda: write_deltalake(str(interrupted.folder), _rows(77).table, mode="append"))
    interrupted.write(2, _rows(2))
    assert _ids(interrupted) == [1, 2, 77]
    assert interrupted.table.head(None, APP).find_tagged_commit(2).version == 2  # type: ignore[union-attr]


def test_a_number_that_is_taken_in_the_meantime_is_not_written_again(interrupted: Table) -> None:
    other = Table(interrupted.folder, kind=ArrowTable)
    _happens(interrupted, lambda: other.write(2, _rows(2)))
    interrupted.write(2, _rows(2))
    assert (_ids(interrupted), len(interrupted.log), len(interrupted.folders)) == ([1, 2], 2, 2)


def test_a_higher_number_that_lands_in_the_meantime_fences_a_write(interrupted: Table) -> None:
    other = ArrowTable(Place(str(interrupted.folder)))
    fence = Tag(APP, 3, "fence", gives_up=True)
    _happens(interrupted, lambda: other.give_up(None, fence, "{}", None))  # type: ignore[arg-type]
    interrupted.write(2, _rows(2))
    assert (_ids(interrupted), len(interrupted.folders)) == ([1], 1)


def test_columns_that_change_in_the_meantime_are_left_to_delta(interrupted: Table) -> None:
    more = pa.table({"id": [77], "_source_file": ["f"], "more": ["m"]})
    _happens(
        interrupted,
        lambda: write_deltalake(str(interrupted.folder), more, mode="append", schema_mode="merge"),
    )
    interrupted.write(2, _rows(2))
    assert _ids(interrupted) == [1, 2, 77]
    assert len(interrupted.folders) == 1


@pytest.mark.parametrize("made_again", [False, True], ids=["removed", "made again"])
def test_a_table_removed_meanwhile_is_not_made_again(interrupted: Table, made_again: bool) -> None:
    def damage() -> None:
        shutil.rmtree(interrupted.folder)
        if made_again:
            write_deltalake(str(interrupted.folder), _rows(77).table)

    _happens_meanwhile(interrupted, damage)
    with pytest.raises(TargetError, match="removed, made again or restored"):
        interrupted.write(2, _rows(2))
    assert interrupted.folders == []
    assert _ids(interrupted) == [77] if made_again else not (interrupted.folder / "_delta_log").exists()


def test_a_table_that_is_restored_from_a_copy_in_the_meantime_is_not_written_to(interrupted: Table) -> None:
    copy = interrupted.folder.with_name("copy")
    shutil.copytree(interrupted.folder, copy)
    interrupted.write(2, _rows(2))

    def damage() -> None:
        shutil.rmtree(interrupted.folder)
        shutil.copytree(copy, interrupted.folder)

    _happens_meanwhile(interrupted, damage)
    with pytest.raises(TargetError, match="removed, made again or restored"):
        interrupted.write(3, _rows(3))
    assert _ids(interrupted) == [1]


def test_a_table_that_somebody_else_makes_first_is_refused(tmp_path: Path) -> None:
    table = Table(tmp_path / "t", kind=_Interrupted)
    _happens(table, lambda: write_deltalake(str(table.folder), _rows(77).table))
    with pytest.raises(RowsRefused, match="expected no table"):
        table.write(1, _rows(1))
    assert (_ids(table), table.folders) == ([77], [])


def test_of_many_writers_at_once_each_lands_once(tmp_path: Path) -> None:
    folder = tmp_path / "t"
    Table(folder, kind=ArrowTable).write(1, _rows(0))

    def writer(number: int) -> None:
        table = Table(folder, kind=ArrowTable)
        for each in range(1, 4):
            # Two writers have each app id, as a run and the recovery of the same run have.
            table.write(each, _rows(100 * (number % 3) + each), app=f"app {number % 3}")

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(writer, range(6)))
    table = Table(folder)
    assert _ids(table) == sorted([0, *(100 * app + each for app in range(3) for each in range(1, 4))])
    assert len(table.folders) == 10


def test_a_log_that_takes_no_write_keeps_files(interrupted: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(self: OwnCommit, table: Any, change: Change, removals: Any) -> None:
        raise OSError("No space left on device")

    before = interrupted.folders
    monkeypatch.setattr(OwnCommit, "_commit", refused)
    with pytest.raises(TargetError, match="its log cannot be written: No space left on device"):
        interrupted.write(2, _rows(2))
    assert len(interrupted.folders) == len(before) + 1


def test_a_commit_that_nobody_can_look_up_stays(interrupted: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    commit, look = OwnCommit._commit, DeltaLog.table

    def lost(self: OwnCommit, table: Any, change: Change, removals: Any) -> None:
        commit(self, table, change, removals)
        monkeypatch.setattr(DeltaLog, "table", unread)
        raise OSError("no answer")

    def unread(self: DeltaLog, version: int | None = None) -> Any:
        monkeypatch.setattr(DeltaLog, "table", look)
        raise TargetError("the log cannot be read")

    monkeypatch.setattr(OwnCommit, "_commit", lost)
    with pytest.raises(TargetError, match="the log cannot be read"):
        interrupted.write(2, _rows(2))
    assert _ids(interrupted) == [1, 2]


def test_texts_beyond_basic_letters_are_found_by_bounds(spark: SparkSession, tmp_path: Path) -> None:
    texts = ["\U0001f600", "a" * 40, "\U0010ffff" * 20, "\U00020bb7"]
    table = Table(tmp_path / "t")
    for number, text in enumerate(texts, 1):
        table.write(number, spark.createDataFrame([(number, text)], "id long, s string"))
    assert set(table.writers) == {"own"}
    there = DeltaLakeTable(Place(str(tmp_path / "t")))
    for text in texts:
        assert there.contents.holds_any(len(texts) - 1, Among("s", (text,))), text
        assert (
            there.contents.read(spark, len(texts) - 1, Among("s", (text,))).where(f"s = '{text}'").count()
            == 1
        )
    table.write(
        9,
        spark.createDataFrame([(9, "\U0001f600")], "id long, s string"),
        Replace(Among("s", ("\U0001f600",))),
    )
    assert sorted(row["id"] for row in table.query("id")) == [2, 3, 4, 9]
