"""A repair that is killed after each step: it is done once, or not at all, and the same command does it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from resources.outcome import Step
from resources.spark.engine import SparkEngine
from scripts.postgres import Postgres
from tests.support.databases import rows_of
from tests.support.reconciled import by_hand, reasons, reconciled, repaired
from tests.support.repair_crash import crash_repairing

pytestmark = pytest.mark.postgres

STEPS = (Step.LIST_KEPT, Step.INTENT_PUT, Step.WRITTEN, Step.VERIFIED, Step.APPENDED)
WRITTEN = STEPS[2:]
KEYED = {"load": "merge_upsert", "merge_keys": ["id"]}
SCD2 = {"load": "scd2", "merge_keys": ["id"], "effective_column": "at"}
CASES: dict[str, dict[str, Any]] = {
    "delta keys": {**KEYED, "format": "delta"},
    "iceberg keys": {**KEYED, "format": "iceberg"},
    "delta versions": {**SCD2, "format": "delta"},
    "iceberg versions": {**SCD2, "format": "iceberg"},
    "delta ranges": {"load": "append", "format": "delta"},
    "iceberg ranges": {"load": "append", "format": "iceberg"},
    "parquet ranges": {"load": "append", "format": "parquet"},
}
QUICK = {("delta keys", Step.WRITTEN), ("iceberg ranges", Step.INTENT_PUT)}
"""The cells in `make test`."""


@pytest.mark.each_case
@pytest.mark.parametrize(
    ("case", "step"),
    [
        pytest.param(case, step, marks=() if (case, step) in QUICK else pytest.mark.full)
        for case in CASES
        for step in STEPS
    ],
)
def test_a_killed_repair_is_done_once_or_not_begun(
    postgres: Postgres, tmp_path: Path, engine: SparkEngine, case: str, step: Step
) -> None:
    rows = rows_of(postgres)
    rows.fill(30)
    flow = rows.flow(tmp_path / "project", engine, target=CASES[case])
    flow.run()
    if CASES[case]["format"] != "parquet":
        by_hand(flow)("DELETE FROM {t} WHERE id IN (3, 4)")
    else:
        rows.ask(f"INSERT INTO {rows.name} VALUES (200, '2026-01-01 00:00:02+00', 'late')")
    rows.ask(f"DELETE FROM {rows.name} WHERE id = 10")
    crash_repairing(flow.feed, step)
    rows.fill(5, first=50)
    flow.run()  # finishes what was written, or gives it up
    assert flow.feed.open_intent is None
    is_done = step in WRITTEN
    assert reasons(flow).count("reconcile") == int(is_done)
    assert reconciled(flow, "--rows", code=0 if is_done else 1)["equal"] is is_done
    if not is_done:
        repaired(flow, "--rows")
    assert reasons(flow).count("reconcile") == 1
    assert reconciled(flow, "--rows")["equal"] is True
    is_current = "_is_current" if "versions" in case else "id"
    ids = [row[0] for row in flow.feed.rows("id", is_current) if row[1] is not False]
    assert sorted(ids) == sorted(int(row[0]) for row in rows.ask(f"SELECT id FROM {rows.name}"))
