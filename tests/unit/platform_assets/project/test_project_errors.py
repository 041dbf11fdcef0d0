"""Every kind of mistake in a project file, with its exact place."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from partitions.sources import SOURCES
from partitions.spelling import nearest_name
from platform_assets.project import ProjectError
from platform_assets.project.shapes import any_of
from tests.support.projects import FILES as GOOD

if TYPE_CHECKING:
    from tests.unit.platform_assets.project.conftest import Make


CRON = (
    'a cron expression of five fields (minute, hour, day, month, weekday) with a time that occurs, such as "0 6 * * *" or "*/15 * * * *"; '
    "or a shorthand such as @daily"
)

# Each row: the text of flow.yaml; then line, key, found, expected, nearest of its one error.
FLOW = [
    # keys
    (
        "source: {type: files, path: x, format: csv}\nwatermark:\n  type: path\n  scpe: global\n",
        (4, "watermark.scpe", "an unknown key"),
        "one of checkpoint, close_after, duplicates, expected, layout, max_slices, partition_filter, scope, settle, time_template, tracking, type",
        "scope",
    ),
    (
        GOOD + "Late_Files: ingest\n",
        (3, "Late_Files", "an unknown key"),
        (
            "one of automation_condition, checks, description, empty_load, freshness, inputs, late_files, layer, maintenance, max_bad_files, max_bad_records, on_bad_file, op_tags, operators, owners, reconcile, retry, rules, run_after_upstream, run_tags, schedule,"
            " show_bad_records, source, sql, tags, target, transform, unknown_fields, watermark"
        ),
        "late_files",
    ),
    (
        GOOD + "target:\n  max_bad_records: 10\n",
        (4, "target.max_bad_records", "an unknown key"),
        (
            "one of cluster_by, delete_when, effective_column, format, ignore, immutable, insert_only, keep_tombstones, load, max_deleted, merge_keys, missing_columns, names, on_missing, open_end, origin_columns, partition_by, replace_by_watermark, retention, schema_mode, shared, table, track;"
            " max_bad_records belongs at the top of the file, not indented"
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
        GOOD + 'reconcile: {schedule: "0 3 * * 0", last: P90D}\n',
        (3, "reconcile.last", "last beside a path watermark"),
        "no such key: files are compared by name, size and version, and all of them at once",
        None,
    ),
    (
        GOOD + "reconcile: {schedule: weekly}\n",
        (3, "reconcile.schedule", "weekly"),
        'a cron expression of five fields (minute, hour, day, month, weekday) with a time that occurs, such as "0 6 * * *" or "*/15 * * * *"; or a shorthand such as @daily',
        None,
    ),
    (
        GOOD + "schema_mode: merge\n",
        (3, "schema_mode", "an unknown key"),
        (
            "one of automation_condition, checks, description, empty_load, freshness, inputs, late_files, layer, maintenance, max_bad_files, max_bad_records, on_bad_file, op_tags, operators, owners, reconcile, retry, rules, run_after_upstream, run_tags, schedule,"
            " show_bad_records, source, sql, tags, target, transform, unknown_fields, watermark; schema_mode belongs in target"
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
        "ndjson, json, csv, parquet, avro, xml, excel or debezium",
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
    (GOOD + "transform: a:b\nsql: select 1\n", (3, "transform", "transform and sql"), "only one of them (transform and sql both follow the read)", None),
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
        "other names than _source_file, _ingested_at, _run_id, _corrupt_record, _rescued_data, which loading adds",
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
        "maintenance: {optimize: P1D} beside it, which clusters the rows; or no such key",
        None,
    ),
    (
        GOOD + "target: {cluster_by: [kind], partition_by: [day]}\nmaintenance: {optimize: P1D}\n",
        (3, "target.cluster_by", "kind beside partition_by: day"),
        "one of the two (a clustered Delta table has no partitions)",
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
    (
        GOOD + "tags: {dagster-k8s/config: a}\n",
        (3, "tags.dagster-k8s/config", "the tag dagster-k8s/config"),
        "it below op_tags, for each step, or below run_tags, for each run",
        None,
    ),
    (
        GOOD + "run_tags: {strandline/dataflow: a}\n",
        (3, "run_tags.strandline/dataflow", "the tag strandline/dataflow"),
        "a tag of your own: Dagster or Strandline sets this one",
        None,
    ),
    (GOOD + "retry: {max: 0}\n", (3, "retry.max", "0"), "at least 1", None),
    (GOOD + "retry: {max: 2,\n  backoff: linear}\n", (4, "retry.backoff", "backoff"), "delay beside backoff and jitter, which change it: such as delay: PT30S", None),
    (GOOD + "automation_condition: eagre\n", (3, "automation_condition", "eagre"), "eager or on_missing", "eager"),
    (GOOD + "automation_condition: {on_cron: often}\n", (3, "automation_condition.on_cron", "often"), CRON, None),
    (GOOD + "automation_condition: {on_cron: '@daily', timezone: Mars}\n", (3, "automation_condition.timezone", "'Mars'"), "a time zone such as UTC, Europe/Berlin or +05:30", None),
    (
        GOOD + "automation_condition: {on_cron: '@daily', timezone: '+05:30'}\n",
        (3, "automation_condition.timezone", "'+05:30'"),
        "the name of a zone, such as Europe/Berlin: Dagster's cron has no fixed offsets",
        None,
    ),
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
    ("lakes: x\n", (1, "lakes", "an unknown key"), "one of alerts, connections, format, history, iceberg, lake, lineage, sensors, spark, state", "lake"),
    ("format: {type: iceberg}\n", (1, "format", "a mapping"), "delta, iceberg or parquet", None),
    ("iceberg: {catalog: jdbc}\n", (1, "iceberg.connection", "nothing"), "the name of a connection of type jdbc, to PostgreSQL, with catalog: jdbc", None),
    ("iceberg: {connection: erp}\n", (1, "iceberg.connection", "erp"), "no such key with catalog: hadoop, or catalog: jdbc or rest", None),
    ("iceberg: {catalog: rest}\n", (1, "iceberg.connection", "nothing"), "the name of a connection of type iceberg_rest with catalog: rest", None),
    (
        "iceberg: {catalog: rest, connection: erp}\nconnections: {erp: {type: python}}\n",
        (1, "iceberg.connection", "erp, of type python"),
        "a connection of type iceberg_rest",
        None,
    ),
    (
        "connections: {known: {type: iceberg_rest, uri: 'http://h', credential: 'a:b'}}\n",
        (1, "connections.known.credential", "a secret in plain text"),
        "{env: NAME}, {file: PATH} or {function: MODULE:NAME}",
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
        (1, "state.connection", "the connection land with a folder"),
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
        "spark.sql.ansi.enabled: true, or none, since without it a value that does not fit silently changes or becomes NULL (in sql, use try_cast for such values)",
        None,
    ),
    (
        "spark: {conf: {spark.sql.parquet.outputTimestampType: INT96}}\n",
        (1, "spark.conf", "INT96"),
        "spark.sql.parquet.outputTimestampType: TIMESTAMP_MICROS, or none, since with others days before 1582, years after 2262 or microseconds silently change",
        None,
    ),
    (
        "spark: {conf: {spark.sql.parquet.datetimeRebaseModeInRead: LEGACY}}\n",
        (1, "spark.conf", "LEGACY"),
        "spark.sql.parquet.datetimeRebaseModeInRead: CORRECTED, or none, since with others days before 1582 silently change (for files of Spark 2, set datetimeRebaseMode in source.options)",
        None,
    ),
    (
        "spark: {conf: {spark.sql.files.ignoreMissingFiles: true}}\n",
        (1, "spark.conf", "true"),
        "spark.sql.files.ignoreMissingFiles: false, or none, since otherwise rows of a damaged or lost file are silently left out (on_bad_file: quarantine sets bad files aside)",
        None,
    ),
    ("spark: {conf: {a: [1]}}\n", (1, "spark.conf.a", "a list"), "text", None),
    ("connections: {land: {type: s4}}\n", (1, "connections.land.type", "s4"), "s3, jdbc, api, python, iceberg_rest or dagster", None),
    ("connections: {land: {region: x}}\n", (1, "connections.land.type", "nothing"), "s3, jdbc, api, python, iceberg_rest or dagster (this key is required)", None),
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
    assert bad.actual == "%Q"
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


SHARED = GOOD + "target: {load: append, table: bronze/both, shared: true}\n"
STREAM = (
    "source: {type: table, table: raw/events}\nwatermark: {type: stream, event_time: ts, split: d, timeout: PT5M}\n"
    "target: {load: append, table: bronze/x}\n"
)
FUNCTION = "source: {type: python, function: 'a:b', schema: 'id long, customer long'}\nwatermark: {type: column, columns: [id]}\n"
CARE = "maintenance: {optimize: P1D}\n"
ON_S3 = "source: {{type: files, path: 's3://b/{}', format: csv}}\nwatermark: {{type: path}}\n".format
SAFE = "a catalog that accepts one of two commits of the same version: iceberg: {catalog: jdbc, connection: NAME} or {catalog: rest, connection: NAME} in platform.yaml"
ALIKE = "the same in each file whose table is bronze/both"
OF_ITS_OWN = "a table of its own, or target.shared: true in each of these files"

Row = tuple[str, int, str | None, str, str, str | None]


def both(
    key: str, found: str, other: str | None, expected: str, lines: tuple[int, int] = (3, 3)
) -> list[Row]:
    """A mistake that is told in both files; ``{}`` is the other one's place, and the text the same where there is no other."""
    return [
        ("flow.yaml", lines[0], key, found.format(f"dataflows/other.yaml:{lines[1]}"), expected, None),
        (
            "other.yaml",
            lines[1],
            key,
            (other or found).format(f"dataflows/flow.yaml:{lines[0]}"),
            expected,
            None,
        ),
    ]


