"""A Dagster user's own project, from the wheel: components, own assets, dbt, automation and PostgreSQL in one location.

``acme`` beside this file is the project. Its environment has the wheel, and dbt from the package index.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import duckdb
import pytest
from deltalake import DeltaTable

from platform_assets.platform import build_platform
from platform_assets.project import load_project
from platform_assets.project.project import SPARK_REMOTE
from resources.spark.engine import SparkEngine
from resources.spark.processes import start_process, stop_processes
from scripts.postgres import Postgres
from tests.support.installed import Installed
from tests.support.ready import wait_until_ready

pytestmark = [pytest.mark.full, pytest.mark.postgres, pytest.mark.timeout(1800)]

ACME = Path(__file__).with_name("acme")
DBT = ("dagster-dbt>=0.29,<0.30", "dbt-duckdb>=1.10,<1.12", "dbt-core>=1.11,<1.12")
"""dbt-core 1.12 downloads a binary when it is installed, which not every network allows."""
KEPT = ("dagster", "duckdb", "deltalake", "pyarrow", "protobuf", "sqlalchemy")
"""Packages that dbt must not change: the location runs with those that Strandline is tested with."""
FILES = {
    "north": {"2026-01-04": {1: 10, 2: 20}, "2026-01-05": {3: 30}},
    "south": {"2026-01-04": {1: 700}, "2026-01-05": {2: 11}},
}
"""By project and day, the amount of each order."""
DAYS = {f"2026-01-{day:02}" for day in range(4, 11)}
"""The windows of both projects; those without a folder are empty."""
MODELS = {
    "large_orders": "SELECT id, amount FROM large_orders",
    "daily_orders": "SELECT day::text, orders, amount::bigint FROM daily_orders",
}
"""The rows of each of dbt's models."""
REFUNDS = {"2026-01-04": "11.00", "2026-01-05": "7.00"}
"""By day, the sum of the refunds that the company's function returns."""
TOTAL = [{"amount": 711}]
TOO_LONG = 1200.0


