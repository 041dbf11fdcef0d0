"""What is PostgreSQL's own in a watermark log: who makes the table, what becomes of lost answers, what refusals say."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any
from uuid import uuid4

import pytest

from partitions.errors import Conflict, ProviderError, ProviderRefused
from resources.connections.postgres import Database
from resources.watermarks.blobs import open_blobs
from resources.watermarks.blobs import postgres_pool as connections
from resources.watermarks.blobs.postgres import PostgresBlobs
from resources.watermarks.lists import INGESTED_FILES, StoredList
from resources.watermarks.log import WatermarkLog
from scripts import postgres as pg
from tests.support import writers
from tests.support.http import serving
from tests.support.wire import Wire
from tests.support.writers import entry

pytestmark = pytest.mark.postgres

FLOW = "flow"
SHORT = 1.0
"""Seconds of patience where a test waits for it to end."""


@pytest.fixture
def database(postgres: pg.Postgres) -> Database:
    return postgres.database()


@pytest.fixture
def wire(postgres: pg.Postgres) -> Iterator[Wire]:
    with serving(Wire(postgres.port)) as server:
        yield server


@pytest.fixture
def far(postgres: pg.Postgres, wire: Wire, database: Database) -> WatermarkLog:
    """The log of ``database``, through the wire."""
    return WatermarkLog(open_blobs(postgres.database(database.schema, port=str(wire.port))))


@pytest.fixture
def own() -> Iterator[pg.Postgres]:
    """A server that a test may stop."""
    with pg.running() as server:
        yield server


@pytest.fixture
def role(postgres: pg.Postgres) -> Iterator[str]:
    """A role with a password, and no right to make anything."""
    name = f"role_{uuid4().hex[:12]}"
    postgres.ask(f"CREATE ROLE {{name}} LOGIN PASSWORD '{postgres.password}'", name=name)
    yield name
    postgres.ask("DROP OWNED BY {name}", name=name)
    postgres.ask("DROP ROLE {name}", name=name)


def refused(act: Callable[[], Any]) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        act()
    return caught.value


class TestTable:
    def test_reading_makes_nothing(self, postgres: pg.Postgres, database: Database) -> None:
        blobs = open_blobs(database)
        blobs.delete("a/b")
        assert (blobs.get("a/b"), blobs.first_names("a", 5)) == (None, [])
        assert postgres.ask("SELECT FROM pg_namespace WHERE nspname = %s", database.schema) == []

    def test_eight_processes_make_a_missing_schema_once_and_go_on(self, postgres: pg.Postgres) -> None:
        context, count = writers.processes(), 8
        start, told = context.Barrier(count), context.SimpleQueue()
        for _ in range(3):
            database = postgres.database()
            started = [
                context.Process(
                    target=writers.append_many, args=(database, f"flow{writer}", writer, 1, start, told)
                )
                for writer in range(count)
            ]
            for process in started:
                process.start()
            for process in started:
                process.join(60)
            assert [process.exitcode for process in started] == [0] * count
            assert [len(told.get()[0]) for _ in started] == [1] * count

    def test_people_see_entries_as_rows(self, postgres: pg.Postgres, database: Database) -> None:
        log = WatermarkLog(open_blobs(database))
        for number in (1, 2):
            log.append(FLOW, entry(number, number), expected=number - 1)
        log.put_list(FLOW, "0000000001-x", StoredList(INGESTED_FILES, []))
        rows = postgres.ask(
            "SELECT dataflow, number, entry->>'watermark' FROM {schema}.watermark_entries ORDER BY number",
            schema=database.schema,
        )
        assert rows == [(FLOW, 1, '{"value": 1}'), (FLOW, 2, '{"value": 2}')]

    def test_projects_with_schemas_of_their_own_share_a_database(self, postgres: pg.Postgres) -> None:
        one, two = (WatermarkLog(open_blobs(postgres.database())) for _ in range(2))
        one.append(FLOW, entry(1), expected=0)
        assert two.newest(FLOW) is None

    def test_names_sort_by_byte_whatever_the_collation_of_the_database(self, database: Database) -> None:
        blobs, names = open_blobs(database), ["a-1", "B", "_", "a", "A1", "a1", "10", "9"]
        for name in names:
            blobs.put(f"x/y/{name}", b"")
        blobs.put("x/other/0", b"")
        assert blobs.first_names("x/y", 100) == sorted(names)
        assert blobs.first_names("x/y", 2) == sorted(names)[:2]


class TestRights:
    def test_a_role_that_may_make_no_schema_uses_one_that_is_its_own(
        self, postgres: pg.Postgres, role: str, database: Database
    ) -> None:
        postgres.ask("CREATE SCHEMA {schema} AUTHORIZATION {role}", schema=database.schema, role=role)
        log = WatermarkLog(open_blobs(postgres.database(database.schema, user=role)))
        ours = log.append(FLOW, entry(1), expected=0)
        assert log.newest(FLOW) == ours

    def test_a_role_that_may_make_nothing_uses_a_table_that_is_there(
        self, postgres: pg.Postgres, role: str, database: Database
    ) -> None:
        first = WatermarkLog(open_blobs(database)).append(FLOW, entry(1), expected=0)
        names = {"schema": database.schema, "role": role}
        postgres.ask("GRANT USAGE ON SCHEMA {schema} TO {role}", **names)
        postgres.ask("GRANT SELECT, INSERT, UPDATE, DELETE ON {schema}.watermark_log TO {role}", **names)
        log = WatermarkLog(open_blobs(postgres.database(database.schema, user=role)))
        assert log.newest(FLOW) == first
        ours = log.append(FLOW, entry(2), expected=1)
        assert log.newest(FLOW) == ours

    def test_a_role_without_the_right_is_told_what_an_administrator_has_to_do(
        self, postgres: pg.Postgres, role: str, database: Database
    ) -> None:
        log = WatermarkLog(open_blobs(postgres.database(database.schema, user=role)))
        error = refused(lambda: log.append(FLOW, entry(1), expected=0))
        assert not error.transient
        assert f"CREATE SCHEMA {database.schema} AUTHORIZATION" in error.message

    def test_a_role_that_only_reads_cannot_append_and_is_told_so(
        self, postgres: pg.Postgres, role: str, database: Database
    ) -> None:
        first = WatermarkLog(open_blobs(database)).append(FLOW, entry(1), expected=0)
        postgres.ask("GRANT pg_read_all_data TO {role}", role=role)
        postgres.ask("ALTER ROLE {role} SET default_transaction_read_only = on", role=role)
        log = WatermarkLog(open_blobs(postgres.database(database.schema, user=role)))
        assert log.newest(FLOW) == first
        error = refused(lambda: log.append(FLOW, entry(2), expected=1))
        assert not error.transient
        assert "read-only" in error.message
        assert "name the primary" in error.message

    def test_an_answer_means_that_the_row_is_on_disk_whatever_the_role_s_settings(
        self, postgres: pg.Postgres, role: str, database: Database
    ) -> None:
        postgres.ask("ALTER ROLE {role} SET synchronous_commit = off", role=role)
        kept = connections.PostgresPool(postgres.database(database.schema, user=role), SHORT)
        assert kept.run("ask", lambda one: one.execute("SHOW synchronous_commit").fetchone()) == ("on",)


class TestConnections:
    def test_calls_one_after_another_share_a_connection(self, wire: Wire, far: WatermarkLog) -> None:
        for number in range(1, 11):
            far.append(FLOW, entry(number), expected=number - 1)
            assert far.newest(FLOW) is not None
        assert wire.faults.connections == 1

    def test_threads_share_connections_without_wait(self, postgres: pg.Postgres, database: Database) -> None:
        kept, together = connections.PostgresPool(database, SHORT), Barrier(8)
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda _: kept.run("meet", lambda one: together.wait(30)), range(8)))
        assert len(kept._idle) == connections._IDLE_CONNECTIONS

    def test_a_forked_process_opens_its_own(self, wire: Wire, far: WatermarkLog) -> None:
        first = far.append(FLOW, entry(1), expected=0)
        context = multiprocessing.get_context("fork")
        child = context.Process(target=far.append, args=(FLOW, entry(2)), kwargs={"expected": 1})
        child.start()
        child.join(60)
        assert (child.exitcode, wire.faults.connections) == (0, 2)
        newest = far.newest(FLOW)
        assert newest is not None
        assert (first.number, newest.number, wire.faults.connections) == (1, 2, 2)

    def test_a_server_that_was_restarted_between_two_calls_is_not_noticed(self, own: pg.Postgres) -> None:
        log = WatermarkLog(open_blobs(own.database()))
        first = log.append(FLOW, entry(1), expected=0)
        own.stop()
        own.start()
        assert log.newest(FLOW) == first
        own.stop()
        own.start()
        second = log.append(FLOW, entry(2), expected=1)
        assert log.newest(FLOW) == second

    def test_a_call_waits_for_a_server_that_comes_back(self, own: pg.Postgres) -> None:
        log = WatermarkLog(open_blobs(own.database()))
        log.append(FLOW, entry(1), expected=0)
        own.stop()
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(log.append, FLOW, entry(2), expected=1)
            own.start()
            assert waiting.result(60).number == 2

    def test_a_server_that_stays_away_is_transient_and_told_without_password(self, own: pg.Postgres) -> None:
        database = own.database()
        log = WatermarkLog(PostgresBlobs(database, patience=SHORT))
        log.append(FLOW, entry(1), expected=0)
        own.stop()
        for ask in (
            lambda: log.newest(FLOW),
            lambda: log.intent(FLOW, 1),
            lambda: log.append(FLOW, entry(2), expected=1),
        ):
            error = refused(ask)
            assert error.transient
            assert f"watermark store postgresql://127.0.0.1:{own.port}/postgres" in error.message
            assert "Connection refused" in error.message
            assert own.password not in f"{error} {error.__cause__!r}"
        own.start()
        newest = log.newest(FLOW)
        assert newest is not None
        assert newest.number == 1

    def test_a_standby_is_refused_since_what_it_shows_may_be_old(self, own: pg.Postgres) -> None:
        log = WatermarkLog(open_blobs(own.database()))
        first = log.append(FLOW, entry(1), expected=0)
        with own.standby():
            error = refused(lambda: log.newest(FLOW))
            assert not error.transient
            assert "standby" in error.message
            assert "name the primary" in error.message
        assert log.newest(FLOW) == first

    def test_of_several_servers_the_primary_is_taken(self, own: pg.Postgres, postgres: pg.Postgres) -> None:
        own.ask(f"ALTER ROLE postgres PASSWORD '{postgres.password}'")
        own.password = postgres.password
        database = postgres.database()
        first = WatermarkLog(open_blobs(database)).append(FLOW, entry(1), expected=0)
        user = f"postgresql://postgres:{postgres.password}@127.0.0.1"
        both = f"{user}:{own.port},127.0.0.1:{postgres.port}/postgres?schema={database.schema}"
        without = f"{user}:{own.port},127.0.0.1:1/postgres?schema={database.schema}"
        with own.standby():
            assert WatermarkLog(open_blobs(Database.parse(both))).newest(FLOW) == first
            log = WatermarkLog(PostgresBlobs(Database.parse(without), SHORT))
            error = refused(lambda: log.newest(FLOW))
        assert error.transient, "one of them may be about to become it"
        assert "hot standby" in error.message


class TestLostAnswers:
    def test_an_append_whose_answer_is_lost_is_found_to_be_ours(
        self, wire: Wire, far: WatermarkLog, capsys: pytest.CaptureFixture[str]
    ) -> None:
        far.append(FLOW, entry(1), expected=0)
        wire.faults.lose = 1
        ours = entry(2)
        assert far.append(FLOW, ours, expected=1) == ours
        assert (far.newest(FLOW), wire.faults.lose) == (ours, 0)
        assert capsys.readouterr().out == "", "stdout is for the JSON of a command"

    def test_a_first_append_with_a_lost_answer_is_found_as_ours(self, wire: Wire, far: WatermarkLog) -> None:
        wire.faults.marker, wire.faults.lose = b"COMMIT", 1
        ours = entry(1)
        assert far.append(FLOW, ours, expected=0) == ours
        assert (far.newest(FLOW), wire.faults.lose) == (ours, 0)

    def test_an_append_that_lost_its_answer_and_the_race_is_a_conflict(
        self, wire: Wire, far: WatermarkLog, database: Database
    ) -> None:
        theirs = WatermarkLog(open_blobs(database)).append(FLOW, entry(1), expected=0)
        wire.faults.lose = 1
        with pytest.raises(Conflict):
            far.append(FLOW, entry(1), expected=0)
        assert (far.newest(FLOW), wire.faults.lose) == (theirs, 0)

    def test_an_append_whose_every_answer_is_lost_is_an_error_and_is_whole(
        self, postgres: pg.Postgres, wire: Wire, database: Database
    ) -> None:
        far = WatermarkLog(PostgresBlobs(postgres.database(database.schema, port=str(wire.port)), SHORT))
        near = WatermarkLog(open_blobs(database))
        near.append(FLOW, entry(1), expected=0)
        wire.faults.lose = 1000
        ours = entry(2)
        assert refused(lambda: far.append(FLOW, ours, expected=1)).transient
        assert near.newest(FLOW) == ours
        wire.faults.lose = 0
        assert far.append(FLOW, ours, expected=1) == ours, "trying again finds it"

    def test_a_server_that_keeps_silent_is_given_up_and_the_append_is_whole(
        self, postgres: pg.Postgres, wire: Wire, database: Database, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(connections, "_ANSWER_SECONDS", SHORT)
        far = WatermarkLog(PostgresBlobs(postgres.database(database.schema, port=str(wire.port)), SHORT))
        WatermarkLog(open_blobs(database)).append(FLOW, entry(1), expected=0)
        wire.faults.frozen = True
        ours = entry(2)
        error = refused(lambda: far.append(FLOW, ours, expected=1))
        assert error.transient
        assert "has not answered within 1 s" in error.message
        wire.faults.frozen = False
        assert far.append(FLOW, ours, expected=1) == ours


class TestRefused:
    def test_a_wrong_password_is_refused_and_not_shown(self, postgres: pg.Postgres, wire: Wire) -> None:
        log = WatermarkLog(open_blobs(postgres.database(password="wrong-sesame", port=str(wire.port))))
        error = refused(lambda: log.newest(FLOW))
        assert isinstance(error, ProviderRefused)
        assert "password authentication failed" in error.message
        assert "correct the user and password" in error.message
        assert "sesame" not in f"{error} {error.__cause__!r}"
        assert wire.faults.connections == 1, "tried once"

    def test_a_database_that_is_not_there_is_refused_at_once(self, postgres: pg.Postgres, wire: Wire) -> None:
        url = postgres.url("no_such_database", port=str(wire.port))
        error = refused(lambda: WatermarkLog(open_blobs(Database.parse(url))).newest(FLOW))
        assert isinstance(error, ProviderRefused)
        assert 'database "no_such_database" does not exist' in error.message
        assert "create the database" in error.message
        assert wire.faults.connections == 1, "tried once"

    def test_a_server_without_encryption_is_refused_where_asked_for_it(self, postgres: pg.Postgres) -> None:
        database = Database.parse(f"{postgres.url()}?sslmode=require")
        error = refused(lambda: WatermarkLog(open_blobs(database)).newest(FLOW))
        assert isinstance(error, ProviderRefused)
        assert "SSL" in error.message