ALSO = "the table bronze/{}, which is also the table of {{}}"
PROJECTS: dict[str, tuple[dict[str, Any], list[Row]]] = {
    "all mistakes of all files are there by file and line": (
        {
            "flow": "layer: X\nsource: {type: files, path: x, format: q}\nwatermark: {type: path, settle: x}\nowners: [me]\n", "platform": "format: x\n",
            "files": {"dataflows/also.yaml": "watermark: {type: path}\n", "dataflows/good.yaml": GOOD},
        },
        [
            ("also.yaml", 1, "source", "nothing", "a mapping or a list (this key is required)", None),
            ("flow.yaml", 1, "layer", "X", "text that matches ^[a-z][a-z0-9_]*$", None),
            ("flow.yaml", 2, "source.format", "q", "ndjson, json, csv, parquet, avro, xml, excel or debezium", None),
            ("flow.yaml", 3, "watermark.settle", "x", "an ISO 8601 duration such as PT2S, PT5M or P30D, not negative", None),
            ("flow.yaml", 4, "owners.0", "me", "an e-mail address or team:NAME", None),
            ("platform.yaml", 1, "format", "x", "delta, iceberg or parquet", None),
        ],
    ),
    **{
        f"a table is named like the {side} of a stream": ({"flow": STREAM, "files": {"dataflows/other.yaml": GOOD + f"target: {{load: append, table: bronze/x__{side}}}\n"}}, both("target.table", ALSO.format(f"x__{side}"), None, OF_ITS_OWN))
        for side in ("late", "quarantine", "buffer")
    },
    "a dataflow is named like the asset of a stream's late rows": (
        {"flow": STREAM, "files": {"dataflows/flow__late.yaml": GOOD}},
        [
            ("flow.yaml", 2, "watermark.late", "the asset bronze/flow__late of its late rows, which is also dataflows/flow__late.yaml:1", "another name or layer there, or late: drop or fail", None),
            ("flow__late.yaml", 1, "layer", "the asset bronze/flow__late, which is also the asset of the late rows of dataflows/flow.yaml:3", "another name of the file, or another layer", None),
        ],
    ),
    "two dataflows with one table are both named": (
        {"flow": GOOD, "files": {"dataflows/other.yaml": GOOD + "target:\n  load: append\n  table: bronze/flow\n"}},
        both("target.table", ALSO.format("flow"), None, OF_ITS_OWN, (1, 5)),
    ),
    "dataflows that all say so share a table": ({"flow": SHARED, "files": {"dataflows/other.yaml": SHARED}}, []),
    "a table is shared only if each of its dataflows says so": ({"flow": SHARED, "files": {"dataflows/other.yaml": SHARED.replace(", shared: true", "")}}, both("target.table", ALSO.format("both"), None, OF_ITS_OWN)),
    "dataflows that share a table lay it out alike": (
        {"flow": SHARED, "files": {"dataflows/other.yaml": SHARED.replace("shared: true", "shared: true, partition_by: [_dataflow]")}},
        both("target.partition_by", "nothing, and _dataflow in {}", "_dataflow, and nothing in {}", ALIKE),
    ),
    "dataflows that share a table keep it in one format": (
        {"flow": SHARED, "files": {"dataflows/other.yaml": SHARED.replace("load:", "format: iceberg, load:")}},
        both("target.format", "delta, and iceberg in {}", "iceberg, and delta in {}", ALIKE),
    ),
    "dataflows that share a table all change its columns or none does": (
        {"flow": SHARED, "files": {"dataflows/other.yaml": SHARED.replace("shared: true", "shared: true, schema_mode: merge")}},
        both("target.schema_mode", "strict, and merge in {}", "merge, and strict in {}", "schema_mode: merge in each file whose table is bronze/both, or in none"),
    ),
    "hidden files and other endings are ignored": ({"flow": GOOD, "files": {"dataflows/.#flow.yaml": "x", "dataflows/README.md": "x", "notes.yaml": "x: ["}}, []),
    "settings with the wrong ending are an error": ({"flow": GOOD, "files": {"platform.yml": "lake: x"}}, [("platform.yml", 1, None, "the ending .yml", "the ending .yaml", "platform.yaml")]),
    "what cannot be read is an error of that file": ({"flow": GOOD, "files": {"dataflows/folder.yaml/x": ""}}, [("folder.yaml", 1, None, "a file that cannot be read (Is a directory)", "a readable file", None)]),
    "places on an object store are told apart by whole names": (
        {"flow": ON_S3("lake2"), "platform": "lake: s3://b/lake\n", "files": {"dataflows/own.yaml": ON_S3("lake/bronze")}},
        [("own.yaml", 1, "source.path", "s3://b/lake/bronze, inside the lake (s3://b/lake)", "a place outside: a run would load its own output", None)],
    ),
    "a listing would see the lake inside of its source": (
        {"flow": GOOD.replace("./landing", "./data"), "platform": "lake: ./data/tables\n"}, [("flow.yaml", 1, "source.path", "./data, with the lake (./data/tables) inside it", "a place beside it: a run would load its own output", None)],
    ),
    "a source around a hidden lake is fine": ({"flow": GOOD.replace("./landing", ".")}, []),
    "a connection of another type is refused": (
        {"flow": ON_S3("x").replace("format", "connection: erp, format"), "platform": "connections: {erp: {type: jdbc}}\n"},
        [
            ("flow.yaml", 1, "source.connection", "erp, of type jdbc", "a connection of type s3", None),
            ("platform.yaml", 1, "connections.erp.url", "nothing", "text or {env: NAME} (this key is required)", None),
        ],
    ),
    "iceberg on an object store needs a safe catalog": (
        {"flow": GOOD + "target: {format: iceberg}\n", "platform": "lake: s3://b/lake\n"},
        [("flow.yaml", 3, "target.format", "iceberg in a lake on an object store", SAFE, None)],
    ),
    "rows are not clustered by a column that the schema lacks": (
        {"flow": FUNCTION + "target: {cluster_by: [Customer, custmer, _ingested_at]}\n" + CARE},
        [("flow.yaml", 3, "target.cluster_by.1", "custmer, which source.schema lacks", "columns of the table, such as id, customer; or sql or transform that adds it", "customer")],
    ),
    "sql may make the column that rows are clustered by": ({"flow": FUNCTION + "sql: select *, 1 AS kind from input\ntarget: {cluster_by: [kind]}\n" + CARE}, []),
    "files may be clustered by a column of their folders": ({"flow": GOOD.replace("}", ", schema: 'id long'}", 1) + "target: {cluster_by: [day]}\n" + CARE}, []),
}  # fmt: skip


