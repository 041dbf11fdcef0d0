"""Names, values, state text and queries of a user are data for both databases, whatever letters they hold and however the server reads quotes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from partitions.column.predicates import ColumnRange, rows_in_ranges
from partitions.dataflow import Dataflow
from partitions.errors import ConfigurationError
from partitions.predicate import AllOf, Among
from resources.connections.places import Place
from resources.dialects import DIALECTS
from resources.sources.jdbc.client import Client, client
from resources.sources.jdbc.source import JdbcRows
from resources.sources.registry import open_source
from resources.spark.engine import SparkEngine
from resources.staging import Staging
from scripts.postgres import Postgres
from tests.support import mariadb as maria
from tests.support.databases import DatabaseRows, OnMariaDB, OnPostgres, rows_of
from tests.support.feed import Feed

pytestmark = pytest.mark.postgres

NOW = datetime(2026, 6, 1, tzinfo=UTC)
WORDS = (
    "'", "''", '"', "\\", "\\'", "\\\\", "`", "; DROP TABLE x; --", "' OR '1'='1", "*/ --", "#", "$$", "$1 ? :name %s %(a)s {start} {{x}}", "{fn now()}",
    "a\nb", "a\rb\t", "ä", "𝄞", "\u202e", "NULL", " ", "a ", "0x41", "\\x41", "%_", "~", "\x7f", "x" * 100_000,
)  # fmt: skip
NAMES = (
    'we"ird', "back`tick", "qu'ote", "semi;colon -- x", "a /* b */", "back\\slash", "per%cent %s", "{brace}", "{fn now()}", ":name", "?", "$$", "ünï",
    "dot.ted", "new\nline", "select", "UPPER", "x" * 60,
)  # fmt: skip

few = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
texts = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=40
) | st.sampled_from(WORDS)


@pytest.fixture(scope="module")
def odd_mariadb() -> Iterator[maria.MariaDB]:
    """A server on which a backslash escapes nothing, and double quotes are those of names."""
    if not maria.available():
        pytest.skip("needs MariaDB")
    with maria.running() as server:
        server.ask("SET GLOBAL sql_mode = 'ANSI_QUOTES,NO_BACKSLASH_ESCAPES,STRICT_TRANS_TABLES'")
        yield server


@pytest.fixture(scope="module", params=["postgres", "postgres, odd", "mariadb", "mariadb, odd"])
def database(request: pytest.FixtureRequest) -> DatabaseRows:
    """A table of each server, as it is set up as a rule, and as it reads quotes otherwise."""
    if request.param == "mariadb, odd":
        return rows_of(request.getfixturevalue("odd_mariadb"))
    rows = rows_of(request.getfixturevalue(request.param.partition(",")[0]))
    if request.param == "postgres, odd":
        rows.user = rows.reader()
        rows.ask(f"ALTER ROLE {rows.user[0]} SET standard_conforming_strings = off")
        rows.ask(f"ALTER ROLE {rows.user[0]} SET backslash_quote = off")
        rows.ask(f"GRANT CREATE ON SCHEMA public TO {rows.user[0]}")
    return rows


@pytest.fixture(scope="module")
def asking(database: DatabaseRows) -> Iterator[Client]:
    with client(database.connection) as opened:
        yield opened


def source(database: DatabaseRows, **given: Any) -> JdbcRows:
    dataflow = Dataflow.model_validate(
        {
            "name": "flow",
            "source": {"type": "jdbc", "connection": "erp", **given},
            "watermark": {"type": "column", "columns": ["id"]},
        }
    )
    return cast("JdbcRows", open_source(dataflow, database.connection, Staging(Place("/nowhere"))))


@few
@given(text=texts)
def test_any_text_comes_back_as_it_is(asking: Client, text: str) -> None:
    assert asking.value(f"SELECT {asking.dialect.literal(text)}") == text


@few
@given(stored=st.lists(texts, min_size=1, max_size=4), bound=texts)
def test_texts_are_compared_by_their_bytes(asking: Client, stored: list[str], bound: str) -> None:
    dialect = asking.dialect
    union = " UNION ALL ".join(f"SELECT {dialect.literal(text)} AS word" for text in stored)
    above = asking.ask(f"SELECT count(*) FROM ({union}) rows_ WHERE {dialect.compared('word', '>', bound)}")
    assert above == [(sum(text.encode() > bound.encode() for text in stored),)]
    among = asking.ask(f"SELECT count(*) FROM ({union}) rows_ WHERE {dialect.among('word', [bound])}")
    assert among == [(stored.count(bound),)]


@few
@given(
    name=st.text(
        st.characters(exclude_categories=["Cc", "Cs"], max_codepoint=0xFFFF), min_size=1, max_size=15
    ).filter(lambda name: name.strip() == name)
)
def test_any_name_is_a_name(asking: Client, name: str) -> None:
    quoted = asking.dialect.name(name)
    described = asking.describe(f"SELECT {quoted} FROM (SELECT 1 AS {quoted}) AS rows_ WHERE {quoted} = 1")
    assert [column.name for column in described] == [name]


def test_odd_names_of_schemas_and_columns_are_read(database: DatabaseRows, engine: SparkEngine) -> None:
    made = f'a"b`;.{uuid4().hex[:6]}'
    with administrator(database) as run:
        named = DIALECTS[database.connection.system].name
        if database.scheme == "postgresql":
            run(f"CREATE SCHEMA {named(made)}")
        table = [made, "t\"'; --"] if database.scheme == "postgresql" else [made]
        columns = ", ".join(f"{named(name)} varchar(20)" for name in NAMES)
        full = ".".join(map(named, table))
        run(f"CREATE TABLE {full} (id int, {columns})")
        run(
            f"INSERT INTO {full} VALUES (1, {', '.join(['NULL'] * len(NAMES))}), (2, {', '.join(['1'] * len(NAMES))})"
        )
        if database.user is not None:
            run(
                f"GRANT USAGE ON SCHEMA {named(made)} TO {database.user[0]}; GRANT SELECT ON {full} TO {database.user[0]}"
            )
    written = ".".join('"' + part.replace('"', '""') + '"' for part in table)
    rows, spark = source(database, table=written), engine.session()
    seen = rows.observe(NAMES, NOW)
    assert dict(seen.kinds) == dict.fromkeys(NAMES, "text")
    pinned = rows.pin(spark)
    asked = [rows_in_ranges([ColumnRange(name, "0", "2")]) for name in NAMES]
    (found,) = rows.read_rows(spark, [AllOf(tuple(asked))], pinned).collect()
    assert found.asDict() == {"id": 2, **dict.fromkeys(NAMES, "1")}


def test_a_text_watermark_of_any_letters_is_stored_and_read_above(
    database: DatabaseRows, tmp_path: Path, engine: SparkEngine
) -> None:
    table = f"words_{uuid4().hex[:8]}"
    kind = "text" if database.scheme == "postgresql" else "longtext CHARACTER SET utf8mb4"
    database.ask(f"CREATE TABLE {table} (id int, word {kind})")
    if database.user is not None:
        database.ask(f"GRANT SELECT ON {table} TO {database.user[0]}")
    flow = database.flow(
        tmp_path, engine, source={"table": table}, watermark={"type": "column", "columns": ["word"]}
    )
    ordered = sorted(WORDS, key=str.encode)
    # The middle one is the stored watermark of the second run, and so are those of the others.
    for end in (9, 10, 11, len(ordered)):
        first = len(flow.ids)
        with administrator(database) as run:
            for number in range(first, end):
                run(f"INSERT INTO {table} VALUES ({number}, %s)", ordered[number])
        flow.run()
        assert flow.feed.rows("id", "word") == [(number, ordered[number]) for number in range(end)]
        assert flow.watermark == {"word": ordered[end - 1]}
        assert flow.run().status == "nothing"
    assert database.ask(f"SELECT count(*) FROM {database.name}") == [(0,)]


def test_a_value_set_by_hand_is_never_taken_for_sql(database: DatabaseRows, tmp_path: Path) -> None:
    flow = database.flow(tmp_path, SparkEngine(), watermark={"type": "column", "columns": ["filler"]})
    for text in ("x' OR 1=1; DROP TABLE rows_; --", '\\"; --', "\\' OR 1=1 #"):
        with client(database.connection) as asked:
            questions = source(database, table=database.name)._questions
            assert asked.ask(questions.some(Among("filler", (text,)))) == []
    assert flow.feed.platform.plan(flow.feed.dataflow, NOW).slices == ()


@pytest.mark.parametrize("database", ["postgres"], indirect=True)
def test_a_nul_which_postgresql_cannot_hold_is_refused_before_it_is_asked(database: DatabaseRows) -> None:
    with pytest.raises(ConfigurationError, match="found a NUL"):
        source(database, table=database.name).holds_any(Among("filler", ("a\x00b",)))


QUERIES = (
    "SELECT id, at FROM {t};",
    "SELECT id, at FROM {t} ; ; \n\t;",
    "SELECT id, at FROM {t} -- the end",
    "SELECT id, at FROM {t} -- the end;\n-- and more",
    "SELECT id, at FROM {t} /* the ; end */ ;",
    "-- first\nSELECT id, at FROM {t}",
    "SELECT id, at FROM {t} WHERE ')' = ')' OR '--' = ';'",
    "SELECT id, at FROM {t} WHERE '(' <> '/*' OR id < 0",
    "SELECT id, at FROM {t} WHERE '-- ' <> 'it''s' /* */ ",
    "SELECT id, at FROM {t} WHERE '{fn now()}' <> ':name ? %s %(x)s' OR '}' = '{'",
    "SELECT id, at FROM {t} UNION ALL SELECT id, at FROM {t} WHERE id < 0",
    "WITH a AS (SELECT id, at FROM {t}) SELECT * FROM a WHERE id > 0 OR id < 0",
    "(SELECT id, at FROM {t})",
    "SELECT id, at FROM {t} ORDER BY id",
)
OWN = {
    "postgresql": (
        "SELECT id, at FROM {t} WHERE $$ -- '; $$ <> $a$ $$ $a$",
        "SELECT id, at FROM {t} WHERE E'\\\\''' <> 'x' AND '{\"a\": 1}'::jsonb ? 'a'",
        "SELECT id, at FROM {t} WHERE '{\"a\": 1}'::jsonb ?| array['a'] -- ?",
        "SELECT id, at FROM {t} /* a /* b */ ; */",
    ),
    "mariadb": (
        "SELECT id, at FROM {t} # the end;",
        "SELECT id, at FROM {t} WHERE 1--1 = 2",
        "SELECT `id`, at FROM {t} -- ",
    ),
}


@pytest.mark.full
def test_a_query_is_read_whatever_it_ends_with_and_holds(database: DatabaseRows, engine: SparkEngine) -> None:
    """Rows above an id, around the query: an OR in it stays within it."""
    database.ask(f"DELETE FROM {database.name}")
    database.fill(3)
    above, spark = rows_in_ranges([ColumnRange("id", 2, None)]), engine.session()
    frames = []
    queries = [*QUERIES, *OWN[database.scheme]]
    for text in queries:
        rows = source(database, query=text.replace("{t}", database.name))
        assert (text, rows.highest("id", above)) == (text, 3)
        frames.append(rows.read_rows(spark, [above], rows.pin(spark)).select("id"))
    for text, frame in zip(queries, frames, strict=True):
        assert (text, [row.id for row in frame.collect()]) == (text, [3])
    database.ask(f"DELETE FROM {database.name}")


@contextmanager
def administrator(database: DatabaseRows) -> Iterator[Any]:
    """Runs statements that hold braces and per cents as they are, unless they come with values."""
    if isinstance(database, OnPostgres):
        url = database.server.url()
        with psycopg.connect(url, autocommit=True) as session:
            yield lambda statement, *values: session.execute(statement.encode(), values or None)
        return
    assert isinstance(database, OnMariaDB)
    with database.server.session() as session, session.cursor() as cursor:
        yield lambda statement, *values: cursor.execute(statement, values or None)
        session.commit()


def test_text_that_is_no_utf8_is_refused_by_row(
    tmp_path: Path, engine: SparkEngine, postgres: Postgres
) -> None:
    name = f"bytes_{uuid4().hex[:8]}"
    postgres.ask(
        f"CREATE DATABASE {name} ENCODING 'SQL_ASCII' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'"
    )
    with psycopg.connect(postgres.url().rpartition("/")[0] + f"/{name}", autocommit=True) as server:
        server.execute("SET client_encoding TO 'SQL_ASCII'")
        server.execute(b"CREATE TABLE t (id bigint, at timestamptz, word text)")
        server.execute(
            b"INSERT INTO t VALUES (1, '2026-01-01Z', E'\\xc3\\xa4'), (7, '2026-01-02Z', E'a\\xff')"
        )
    shop = {"type": "jdbc", "url": {"env": "URL"}, "user": "postgres", "password": {"env": "PASSWORD"}}
    feed = Feed(
        tmp_path,
        engine,
        {
            "source": {"type": "jdbc", "connection": "shop", "table": "t"},
            "watermark": {"type": "column", "columns": ["id"]},
        },
        {"connections": {"shop": shop}},
        {"PASSWORD": postgres.password, "URL": f"jdbc:postgresql://127.0.0.1:{postgres.port}/{name}"},
    )
    error = feed.fail(now=NOW)
    assert error.code == "bad_value"
    assert "column word: expected text in UTF-8, found the bytes 61ff in the row with id = 7" in error.message
    remedy = error.message.partition("in which the column is ")[2].partition(" (if its")[0]
    query = f"SELECT id, at, {remedy} FROM t WHERE id = 7"
    feed.definition["source"] = {"type": "jdbc", "connection": "shop", "query": query}
    feed.define()
    outcome = feed.run(now=NOW)
    assert outcome.error is None, outcome.error
    assert feed.rows("id", "word") == [(7, "aÿ")]
