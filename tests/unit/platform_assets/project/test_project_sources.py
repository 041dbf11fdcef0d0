"""Databases and tables of the lake as sources, in project files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from partitions.dataflow import Dataflow
from partitions.errors import ConfigurationError
from partitions.fingerprint import fingerprint
from platform_assets.project import ProjectError
from resources.connections.jdbc import JdbcConnection
from resources.connections.places import Place

if TYPE_CHECKING:
    from tests.unit.platform_assets.project.conftest import Make

SECRET = "hunter2-and-more"
ERP = "connections: {erp: {type: jdbc, url: 'jdbc:postgresql://h:5433/erp', user: me, password: {env: PW}}, land: {type: s3}}\n"
WINDOW = """\
watermark:
  type: window
  window: daily
  definition: [{name: day, type: datetime, range: {from: "2024-01-01", to: "-"}}]
target: {load: merge_overwrite, replace_by_watermark: true}
"""
NEEDS_FILES = (
    "watermark.type",
    "a source of type files (a path watermark needs files)",
)

NAMED = "package.module:name"

# The text of `source`; then key, found, expected, nearest of its errors beside that of the path watermark.
SOURCES: list[tuple[str, list[tuple[str, str, str, str | None]]]] = [
    ("{type: jdbc, connection: erp, table: public.orders}", []),
    ("{type: jdbc, connection: erp, table: '\"a.b\".t', window_column: at, unit_columns: {s: sid}}", []),
    ("{type: jdbc, connection: erp, query: 'select * from t where at >= {start} and x = {unit.a}'}", []),
    ("{type: table, table: bronze/flights, window_column: at, unit_columns: {s: sid}}", []),
    ("{type: python, function: 'shop:orders', params: {pages: 3, tags: [a, b]}, schema: 'id long'}", []),
    (
        "{type: python, function: shop, connection: erp, params: {api_token: x}, highest: 'shop:'}",
        [
            ("source.connection", "erp, of type jdbc", "a connection of type python", None),
            ("source.function", "shop", NAMED, None),
            ("source.highest", "shop:", NAMED, None),
            (
                "source.params.api_token",
                "the parameter api_token, a secret by its name",
                "it in a setting of the connection, as {env: NAME}; or another name, if api_token is no secret",
                None,
            ),
        ],
    ),
    ("{type: jdbc, connection: erb, table: t}", [("source.connection", "erb", "one of the connections of platform.yaml: erp", "erp")]),
    ("{type: jdbc, connection: land, table: t}", [("source.connection", "land, of type s3", "a connection of type jdbc", None)]),
    ("{type: jdbc, table: t}", [("source.connection", "nothing", "text (this key is required)", None)]),
    ("{type: jdbc, connection: erp}", [("source", "neither", "table or query", None)]),
    ("{type: jdbc, connection: erp, table: t, query: select 1}", [("source.table", "table and query", "one of them (table and query cannot stand together)", None)]),
    ("{type: jdbc, connection: erp, table: a..b}", [("source.table", "a..b", "table or schema.table; a part with a dot or a blank is quoted, '\"a.b\".t'", None)]),
    (
        "{type: jdbc, connection: erp, tabel: t, query: select 1}",
        [
            (
                "source.tabel",
                "an unknown key",
                "one of complete, connection, query, table, type, unit_columns, window_column",
                "table",
            )
        ],
    ),
    (
        "{type: jdbc, connection: erp, table: t, format: csv}",
        [
            (
                "source.format",
                "an unknown key",
                "one of complete, connection, query, table, type, unit_columns, window_column; format belongs in target",
                None,
            )
        ],
    ),
    (
        "{type: table, table: bronze/flights, connection: erp}",
        [
            (
                "source.connection",
                "an unknown key",
                "one of complete, from, on_change, table, type, unit_columns, window_column",
                None,
            )
        ],
    ),
    (
        "{type: table, table: flights, window_column: 5}",
        [
            ("source.table", "flights", "<layer>/<name>, letters, digits and underscores", None),
            ("source.window_column", "5", "text (put it in quotes)", None),
        ],
    ),
    (
        "{type: table, table: bronze/f, window_column: at, unit_columns: {a: x, b: at}}",
        [
            (
                "source.window_column",
                "at twice",
                "a column of its own for each (window_column and unit_columns)",
                None,
            )
        ],
    ),
    (
        "{type: jdbc, connection: erp, query: 'select {strat}'}",
        [
            (
                "source.query",
                "the placeholder {strat}",
                "{start}, {end} or {unit.NAME}; a text in braces is written {{so}}",
                "{start}",
            )
        ],
    ),
    (
        "{type: jdbc, connection: erp, query: 'select {start:%Q}'}",
        [
            (
                "source.query",
                "the placeholder {start:%Q}",
                "a form of %Y %m %d %H %M %S %f %j %y %z %%, such as {start:%Y-%m-%d}",
                None,
            )
        ],
    ),
    (
        "{type: jdbc, connection: erp, query: \"select 1 where a = '{unit.a}'\"}",
        [
            (
                "source.query",
                "{unit.a} in quotes",
                "placeholders outside of quotes and comments, since Strandline quotes each value",
                None,
            )
        ],
    ),
    ("{type: jdbc, connection: erp, query: ' ; -- nothing'}", [("source.query", "' ; -- nothing'", "a query, such as SELECT * FROM orders", None)]),
]  # fmt: skip


@pytest.mark.parametrize(("source", "errors"), SOURCES, ids=lambda value: None)
def test_a_mistake_in_a_source_is_named_with_its_key(
    make: Make, source: str, errors: list[tuple[str, str, str, str | None]]
) -> None:
    refused = make(f"source: {source}\nwatermark: {{type: path}}\n", platform=ERP).errors
    others = [error for error in refused if (error.key, error.expected) != NEEDS_FILES]
    assert others == [
        ProjectError("dataflows/flow.yaml", 1, key, said, expected, close)
        for key, said, expected, close in errors
    ]
    assert len(refused) == len(others) + 1


def test_each_mistake_has_its_own_line(make: Make) -> None:
    text = "source:\n  type: table\n  table: x\n  unit_columns:\n    a: ''\nwatermark:\n  type: path\n"
    assert [(error.line, error.key) for error in make(text).errors] == [
        (3, "source.table"),
        (5, "source.unit_columns.a"),
        (7, "watermark.type"),
    ]


def test_a_mistake_in_what_lists_the_units_is_named_with_its_line(make: Make) -> None:
    listed = """\
  secondary_input:
    - {fields: [u], source: {type: jdbc, connection: erb, query: select 1}}
    - fields: [u]
      source:
        type: api
        connection: erp
        path: /units
        params: {token: {env: PW}}
    - fields: [u]
      source:
        type: files
        path: ./units
        format: avro