@pytest.mark.parametrize(("texts", "errors"), PROJECTS.values(), ids=PROJECTS)
def test_mistakes_between_files_are_named_in_each_of_them(
    make: Make, texts: dict[str, Any], errors: list[Row]
) -> None:
    project = make(**texts)
    shown = [(error.file.removeprefix("dataflows/"), error.line, error.key, error.actual, error.expected, error.nearest) for error in project.errors]  # fmt: skip
    assert shown == errors
    files = {Path(name) for name in ("dataflows/flow.yaml", *texts.get("files", {}))}
    broken = {Path(error.file).stem for error in project.errors}
    flows = {file.stem for file in files if file.match("dataflows/[a-z]*.yaml")}
    assert project.dataflows.keys() == flows - broken


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
    assert error.actual == "x" * 59 + "…"


def test_the_nearest_name_ignores_case_and_may_be_the_beginning() -> None:
    assert nearest_name("FORMAT", ["format", "forest"]) == "format"
    assert nearest_name("Seperator", ["quote", "sep"]) == "sep"
    assert nearest_name("separator", ["separation", "sep"]) == "separation"
    assert nearest_name("zzz", ["format"]) is None


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
    assert error.actual == f"true beside {load.split(',')[0]}"
    assert error.expected.startswith(
        "append, merge_upsert, or merge_overwrite with replace_by_watermark: true ("
    )


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
