"""Source and table compared: rows that were lost, doubled or changed are told exactly, on real databases."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest
from deltalake import DeltaTable

from resources.spark.engine import SparkEngine
from scripts.postgres import Postgres
from tests.support.databases import DatabaseRows, at, rows_of
from tests.support.mariadb import MariaDB
from tests.support.reconciled import by_hand, ids_of, reconciled, sums_of

pytestmark = pytest.mark.postgres

UPSERT = {"load": "merge_upsert", "merge_keys": ["id"]}


@pytest.fixture(params=["postgres", "mariadb"])
def rows(request: pytest.FixtureRequest) -> DatabaseRows:
    """A table of each database."""
    return rows_of(cast("Postgres | MariaDB", request.getfixturevalue(request.param)))


@pytest.mark.each_case
@pytest.mark.parametrize("table_format", ["delta", "iceberg"])
def test_rows_lost_doubled_and_changed_by_hand_are_told_exactly(
    rows: DatabaseRows, tmp_path: Path, engine: SparkEngine, table_format: str
) -> None:
    rows.fill(50)
    flow = rows.flow(tmp_path, engine, target={**UPSERT, "format": table_format})
    flow.run()
    assert reconciled(flow)["equal"] is True
    whole = reconciled(flow, "--rows")
    assert (whole["equal"], whole["level"], whole["not_compared"]) == (True, "rows", [])
    run = by_hand(flow)
    run("DELETE FROM {t} WHERE id IN (7, 8)")
    run("INSERT INTO {t} SELECT * FROM {t} WHERE id = 20")
    run("UPDATE {t} SET filler = 'other' WHERE id = 30")
    rows.ask(f"DELETE FROM {rows.name} WHERE id = 40")
    rows.ask(f"UPDATE {rows.name} SET id = 900 WHERE id = 41")
    by_keys = reconciled(flow, code=1)
    assert ids_of(by_keys) == {"missing": [7, 8, 900], "extra": [20, 40, 41], "different": []}
    by_rows = reconciled(flow, "--rows", code=1)
    assert ids_of(by_rows) == {"missing": [7, 8, 900], "extra": [20, 40, 41], "different": [30]}
    (range_,) = by_rows["ranges"][:1]
    assert (range_["source"], range_["table"]) == (49, 49)
    assert sums_of(by_rows)[0] == {"missing": 3, "extra": 3, "different": 1}
    parts = reconciled(
        flow, "--rows", "--start", "2026-01-01T00:00:25", "--end", "2026-01-01T00:00:35", code=1
    )
    assert ids_of(parts) == {"missing": [], "extra": [], "different": [30]}
    assert (parts["ranges"][0]["source"], parts["ranges"][0]["table"]) == (10, 10)
    backwards = flow.feed.cli("reconcile", "flow", "--start", "2026-02-01", "--end", "2026-01-01")
    assert "found --start 2026-02-01 and --end 2026-01-01" in backwards.error["message"]
    minutes = reconciled(flow, "--rows", "--every", "1 minute", "--limit", "1", code=1)
    assert sum(counts["missing"] for counts in sums_of(minutes)) == 3
    assert len(minutes["missing"]) == 1


def test_rows_above_the_watermark_take_no_part(
    rows: DatabaseRows, tmp_path: Path, engine: SparkEngine
) -> None:
    """An update at the source moves a row above: the table still has the old one, until the next run."""
    rows.fill(20)
    flow = rows.flow(tmp_path, engine, target=UPSERT)
    flow.run()
    rows.fill(5, first=21)
    literal = f"'{at(50):%Y-%m-%d %H:%M:%S}'" if rows.scheme == "mariadb" else f"'{at(50).isoformat()}'"
    rows.ask(f"UPDATE {rows.name} SET at = {literal} WHERE id = 3")
    document = reconciled(flow, "--rows")
    assert (document["equal"], document["ranges"][0]["source"], document["ranges"][0]["table"]) == (
        True,
        19,
        20,
    )
    assert document["up_to"] == {"at": {"__datetime__": at(20).isoformat()}}
    flow.run()
    assert reconciled(flow, "--rows")["ranges"][0]["table"] == 25


def test_list_and_why_say_how_far_a_table_was_verified(
    postgres: Postgres, tmp_path: Path, engine: SparkEngine
) -> None:
    rows = rows_of(postgres)
    rows.fill(5)
    flow = rows.flow(tmp_path, engine, target=UPSERT)
    flow.run()
    assert flow.feed.command("list").json[0]["verified"] is None
    reconciled(flow, "--start", "2026-01-01")  # of a range: says nothing about the whole
    assert flow.feed.command("list").json[0]["verified"] is None
    reconciled(flow)
    verified = flow.feed.command("list").json[0]["verified"]
    assert (verified["equal"], verified["level"], verified["state_number"]) == (True, "keys", 1)
    assert verified["up_to"] == {"at": {"__datetime__": at(5).isoformat()}}
    said = f"verified up to at = {at(5).isoformat(sep=' ')}"
    assert said in flow.feed.text("why", "flow")
    assert said in flow.feed.text("list")
    rows.ask(f"DELETE FROM {rows.name} WHERE id = 2")
    reconciled(flow, code=1)
    answer = flow.feed.command("why", "flow").json
    assert "differs from the source up to" in answer["verified"]
    assert answer["verified"].endswith("1 row extra")
    assert "strandline reconcile flow --rows" in answer["choices"]
    flow.feed.decide("reset")
    assert flow.feed.command("list").json[0]["verified"] is None


def test_what_no_comparison_can_tell_is_refused_by_name(
    postgres: Postgres, tmp_path: Path, engine: SparkEngine
) -> None:
    rows = rows_of(postgres)
    rows.fill(3)
    flow = rows.flow(tmp_path, engine, target=UPSERT)

    def refusal() -> str:
        answer = flow.feed.cli("reconcile", "flow")
        assert answer.code == 2, answer.out
        message: str = answer.error["message"]
        return message

    assert "it has loaded nothing yet" in refusal()
    flow.run()
    flow.feed.define(sql="SELECT * FROM input")
    assert "found a step (sql)" in refusal()
    flow.feed.define(sql=None, target={"delete_when": "filler IS NULL"})
    assert "found rows that delete their key" in refusal()
    flow.feed.define(target={"delete_when": None})
    flow.feed.command("delete", "flow", "--where", "id = 2", "--reason", "because", "--yes")
    assert "found a delete in force (id = 2)" in refusal()


def test_current_versions_are_compared(postgres: Postgres, tmp_path: Path, engine: SparkEngine) -> None:
    rows = rows_of(postgres)
    rows.fill(6)
    flow = rows.flow(
        tmp_path, engine, target={"load": "scd2", "merge_keys": ["id"], "effective_column": "at"}
    )
    flow.run()
    rows.ask(f"UPDATE {rows.name} SET at = '{at(20).isoformat()}', filler = 'new' WHERE id = 2")
    flow.run()
    document = reconciled(flow, "--rows")
    assert (document["equal"], document["ranges"][0]["table"]) == (True, 6)
    rows.ask(f"UPDATE {rows.name} SET filler = 'newer' WHERE id = 2")
    assert ids_of(reconciled(flow, "--rows", code=1))["different"] == [2]


def test_rows_below_a_retention_take_no_part(postgres: Postgres, tmp_path: Path, engine: SparkEngine) -> None:
    rows = rows_of(postgres)
    rows.fill(3)
    flow = rows.flow(tmp_path, engine, target=UPSERT)
    flow.run()
    rows.ask(f"INSERT INTO {rows.name} VALUES (9, '2025-01-01', 'old')")
    assert ids_of(reconciled(flow, code=1))["missing"] == [9]
    flow.feed.define(target={"retention": {"column": "at", "keep": "P30D"}})
    assert reconciled(flow, "--now", "2026-01-20")["equal"] is True


def test_a_missed_update_is_different_without_rows_too(
    rows: DatabaseRows, tmp_path: Path, engine: SparkEngine
) -> None:
    """A transaction that commits late leaves a new time below the watermark, in another range."""
    rows.fill(20)
    flow = rows.flow(tmp_path, engine, target=UPSERT)
    flow.run()
    time = f"{at(12):%Y-%m-%d %H:%M:%S}{'' if rows.scheme == 'mariadb' else '+00'}"
    rows.ask(f"UPDATE {rows.name} SET at = '{time}' WHERE id = 3")
    document = reconciled(flow, code=1)
    assert ids_of(document) == {"missing": [], "extra": [], "different": [3]}


def test_rows_without_keys_are_counted_or_compared_as_a_whole(
    rows: DatabaseRows, tmp_path: Path, engine: SparkEngine
) -> None:
    rows.fill(30)
    flow = rows.flow(tmp_path, engine)
    flow.run()
    assert reconciled(flow)["level"] == "counts"
    table = DeltaTable(str(flow.feed.table))
    table.delete("id = 4")
    assert sums_of(reconciled(flow, code=1))[0] == {"missing": 1, "extra": 0, "different": 0}
    by_hand(flow)("INSERT INTO {t} SELECT * FROM {t} WHERE id = 5")
    assert reconciled(flow)["equal"] is True  # their number alone
    assert sums_of(reconciled(flow, "--rows", code=1))[0] == {"missing": 1, "extra": 1, "different": 0}
    refused = flow.feed.cli("reconcile", "flow", "--keys")
    assert (refused.code, refused.error["message"].startswith("dataflow flow: --keys")) == (2, True)