target:"""
    source = "source: {type: table, table: bronze/e, window_column: at, unit_columns: {u: u}}\n"
    text = source + WINDOW.replace("target:", listed)
    key = "watermark.secondary_input"
    refused = make(text, platform=ERP, environment={"PW": SECRET}).errors
    assert [(error.line, error.key, error.nearest) for error in refused] == [
        (7, f"{key}.0.source.connection", "erp"),
        (11, f"{key}.1.source.connection", None),
        (13, f"{key}.1.source.params.token", None),
        (18, f"{key}.2.source.format", None),
    ]
    assert SECRET not in str(refused)


@pytest.mark.parametrize("kind", ["jdbc", "table"])
def test_a_path_watermark_needs_files(make: Make, kind: str) -> None:
    errors = {
        error.key: error for error in make(f"source: {{type: {kind}}}\nwatermark: {{type: path}}\n").errors
    }
    assert errors["watermark.type"].actual == f"path beside a source of type {kind}"
    assert errors["watermark.type"].expected == NEEDS_FILES[1]


CONNECTIONS = [
    ("{type: jdbc, url: 'postgresql://h/db'}", "connections.erp.url", "a URL of another form"),
    ("{type: jdbc, url: 'jdbc:oracle:thin:@h:1:x'}", "connections.erp.url", "a URL of another form"),
    ("{type: jdbc}", "connections.erp.url", "nothing"),
    ("{type: jdbc, url: 'jdbc:postgresql://h/db', pasword: {env: X}}", "connections.erp.pasword", "an unknown key"),
    ("{type: jdbc, url: 'jdbc:postgresql://h/db', password: X}", "connections.erp.password", "a secret in plain text"),
    ("{type: jdbc, url: 'jdbc:mariadb://h/db?keyStorePassword=X'}", "connections.erp.url", "a secret in plain text"),
    ("{type: jdbc, url: 'jdbc:mariadb://h/db?a=b&trustStorePassword=X'}", "connections.erp.url", "a secret in plain text"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "key", "found"), CONNECTIONS)
def test_a_wrong_connection_is_named_without_secrets(make: Make, text: str, key: str, found: str) -> None:
    (error,) = make(platform=f"connections: {{erp: {text.replace('X', SECRET)}}}\n").errors
    assert (error.key, error.actual) == (key, found)
    assert SECRET not in error.message


def test_connections_are_named_by_their_keys_whatever_these_are(make: Make) -> None:
    project = make(
        platform="connections: {type: {type: s3}, jdbc: {type: jdbc, url: x}, s3: {type: jdbc, user: 5}}\n"
    )
    assert [error.key for error in project.errors] == [
        "connections.jdbc.url",
        "connections.s3.url",
        "connections.s3.user",
    ]


def test_a_database_has_its_secrets_when_it_is_used_and_shows_none(make: Make) -> None:
    project = make(platform=ERP, environment={"PW": SECRET})
    assert project.errors == []
    connection = project.connection("erp", JdbcConnection)
    assert (connection.url, connection.user, connection.options["password"]) == (
        "jdbc:postgresql://h:5433/erp",
        "me",
        SECRET,
    )
    assert SECRET not in repr(connection) + str(connection) + repr(project)
    assert project.hide(f"refused: {SECRET}!") == "refused: {env: PW}!"


def test_a_password_in_an_address_of_the_environment_is_hidden_too(make: Make) -> None:
    platform = "connections: {erp: {type: jdbc, url: {env: URL}}}\n"
    url = f"jdbc:postgresql://h/db?user=me&password={SECRET}&ssl=true"
    project = make(platform=platform, environment={"URL": url})
    connection = project.connection("erp", JdbcConnection)
    assert (connection.url, connection.user) == ("jdbc:postgresql://h/db?ssl=true", "me")
    assert project.hide(f"refused: {SECRET}!") == "refused: ***!"


def test_an_address_of_the_environment_that_is_none_is_an_error_at_use(make: Make) -> None:
    project = make(
        platform="connections: {erp: {type: jdbc, url: {env: URL}}}\n", environment={"URL": f"h:{SECRET}"}
    )
    assert project.errors == []
    with pytest.raises(
        ConfigurationError, match=r"^connections\.erp\.url: expected jdbc:postgresql://"
    ) as refused:
        project.connection("erp", JdbcConnection)
    assert SECRET not in refused.value.message


def test_a_dataflow_does_not_load_its_own_table(make: Make) -> None:
    source = "source: {type: table, table: bronze/flow, window_column: at}\n"
    (error,) = make(source + WINDOW).errors
    assert (error.key, error.actual) == ("source.table", "bronze/flow, the dataflow's own table")


def test_dataflows_in_a_cycle_are_refused_and_those_that_only_read_them_are_not(make: Make) -> None:
    def reads(table: str, more: str = "") -> str:
        return f"source: {{type: table, table: {table}, window_column: at}}\n{WINDOW}{more}"

    project = make(
        reads("bronze/other"),
        files={"dataflows/other.yaml": reads("bronze/flow"), "dataflows/reader.yaml": reads("bronze/flow")},
    )
    assert [(error.file, error.line, error.key) for error in project.errors] == [
        ("dataflows/flow.yaml", 1, "source.table"),
        ("dataflows/other.yaml", 1, "source.table"),
    ]
    assert project.errors[0].actual == "bronze/other, loaded by other, which reads rows of flow"
    assert project.errors[0].expected == "no cycle of dataflows: none of them could run first"
    assert list(project.dataflows) == ["reader"]


def test_what_reads_the_table_of_a_broken_dataflow_knows_it(make: Make) -> None:
    project = make(
        f"source: {{type: table, table: silver/t, window_column: at}}\n{WINDOW}",
        files={"dataflows/bad.yaml": "layer: raw\ntarget: {table: silver/t}\nsource: {type: nothing}\n"},
    )
    assert project.lineage.upstream_dataflows("flow") == ("bad",)
    assert project.lineage.upstream_assets(project.dataflows["flow"]) == ("raw/bad",)


def test_the_place_of_each_source_is_where_its_rows_are(make: Make) -> None:
    project = make(
        f"source: {{type: table, table: bronze/flights, window_column: at}}\n{WINDOW}",
        platform=f"lake: s3://b/lake\n{ERP}",
        files={
            "dataflows/other.yaml": f"source: {{type: jdbc, connection: erp, table: t, window_column: at}}\n{WINDOW}"
        },
        environment={"PW": SECRET},
    )
    assert project.errors == []
    assert project.source_place(project.dataflows["flow"]) == Place("s3://b/lake/bronze/flights")
    assert project.source_place(project.dataflows["other"]) == JdbcConnection.parse(
        "jdbc:postgresql://h:5433/erp", "me", SECRET
    )


@pytest.mark.parametrize(
    "change",
    [
        {"table": "b"},
        {"table": None, "query": "select 1"},
        {"table": "b", "connection": "other"},
        {"window_column": "later"},
        {"unit_columns": {"s": "other"}},
    ],
)
def test_another_source_is_another_definition(change: dict[str, Any]) -> None:
    source = {
        "type": "jdbc",
        "connection": "erp",
        "table": "a",
        "window_column": "at",
        "unit_columns": {"s": "sid"},
    }
    assert fingerprint(_flow(source)) == fingerprint(_flow({**source}))
    assert fingerprint(_flow(source)) != fingerprint(_flow(source | change))


def test_what_only_files_have_is_refused_of_other_sources() -> None:
    flow = _flow(
        {"type": "table", "table": "bronze/flights", "window_column": "at", "unit_columns": {"s": "sid"}}
    )
    with pytest.raises(ConfigurationError, match="expected a source of type files, found table"):
        _ = flow.files


def _flow(source: dict[str, Any]) -> Dataflow:
    entries = [
        {"name": "day", "type": "datetime", "range": {"from": "2024-01-01", "to": "-"}},
        {"name": "s", "type": "unit", "units": "a,b"},
    ]
    return Dataflow.model_validate(
        {
            "name": "flow",
            "source": source,
            "watermark": {"type": "window", "window": "daily", "definition": entries},
            "target": {"load": "merge_overwrite", "replace_by_watermark": True},
        }
    )


def test_jsonl_is_another_name_of_ndjson(make: Make) -> None:
    text = "source: {type: files, path: x, format: FORM}\nwatermark: {type: path}\n"
    project = make(
        text.replace("FORM", "jsonl"), files={"dataflows/same.yaml": text.replace("FORM", "ndjson")}
    )
    flow, same = (project.dataflows[name].source for name in ("flow", "same"))
    assert flow == same
    assert flow.reading() == same.reading()


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_unknown_fields_are_left_out_of_formats_that_have_them_alone(make: Make, form: str) -> None:
    text = f"source: {{type: files, path: x, format: {form}}}\nwatermark: {{type: path}}\nunknown_fields: ignore\n"
    errors = [(error.key, error.actual) for error in make(text).errors]
    assert errors == ([("unknown_fields", "ignore beside csv")] if form == "csv" else [])


def test_unknown_fields_are_left_out_of_the_rows_of_a_function(make: Make) -> None:
    text = "source: {type: python, function: 'a:b'}\nwatermark: {type: column, columns: [x]}\nunknown_fields: ignore\n"
    assert [(error.key, error.actual) for error in make(text).errors] == []
