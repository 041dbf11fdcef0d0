"""Every kind of mistake in a project file, with its exact place."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from partitions.sources import SOURCES
from partitions.spelling import nearest
from platform_assets.project import ProjectError
from platform_assets.project.shapes import any_of

if TYPE_CHECKING:
    from tests.unit.platform_assets.project.conftest import Make

GOOD = """\
source: {type: files, path: ./landing, format: ndjson}
watermark: {type: path}
"""

# Each row: the text of flow.yaml; then line, key, found, expected, nearest of its one error.
FLOW = [
    # keys
    (
        "source: {type: files, path: x, format: csv}\nwatermark:\n  type: path\n  scpe: global\n",
        (4, "watermark.scpe", "an unknown key"),
        "one of checkpoint, close_after, layout, max_slices, partition_filter, scope, settle, time_template, tracking, type",
        "scope",
    ),
    (
        GOOD + "Late_Files: ingest\n",
        (3, "Late_Files", "an unknown key"),
        (
            "one of description, freshness, inputs, late_files, layer, maintenance, max_bad_records, on_bad_file, operators, owners, run_after_upstream, schedule,"
            " show_bad_records, source, sql, tags, target, transform, unknown_fields, watermark"
        ),
        "late_files",
    ),
    (
        GOOD + "target:\n  max_bad_records: 10\n",
        (4, "target.max_bad_records", "an unknown key"),
        (
            "one of cluster_by, effective_column, format, load, merge_keys, origin_columns, partition_by, replace_by_watermark, schema_mode, shared, table;"
            " max_bad_records stands at the top of the file, not indented"
        ),
        None,
    ),
    (
        GOOD + 'target: {load: append, origin_columns: "no"}\n',
        (3, "target.origin_columns", "no"),
        "true or false",
        None,
    ),
    (GOOD + 'max_bad_records: "10"\n', (3, "max_bad_records", "'10'"), "a whole number", None),
    (GOOD + "maintenance: {optimize: PT10M}\n", (3, "maintenance.optimize", "PT10M"), "PT1H or longer", None),
    (
        GOOD + "schema_mode: merge\n",
        (3, "schema_mode", "an unknown key"),
        (
            "one of description, freshness, inputs, late_files, layer, maintenance, max_bad_records, on_bad_file, operators, owners, run_after_upstream, schedule,"
            " show_bad_records, source, sql, tags, target, transform, unknown_fields, watermark; schema_mode stands in target"
        ),
        None,
    ),
    ("watermark: {type: path}\n", (1, "source", "nothing"), "a mapping or a list (this key is required)", None),
    ("watermark: {type: path}\nsource:\n  type: files\n  format: csv\n", (2, "source.path", "nothing"), "text (this key is required)", None),
    ("watermark: {type: path}\nsource:\n  path: x\n  format: csv\n", (2, "source.type", "nothing"), f"{any_of([*SOURCES])} (this key is required)", None),
    (GOOD + "name: other\n", (3, "name", "a name"), "no such key: the name is the file's, flow", None),
    (GOOD + "layer: a\nlayer: b\n", (4, "layer", "the key again (first in line 3)"), "each key once", None),
    # types
    (GOOD + "description: 5\n", (3, "description", "5"), "text (put it in quotes)", None),
    (GOOD + "description: [a]\n", (3, "description", "a list"), "text", None),
    (GOOD + "description: {a: b}\n", (3, "description", "a mapping"), "text", None),
    (GOOD + "owners: me@example.com\n", (3, "owners", "me@example.com"), "a list such as [me@example.com]", None),
    (GOOD + "owners:\n- team:a\n- 7\n", (5, "owners.1", "7"), "text (put it in quotes)", None),
    (GOOD + "tags: {tier: 1}\n", (3, "tags.tier", "1"), "text (put it in quotes)", None),
    (GOOD + "target:\n", (3, "target", "nothing"), "a mapping", None),
    (GOOD + "target: {origin_columns: maybe}\n", (3, "target.origin_columns", "maybe"), "true or false", None),
    ("source: files\nwatermark: {type: path}\n", (1, "source", "files"), "a mapping or a list", None),
    (
        "source: {type: files, path: x, format: csv, options: {a: [1]}}\nwatermark: {type: path}\n",
        (1, "source.options.a", "a list"),
        "text, a whole number, a number or true or false",
        None,
    ),
    # values
    (
        "source: {type: files, path: x, format: ndjsn}\nwatermark: {type: path}\n",
        (1, "source.format", "ndjsn"),
        "ndjson, json, csv, parquet, avro, xml or excel",
        "ndjson",
    ),
    ("source: {type: files, path: '', format: csv}\nwatermark: {type: path}\n", (1, "source.path", "''"), "text that is not empty", None),
    ("source: {type: files, path: x, format: csv, extensions: []}\nwatermark: {type: path}\n", (1, "source.extensions", "a list"), "at least 1 of them", None),
    (GOOD + "layer: Bronze\n", (3, "layer", "Bronze"), "text that matches ^[a-z][a-z0-9_]*$", None),
    (GOOD + "target: {table: flights}\n", (3, "target.table", "flights"), "<layer>/<name>, letters, digits and underscores", None),
    (GOOD + "transform: clean\n", (3, "transform", "clean"), "package.module:name", None),
    (GOOD.replace("path}", "path, max_slices: 0}"), (2, "watermark.max_slices", "0"), "at least 1", None),
    (GOOD.replace("path}", "path, max_slices: 1.5}"), (2, "watermark.max_slices", "1.5"), "a whole number", None),
    (GOOD.replace("path}", "path, checkpoint: {interval_bytes: big}}"), (2, "watermark.checkpoint.interval_bytes", "big"), "a size such as 1GiB", None),
    (GOOD.replace("path}", "path, settle: soon}"), (2, "watermark.settle", "soon"), "an ISO 8601 duration such as PT2S, PT5M or P30D, not negative", None),
    (GOOD.replace("path}", "path, settle: -PT1S}"), (2, "watermark.settle", "'-PT1S'"), "an ISO 8601 duration such as PT2S, PT5M or P30D, not negative", None),
    (
        GOOD.replace("path}", "path, close_after: P30D}"),
        (2, "watermark.close_after", "scope: global"),
        "scope: partition with them (time_template and close_after close partitions)",
        None,
    ),
    (GOOD + "transform: a:b\nsql: select 1\n", (3, "transform", "transform and sql"), "one of them (transform and sql both follow the read)", None),
    # the schema
    (
        "source:\n  type: files\n  path: x\n  format: csv\n  schema: a strng\nwatermark: {type: path}\n",
        (5, "source.schema", "the type strng"),
        "a type of Spark, such as string, long, double, date or timestamp",
        "string",
    ),
    (
        GOOD.replace("}\nw", ", schema: 'a int, _run_id long'}\nw"),
        (1, "source.schema", "the column _run_id"),
        "other names than _source_file, _ingested_at, _run_id, _corrupt_record, _rescued_data: loading adds these",
        None,
    ),
    (GOOD + "target: {partition_by: ['']}\n", (3, "target.partition_by.0", "no name"), "the name of a column", None),
    (GOOD + "target: {partition_by: [date, Date]}\n", (3, "target.partition_by.1", "the column Date again"), "each column once", None),
    (
        GOOD.replace("}\nw", ", schema: 'a array<int>'}\nw") + "target: {partition_by: [A]}\n",
        (3, "target.partition_by.0", "A, which the schema makes an array, a map or a struct"),
        "a column with single values",
        None,
    ),
    (GOOD + "target: {cluster_by: [kind, Kind]}\nmaintenance: {optimize: P1D}\n", (3, "target.cluster_by.1", "the column Kind again"), "each column once", None),
    (
        GOOD + "target: {cluster_by: [kind]}\nmaintenance: {vacuum: P1D}\n",
        (3, "target.cluster_by", "kind without maintenance.optimize"),
        "maintenance: {optimize: P1D} beside it, which puts rows together; or no such key",
        None,
    ),
    (
        GOOD + "target: {cluster_by: [kind], partition_by: [day]}\nmaintenance: {optimize: P1D}\n",
        (3, "target.cluster_by", "kind beside partition_by: day"),
        "one of the two (a Delta table that is clustered has no partitions)",
        None,
    ),
    (GOOD + "target: {cluster_by: [a, b, c, d, e]}\nmaintenance: {optimize: P1D}\n", (3, "target.cluster_by", "5 columns"), "at most 4, which is Delta's limit", None),
    # inputs
    (GOOD + "inputs: {planes: silver/planes}\n", (3, "inputs", "nothing that reads them"), "sql or transform beside inputs", None),
    (GOOD + "sql: select 1\ninputs: {'a b': silver/planes}\n", (4, "inputs.a b", "a b"), "a name of letters, digits and underscores", None),
    (GOOD + "sql: select 1\ninputs: {Input: silver/planes}\n", (4, "inputs.Input", "Input"), "another name than the view of the dataflow's own rows", None),
    (GOOD + "sql: select 1\ninputs: {p: silver/planes, P: silver/parts}\n", (4, "inputs.P", "P"), "another name than p", None),
    (GOOD + "sql: select 1\ninputs: {p: planes}\n", (4, "inputs.p", "planes"), "<layer>/<name>, letters, digits and underscores", None),
    (
        GOOD + "sql: select 1\ninputs: {p: bronze/flow}\n",
        (4, "inputs.p", "bronze/flow, the dataflow's own table"),
        "another table: a run would load its own output",
        None,
    ),
    # places
    ("source: {type: files, path: 's3a://b/x', format: csv}\nwatermark: {type: path}\n", (1, "source.path", "s3a://b/x"), "a folder or s3://bucket/prefix", "s3"),
    ("source: {type: files, path: 's3://', format: csv}\nwatermark: {type: path}\n", (1, "source.path", "s3://"), "a folder or s3://bucket/prefix", None),
    (
        GOOD.replace("./landing", "./.strandline/lake/bronze"),
        (1, "source.path", "./.strandline/lake/bronze, inside the lake (./.strandline/lake)"),
        "a place outside: a run would load its own output",
        None,
    ),
    (
        GOOD.replace("./landing", "x/../.strandline/state"),
        (1, "source.path", "x/../.strandline/state, inside the state (./.strandline/state)"),
        "a place outside: a run would load its own output",
        None,
    ),
    (
        "source: {type: files, path: 's3://b/x', connection: land, format: csv}\nwatermark: {type: path}\n",
        (1, "source.connection", "land"),
        "one of the connections of platform.yaml: none: platform.yaml has no connections",
        None,
    ),
    # Dagster's rules
    (GOOD + "layer: watermark\n", (3, "layer", "watermark"), "another layer: watermark/<name> are the assets of the watermarks", None),
    (GOOD + "owners:\n- team:a\n- me\n", (5, "owners.1", "me"), "an e-mail address or team:NAME", None),
    (GOOD + "tags: {a b: c}\n", (3, "tags.a b", "the tag a b: c"), "up to 63 of the letters A-Z and a-z, digits, _ . and - on either side", None),
    (GOOD + "freshness: {fail: PT5S}\n", (3, "freshness", "less than a minute"), "durations of at least PT1M", None),
    (GOOD + "freshness: {fail: PT5M,\n  warn: PT10M}\n", (4, "freshness.warn", "PT10M"), "less than fail, PT5M", None),
]  # fmt: skip


@pytest.mark.parametrize(("text", "place", "expected", "close"), FLOW, ids=lambda value: None)
def test_a_mistake_in_a_dataflow_is_named_with_line_and_key(
    make: Make, text: str, place: tuple[int, str | None, str], expected: str, close: str | None
) -> None:
    line, key, found = place
    project = make(text)
    assert project.errors == [ProjectError("dataflows/flow.yaml", line, key, found, expected, close)]
    assert project.broken == {"flow": project.errors}
    assert project.dataflows == {}


SETTINGS = [
    ("lakes: x\n", (1, "lakes", "an unknown key"), "one of alerts, connections, format, history, iceberg, lake, sensors, spark, state", "lake"),
    ("format: {type: iceberg}\n", (1, "format", "a mapping"), "delta, iceberg or parquet", None),
    ("iceberg: {catalog: jdbc}\n", (1, "iceberg.connection", "nothing"), "the name of a connection of type jdbc, to PostgreSQL, beside catalog: jdbc", None),
    ("iceberg: {connection: erp}\n", (1, "iceberg.connection", "erp"), "no such key beside catalog: hadoop, or catalog: jdbc or rest", None),
    ("iceberg: {catalog: rest}\n", (1, "iceberg.connection", "nothing"), "the name of a connection of type iceberg_rest beside catalog: rest", None),
    (
        "iceberg: {catalog: rest, connection: erp}\nconnections: {erp: {type: python}}\n",
        (1, "iceberg.connection", "erp, of type python"),
        "a connection of type iceberg_rest",
        None,
    ),
    (
        "connections: {known: {type: iceberg_rest, uri: 'http://h', credential: 'a:b'}}\n",
        (1, "connections.known.credential", "a secret in plain text"),
        "{env: NAME}, a variable of the environment",
        None,
    ),
    ("format: dleta\n", (1, "format", "dleta"), "delta, iceberg or parquet", "delta"),
    ("state: 5\n", (1, "state", "5"), "text or a mapping (put it in quotes)", None),
    ("state: [a]\n", (1, "state", "a list"), "text or a mapping", None),
    ("state: ''\n", (1, "state", "''"), "text that is not empty", None),
    ("lake: {connection: land}\nconnections: {land: {type: s3}}\n", (1, "lake.path", "nothing"), "text (this key is required)", None),
    ("lake: {path: x,\n  conection: land}\n", (2, "lake.conection", "an unknown key"), "one of connection, path", "connection"),
    ("lake: 'ftp://h/x'\n", (1, "lake", "ftp://h/x"), "a folder or s3://bucket/prefix", None),
    (
        "lake:\n  path: s3://b/x\n  connection: lnd\nconnections: {land: {type: s3}}\n",
        (3, "lake.connection", "lnd"),
        "one of the connections of platform.yaml: land",
        "land",
    ),
    (
        "state: {path: x, connection: land}\nconnections: {land: {type: s3}}\n",
        (1, "state.connection", "the connection land beside a folder"),
        "no connection, or a path s3://bucket/prefix",
        None,
    ),
    ("spark: {remote: 'local[*]'}\n", (1, "spark.remote", "local[*]"), "sc://host:port", None),
    ("spark: {remote: 'sc://h:1', master: local}\n", (1, "spark.master", "both"), "master and conf, or remote alone", None),
    (
        "spark: {conf: {spark.sql.session.timeZone: Europe/Berlin}}\n",
        (1, "spark.conf", "Europe/Berlin"),
        "spark.sql.session.timeZone: UTC, or none, since times are read, written and compared in UTC (in sql: from_utc_timestamp)",
        None,
    ),
    (
        "spark: {conf: {spark.sql.ansi.enabled: false}}\n",
        (1, "spark.conf", "false"),
        "spark.sql.ansi.enabled: true, or none, since without it a value that does not fit its type becomes another one, or NULL, in silence (in sql: try_cast of the values that may be NULL)",
        None,
    ),
    ("spark: {conf: {a: [1]}}\n", (1, "spark.conf.a", "a list"), "text", None),
    ("connections: {land: {type: s4}}\n", (1, "connections.land.type", "s4"), "s3, jdbc, api, python or iceberg_rest", None),
    ("connections: {land: {region: x}}\n", (1, "connections.land.type", "nothing"), "s3, jdbc, api, python or iceberg_rest (this key is required)", None),
    ("connections:\n  land:\n    type: s3\n    region: 5\n", (4, "connections.land.region", "5"), "text or {env: NAME}", None),
]  # fmt: skip


@pytest.mark.parametrize(("text", "place", "expected", "close"), SETTINGS, ids=lambda value: None)
def test_a_mistake_in_the_settings_is_named_with_line_and_key(
    make: Make, text: str, place: tuple[int, str | None, str], expected: str, close: str | None
) -> None:
    line, key, found = place
    assert make(platform=text).errors == [ProjectError("platform.yaml", line, key, found, expected, close)]


@pytest.mark.parametrize("key", ["prefix_template", "time_template"])
def test_a_bad_template_is_named_with_its_line_and_hides_no_other_mistake(make: Make, key: str) -> None:
    nested = {"prefix_template": "partition_filter: {lookback: 1, prefix_template: 'd=%Q'}"}
    line = nested.get(key, "scope: partition\n  time_template: 'd=%Q'")
    project = make(
        f"watermark:\n  type: path\n  {line}\n  layout: leef\nsource: {{type: files, path: x, format: csv}}\n"
    )
    bad, layout = sorted(project.errors, key=lambda error: error.expected.startswith("mixed"))
    assert (bad.key or "").endswith(key)
    assert bad.line == (3 if key == "prefix_template" else 4)
    assert bad.found == "%Q"
    assert (layout.key, layout.nearest) == ("watermark.layout", "leaf")


def test_one_template_twice_is_two_mistakes(make: Make) -> None:
    project = make(
        GOOD.replace(
            "path}",
            "path, scope: partition, time_template: '%Q',\n partition_filter: {prefix_template: '%Q', lookback: 1}}",
        )
    )
    assert [error.key for error in project.errors] == [
        "watermark.time_template",
        "watermark.partition_filter.prefix_template",
    ]


def test_all_mistakes_of_all_files_are_there_by_file_and_line(make: Make) -> None:
    project = make(
        "layer: X\nsource: {type: files, path: x, format: q}\nwatermark: {type: path, settle: x}\nowners: [me]\n",
        platform="format: x\n",
        files={"dataflows/also.yaml": "watermark: {type: path}\n", "dataflows/good.yaml": GOOD},
    )
    assert [(error.file, error.line, error.key) for error in project.errors] == [
        ("dataflows/also.yaml", 1, "source"),
        ("dataflows/flow.yaml", 1, "layer"),
        ("dataflows/flow.yaml", 2, "source.format"),
        ("dataflows/flow.yaml", 3, "watermark.settle"),
        ("dataflows/flow.yaml", 4, "owners.0"),
        ("platform.yaml", 1, "format"),
    ]


def test_a_message_for_people_has_file_line_key_and_the_nearest_name() -> None:
    error = ProjectError("dataflows/a.yaml", 3, "source.format", "ndjsn", "ndjson or csv", "ndjson")
    assert str(error) == (
        "dataflows/a.yaml:3: source.format: found ndjsn, expected ndjson or csv (did you mean ndjson?)"
    )
    assert str(ProjectError("a.yaml", 1, None, "x", "y")) == "a.yaml:1: found x, expected y"


def test_the_json_of_an_error_has_the_six_fields() -> None:
    assert ProjectError("f", 1, "k", "x", "y").as_json() == {
        "file": "f",
        "line": 1,
        "key": "k",
        "found": "x",
        "expected": "y",
        "nearest": None,
    }


def test_a_long_value_is_shortened(make: Make) -> None:
    (error,) = make(GOOD.replace("path}", f"path, settle: {'x' * 500}}}")).errors
    assert error.found == "x" * 59 + "…"


def test_the_nearest_name_ignores_case_and_may_be_the_beginning() -> None:
    assert nearest("FORMAT", ["format", "forest"]) == "format"
    assert nearest("Seperator", ["quote", "sep"]) == "sep"
    assert nearest("separator", ["separation", "sep"]) == "separation"
    assert nearest("zzz", ["format"]) is None


@pytest.mark.parametrize("side", ["late", "quarantine", "buffer"])
def test_a_table_that_is_named_like_a_side_table_of_a_stream_is_refused(make: Make, side: str) -> None:
    stream = (
        "source: {type: table, table: raw/events}\nwatermark: {type: stream, event_time: ts, split: d, timeout: PT5M}\n"
        "target: {load: append, table: bronze/x}\n"
    )
    other = GOOD + f"target: {{load: append, table: bronze/x__{side}}}\n"
    project = make(stream, files={"dataflows/other.yaml": other})
    assert [error.found.partition(",")[0] for error in project.errors] == [f"the table bronze/x__{side}"] * 2


def test_a_dataflow_that_is_named_like_the_asset_of_a_stream_s_late_rows_is_refused(make: Make) -> None:
    stream = (
        "source: {type: table, table: raw/events}\nwatermark: {type: stream, event_time: ts, split: d, timeout: PT5M}\n"
        "target: {load: append, table: bronze/x}\n"
    )
    project = make(stream, files={"dataflows/flow__late.yaml": GOOD})
    assert [(error.file, error.key, error.found.partition(",")[0]) for error in project.errors] == [
        ("dataflows/flow.yaml", "watermark.late", "the asset bronze/flow__late of its late rows"),
        ("dataflows/flow__late.yaml", "layer", "the asset bronze/flow__late"),
    ]


def test_two_dataflows_with_one_table_are_both_named(make: Make) -> None:
    project = make(
        GOOD, files={"dataflows/other.yaml": GOOD + "target:\n  load: append\n  table: bronze/flow\n"}
    )
    assert [(error.file, error.line, error.key, error.found) for error in project.errors] == [
        (
            "dataflows/flow.yaml",
            1,
            "target.table",
            "the table bronze/flow, which is also that of dataflows/other.yaml:5",
        ),
        (
            "dataflows/other.yaml",
            5,
            "target.table",
            "the table bronze/flow, which is also that of dataflows/flow.yaml:1",
        ),
    ]
    assert project.dataflows == {}


SHARED = GOOD + "target: {load: append, table: bronze/both, shared: true}\n"


def test_dataflows_that_all_say_so_share_a_table(make: Make) -> None:
    project = make(SHARED, files={"dataflows/other.yaml": SHARED})
    assert (project.errors, [flow.table for flow in project.dataflows.values()]) == ([], ["bronze/both"] * 2)


def test_a_table_is_shared_only_if_each_of_its_dataflows_says_so(make: Make) -> None:
    alone = SHARED.replace(", shared: true", "")
    project = make(SHARED, files={"dataflows/other.yaml": alone})
    assert [(error.file, error.key, error.expected) for error in project.errors] == [
        (f"dataflows/{name}.yaml", "target.table", "a table of its own, or target.shared: true in each of these files")
        for name in ("flow", "other")
    ]  # fmt: skip


def test_dataflows_that_share_a_table_lay_it_out_alike(make: Make) -> None:
    parted = SHARED.replace("shared: true", "shared: true, partition_by: [_dataflow]")
    project = make(SHARED, files={"dataflows/other.yaml": parted})
    assert [(error.file, error.key, error.found) for error in project.errors] == [
        ("dataflows/flow.yaml", "target.partition_by", "nothing, and _dataflow in dataflows/other.yaml:3"),
        ("dataflows/other.yaml", "target.partition_by", "_dataflow, and nothing in dataflows/flow.yaml:3"),
    ]


def test_dataflows_that_share_a_table_keep_it_in_one_format(make: Make) -> None:
    project = make(SHARED, files={"dataflows/other.yaml": SHARED.replace("load:", "format: iceberg, load:")})
    assert [(error.file, error.key, error.found) for error in project.errors] == [
        ("dataflows/flow.yaml", "target.format", "delta, and iceberg in dataflows/other.yaml:3"),
        ("dataflows/other.yaml", "target.format", "iceberg, and delta in dataflows/flow.yaml:3"),
    ]


def test_dataflows_that_share_a_table_all_change_its_columns_or_none_does(make: Make) -> None:
    merging = SHARED.replace("shared: true", "shared: true, schema_mode: merge")
    project = make(SHARED, files={"dataflows/other.yaml": merging})
    assert [(error.file, error.key, error.found) for error in project.errors] == [
        ("dataflows/flow.yaml", "target.schema_mode", "strict, and merge in dataflows/other.yaml:3"),
        ("dataflows/other.yaml", "target.schema_mode", "merge, and strict in dataflows/flow.yaml:3"),
    ]


@pytest.mark.parametrize(
    "load",
    [
        "load: merge_overwrite, merge_keys: [id]",
        "load: scd2, merge_keys: [id], effective_column: at",
        "load: overwrite",
    ],
)
def test_a_load_that_touches_others_rows_is_refused_beside_shared(make: Make, load: str) -> None:
    errors = make(SHARED.replace("load: append", load)).errors
    (error,) = [error for error in errors if error.key == "target.shared"]
    assert error.found == f"true beside {load.split(',')[0]}"
    assert error.expected.startswith(
        "append, merge_upsert, or merge_overwrite with replace_by_watermark: true ("
    )


def test_a_source_around_the_lake_is_refused_if_a_listing_would_see_it(make: Make) -> None:
    around = GOOD.replace("./landing", "./data")
    (error,) = make(around, platform="lake: ./data/tables\n").errors
    assert error.found == "./data, with the lake (./data/tables) inside it"


def test_a_source_around_a_hidden_lake_is_fine(make: Make) -> None:
    assert not make(GOOD.replace("./landing", ".")).errors


def test_places_on_an_object_store_are_told_apart_by_whole_names(make: Make) -> None:
    lake = "lake: s3://b/lake\n"
    text = "source: {{type: files, path: 's3://b/{}', format: csv}}\nwatermark: {{type: path}}\n"
    project = make(
        text.format("lake2"), platform=lake, files={"dataflows/own.yaml": text.format("lake/bronze")}
    )
    assert [error.file for error in project.errors] == ["dataflows/own.yaml"]


def test_a_connection_of_another_type_is_refused(make: Make) -> None:
    project = make(
        "source: {type: files, path: 's3://b/x', connection: erp, format: csv}\nwatermark: {type: path}\n",
        platform="connections: {erp: {type: jdbc}}\n",
    )
    assert ("source.connection", "erp, of type jdbc", "a connection of type s3") in [
        (error.key, error.found, error.expected) for error in project.errors
    ]


@pytest.mark.parametrize(
    ("name", "expected", "close"),
    [
        (
            "Flights-2.yaml",
            "a name of the letters a-z, digits and underscores that starts with a letter",
            "flights.yaml",
        ),
        ("2013.yaml", "a name of the letters a-z, digits and underscores that starts with a letter", None),
        ("flights.yml", "the ending .yaml", "flights.yaml"),
        ("flights.YAML", "the ending .yaml", "flights.yaml"),
        ("more/flights.yaml", "all files in dataflows/ itself", None),
    ],
)
def test_a_passed_over_file_is_an_error(make: Make, name: str, expected: str, close: str | None) -> None:
    (error,) = make(files={f"dataflows/{name}": GOOD}).errors
    assert (error.file, error.line, error.key, error.expected, error.nearest) == (
        f"dataflows/{name}",
        1,
        None,
        expected,
        close,
    )


def test_hidden_files_and_other_endings_are_ignored(make: Make) -> None:
    project = make(
        GOOD, files={"dataflows/.#flow.yaml": "x", "dataflows/README.md": "x", "notes.yaml": "x: ["}
    )
    assert (project.errors, list(project.dataflows)) == ([], ["flow"])


def test_settings_with_the_wrong_ending_are_an_error(make: Make) -> None:
    project = make(GOOD, files={"platform.yml": "lake: x"})
    assert [(error.file, error.nearest) for error in project.errors] == [("platform.yml", "platform.yaml")]


def test_what_cannot_be_read_is_an_error_of_that_file(make: Make) -> None:
    project = make(GOOD, files={"dataflows/folder.yaml/x": ""})
    assert [(error.file, error.line) for error in project.errors] == [("dataflows/folder.yaml", 1)]
    assert list(project.dataflows) == ["flow"]


def test_iceberg_on_an_object_store_needs_a_safe_catalog(make: Make) -> None:
    flow = GOOD + "target: {format: iceberg}\n"
    (error,) = make(flow, platform="lake: s3://b/lake\n").errors
    assert (error.key, error.found) == ("target.format", "iceberg in a lake on an object store")


def test_rows_of_a_function_are_not_clustered_by_a_column_that_its_schema_lacks(make: Make) -> None:
    flow = (
        "source: {type: python, function: 'a:b', schema: 'id long, customer long'}\n"
        "watermark: {type: column, columns: [id]}\n"
        "target: {cluster_by: [Customer, custmer, _ingested_at]}\n"
        "maintenance: {optimize: P1D}\n"
    )
    (error,) = make(flow).errors
    assert (error.line, error.key, error.found) == (
        3,
        "target.cluster_by.1",
        "custmer, which source.schema lacks",
    )
    assert error.expected == "columns of the table, such as id, customer; or sql or transform that makes it"
    assert error.nearest == "customer"


def test_sql_may_make_the_column_that_rows_are_clustered_by(make: Make) -> None:
    assert not make(
        "source: {type: python, function: 'a:b', schema: 'id long'}\nwatermark: {type: column, columns: [id]}\n"
        "sql: select *, 1 AS kind from input\ntarget: {cluster_by: [kind]}\nmaintenance: {optimize: P1D}\n"
    ).errors


def test_files_may_be_clustered_by_a_column_of_their_folders_that_the_schema_lacks(make: Make) -> None:
    files = "source: {type: files, path: x, format: csv, schema: 'id long'}\nwatermark: {type: path}\n"
    assert not make(files + "target: {cluster_by: [day]}\nmaintenance: {optimize: P1D}\n").errors
