"""A source that cannot be asked is a failure in every view: a rotated password, from the change to the recovery."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import yaml
from click.testing import CliRunner
from dagster import (
    AssetCheckKey,
    AssetKey,
    DagsterInstance,
    SensorDefinition,
    SensorResult,
    build_sensor_context,
)

from partitions.errors import SourceError
from platform_assets.build import build_definitions
from platform_assets.cli.main import strandline
from platform_assets.project import load_project
from scripts import postgres as pg
from tests.support.webhooks import Receiver, webhook_receiver

pytestmark = pytest.mark.postgres

TABLE = AssetKey(["bronze", "orders"])


@dataclass
class Shop:
    """A project that reads a table of PostgreSQL as a user with a password of its own.

    Its sensors tick as Dagster would have them tick.
    """

    folder: Path
    server: pg.Postgres
    receiver: Receiver
    dagster: DagsterInstance
    password: str = "first"
    cursors: dict[str, str | None] = field(default_factory=dict)
    table: str = field(default_factory=lambda: f"orders_{uuid4().hex[:8]}")

    def __post_init__(self) -> None:
        """Create the table, its reader, and the project."""
        self.server.ask("CREATE TABLE {table} (id bigint PRIMARY KEY)", table=self.table)
        self.server.ask(f"CREATE ROLE {{reader}} LOGIN PASSWORD '{self.password}'", reader=self.reader)
        self.server.ask("GRANT SELECT ON {table} TO {reader}", table=self.table, reader=self.reader)
        url = f"jdbc:postgresql://127.0.0.1:{self.server.port}/postgres"
        connection = {"type": "jdbc", "url": url, "user": self.reader, "password": {"env": "PASSWORD"}}
        settings = {
            "state": "./state",
            "lake": "./lake",
            "connections": {"shop": connection},
            "alerts": {"webhook": {"env": "HOOK"}},
        }
        orders = {
            "source": {"type": "jdbc", "connection": "shop", "table": self.table},
            "watermark": {"type": "column", "columns": ["id"]},
            "target": {"load": "append"},
        }
        (self.folder / "dataflows").mkdir(parents=True)
        (self.folder / "platform.yaml").write_text(yaml.safe_dump(settings))
        (self.folder / "dataflows/orders.yaml").write_text(yaml.safe_dump(orders))

    @property
    def reader(self) -> str:
        """Return the user that reads the table."""
        return f"reader_{self.table}"

    @property
    def environment(self) -> dict[str, str]:
        """Return the variables with the secrets."""
        return {"PASSWORD": self.password, "HOOK": self.receiver.url}

    def rotate(self, password: str) -> None:
        """Change the password in the database only."""
        self.server.ask(f"ALTER ROLE {{reader}} PASSWORD '{password}'", reader=self.reader)

    def tick(self, name: str) -> SensorResult:
        """Tick a sensor in a new code location."""
        definitions = build_definitions(load_project(self.folder, environment=self.environment))
        sensor = definitions.get_repository_def().get_sensor_def(name)
        assert isinstance(sensor, SensorDefinition)
        result = sensor(build_sensor_context(instance=self.dagster, cursor=self.cursors.get(name)))
        assert isinstance(result, SensorResult)
        self.cursors[name] = result.cursor
        for event in result.asset_events:
            self.dagster.report_runless_asset_event(event)
        return result

    def list(self) -> Any:
        """Return what ``strandline list`` shows of the dataflow."""
        runner = CliRunner(env=self.environment)
        answer = runner.invoke(strandline, ["--project", str(self.folder), "--json", "list"])
        return json.loads(answer.stdout)[0]

    @property
    def check(self) -> tuple[bool, str]:
        """Return the check ``up_to_date`` as the table's page shows it."""
        key = AssetCheckKey(TABLE, "up_to_date")
        record = self.dagster.get_latest_asset_check_evaluation_record(key)
        assert record
        assert record.event
        assert record.event.dagster_event
        evaluation = record.event.dagster_event.asset_check_evaluation_data
        return evaluation.passed, evaluation.description or ""


@pytest.fixture
def shop(tmp_path: Path, postgres: pg.Postgres) -> Iterator[Shop]:
    with webhook_receiver() as receiver, DagsterInstance.ephemeral() as dagster:
        shop = Shop(tmp_path / "shop", postgres, receiver, dagster)
        yield shop
        postgres.ask("DROP OWNED BY {reader}", reader=shop.reader)
        postgres.ask("DROP ROLE {reader}", reader=shop.reader)
        postgres.ask("DROP TABLE {table}", table=shop.table)


def test_a_rotated_password_is_seen_before_the_first_entry_until_it_is_corrected(shop: Shop) -> None:
    shop.tick("orders_rows")
    assert shop.check == (True, "Checked, nothing new: no row is above the watermark")
    shop.rotate("second")
    for looks in (1, 2):
        with pytest.raises(SourceError, match="password authentication failed"):
            shop.tick("orders_rows")
        shop.tick("strandline_alerts")
        assert [sent["began"][0]["condition"] for sent in shop.receiver.taken] == ["failed"] * (looks - 1)
    passed, description = shop.check
    assert not passed
    assert description.startswith("Looking for new data has failed since 2")
    listed = shop.list()
    attempt = listed["last_attempt"]
    assert (attempt["status"], attempt["failed_looks"], listed["state_number"]) == ("failed", 2, 0)
    assert "password authentication failed" in attempt["error"]["message"]
    shop.password = "second"
    shop.tick("orders_rows")
    assert shop.check[0]
    assert shop.list()["last_attempt"] is None
