"""Rows that differ are repaired in one commit: the table has what the source has when the repair reads it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from partitions.errors import Conflict
from resources.reconcile.options import ReconcileOptions
from resources.reconcile.repairing import plan_repair, repair
from resources.spark.engine import SparkEngine
from scripts.postgres import Postgres
from tests.support.columns import Columns
from tests.support.databases import DatabaseRows, at, rows_of
from tests.support.feed import NOW
from tests.support.mariadb import MariaDB
from tests.support.reconciled import by_hand, ids_of, reasons, reconciled, repaired

pytestmark = pytest.mark.postgres

UPSERT = {"load": "merge_upsert", "merge_keys": ["id"]}
SCD2 = {"load": "scd2", "merge_keys": ["id"], "effective_column": "at"}


@pytest.fixture(params=["postgres", "mariadb"])
def rows(request: pytest.FixtureRequest) -> DatabaseRows:
    """A table of each database."""
    return rows_of(cast("Postgres | MariaDB", request.getfixturevalue(request.param)))


def source_rows(rows: DatabaseRows) -> list[tuple[Any, ...]]:
    """All rows of the source, sorted, without their times."""
    return sorted((int(row[0]), row[1]) for row in rows.ask(f"SELECT id, filler FROM {rows.name}"))


def damage(rows: DatabaseRows, flow: Columns) -> None:
    """Lose, double and change rows of the table by hand; delete and rename rows of the source."""
    run = by_hand(flow)
    run("DELETE FROM {t} WHERE id IN (7, 8)")
    run("INSERT INTO {t} SELECT * FROM {t} WHERE id = 20")
    run("UPDATE {t} SET filler = 'other' WHERE id = 30")
    rows.ask(f"DELETE FROM {rows.name} WHERE id = 40")
    rows.ask(f"UPDATE {rows.name} SET id = 900 WHERE id = 41")


@pytest.mark.each_case
@pytest.mark.parametrize("table_format", ["delta", "iceberg"])
def test_a_repair_makes_the_table_what_the_source_has_in_one_entry(
    rows: DatabaseRows, tmp_path: Path, engine: SparkEngine, table_format: str
) -> None:
    rows.fill(50)
    flow = rows.flow(tmp_path, engine, target={**UPSERT, "format": table_format})
    flow.run()
    damage(rows, flow)
    before = flow.watermark
    document = repaired(flow, "--rows")
    assert ids_of(document) == {"missing": [7, 8, 900], "extra": [20, 40, 41], "different": [30]}
    entry = document["repair"]["entry"]
    assert (entry["why"], entry["reason"]) == (
        "reconcile",
        "because (3 rows missing, 3 rows extra, 1 row different)",
    )
    assert (document["repair"]["complete"], document["repair"]["rows"]) == (True, 5)
    assert reasons(flow) == ["run", "reconcile"]
    assert flow.watermark == before
    assert sorted(flow.feed.rows("id", "filler")) == source_rows(rows)
    assert reconciled(flow, "--rows")["equal"] is True
    assert repaired(flow, "--rows")["repair"] is None
    rows.fill(2, first=60)
    flow.run()
    assert sorted(flow.feed.rows("id", "filler")) == source_rows(rows)


def test_a_key_that_changes_after_the_comparison_gets_what_the_source_has(
    postgres: Postgres, tmp_path: Path, engine: SparkEngine
) -> None:
    rows = rows_of(postgres)
    rows.fill(20)
    flow = rows.flow(tmp_path, engine, target=UPSERT)
    flow.run()
    run = by_hand(flow)
    run("DELETE FROM {t} WHERE id IN (1, 2, 3)")
    run("UPDATE {t} SET filler = 'other' WHERE id IN (4, 5)")
    rows.ask(f"DELETE FROM {rows.name} WHERE id IN (6, 7, 8)")
    options = ReconcileOptions(rows=True, repairs="all")
    platform, dataflow = flow.feed.platform, flow.feed.dataflow
    plan = plan_repair(platform, dataflow, options, NOW)
    rows.ask(f"DELETE FROM {rows.name} WHERE id = 1")  # missing, and gone meanwhile
    rows.ask(f"UPDATE {rows.name} SET filler = 'new' WHERE id = 2")  # missing, and another meanwhile
    rows.ask(f"UPDATE {rows.name} SET at = '{at(90).isoformat()}' WHERE id IN (3, 4)")  # for the next run
    rows.ask(f"INSERT INTO {rows.name} VALUES (6, '{at(6).isoformat()}', 'back')")  # extra, and back
    rows.ask(
        f"INSERT INTO {rows.name} VALUES (7, '{at(91).isoformat()}', 'later')"
    )  # back above the watermark
    flow.run()  # a live run is faster; it loads what is above
    rows.ask(f"UPDATE {rows.name} SET at = '{at(95).isoformat()}', filler = 'last' WHERE id = 5")
    outcome = repair(platform, plan, "because", NOW)
    assert outcome.error is None
    assert reasons(flow) == ["run", "run", "reconcile"]
    assert ("other",) in flow.feed.rows("filler")  # the next run loads key 5
    assert reconciled(flow, "--rows")["equal"] is True
    flow.run()
    assert sorted(flow.feed.rows("id", "filler")) == source_rows(rows)


def test_a_repair_deletes_only_keys_that_the_comparison_missed_at_the_source(
    postgres: Postgres, tmp_path: Path, engine: SparkEngine
) -> None:
    rows = rows_of(postgres)
    rows.fill(4)
    flow = rows.flow(tmp_path, engine, target=UPSERT)
    flow.run()
    by_hand(flow)("UPDATE {t} SET filler = 'other' WHERE id IN (1, 2)")
    rows.ask(f"DELETE FROM {rows.name} WHERE id = 3")
    platform, dataflow = flow.feed.platform, flow.feed.dataflow
    plan = plan_repair(platform, dataflow, ReconcileOptions(rows=True, repairs="all"), NOW)
    rows.ask(f"DELETE FROM {rows.name} WHERE id = 1")  # as if the read found no row of it
    assert repair(platform, plan, "because", NOW).error is None
    assert flow.ids == [1, 2, 4]
    assert ids_of(repaired(flow, "--rows"))["extra"] == [1]
    assert sorted(flow.feed.rows("id", "filler")) == source_rows(rows)


@pytest.mark.remedy("conflict", "reconcile")
@pytest.mark.remedy("reload_pending", "run")
def test_a_repair_ends_with_a_conflict_after_a_decision(
    postgres: Postgres, tmp_path: Path, engine: SparkEngine
) -> None:
    rows = rows_of(postgres)
    rows.fill(3)
    flow = rows.flow(tmp_path, engine, target=UPSERT)
    flow.run()
    rows.fill(2, first=4)
    flow.run()
    rows.ask(f"DELETE FROM {rows.name} WHERE id = 2")
    platform, dataflow = flow.feed.platform, flow.feed.dataflow
    plan = plan_repair(platform, dataflow, ReconcileOptions(repairs="all"), NOW)
    flow.feed.decide("rewind", "--to", "0")
    with pytest.raises(Conflict, match=r"found entry 3 \(rewind\) since"):
        repair(platform, plan, "because", NOW)
    flow.run()
    flow.feed.decide("rewind", "--to", "1", "--replace")
    command = ("reconcile", "flow", "--repair", "--reason", "because", "--yes")
    refused = flow.feed.cli(*command)
    assert (refused.code, refused.error["code"]) == (4, "reload_pending")
    assert flow.ids == [1, 2, 3, 4, 5]
    flow.run()
    assert flow.feed.command(*command).json["dataflows"][0]["repair"]["complete"]
    assert flow.ids == [1, 3, 4, 5]


@pytest.mark.each_case
@pytest.mark.parametrize("table_format", ["delta", "iceberg"])
def test_a_repair_of_versions_corrects_the_current_one_and_ends_extra_keys(
    postgres: Postgres, tmp_path: Path, engine: SparkEngine, table_format: str
) -> None:
    rows = rows_of(postgres)
    rows.fill(8)
    flow = rows.flow(tmp_path, engine, target={**SCD2, "format": table_format})
    flow.run()
    rows.ask(f"UPDATE {rows.name} SET at = '{at(20).isoformat()}', filler = 'new' WHERE id IN (2, 3)")
    flow.run()
    run = by_hand(flow)
    run("DELETE FROM {t} WHERE id = 4")  # lost
    run("UPDATE {t} SET filler = 'other' WHERE id = 5")  # changed
    rows.ask(f"DELETE FROM {rows.name} WHERE id = 6")
    rows.ask(f"UPDATE {rows.name} SET at = '{at(10).isoformat()}', filler = 'older' WHERE id = 2")  # set back
    document = repaired(flow, "--rows")
    assert ids_of(document) == {"missing": [4], "extra": [6], "different": [2, 5]}
    assert reasons(flow) == ["run", "run", "reconcile"]
    assert reconciled(flow, "--rows")["equal"] is True
    current = sorted(row[:2] for row in flow.feed.rows("id", "filler", "_is_current") if row[2])
    assert current == source_rows(rows)
    (ended,) = [row for row in flow.feed.rows("id", "_is_deleted", "_is_current") if row[0] == 6]
    assert ended == (6, True, False)
    versions = sorted(row[1] for row in flow.feed.rows("id", "filler") if row[0] == 3)
    assert len(versions) == 2  # the history of other keys stays
    rows.ask(f"INSERT INTO {rows.name} VALUES (6, '{at(50).isoformat()}', 'back')")
    flow.run()  # the row comes back with a time before the repair, as no version may
    assert ids_of(repaired(flow, "--rows"))["missing"] == [6]
    assert reconciled(flow, "--rows")["equal"] is True


@pytest.mark.each_case
@pytest.mark.parametrize("table_format", ["delta", "iceberg", "parquet"])
def test_rows_without_keys_are_repaired_by_the_ranges_that_differ(
    postgres: Postgres, tmp_path: Path, engine: SparkEngine, table_format: str
) -> None:
    rows = rows_of(postgres)
    rows.fill(400)
    flow = rows.flow(tmp_path, engine, target={"load": "append", "format": table_format})
    flow.run()
    rows.ask(f"INSERT INTO {rows.name} VALUES (501, '{at(5).isoformat()}', 'late')")
    rows.ask(f"DELETE FROM {rows.name} WHERE id = 70")
    rows.ask(f"UPDATE {rows.name} SET filler = 'changed' WHERE id = 290")
    rows.fill(5, first=600)  # above the watermark: of the next run
    document = repaired(flow, "--rows", "--every", "1 minute")
    assert [range_["missing"] for range_ in document["ranges"]].count(1) == 2
    assert reasons(flow) == ["run", "reconcile"]
    assert flow.feed.newest is not None
    assert flow.feed.newest.rows < 200
    expected = [row for row in source_rows(rows) if row[0] < 600]
    assert sorted(flow.feed.rows("id", "filler")) == expected
    assert flow.feed.newest.total_rows == len(expected)
    flow.run()
    assert sorted(flow.feed.rows("id", "filler")) == source_rows(rows)


def test_only_missing_rows_are_repaired_if_that_is_asked(
    postgres: Postgres, tmp_path: Path, engine: SparkEngine
) -> None:
    rows = rows_of(postgres)
    rows.fill(10)
    flow = rows.flow(tmp_path, engine, target=UPSERT)
    flow.run()
    by_hand(flow)("DELETE FROM {t} WHERE id = 2")
    rows.ask(f"DELETE FROM {rows.name} WHERE id = 3")
    document = reconciled(flow, "--repair-missing", "--reason", "because", "--yes", code=1)
    assert (document["repair"]["rows"], document["repair"]["complete"]) == (1, False)
    assert flow.ids == list(range(1, 11))
    assert ids_of(reconciled(flow, code=1)) == {"missing": [], "extra": [3], "different": []}


def test_several_rows_of_a_key_are_repaired_together(
    postgres: Postgres, tmp_path: Path, engine: SparkEngine
) -> None:
    """With merge_overwrite the table has all rows of the last read of a key."""
    rows = rows_of(postgres)
    rows.ask(f"CREATE TABLE {rows.name}_lines (id bigint, line int, at timestamptz, note text)")
    lines = [
        f"({number}, {line}, '{at(number).isoformat()}', 'n{number}/{line}')"
        for number in range(1, 6)
        for line in (1, 2)
    ]
    rows.ask(f"INSERT INTO {rows.name}_lines VALUES {', '.join(lines)}")
    target = {"load": "merge_overwrite", "merge_keys": ["id"]}
    flow = rows.flow(tmp_path, engine, source={"table": f"{rows.name}_lines"}, target=target)
    flow.run()
    assert reconciled(flow, "--rows")["equal"] is True
    run = by_hand(flow)
    run("INSERT INTO {t} SELECT * FROM {t} WHERE id = 2 AND line = 1")
    run("DELETE FROM {t} WHERE id = 3 AND line = 2")
    rows.ask(f"DELETE FROM {rows.name}_lines WHERE id = 4")
    document = repaired(flow, "--rows")
    assert ids_of(document) == {"missing": [], "extra": [4, 4], "different": [2, 3]}
    expected = sorted((number, line) for number in (1, 2, 3, 5) for line in (1, 2))
    assert sorted(flow.feed.rows("id", "line")) == expected
    assert reconciled(flow, "--rows")["equal"] is True


def test_keys_of_every_kind_are_found_again(postgres: Postgres, tmp_path: Path, engine: SparkEngine) -> None:
    rows = rows_of(postgres)
    name = f"{rows.name}_keys"
    rows.ask(
        f"CREATE TABLE {name} (a text, b date, c numeric(20,4), d boolean, e uuid, f timestamptz, at timestamptz, value int)"
    )
    keys = (
        "('it''s, a \"key\" \\ ~', '2026-02-28', 10.5000, true, 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '2026-01-01 00:00:00.123456+00')",
        "('', '0001-01-01', -0.0001, false, 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a12', '1969-12-31 23:59:59+00')",
        "(NULL, NULL, NULL, NULL, NULL, NULL)",
        "('=ü~,;', '2026-12-31', 1200, true, 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a13', '2026-06-01 12:00:00+00')",
    )
    for number, key in enumerate(keys):
        rows.ask(f"INSERT INTO {name} VALUES {key[:-1]}, '{at(number).isoformat()}', {number})")
    target = {"load": "merge_upsert", "merge_keys": ["a", "b", "c", "d", "e", "f"]}
    flow = rows.flow(tmp_path, engine, source={"table": name}, target=target)
    flow.run()
    by_hand(flow)("DELETE FROM {t} WHERE value < 4")
    rows.ask(f"DELETE FROM {name} WHERE value = 3")
    document = repaired(flow, "--rows")
    assert len(document["missing"]) == 3
    by_hand(flow)("UPDATE {t} SET value = 9")
    rows.ask(f"DELETE FROM {name} WHERE value = 0")
    document = repaired(flow, "--rows")
    assert (len(document["different"]), len(document["extra"])) == (2, 1)
    assert sorted(flow.feed.rows("value")) == [(1,), (2,)]


@pytest.mark.remedy("no_repair", "replay")
@pytest.mark.remedy("no_repair", "state reset --replace")
def test_what_cannot_be_repaired_is_refused_by_name(
    postgres: Postgres, tmp_path: Path, engine: SparkEngine
) -> None:
    rows = rows_of(postgres)
    rows.fill(5)
    flow = rows.flow(tmp_path, engine, target={**UPSERT, "immutable": ["filler"]})
    flow.run()
    by_hand(flow)("UPDATE {t} SET filler = 'first' WHERE id = 3")
    assert reconciled(flow, "--rows")["equal"] is True  # the table keeps the first value
    by_hand(flow)("DELETE FROM {t} WHERE id = 2")
    answer = flow.feed.cli("reconcile", "flow", "--repair", "--reason", "because", "--yes")
    assert (answer.code, answer.error["code"]) == (2, "no_repair")
    assert "1 row missing, which it does not repair: with target.immutable" in answer.error["message"]
    assert flow.feed.cli("reconcile", "flow", "--repair").code == 2  # no reason
    day = ("--start", "2026-01-01", "--end", "2026-01-02")
    flow.feed.command("replay", "flow", *day, "--deleted", "load")
    assert (reconciled(flow)["equal"], flow.ids) == (True, [1, 2, 3, 4, 5])
    by_hand(flow)("DELETE FROM {t} WHERE id = 2")
    flow.feed.decide("reset", "--replace")
    flow.run()
    assert (reconciled(flow)["equal"], flow.ids) == (True, [1, 2, 3, 4, 5])
    flow.feed.define(target={"immutable": None, "insert_only": True})
    assert "insert_only" in flow.feed.cli("reconcile", "flow").error["message"]
