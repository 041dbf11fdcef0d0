"""A look at a database or a table without Spark, which is what doctor does."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest
from click.testing import CliRunner
from deltalake import write_deltalake

from partitions.errors import ConfigurationError, SourceError, SourceUnreachable, StrandlineError
from partitions.sources import JdbcSource, TableSource
from platform_assets.cli.main import strandline
from resources.connections.jdbc import JdbcConnection
from resources.connections.places import Place
from resources.sources.availability import look_at_database, look_at_table
from resources.spark.connect_server import free_port
from scripts import postgres as pg
from tests.support.mariadb import MariaDB


@pytest.fixture
def table(postgres: pg.Postgres) -> Iterator[str]:
    name = f"t_{uuid4().hex[:8]}"
    postgres.ask("CREATE TABLE {name} (id int, at timestamptz)", name=name)
    yield name
    postgres.ask("DROP TABLE {name}", name=name)


def _connection(server: pg.Postgres, **named: str) -> JdbcConnection:
    given = {"port": str(server.port), "password": server.password, "after": ""} | named
    url = f"jdbc:postgresql://127.0.0.1:{given['port']}/postgres{given['after']}"
    return JdbcConnection.parse(url, "postgres", given["password"])


def _source(**named: Any) -> JdbcSource:
    return JdbcSource(type="jdbc", connection="erp", **named)


@pytest.mark.postgres
def test_a_database_says_what_it_has(postgres: pg.Postgres, table: str) -> None:
    connection = _connection(postgres)
    found = look_at_database(connection, _source(table=f"public.{table}", window_column="at"))
    assert found == f"{connection}: readable, public.{table} of erp has 2 columns, including at"
    query = f"select id, {{unit.a}}::text as a, '100%' as b from {table} where at >= {{start}}; -- all"
    assert look_at_database(connection, _source(query=query)).endswith("a query of erp has 3 columns")


@pytest.mark.postgres
def test_a_drivers_words_for_schema_and_encryption_are_known(postgres: pg.Postgres, table: str) -> None:
    connection = _connection(postgres, after="?currentSchema=pg_catalog&sslmode=prefer&ApplicationName=x")
    assert "pg_class of erp has" in look_at_database(connection, _source(table="pg_class"))


REFUSED: dict[str, tuple[dict[str, str], dict[str, str], type[StrandlineError], str]] = {
    "no table": ({}, {"table": "nope"}, SourceError, 'found: relation "nope" does not exist'),
    "no SQL": ({}, {"query": "selec"}, SourceError, "found: syntax error"),
    "no such column": ({}, {"window_column": "At"}, ConfigurationError, r"source\.window_column: .*has id, at; found At \(did you mean at\?\)"),
    "wrong credentials": ({"password": "wrong-sesame"}, {"table": "t"}, SourceError, "expected access"),
    "no server": ({"port": str(free_port())}, {"table": "t"}, SourceUnreachable, "expected an answer"),
}  # fmt: skip


@pytest.mark.postgres
@pytest.mark.parametrize(("connection", "source", "error", "said"), REFUSED.values(), ids=REFUSED)
def test_what_a_database_refuses_is_told_in_its_words(
    postgres: pg.Postgres,
    table: str,
    connection: dict[str, str],
    source: dict[str, str],
    error: type[StrandlineError],
    said: str,
) -> None:
    with pytest.raises(error, match=said) as refused:
        look_at_database(
            _connection(postgres, **connection),
            _source(**({"table": table} if "window_column" in source else {}) | source),
        )
    assert refused.value.transient == (error is SourceUnreachable)
    assert "wrong-sesame" not in refused.value.message


def test_mariadb_says_what_it_has(mariadb: MariaDB) -> None:
    name = f"t_{uuid4().hex[:8]}"
    mariadb.ask(f"CREATE TABLE {name} (at datetime(6), sid varchar(9))")
    shown = f"mariadb://127.0.0.1:{mariadb.port}/shop"
    assert look_at_database(mariadb.connection, _source(table=name)).startswith(
        f"{shown}: readable, {name} of "
    )
    with pytest.raises(SourceError, match=r"expected rows, found: Table 'shop\.nope' doesn't exist"):
        look_at_database(mariadb.connection, _source(table="nope"))
    wrong = JdbcConnection.parse(mariadb.url, "tests", "not the password")
    with pytest.raises(SourceError, match="expected access, found: Access denied") as refused:
        look_at_database(wrong, _source(table=name))
    assert "not the password" not in refused.value.message


def test_a_table_of_the_lake_says_what_it_has(tmp_path: Path) -> None:
    place = Place(str(tmp_path / "t"))
    write_deltalake(place.url, pa.table({"id": [1], "at": [2]}))
    source = TableSource(type="table", table="bronze/t", unit_columns={"s": "id"})
    assert (
        look_at_table(place, source) == f"{place}: readable, version 0, bronze/t has 2 columns, including id"
    )
    with pytest.raises(
        ConfigurationError, match=r"source\.unit_columns\.s: .*found idd \(did you mean id\?\)"
    ):
        look_at_table(place, TableSource(type="table", table="bronze/t", unit_columns={"s": "idd"}))
    with pytest.raises(SourceError, match="expected a table, found none"):
        look_at_table(Place(str(tmp_path / "nope")), source)


@pytest.mark.postgres
def test_doctor_tries_a_database_but_no_password(postgres: pg.Postgres, table: str, tmp_path: Path) -> None:
    (tmp_path / "dataflows").mkdir()
    url = f"jdbc:postgresql://127.0.0.1:{postgres.port}/postgres"
    (tmp_path / "platform.yaml").write_text(
        f"state: ./state\nlake: ./lake\nconnections: {{erp: {{type: jdbc, url: '{url}', user: postgres, password: {{env: PW}}}}}}\n"
    )
    (tmp_path / "dataflows" / "flow.yaml").write_text(
        f"source: {{type: jdbc, connection: erp, table: {table}, window_column: at}}\n"
        "watermark: {type: window, window: daily, definition: [{name: d, type: datetime, range: {from: '2024-01-01', to: '-'}}]}\n"
        "target: {load: merge_overwrite, replace_by_watermark: true}\n"
    )

    def doctor(password: str | None) -> dict[str, Any]:
        runner = CliRunner(env={"PW": password})
        result = runner.invoke(strandline, ["--project", str(tmp_path), "--json", "doctor", "--no-spark"])
        assert postgres.password not in result.output
        assert "wrong-sesame" not in result.output
        found: dict[str, Any] = {each["check"]: each for each in json.loads(result.stdout)["checks"]}[
            "source flow"
        ]
        return found

    assert doctor(postgres.password)["found"].endswith(
        f"readable, {table} of erp has 2 columns, including at"
    )
    assert "expected access" in doctor("wrong-sesame")["found"]
    assert "expected the environment variable PW to be set" in doctor(None)["found"]


def test_doctor_looks_into_the_folders_of_windows(tmp_path: Path) -> None:
    (tmp_path / "dataflows").mkdir()
    (tmp_path / "platform.yaml").write_text("state: ./state\nlake: ./lake\n")
    (tmp_path / "dataflows" / "flow.yaml").write_text(
        "source: {type: files, format: ndjson, path: './in/{start:%Y-%m-%d}'}\n"
        "watermark: {type: window, window: daily, definition: [{name: d, type: datetime, range: {from: '2024-01-01', to: '-'}}]}\n"
        "target: {load: merge_overwrite, replace_by_watermark: true}\n"
    )

    def doctor() -> dict[str, Any]:
        result = CliRunner().invoke(
            strandline, ["--project", str(tmp_path), "--json", "doctor", "--no-spark"]
        )
        found: dict[str, Any] = {each["check"]: each for each in json.loads(result.stdout)["checks"]}
        source: dict[str, Any] = found["source flow"]
        return source

    assert (doctor()["ok"], "in" in doctor()["found"]) == (False, True)
    (tmp_path / "in" / "2024-01-01").mkdir(parents=True)
    (tmp_path / "in" / "2024-01-01" / "a.ndjson").write_text('{"id": 1}\n')
    found = doctor()
    assert (found["ok"], found["todo"]) == (True, None)
    assert found["found"].endswith("/in: readable, 1 file")