@dataclass
class Company:
    """The project in its environment, with an instance of Dagster.

    Attributes:
        built: the rows of each of dbt's models, once it is built.
    """

    installed: Installed
    environment: Mapping[str, str]
    built: dict[str, Sequence[tuple[Any, ...]]] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        return self.installed.folder / "acme"

    def project(self, name: str) -> Path:
        return self.folder / "src/acme/defs" / name

    def orders(self, name: str) -> list[tuple[int, int]]:
        """Return the rows of a project's table."""
        table = DeltaTable(str(self.project(name) / ".strandline/lake/bronze/orders")).to_pyarrow_table()
        return sorted(zip(table["id"].to_pylist(), table["amount"].to_pylist(), strict=True))

    def rows(self, project: str, table: str) -> list[dict[str, Any]]:
        """Return the rows of a table that an asset of the company's own has stored; none before."""
        place = self.project(project) / ".strandline/lake" / table
        return (
            DeltaTable(str(place)).to_pyarrow_table().to_pylist()
            if DeltaTable.is_deltatable(str(place))
            else []
        )

    def report(self, name: str) -> Any:
        return json.loads((self.folder / f"reports/{name}.json").read_text())

    def read_models(self) -> None:
        """Read the rows of dbt's models, unless one is not built yet, or dbt writes.

        A copy of the file is read: dbt cannot open one that another process reads.
        """
        copy = self.folder / "copy.duckdb"
        with suppress(duckdb.Error, FileNotFoundError):
            shutil.copyfile(self.folder / "acme.duckdb", copy)
            with duckdb.connect(str(copy), read_only=True) as warehouse:
                self.built = {name: sorted(warehouse.sql(query).fetchall()) for name, query in MODELS.items()}

    def call(self, *words: str) -> str:
        done = subprocess.run(
            words, cwd=self.folder, env=dict(self.environment), capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    @property
    def days(self) -> list[Any]:
        """Return the reports of the north: automation may make one run for all days, or several."""
        return [
            json.loads(path.read_text()) for path in sorted((self.folder / "reports").glob("north_*.json"))
        ]

    def is_done(self) -> bool:
        """Return whether each day, the week and dbt's models are there."""
        self.read_models()
        reported = {day for report in self.days for day in report["days"]}
        weeks = [*(self.folder / "reports").glob("south_*.json")]
        built_days = {day for day, *_ in self.built.get("daily_orders", ())}
        is_stored = len(self.rows("north", "gold/refunds_per_day")) == len(REFUNDS)
        is_stored = is_stored and self.rows("south", "gold/total") == TOTAL
        return reported == DAYS and bool(weeks) and built_days == set(FILES["north"]) and is_stored


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    package = Installed(tmp_path_factory.mktemp("acme"))
    constraints = package.folder.parent / "constraints.txt"
    constraints.write_text("".join(f"{name}=={version(name)}\n" for name in KEPT))
    pip = [sys.executable, "-m", "pip", "--python", str(package.bin / "python"), "install", "-q"]
    done = subprocess.run([*pip, "-c", str(constraints), *DBT], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"needs dbt from a package index: {done.stderr.splitlines()[-1:]}")
    return package


@pytest.fixture(scope="module")
def company(installed: Installed, postgres: Postgres, spark_engine: SparkEngine) -> Company:
    shutil.copytree(ACME, installed.folder / "acme")
    postgres.ask("CREATE DATABASE acme")
    company = Company(installed, {})
    lake = company.project("north") / ".strandline/lake"
    company.environment = installed.environment | {
        "PYTHONPATH": str(company.folder / "src"),
        "DAGSTER_HOME": str(company.folder / "home"),
        "ACME_REPORTS": str(company.folder / "reports"),
        "ACME_WAREHOUSE": str(company.folder / "acme.duckdb"),
        "ACME_NORTH_LAKE": str(lake),
        SPARK_REMOTE: str(spark_engine.remote),
    }
    storage = {"postgres": {"postgres_url": postgres.url("acme")}}
    (company.folder / "home").mkdir()
    settings = {
        "storage": storage,
        "telemetry": {"enabled": False},
        "concurrency": {
            "pools": {"default_limit": 1, "granularity": "run"},
            "runs": {"max_concurrent_runs": 2},
        },
        "run_queue": {"dequeue_interval_seconds": 1},
    }
    (company.folder / "home/dagster.yaml").write_text(json.dumps(settings))
    for name, days in FILES.items():
        for day, amounts in days.items():
            landing = company.project(name) / "landing" / day
            landing.mkdir(parents=True)
            lines = [json.dumps({"id": number, "amount": amount}) for number, amount in amounts.items()]
            (landing / "orders.ndjson").write_text("\n".join(lines))
    dbt = (str(installed.bin / "python"), "-c", "from dbt.cli.main import cli; cli()", "parse")
    company.call(*dbt, "--project-dir", "analytics", "--profiles-dir", "analytics")
    return company


@pytest.fixture(scope="module")
def loaded(company: Company) -> Iterator[Company]:
    """The project after its daemon alone has run what was due."""
    command = [str(company.installed.bin / "dagster-daemon"), "run", "-m", "acme.definitions"]
    log = company.folder / "daemon.log"
    daemon = start_process(command, log, dict(company.environment))
    try:
        wait_until_ready(company.is_done, daemon, log, TOO_LONG)
        yield company
    finally:
        stop_processes([daemon])


@pytest.mark.parametrize(
    ("language", "file"),
    [
        ("yml", "analytics/models/sources.yml"),
        ("yml", "analytics/profiles.yml"),
        ("sql", "analytics/models/daily_orders.sql"),
        ("python", "src/acme/defs/analytics.py"),
    ],
)
def test_the_page_of_dbt_shows_the_files_of_this_project(language: str, file: str) -> None:
    page = (ACME.parents[2] / "docs/how-to/dbt.md").read_text()
    assert f"```{language}\n{(ACME / file).read_text()}```" in page


def test_dg_lists_both_components_and_the_company_s_own_assets(company: Company) -> None:
    listed = json.loads(company.call(str(company.installed.bin / "dg"), "list", "defs", "--json"))
    assert {asset["asset_key"] for asset in listed["assets"]} == {
        *(f"{name}/{asset}/orders" for name in FILES for asset in ("bronze", "watermark")),
        *(f"north/{asset}/refunds" for asset in ("bronze", "watermark")),
        "north/gold/refunds_per_day",
        "south/gold/total",
        "north_days",
        "south_weeks",
        *MODELS,
    }


def test_each_component_loads_its_own_rows_into_a_table_of_the_same_name(loaded: Company) -> None:
    assert loaded.orders("north") == [(1, 10), (2, 20), (3, 30)]
    assert loaded.orders("south") == [(1, 700), (2, 11)]


def test_an_asset_in_pandas_gets_the_days_that_its_run_is_for(loaded: Company) -> None:
    assert loaded.days
    for report in loaded.days:
        days = [FILES["north"].get(day, {}) for day in report["days"]]
        assert report["rows"] == [[number, amount] for day in days for number, amount in day.items()]


def test_an_asset_in_polars_gets_the_days_of_its_week_and_saves_a_watermark(loaded: Company) -> None:
    assert loaded.report("south_2026-01-04") == {"amount": 711}
    south = build_platform(load_project(loaded.project("south"), environment={}))
    assert south.manager().get_watermark("south_weeks") == {"week": "2026-01-04"}


def test_an_asset_behind_an_incremental_asset_is_stored_by_day_with_its_declared_type(
    loaded: Company,
) -> None:
    rows = loaded.rows("north", "gold/refunds_per_day")
    assert {str(row["day"]): str(row["amount"]) for row in rows} == REFUNDS
    table = DeltaTable(str(loaded.project("north") / ".strandline/lake/gold/refunds_per_day"))
    types = {field.name: field.type.type for field in table.schema().fields}
    assert types == {"day": "date", "amount": "decimal(12,2)"}


def test_an_asset_with_the_spark_of_its_project_is_stored_by_it(loaded: Company) -> None:
    assert loaded.rows("south", "gold/total") == TOTAL


def test_a_check_of_the_company_runs_with_each_load_that_a_sensor_has_requested(
    loaded: Company, postgres: Postgres
) -> None:
    with postgres.session("acme") as session:
        checked = session.execute(
            # Dagster plans a check without partitions for each partition of a run, and evaluates it once.
            "SELECT run_id, execution_status FROM asset_check_executions"
            " WHERE check_name = 'amounts_are_positive' AND execution_status <> 'PLANNED'"
        ).fetchall()
        loads = session.execute(
            "SELECT run_id, 'SUCCEEDED' FROM runs WHERE pipeline_name = 'load_north__orders' AND status = 'SUCCESS'"
        ).fetchall()
    assert set(checked) == set(loads) != set()


def test_dbt_reads_the_delta_table_of_the_north(loaded: Company) -> None:
    assert loaded.built["large_orders"] == [(2, 20), (3, 30)]


def test_an_incremental_model_of_dbt_has_each_day_once(loaded: Company) -> None:
    assert loaded.built["daily_orders"] == [("2026-01-04", 2, 30), ("2026-01-05", 1, 30)]


def test_dagster_s_storage_in_postgresql_has_the_runs(loaded: Company, postgres: Postgres) -> None:
    with postgres.session("acme") as session:
        rows = session.execute(
            "SELECT DISTINCT pipeline_name FROM runs WHERE status = 'SUCCESS' AND pipeline_name LIKE 'load_%'"
        ).fetchall()
    assert sorted(rows) == [("load_north__orders",), ("load_north__refunds",), ("load_south__orders",)]
