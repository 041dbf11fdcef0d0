"""Each type of the databases with its lowest, highest and oddest values: loaded exactly, or refused by name."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

import pytest

from resources.dialects import DIALECTS
from resources.spark.engine import SparkEngine
from scripts.postgres import Postgres
from tests.support.columns import REPLACED, Columns
from tests.support.database_types import CASES, OWN_TYPES, TypeCase
from tests.support.databases import DatabaseRows, rows_of
from tests.support.mariadb import MariaDB

pytestmark = pytest.mark.postgres

DOCS = Path(__file__).resolve().parents[2] / "docs/reference/databases.md"
DAYS = {"name": "day", "type": "datetime", "range": {"from": "2026-01-01", "to": "2026-01-03"}}
HEADINGS = {"postgresql": "### PostgreSQL", "mariadb": "### MariaDB and MySQL"}


@pytest.fixture(params=["postgres", "mariadb"])
def rows(request: pytest.FixtureRequest) -> DatabaseRows:
    rows = rows_of(cast("Postgres | MariaDB", request.getfixturevalue(request.param)))
    if rows.scheme == "postgresql" and not rows.ask("SELECT 1 FROM pg_type WHERE typname = 'pair'"):
        for statement in OWN_TYPES:
            if " mood " not in statement or not rows.ask("SELECT 1 FROM pg_type WHERE typname = 'mood'"):
                rows.ask(statement)
    return rows


def put(rows: DatabaseRows, *statements: str) -> None:
    """Run statements in a session that takes what a strict one refuses, such as zero dates."""
    if rows.scheme == "postgresql":
        for statement in statements:
            rows.ask(statement)
        return
    with cast("Any", rows).server.session() as session, session.cursor() as cursor:
        cursor.execute("SET sql_mode = '', time_zone = '+00:00'")
        for statement in statements:
            cursor.execute(statement)
        session.commit()


def flow_of(rows: DatabaseRows, folder: Path, engine: SparkEngine, **source: str) -> Columns:
    return rows.flow(folder, engine, source=source, watermark={"type": "column", "columns": ["id"]})


def table_of(rows: DatabaseRows, cases: dict[str, TypeCase]) -> str:
    table = f"types_{uuid4().hex[:8]}"
    columns = ", ".join(f"{name} {case.declared}" for name, case in cases.items())
    rows.ask(f"CREATE TABLE {table} (id int PRIMARY KEY, {columns})")
    return table


def _exact(value: Any) -> str:
    """A text that tells values apart that only compare equal, such as 1.5 and 1.50; an instant's is in UTC."""
    match value:
        case list():
            return f"[{', '.join(map(_exact, value))}]"
        case datetime() if value.tzinfo:
            return repr(value.astimezone(UTC))
    return repr(value)


@pytest.mark.each_case
def test_types_of_the_docs_load_exactly(rows: DatabaseRows, tmp_path: Path, engine: SparkEngine) -> None:
    cases = {f"c{number}": case for number, case in enumerate(CASES[rows.scheme])}
    table, count = table_of(rows, cases), max(len(case.values) for case in cases.values())
    for number in range(count + 1):  # the last row is NULL in all columns
        given = {name: case.values[number][0] for name, case in cases.items() if number < len(case.values)}
        names, values = ", ".join(["id", *given]), ", ".join([str(number), *given.values()])
        put(rows, f"INSERT INTO {table} ({names}) VALUES ({values})")
    flow = flow_of(rows, tmp_path, engine, table=table)
    flow.run()
    frame = engine.session().read.format("delta").load(str(flow.feed.table))
    types = dict(frame.dtypes)
    loaded = sorted(flow.feed.rows("id", *cases))
    assert len(loaded) == count + 1
    nulls = {case.declared: count + 1 - len(case.values) for case in cases.values()}
    expected = {
        case.declared: (
            case.loaded,
            _exact([*(value for _, value in case.values), *[None] * nulls[case.declared]]),
        )
        for case in cases.values()
    }
    actual = {
        case.declared: (types[name], _exact([row[position] for row in loaded]))
        for position, (name, case) in enumerate(cases.items(), 1)
    }
    assert {name: value for name, value in actual.items() if value != expected[name]} == {}


