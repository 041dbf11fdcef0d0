"""Strandline's own commits, by the rules that hold for every format of tables which has them (docs/explanation/adr/0016, docs/explanation/adr/0032).

What only one format has stands in ``test_delta_own_commits.py`` and ``test_iceberg_own_commits.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from partitions.errors import RowsRefused, TargetError
from partitions.loads import Append, Load, OrderByColumn, Replace, ReplaceKeys, Scd2, Upsert
from partitions.predicate import Among, Between
from resources.tables.contract.commits import Tag
from tests.support.lakes import APP, LAKES, LOST, DeltaLake, IcebergLake, Lake, Moment, lake_in

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EVERY_COLUMN = (
    "yes boolean, tiny byte, whole int, long long, single float, double double, small decimal(9,2), large decimal(18,0), huge decimal(38,10),"
    " day date, at timestamp, local timestamp_ntz, text string, bytes binary, nested struct<a: int, b: struct<c: string, d: decimal(5,1)>>"
)
local = datetime.fromisoformat
EVERY_VALUE: list[tuple[Any, ...]] = [
    (True, -128, -(2**31), -(2**63), 1.5, 2.5, Decimal("-9999999.99"), Decimal(10**17), Decimal("1e-10"),
     date(1582, 10, 4), local("1969-12-31 23:59:59.999999"), local("1900-01-01"), "ä\U0001f600" * 20, b"\xff" * 40,
     {"a": 1, "b": {"c": "x", "d": Decimal("0.1")}}),
    (False, 127, 2**31 - 1, 2**63 - 1, float("nan"), float("inf"), Decimal("0.01"), Decimal(-1), Decimal("9" * 28 + ".5"),
     date(9999, 12, 31), local("2026-01-01 12:00"), local("2026-01-01 12:00:00.000001"), "", b"", {"a": None, "b": None}),
    (None,) * 15,
]  # fmt: skip
PAIRS = "id long, unit string"
HISTORY = "id long, at long, fact string"
UPSERT, VERSIONS = Upsert(("id",), ()), Scd2(("id",), "at")

MOMENTS = pytest.mark.parametrize("moment", ["files written", "before the commit"])


@pytest.fixture(params=list(LAKES))
def lake(
    request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Lake:
    made: Lake = lake_in(request.param, spark, tmp_path, monkeypatch)
    return made


@pytest.mark.full
def test_values_of_every_type_are_read_back_and_found_by_their_bounds(lake: Lake) -> None:
    lake.append(1, columns=EVERY_COLUMN)
    lake.append(2, *EVERY_VALUE, columns=EVERY_COLUMN)
    assert lake.own == [True]
    contents = lake.table().contents
    read = contents.read(lake.spark, contents.newest_version())
    assert sorted(map(str, read.collect())) == sorted(
        map(str, lake.frame(EVERY_VALUE, EVERY_COLUMN).collect())
    )
    by_other = [tuple(row.values()) for row in lake.other_rows(["whole", "huge", "at", "local", "nested"])]
    for row in EVERY_VALUE:
        instant = row[10] and row[10].replace(tzinfo=UTC)
        assert (row[2], row[8], instant, row[11], row[14]) in by_other
    at_bounds = " UNION ALL ".join(
        f"SELECT '{name}' AS name, count(*) AS n FROM {{t}} WHERE {name} = (SELECT {bound}({name}) FROM {{t}})"
        for name in read.columns
        for bound in ("max", "min")
    )
    assert [row["name"] for row in lake.sql(at_bounds) if row["n"] != 1] == []


def test_texts_beyond_basic_letters_are_found_by_bounds(lake: Lake) -> None:
    texts = ["\U0001f600", "a" * 40, "\U0010ffff" * 20, "\U00020bb7"]
    for number, text in enumerate(texts, 1):
        lake.append(number, (number, text), columns=PAIRS)
    contents = lake.table().contents
    newest = contents.newest_version()
    for text in texts:
        asked = Among("unit", (text,))
        assert contents.holds_any(newest, asked), text
        assert contents.read(lake.spark, newest, asked).where(f"unit = '{text}'").count() == 1
    lake.replace(9, Among("unit", (texts[0],)), (9, texts[0]), columns=PAIRS)
    assert (lake.own, lake.ids) == ([True] * 4, [2, 3, 4, 9])


_NO_PLAIN_TYPE = "is required, or has a type that plain files do not hold"
_OTHER_COLUMNS = "the rows have other columns or types than the table"


@pytest.mark.parametrize(
    ("lake", "columns", "change", "reason"),
    [
        pytest.param("delta", "id long", "ALTER TABLE {t} ADD CONSTRAINT positive CHECK (id >= 0)", "the table sets delta.constraints.positive", id="delta-constraint", marks=pytest.mark.full),
        pytest.param("delta", "id long", "ALTER TABLE {t} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')", "the table has the feature columnMapping", id="delta-column mapping", marks=pytest.mark.full),
        pytest.param("delta", "id long", "ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableRowTracking' = 'true')", "the table has the feature domainMetadata, rowTracking", id="delta-row tracking", marks=pytest.mark.full),
        pytest.param("delta", "id long", "ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')", "the table has the feature changeDataFeed", id="delta-change data feed", marks=pytest.mark.full),
        pytest.param("delta", "id long", "CREATE TABLE {t} (id BIGINT NOT NULL) USING delta", _OTHER_COLUMNS, id="delta-not null", marks=pytest.mark.full),
        pytest.param("delta", "id long", "ALTER TABLE {t} ADD COLUMN more INT", _OTHER_COLUMNS, id="delta-another column", marks=pytest.mark.full),
        pytest.param("iceberg", "id long, many array<int>", "", f"column many {_NO_PLAIN_TYPE}", id="iceberg-list"),
        pytest.param("iceberg", "id long, pairs map<string, int>", "", f"column pairs {_NO_PLAIN_TYPE}", id="iceberg-map"),
        pytest.param("iceberg", "id long", "ALTER TABLE {t} WRITE ORDERED BY id", "the table has a sort order", id="iceberg-sorted"),
        pytest.param("iceberg", "id long", "ALTER TABLE {t} ADD PARTITION FIELD bucket(4, id)", "the table is partitioned", id="iceberg-partitioned"),
        pytest.param("iceberg", "id long", "ALTER TABLE {t} SET TBLPROPERTIES ('write.parquet.bloom-filter-enabled.column.id' = 'true')", "the table sets write.parquet.bloom-filter-enabled.column.id", id="iceberg-property"),
        pytest.param("iceberg", "id long", "ALTER TABLE {t} SET TBLPROPERTIES ('format-version' = '3')", "the table has format version 3", id="iceberg-version 3"),
    ],
    indirect=["lake"],
)  # fmt: skip
def test_what_asks_more_of_a_writer_lands_once_by_spark_which_says_why(
    lake: Lake, columns: str, change: str, reason: str
) -> None:
    more = (None,) * columns.count(",", 0, columns.find("<") if "<" in columns else None)
    if not change.startswith("CREATE"):
        lake.append(1, (1, *more), columns=columns)
    if change:
        lake.sql(change)
    before = lake.ids
    for _ in range(2):
        lake.append(2, (2, *more), columns=columns)
    assert (lake.ids, lake.strays) == ([*before, 2], set())
    assert lake.committed_by == f"Spark: {reason}"


def test_files_are_replaced_whole_or_in_part(lake: Lake) -> None:
    for number, ids in enumerate([(1, 2), (3, 4), (5,), (6, 7)], 1):
        lake.append(number, *((each,) for each in ids))
    lake.replace(5, Between("id", 2, 6), (3,), (3,), (5,))
    assert (lake.own[-1], lake.ids, lake.strays) == (True, [1, 3, 3, 5, 6, 7], set())
    # Of the first file a row is copied, the next two go as a whole.
    assert lake.removed_files == 3
    assert lake.counts(5) == (3, 4)
    lake.replace(6, Between("id", 40, 50), (40,))
    lake.append(7, (60,))
    lake.replace(8, Between("id", 60, 61))  # by nothing
    assert (lake.own[-3:], lake.ids, lake.strays) == ([True] * 3, [1, 3, 3, 5, 6, 7, 40], set())
    assert [lake.counts(number) for number in (6, 8)] == [(1, 0), (0, 1)]


def test_rows_outside_of_what_is_replaced_are_refused_and_leave_nothing(lake: Lake) -> None:
    lake.append(1, (1,), (2,))
    for rows in ([(2,), (4,)], [(None,)]):
        with pytest.raises(
            RowsRefused, match="1 rows lie outside the part of the table that the slice replaces"
        ) as refused:
            lake.replace(2, Between("id", 2, 3), *rows)
        assert lake.table().refuses_rows_outside(refused.value)
        assert (lake.ids, lake.strays) == ([1, 2], set())


@pytest.mark.parametrize("load", [UPSERT, ReplaceKeys(("id",))], ids=["upsert", "replace keys"])
def test_a_change_by_keys_leaves_files_without_them(lake: Lake, load: Load) -> None:
    lake.append(1, (1, "a"), (None, "b"), (2, "c"), columns=PAIRS)
    lake.append(2, (3, "d"), (4, "e"), columns=PAIRS)
    lake.append(3, (5, "f"), columns=PAIRS)
    lake.load(4, load, (None, "x"), (3, "y"), (9, "z"), columns=PAIRS)
    assert (lake.own, lake.removed_files, lake.strays) == ([True] * 3, 2, set())
    changed = [(1, "a"), (2, "c"), (3, "y"), (4, "e"), (5, "f"), (9, "z"), (None, "x")]
    assert lake.rows() == changed
    assert sorted((tuple(row.values()) for row in lake.other_rows(["id", "unit"])), key=str) == changed
    tagged = lake.tagged(4)
    assert (tagged.rows, tagged.removed, tagged.uncounted) == (3, 2, False)
    for unit in ("n", "of a number that is taken"):
        lake.load(5, load, (10, unit), columns=PAIRS)
    assert (lake.own[-1], lake.removed_files, lake.rows()[1]) == (True, 0, (10, "n"))
    assert lake.counts(5) == (1, 0)


def test_versions_end_and_begin_in_one_commit(lake: Lake) -> None:
    lake.load(1, VERSIONS, (1, 1, "a"), (2, 1, "b"), (3, 1, "c"), (3, 5, "d"), columns=HISTORY)
    lake.load(2, VERSIONS, (4, 1, "x"), columns=HISTORY)
    lake.load(3, VERSIONS, (1, 3, "z"), (2, 2, "b"), (3, 5, "c"), (5, 9, "n"), columns=HISTORY)
    assert (lake.own, lake.strays) == ([True, True], set())
    assert lake.rows("id, fact, _valid_from, _valid_to, _is_current") == [
        (1, "a", 1, 3, False),
        (1, "z", 3, None, True),
        (2, "b", 1, None, True),
        (3, "c", 1, None, True),
        (4, "x", 1, None, True),
        (5, "n", 9, None, True),
    ]
    tagged = lake.tagged(3)
    assert (tagged.rows, tagged.removed, tagged.uncounted) == (4, 3, False)
    lake.load(4, VERSIONS, (1, 3, "y"), columns=HISTORY)  # another value for the same time
    assert (lake.own[-1], lake.rows("id, fact, _valid_to")[1]) == (True, (1, "y", None))


@pytest.mark.full
def test_what_a_change_by_keys_cannot_say_is_a_merge_of_spark(lake: Lake) -> None:
    later = Upsert(("id",), (), guard=(OrderByColumn("unit"),))
    lake.append(1, (1, "a"), (1, "b"), (2, "c"), columns=PAIRS)
    lake.load(2, UPSERT, (1, "x"), columns=PAIRS)
    assert (lake.own[-1], lake.rows()) == (False, [(1, "x"), (1, "x"), (2, "c")])  # each row of a key stays
    lake.load(3, later, (1, "a"), (2, "z"), columns=PAIRS)
    assert (lake.own[-1], lake.rows()) == (False, [(1, "x"), (1, "x"), (2, "z")])  # what is later stays
    lake.load(4, ReplaceKeys(("id",)), (1, "k"), (1, "l"), columns=PAIRS)
    assert (lake.own[-1], lake.rows()) == (True, [(1, "k"), (1, "l"), (2, "z")])
    lake.load(5, later, (2, "z"), (3, "c"), columns=PAIRS)
    assert (lake.own[-1], lake.rows()[2:]) == (True, [(2, "z"), (3, "c")])
    lake.load(6, Upsert(("id",), (), where=Among("unit", ("l",))), (2, "y"), columns=PAIRS)
    assert (lake.own[-1], lake.rows()) == (False, [(1, "k"), (2, "y"), (3, "c")])
    lake.load(7, later, (2, "x"), (9, "n"), columns=PAIRS)
    assert (lake.own[-1], lake.rows()[1:]) == (False, [(2, "y"), (3, "c"), (9, "n")])
    assert lake.strays == set()


@pytest.mark.full
@pytest.mark.parametrize("key", ["İL", "a.b", "_metadata"])
@pytest.mark.each_case
def test_keys_are_found_by_any_name(lake: Lake, key: str) -> None:
    load, columns = Scd2((key,), "at"), f"`{key}` string, at long"
    for number, rows in enumerate([[("x", 1), ("y", 1)], [("y", 2)], [("z", 3), ("z", 4)]], 1):
        lake.load(number, load, *rows, columns=columns)
    # An Iceberg commit that changes no file is Spark's to make.
    assert lake.own == [isinstance(lake, DeltaLake), True]
    assert lake.rows(f"`{key}`, _valid_from, _is_current") == [("x", 1, True), ("y", 1, True), ("z", 3, True)]


def test_only_rows_of_its_own_share_are_changed_by_keys(lake: Lake) -> None:
    for number, name in enumerate("xyx", 1):
        rows = lake.frame([(1, f"{number}", name)], f"{PAIRS}, _dataflow string")
        base = lake.table().tip(name).version
        lake.table().share_of(name).write(rows, UPSERT, Tag(name, number, "o"), "1", base=base)
    assert lake.rows("_dataflow, unit") == [("x", "3"), ("y", "2")]
    writers = [lake.table().head(None, name).tagged_commits[-1].committed_by for name in "xy"]
    assert all(writer.startswith("Strandline") for writer in writers)


LOADS: dict[str, Load] = {"append": Append(), "replace": Replace(Between("id", 2, 4)), "by keys": UPSERT}


@MOMENTS
@pytest.mark.parametrize("kind", LOADS)
def test_what_others_commit_meanwhile_stays_and_is_loaded_over(lake: Lake, moment: Moment, kind: str) -> None:
    lake.append(1, (1, "a"), (3, "old"), columns=PAIRS)
    lake.interrupt(moment, lambda: lake.insert((2, "theirs"), (77, "theirs")))
    lake.load(2, LOADS[kind], (2, "b"), (3, "c"), columns=PAIRS)
    kept = [(2, "theirs"), (3, "old")] if kind == "append" else []
    assert lake.rows() == sorted([(1, "a"), *kept, (2, "b"), (3, "c"), (77, "theirs")], key=str)
    assert (lake.strays, lake.tagged(2).rows) == (set(), 2)
    assert lake.own == [kind == "append" or isinstance(lake, IcebergLake)]


@MOMENTS
@pytest.mark.parametrize("act", ["written", "fenced", "fenced above"])
@pytest.mark.parametrize("kind", LOADS)
def test_a_number_that_is_taken_meanwhile_is_not_written_again(
    lake: Lake, moment: Moment, kind: str, act: str
) -> None:
    acts: dict[str, Callable[[], None]] = {
        "written": lambda: lake.append(2, (9, "first"), columns=PAIRS),
        "fenced": lambda: lake.fence(2),
        "fenced above": lambda: lake.fence(3),
    }
    lake.append(1, (1, "a"), (2, "b"), columns=PAIRS)
    lake.interrupt(moment, acts[act])
    lake.load(2, LOADS[kind], (2, "c"), columns=PAIRS)
    first = [(9, "first")] if act == "written" else []
    assert (lake.rows(), lake.strays) == ([(1, "a"), (2, "b"), *first], set())


@MOMENTS
def test_columns_that_change_meanwhile_are_filled_by_spark(lake: Lake, moment: Moment) -> None:
    lake.append(1, (1,))
    lake.interrupt(moment, lambda: lake.sql("ALTER TABLE {t} ADD COLUMN more int"))
    lake.append(2, (2,))
    assert (lake.own, lake.ids, lake.strays) == ([False], [1, 2], set())


@pytest.mark.parametrize("moment", ["before the files", "files written"])
@pytest.mark.parametrize("kind", LOADS)
def test_a_table_made_again_takes_nothing_of_a_write_begun_before(
    lake: Lake, moment: Moment, kind: str
) -> None:
    lake.append(1, (1, "a"), (2, "b"), columns=PAIRS)
    lake.interrupt(moment, lake.make_again)
    gone = (
        "removed, recreated or restored|dropped and recreated|expected the files that Spark has just written"
    )
    # Rows that stay of a file are read when files are written, and Spark does not find it.
    with pytest.raises(Exception, match=f"{gone}|PATH_NOT_FOUND"):
        lake.load(2, LOADS[kind], (2, "c"), columns=PAIRS)
    assert (lake.ids, lake.strays) == ([7], set())


@pytest.mark.parametrize("landed", [True, False], ids=["after it landed", "before"])
def test_a_lost_answer_is_looked_up_and_the_retry_lands_once(lake: Lake, landed: bool) -> None:
    lake.append(1, (1,))
    with lake.losing_answers(landed=landed):
        if landed:
            lake.append(2, (2,))
        else:
            with pytest.raises(TargetError, match=LOST) as failed:
                lake.append(2, (2,))
            assert isinstance(lake, IcebergLake) or "its log cannot be written" in str(failed.value)
            assert len(lake.strays) == 1  # the commit may come later
    lake.append(2, (2,))
    assert lake.ids == [1, 2]


@pytest.mark.parametrize("load", [Append(), Replace(Between("id", 2, 3))], ids=["append", "replace"])
@pytest.mark.each_case
def test_a_commit_that_landed_although_nothing_tells_keeps_its_files(lake: Lake, load: Load) -> None:
    lake.append(1, (1,), (2,))
    rows = lake.frame([(2,)], "id long").coalesce(1)
    with lake.losing_answers(landed=True, unreadable=True), pytest.raises(TargetError, match=LOST):
        lake.write(2, rows, load)
    expected = [1, 2, 2] if isinstance(load, Append) else [1, 2]
    assert lake.ids == expected
    lake.write(2, rows, load)
    assert (lake.ids, lake.table().tip(APP).highest_tag) == (expected, 2)
