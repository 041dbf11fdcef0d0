"""Random histories at a real PostgreSQL: each comparison agrees with one of rows in Python, each repair mends all."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from resources.spark.engine import SparkEngine
from scripts.postgres import Postgres
from tests.support.databases import rows_of
from tests.support.reconcile_histories import TARGETS, History

pytestmark = pytest.mark.postgres

CASES = [
    pytest.param(
        load, table_format, seed, steps, marks=() if (load, table_format, seed) == quick else pytest.mark.full
    )
    for quick in [("merge_upsert", "delta", 1)]
    for load in TARGETS
    for table_format in ("delta", "iceberg")
    for seed, steps in ((1, 12), (2, 40), (3, 40))
]


@pytest.mark.each_case
@pytest.mark.timeout(1500)
@pytest.mark.parametrize(("load", "table_format", "seed", "steps"), CASES)
def test_a_history_ends_with_the_rows_of_the_source(
    postgres: Postgres,
    tmp_path: Path,
    engine: SparkEngine,
    load: str,
    table_format: str,
    seed: int,
    steps: int,
) -> None:
    rows = rows_of(postgres)
    flow = rows.flow(tmp_path, engine, target={**TARGETS[load], "format": table_format})
    history = History(rows, flow, Random(f"{load} {table_format} {seed}"))
    history.insert()
    history.run()
    history.happen(steps)
    history.run()
    history.repair()
    history.run()
    assert history.compare(), history.said
    assert sorted(history.table_rows()) == sorted(history.source_rows()), history.said