@pytest.mark.full
def test_a_value_that_no_table_has_gives_up(rows: DatabaseRows, tmp_path: Path, engine: SparkEngine) -> None:
    cases = {f"c{number}": case for number, case in enumerate(CASES[rows.scheme]) if case.refused}
    table = table_of(rows, cases)
    flow = flow_of(rows, tmp_path, engine, table=table)
    values = [(name, *value) for name, case in cases.items() for value in case.refused]
    for number, (name, sql, shown) in enumerate(values):
        put(rows, f"INSERT INTO {table} (id, {name}) VALUES ({number}, {sql})")
        error = flow.fail()
        assert (sql, error.code, error.transient) == (sql, "bad_value", False)
        assert f"{table} of erp: column {name}: expected " in error.message
        assert f"found {shown}" in error.message
        assert f" in the row with id = {number}. " in error.message
        assert flow.feed.open_intent is None
        put(rows, f"UPDATE {table} SET {name} = NULL WHERE id = {number}")
        flow.run()
    assert flow.ids == list(range(len(values)))


@pytest.mark.parametrize("remedy", ["null", "text"])
def test_a_corrected_definition_loads_what_was_refused_and_needs_no_decision(
    rows: DatabaseRows, tmp_path: Path, engine: SparkEngine, remedy: str
) -> None:
    cases = {f"c{number}": case for number, case in enumerate(CASES[rows.scheme]) if case.refused}
    table, dialect = table_of(rows, cases), DIALECTS[rows.connection.system]
    firsts = [case.refused[0] for case in cases.values()]
    put(rows, f"INSERT INTO {table} VALUES (1, {', '.join(sql for sql, _ in firsts)})")
    assert flow_of(rows, tmp_path, engine, table=table).fail().code == "bad_value"
    columns = [
        remedies[0 if remedy == "null" else -1].rpartition(" (")[0]
        for (name, case), (_, shown) in zip(cases.items(), firsts, strict=True)
        for is_array in [case.loaded.startswith("array")]
        for remedies in [(dialect.array_replacements if is_array else dialect.replacements)(name, shown)]
    ]
    flow = flow_of(rows, tmp_path, engine, query=f"SELECT id, {', '.join(columns)} FROM {table}")
    flow.run()
    ((_, *loaded),) = flow.feed.rows("id", *cases)
    scalars = [
        value
        for value, case in zip(loaded, cases.values(), strict=True)
        if not case.loaded.startswith("array")
    ]
    assert all(value is None if remedy == "null" else isinstance(value, str) for value in scalars)


def test_columns_of_queries_load_exactly(rows: DatabaseRows, tmp_path: Path, engine: SparkEngine) -> None:
    table = f"types_{uuid4().hex[:8]}"
    rows.ask(f"CREATE TABLE {table} (id int PRIMARY KEY, amount decimal(18,2))")
    rows.ask(f"INSERT INTO {table} VALUES (1, 10.50), (2, 0.05)")
    own = {
        "postgresql": "array_agg(id ORDER BY id) AS ids, to_json(ARRAY[ARRAY['a', 'b'], ARRAY['c', 'd']]) AS nested, '1.5'::numeric(50,10) AS wide",
        "mariadb": "CAST(sum(id) AS UNSIGNED) AS ids, max(id) <> 0 AS nested, CAST(1.5 AS DECIMAL(50,10)) AS wide",
    }[rows.scheme]
    query = f"SELECT max(id) AS id, sum(amount) AS total, {own} FROM {table}"
    flow = flow_of(rows, tmp_path, engine, query=query)
    flow.run()
    made = {"postgresql": ([1, 2], '[["a","b"],["c","d"]]'), "mariadb": (Decimal(3), 1)}[rows.scheme]
    total = Decimal("10.55") if rows.scheme == "mariadb" else Decimal("10.550000000000000000")
    assert list(map(repr, flow.feed.rows("id", "total", "ids", "nested", "wide")[0])) == list(
        map(repr, (2, total, *made, Decimal("1.5000000000")))
    )


