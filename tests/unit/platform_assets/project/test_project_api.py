"""HTTP APIs in project files: what fits, what is refused and where it is said, and secrets that stay where they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from resources.connections.api import ApiConnection

if TYPE_CHECKING:
    from tests.unit.platform_assets.project.conftest import Make

SHOP = "connections: {shop: {type: api, base_url: 'https://shop.example/v1', token: {env: TOKEN}}, erp: {type: jdbc, url: 'jdbc:postgresql://h/d'}}\n"
COLUMN = "watermark: {type: column, columns: [updated_at]}\n"
WINDOW = """\
watermark:
  type: window
  window: daily
  definition:
    - {name: day, type: datetime, range: {from: "2024-01-01", to: "-"}}
    - {name: shop, type: unit, units: "a,b"}
target: {load: merge_overwrite, replace_by_watermark: true}
"""
UNIT = "unit_columns: {shop: shop_id}"
BOUNDS = "watermark_param_mapping: {updated_at: since}, watermark_to_param: until"


@pytest.mark.parametrize(
    ("source", "watermark"),
    [
        (
            "params: {kind: all}, records: data.items, paging: {type: page, param: page, size_param: size, size: 100}, "
            + BOUNDS
            + ", watermark_param_location: params, watermark_param_format: iso",
            COLUMN,
        ),
        ("paging: {type: cursor, param: c, next: data.next, end: end_of_stream}", COLUMN),
        (
            "paging: {type: link, more: meta.more, end: meta.end}, total: meta.total, max_records: 10000",
            COLUMN,
        ),
        ("total_header: X-Total, records: data, records_optional: true, errors: meta.problems", COLUMN),
        ("errors: ignore, total: total", COLUMN),
        ("method: POST, body: {a: {b: 1}}, watermark_param_location: body, " + BOUNDS, COLUMN),
        (BOUNDS + ", watermark_param_range: {amount: 6, unit: hour}", COLUMN),
        ('params: {from: "{start:%Y-%m-%d}", to: "{end}", shop: "{unit.shop}"}', WINDOW),
        (BOUNDS + ", window_column: updated_at, " + UNIT, WINDOW),
        ("window_column: updated_at, " + UNIT, WINDOW),
        ('params: {to: "{end:%Y-%m-%d}"}, window_column: updated_at, ' + UNIT, WINDOW),
        (
            'params: {from: "{start}", to: "{end:%Y%m%d}"}, ' + UNIT,
            WINDOW.replace("daily", "daily\n  partial: false"),
        ),
    ],
)
def test_an_api_goes_together_with_columns_and_windows(make: Make, source: str, watermark: str) -> None:
    project = make(f"source: {{type: api, connection: shop, path: /orders, {source}}}\n{watermark}", SHOP)
    assert [str(error) for error in project.errors] == []


# Keys of the source and the watermark; then key, found and a part of expected of each error.
REFUSED = [
    ("connection: erp", COLUMN, [("source.connection", "erp, of type jdbc", "type api")]),
    ("type: http", COLUMN, [("source.type", "http", "files, jdbc, api, python or table")]),
    ("path: 'https://x/y'", COLUMN, [("source.path", "https://x/y", "a path below the connection's base_url")]),
    ("path: '/a?b=c'", COLUMN, [("source.path", "/a?b=c", "its parameters go into params")]),
    ("path: '/a/{strat}'", WINDOW, [("source.path", "the placeholder {strat}", "{start}, {end} or {unit.NAME}")]),
    ('params: {from: "{start:%Y-%m-%d}", to: "{end:%Y-%m-%d}"}, ' + UNIT, WINDOW, [("watermark.partial", "true beside {end:%Y-%m-%d}", "partial: false, {end} or a finer form")]),
    ("path: '/a/{start}'", COLUMN, [("source.path", "{start}", "without placeholders")]),
    ("params: {a: '{unit.x}'}, " + UNIT + ", window_column: at", WINDOW, [("source.path", "{unit.x}", "a name of the definition's units")]),
    ("records: 'a..b'", COLUMN, [("source.records", "a..b", "names with dots between them")]),
    ("total: t, total_header: X-Total", COLUMN, [("source.total_header", "both", "it, or total")]),
    ("total: 'a..b'", COLUMN, [("source.total", "a..b", "names with dots between them")]),
    ("errors: 'a b'", COLUMN, [("source.errors", "a b", "names with dots between them")]),
    ("records_optional: 1", COLUMN, [("source.records_optional", "1", "")]),
    ("max_records: 0", COLUMN, [("source.max_records", "0", "")]),
    ("paging: {type: pages}", COLUMN, [("source.paging.type", "pages", "page, offset, cursor or link")]),
    ("paging: {type: offset, param: o, ends: short}", COLUMN, [("source.paging.ends", "nothing", "size with it")]),
    ("params: {since: 1}, " + BOUNDS, COLUMN, [("source.params", "since twice", "each parameter once in params")]),
    ("body: {a: 1}", COLUMN, [("source.body", "GET", "method: POST")]),
    ("watermark_param_location: body, " + BOUNDS, COLUMN, [("source.watermark_param_location", "GET", "method: POST")]),
    ("watermark_param_mapping: {created_at: since}", COLUMN, [("source.watermark_param_mapping.created_at", "created_at", "a column of watermark.columns")]),
    ("watermark_param_range: {amount: 1, unit: day}", COLUMN, [("source.watermark_param_range", "one of them at most", "watermark_to_param with it")]),
    (BOUNDS + ", watermark_param_format: date, watermark_param_range: {amount: 1, unit: hour}", COLUMN, [("source.watermark_param_range", "hours", "days or more")]),
    ("watermark_param_format: rfc3339", COLUMN, [("source.watermark_param_format", "rfc3339", "iso, date, datetime")]),
    ("watermark_param_timezone: Mars/Base", COLUMN, [("source.watermark_param_timezone", "Mars/Base", "a time zone")]),
    ("watermark_to_param: until", "watermark: {type: column, columns: [a, b], backward: {days: 1}}\ntarget: {load: merge_overwrite, replace_by_watermark: true}\n", [("source.watermark_to_param", "until with 2 columns", "one column")]),
    ("params: {a: 1}", "watermark: {type: column, columns: [a], nulls: fail}\n", [("watermark.nulls", "fail", "first or skip")]),
    ("params: {a: 1}", "watermark: {type: column, columns: [a], nulls: read}\ntarget: {load: merge_upsert, merge_keys: [id]}\n", [("watermark.nulls", "read", "first or skip")]),
    (UNIT, WINDOW, [("source.window_column", "nothing", "path or params with {start} and {end}")]),
    ("window_column: at", WINDOW, [("source.unit_columns.shop", "nothing", "{unit.shop} in path or params")]),
    (UNIT + ", watermark_param_mapping: {at: since}", WINDOW, [("source.watermark_to_param", "nothing", "the parameter for a window's end")]),
    (UNIT + ", window_column: at, " + BOUNDS, WINDOW, [("source.watermark_param_mapping", "updated_at", "at, the window_column")]),
    (UNIT + ", window_column: updated_at, " + BOUNDS + ", watermark_param_range: {amount: 1, unit: day}", WINDOW, [("source.watermark_param_range", "a range with windows", "no such key")]),
    ("params: {a: 1}", "watermark: {type: path}\n", [("watermark.type", "path beside a source of type api", "files")]),
    ("ignore_http_codes: [404, 429]", COLUMN, [("source.ignore_http_codes.1", "429", "from 400 to 499")]),
    ("ignore_http_codes: [204]", COLUMN, [("source.ignore_http_codes.0", "204", "from 400 to 499")]),
    ("params: {api_key: 1}", COLUMN, [("source.params.api_key", "the parameter api_key, a secret by its name", "of the connection")]),
    ("method: POST, body: {access_token: {env: TOKEN}}", COLUMN, [("source.body.access_token", "a secret by its name", "of the connection")]),
]  # fmt: skip


@pytest.mark.parametrize(("source", "watermark", "errors"), REFUSED)
def test_what_cannot_work_is_refused_by_name(
    make: Make, source: str, watermark: str, errors: list[tuple[str, str, str]]
) -> None:
    given = {"type": "api", "connection": "shop", "path": "/orders"}
    keys = ", ".join(f"{key}: {value}" for key, value in given.items() if not source.startswith(f"{key}:"))
    project = make(f"source: {{{keys}, {source}}}\n{watermark}", SHOP, environment={"TOKEN": "s3cr3t-0123"})
    found = [(error.key, error.actual, error.expected) for error in project.errors]
    assert len(found) == len(errors), found
    for (key, said, expected), (wanted_key, wanted, part) in zip(found, errors, strict=True):
        assert key == wanted_key
        assert wanted in said
        assert part in expected


def test_a_connection_is_opened_with_its_secrets_and_shows_none(make: Make) -> None:
    connection = (
        "{type: api, base_url: 'https://shop.example', headers: {X-Tenant: {env: TENANT}, Accept: text/json}, params: {api_key: {env: KEY}},"
        " user: me, password: {env: PW}, hosts: [files.shop.example], timeout: PT5S}"
    )
    secrets = {"TENANT": "tenant-0123", "KEY": "key-0123", "PW": "password-0123"}
    project = make(platform=f"connections: {{shop: {connection}}}\n", environment=secrets)
    made = project.connection("shop", ApiConnection)
    assert made.sent_headers["X-Tenant"] == "tenant-0123"
    assert made.params == {"api_key": "key-0123"}
    assert made.timeout.total_seconds() == 5
    texts = [
        repr(project),
        repr(made),
        str(made),
        made.hide(f"{secrets} text/json"),
        project.hide(str({k: v for k, v in secrets.items() if k != "TENANT"})),
    ]
    assert not [text for text in texts for secret in secrets.values() if secret in text]
    assert "text/json" in texts[3]


@pytest.mark.parametrize(
    ("connection", "key"),
    [
        ("{type: api}", "connections.shop.base_url"),
        ("{type: api, base_url: shop.example}", "connections.shop.base_url"),
        ("{type: api, base_url: 'https://h', timeout: 5}", "connections.shop.timeout"),
        ("{type: api, base_url: 'https://h', tokn: x}", "connections.shop.tokn"),
    ],
)
def test_a_connection_that_cannot_work_is_refused(make: Make, connection: str, key: str) -> None:
    (error,) = make(platform=f"connections: {{shop: {connection}}}\n").errors
    assert error.key == key


def test_other_page_sizes_keep_the_state_and_other_requests_do_not(make: Make) -> None:
    base = (
        "type: api, connection: shop, path: /orders, paging: {type: offset, param: o, size_param: n, size: 5}"
    )
    flows = {
        "same": f"{base}, max_pages: 7, total: t, max_records: 9, errors: e, records_optional: true, ignore_http_codes: [404], watermark_param_format: date".replace(
            "size: 5", "size: 9"
        ),
        "base": base,
        "params": f"{base}, params: {{kind: new}}",
        "paging": base.replace("param: o", "param: offset"),
        "records": f"{base}, records: data",
    }
    files = {
        f"dataflows/{name}.yaml": f"source: {{{source}}}\ntarget: {{table: bronze/x_{name}}}\n{COLUMN}"
        for name, source in flows.items()
    }
    project = make(platform=SHOP, files=files)
    assert [str(error) for error in project.errors] == []
    identities = {name: project.dataflows[name].source.identity() for name in flows}
    assert [name for name in flows if identities[name] == identities["base"]] == ["same", "base"]
