"""A dataflow whose state is in PostgreSQL: loaded, killed, recovered; the commands, and what they show of its password."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from resources.connections.postgres import Database
from resources.outcome import Step
from resources.spark.engine import SparkEngine
from scripts.postgres import Postgres
from tests.support.crash_runner import crash
from tests.support.feed import NAME, Feed

pytestmark = pytest.mark.postgres

ENTRIES = "SELECT dataflow, number, entry->'rows' FROM {schema}.watermark_entries ORDER BY number"


@pytest.fixture
def database(postgres: Postgres) -> Database:
    return postgres.database()


@pytest.fixture
def feed(tmp_path: Path, engine: SparkEngine, postgres: Postgres, database: Database) -> Feed:
    """The usual dataflow, with one file a slice."""
    url = f"{postgres.url()}?schema={database.schema}"
    definition = {"watermark": {"checkpoint": {"interval_files": 1}}}
    return Feed(tmp_path / "project", engine, definition, {"state": {"env": "STATE"}}, {"STATE": url})


def test_a_killed_run_ends_and_each_row_is_once(feed: Feed, postgres: Postgres, database: Database) -> None:
    feed.put("1.ndjson", 1, 2)
    feed.put("2.ndjson", 3)
    crash(feed, Step.INTENT_PUT, 2)
    assert (feed.path, feed.open_intent is not None) == ("1.ndjson", True)
    assert feed.load().status == "recovered"
    feed.put("3.ndjson", 4)
    assert feed.load().status == "committed"
    assert feed.load().status == "nothing"
    assert (feed.ids, feed.path, feed.open_intent) == ([1, 2, 3, 4], "3.ndjson", None)
    assert postgres.ask(ENTRIES, schema=database.schema) == [(NAME, 1, 2), (NAME, 2, 1), (NAME, 3, 1)]
    assert not feed.state.exists()


def test_plan_and_list_make_nothing_there(feed: Feed, postgres: Postgres, database: Database) -> None:
    feed.put("1.ndjson", 1)
    assert [feed.cli(command).code for command in ("plan", "list", "validate")] == [0, 0, 0]
    assert postgres.ask("SELECT FROM pg_namespace WHERE nspname = %s", database.schema) == []


def test_libpqs_variables_complete_the_address(feed: Feed, postgres: Postgres, database: Database) -> None:
    feed.environment = {
        "STATE": f"postgresql:///postgres?schema={database.schema}",
        "PGHOST": "127.0.0.1",
        "PGPORT": str(postgres.port),
        "PGUSER": "postgres",
        "PGPASSWORD": postgres.password,
    }
    assert checks(feed)["state"]["ok"]
    feed.environment["PGPASSWORD"] = "wrong-sesame"
    assert not checks(feed)["state"]["ok"]


def test_doctor_tries_a_state_and_leaves_none(feed: Feed, postgres: Postgres, database: Database) -> None:
    found = checks(feed)["state"]
    assert (found["ok"], found["found"]) == (True, f"{database}: writable, and refuses to overwrite")
    assert postgres.ask("SELECT count(*) FROM {schema}.watermark_log", schema=database.schema) == [(0,)]


def test_a_wrong_password_is_named_and_never_shown(feed: Feed, postgres: Postgres) -> None:
    feed.environment["STATE"] = postgres.url(password="wrong-sesame")
    feed.put("1.ndjson", 1)
    found = checks(feed)["state"]
    assert not found["ok"]
    assert "correct the user and password" in found["found"]
    run = feed.cli("run", NAME)
    assert (run.code, run.error["code"]) == (1, "provider")
    assert f"postgresql://127.0.0.1:{postgres.port}/postgres" in run.error["message"]
    assert "correct the user and password" in run.error["message"]
    for shown in (json.dumps(found), run.out, run.err, feed.cli("list").out, feed.cli("validate").out):
        assert "sesame" not in shown
    assert feed.ids == []


def checks(feed: Feed) -> dict[str, Any]:
    """What doctor found, by what it tried."""
    return {each["check"]: each for each in feed.cli("doctor", "--no-spark").json["checks"]}