@pytest.mark.parametrize("watermark", ["id", "exact", "name"])
def test_settings_of_the_role_change_no_value_and_no_bound(
    postgres: Postgres, tmp_path: Path, engine: SparkEngine, watermark: str
) -> None:
    rows, table = rows_of(postgres), f"größe_{uuid4().hex[:8]}"
    user, password = rows.stranger()
    for setting in (
        "DateStyle = 'SQL, DMY'",
        "client_encoding = 'LATIN1'",
        "bytea_output = 'escape'",
        "extra_float_digits = -15",
    ):
        rows.ask(f"ALTER ROLE {user} SET {setting}")
    rows.ask(
        f"CREATE TABLE {table} (id int, exact double precision, floats real[], bytes bytea[], day date, at timestamptz[], name text)"
    )
    rows.ask(f"GRANT SELECT ON {table} TO {user}")
    rows.ask(
        f"INSERT INTO {table} VALUES (1, 0.30000000000000004, '{{16777217}}', ARRAY['ab123'::bytea], '2026-03-04', '{{2026-03-04 05:06+00}}', 'ä')"
    )
    rows.user = (user, password)
    flow = rows.flow(
        tmp_path, engine, source={"table": table}, watermark={"type": "column", "columns": [watermark]}
    )
    flow.run()
    flow.run()
    ((*values, at),) = flow.feed.rows("id", "exact", "floats", "bytes", "day", "name", "at")
    assert values == [1, 0.30000000000000004, [16777216.0], [b"ab123"], date(2026, 3, 4), "ä"]
    assert at == [datetime(2026, 3, 4, 5, 6, tzinfo=UTC)]


def test_session_settings_of_urls_hold(rows: DatabaseRows, tmp_path: Path, engine: SparkEngine) -> None:
    table = f"set_{uuid4().hex[:8]}"
    if rows.scheme == "postgresql":
        schema = f"s_{uuid4().hex[:8]}"
        rows.ask(f"CREATE SCHEMA {schema}")
        rows.ask(f"CREATE TABLE public.{table} (id int PRIMARY KEY)")
        rows.ask(f"CREATE TABLE {schema}.{table} (id int PRIMARY KEY, name text)")
        rows.ask(f"INSERT INTO public.{table} VALUES (1)")
        rows.ask(f"INSERT INTO {schema}.{table} VALUES (1, 'a'), (2, 'b')")
        rows.parameters, source = f"?options=-c%20search_path={schema}", {"table": table}
    else:
        rows.ask(f"CREATE TABLE {table} (id int PRIMARY KEY, name text)")
        rows.ask(f"INSERT INTO {table} VALUES (1, 'a'), (2, 'b')")
        rows.parameters = "?sessionVariables=sql_mode='ANSI_QUOTES'"
        source = {"query": f'SELECT "id", "name" FROM {table}'}
    flow = flow_of(rows, tmp_path, engine, **source)
    flow.run()
    assert flow.feed.rows("id", "name") == [(1, "a"), (2, "b")]
    assert flow.watermark == {"id": 2}


def test_a_later_bad_value_stops_its_slice(postgres: Postgres, tmp_path: Path, engine: SparkEngine) -> None:
    rows = rows_of(postgres)
    table = f"types_{uuid4().hex[:8]}"
    rows.ask(f"CREATE TABLE {table} (id int PRIMARY KEY, amount numeric(10,2), days date[])")
    rows.ask(f"INSERT INTO {table} VALUES (1, 1.5, NULL), (2, 2.5, NULL)")
    flow = flow_of(rows, tmp_path, engine, table=table)
    flow.run()
    rows.ask(f"INSERT INTO {table} VALUES (3, 'NaN', NULL), (4, 4.5, NULL)")
    for _ in range(2):
        error = flow.fail()
        assert "column amount: expected a value that decimal(10,2) holds exactly, found NaN" in error.message
        assert (flow.ids, flow.feed.open_intent) == ([1, 2], None)
    rows.ask(f"UPDATE {table} SET amount = 3.5 WHERE id = 3")
    flow.run()
    assert flow.ids == [1, 2, 3, 4]


def test_a_bad_value_of_a_window_is_alone(rows: DatabaseRows, tmp_path: Path, engine: SparkEngine) -> None:
    table, moment = (
        f"types_{uuid4().hex[:8]}",
        "timestamp(6) NULL" if rows.scheme == "mariadb" else "timestamptz",
    )
    rows.ask(f"CREATE TABLE {table} (id int, day {moment}, other date)")
    bad = "0000-00-00" if rows.scheme == "mariadb" else "infinity"
    put(
        rows,
        f"INSERT INTO {table} VALUES (1, '2026-01-01 12:00:00', '2026-01-01'), (2, '2026-01-02 12:00:00', '{bad}')",
    )
    source = {"table": table, "window_column": "day"}
    watermark = {"type": "window", "definition": [DAYS], "window": "daily"}
    flow = rows.flow(tmp_path, engine, source=source, watermark=watermark)
    error = flow.fail()
    assert (
        f"column other: expected a date of the years 1 to 9999, found {bad} in the row with day = "
        in error.message
    )
    assert (flow.ids, flow.feed.open_intent) == ([1], None)
    put(rows, f"UPDATE {table} SET other = NULL WHERE id = 2")
    flow.run()
    assert flow.ids == [1, 2]


@pytest.mark.parametrize(
    ("declared", "named", "exact"),
    [
        ("char(3)", "a", "a  "),
        ("uuid", "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
    ],
)
def test_a_unit_spelled_otherwise_is_named_before_its_rows_are_loaded(
    postgres: Postgres, tmp_path: Path, engine: SparkEngine, declared: str, named: str, exact: str
) -> None:
    rows, table = rows_of(postgres), f"units_{uuid4().hex[:8]}"
    rows.ask(f"CREATE TABLE {table} (id int, day timestamptz, shop {declared})")
    rows.ask(f"INSERT INTO {table} VALUES (1, '2026-01-01 12:00+00', '{exact}')")
    source: dict[str, Any] = {"table": table, "window_column": "day", "unit_columns": {"shop": "shop"}}

    def flow_for(unit: str) -> Columns:
        units = {"name": "shop", "type": "unit", "units": [unit]}
        watermark = {"type": "window", "definition": [DAYS, units], "window": "daily"}
        return rows.flow(tmp_path / uuid4().hex, engine, source=source, watermark=watermark, target=REPLACED)

    error = flow_for(named).fail()
    assert (
        f"column shop: expected the value of a unit as the definition spells it ('{named}')" in error.message
    )
    assert re.search(rf"found '{exact.strip()} *' \({len(exact)} letters\) in the row with ", error.message)
    assert "Write the unit as the database has it" in error.message
    if declared == "char(3)":
        del source["table"]
        source["query"] = f"SELECT id, day, CAST(shop AS text) AS shop FROM {table}"
    unit = exact.strip()
    flow = flow_for(unit)
    flow.run()
    forced = flow.feed.cli("run", "flow", "--force", "2026-01-01..2026-01-02", "--yes", "--now", "2026-06-01")
    assert (forced.code, flow.feed.rows("id", "shop")) == (0, [(1, unit)])


def test_doctor_and_plan_name_bad_columns(rows: DatabaseRows, tmp_path: Path, engine: SparkEngine) -> None:
    query, said = {
        "postgresql": ('SELECT 1 AS id, now() AS day, 2 AS b, 3 AS "B"', "the name B occurs 2 times"),
        "mariadb": (
            "SELECT 1 AS id, now() AS day, NULL AS b",
            "b has no type: its values are all NULL. Cast it",
        ),
    }[rows.scheme]
    for number, watermark in enumerate(
        (
            {"type": "column", "columns": ["id"]},
            {"type": "window", "definition": [DAYS], "window": "daily"},
        )
    ):
        source = {"query": query} | ({"window_column": "day"} if number else {})
        flow = rows.flow(tmp_path / str(number), engine, source=source, watermark=watermark)
        planned = flow.feed.cli("plan", "flow", "--json")
        assert (planned.code, planned.error["code"]) == (1, "unreadable_column")
        assert said in planned.error["message"]
        assert said in flow.feed.cli("doctor", "--json").out
        error = flow.feed.fail()
        assert error.code == "unreadable_column"
        assert flow.feed.open_intent is None


@pytest.mark.parametrize("system", list(CASES))
def test_the_docs_have_a_line_for_each_type(system: str) -> None:
    text = DOCS.read_text().partition(HEADINGS[system])[2].partition("\n#")[0]
    lines = [line for line in text.splitlines() if line.startswith("| `")]
    assert lines == [case.line for case in CASES[system]]
