"""Checks of a dataflow that its model cannot make: against settings, other dataflows, and Dagster's rules.

They look at the file's values, not at the model, so that a file with one mistake shows its others at
once.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from partitions.dataflow import Dataflow
from partitions.ddl import Column, DdlError, parse_ddl
from partitions.lineage import Lineage
from partitions.sources import SOURCES, FilesSource
from partitions.spelling import nearest
from partitions.stream.completeness import refused
from partitions.stream.side_table_names import side_tables
from partitions.supported import source_refusal
from partitions.table_names import bad_records_table
from partitions.window.definition import WindowWatermark
from platform_assets.project.checked_file import NAME, Checked
from platform_assets.project.cron import is_cron
from platform_assets.project.document import Key, value_at
from platform_assets.project.places import (
    PLACES,
    check_apart,
    check_connection,
    check_database,
    check_place,
    place_key,
    source_keys,
)
from platform_assets.project.settings import Settings
from resources.connections.api import is_secret_parameter
from resources.connections.postgres import is_database

# Dagster refuses these while it loads definitions, and then loads none. Refused here, only one file is broken.
_OWNER = re.compile(r"[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+\.[A-Za-z|]{2,7}|team:.+", re.DOTALL)
_TAG = re.compile(r"([A-Za-z0-9_.-]{1,63}/|dagster/kind/)?[A-Za-z0-9_.-]{1,63}")
_TAG_VALUE = re.compile(r"[A-Za-z0-9_.-]{0,63}")
_SHORTEST = timedelta(minutes=1)
_NESTED = ("array", "map", "struct")
_CATALOG_CONNECTIONS = {"jdbc": "jdbc", "rest": "iceberg_rest"}
"""By catalog of Iceberg tables: the type of its connection."""


def check_settings(settings: Checked[Settings]) -> None:
    """Refuse a state or lake whose address or connection is wrong."""
    for which in PLACES:
        key, connection = place_key(settings, which), (which, "connection")
        if which == "state" and is_database(settings.text(*key) or ""):
            check_database(settings, key, connection)
        else:
            check_place(settings, key, connection, connection_types(settings))
    _check_catalog(settings)


def _check_catalog(settings: Checked[Settings]) -> None:
    """Refuse a catalog of Iceberg tables without what it needs, or with what it has no use for."""
    key, name = ("iceberg", "connection"), settings.text("iceberg", "connection")
    catalog = settings.text("iceberg", "catalog") or "hadoop"
    if (connection_type := _CATALOG_CONNECTIONS.get(catalog)) is None:
        if name is not None and catalog == "hadoop":
            expected = "no such key beside catalog: hadoop, or catalog: jdbc or rest"
            settings.refuse(key, settings.shown(*key), expected)
    elif name is None:
        whose = "jdbc, to PostgreSQL," if connection_type == "jdbc" else connection_type
        settings.refuse(key, "nothing", f"the name of a connection of type {whose} beside catalog: {catalog}")
    else:
        check_connection(settings, key, connection_types(settings), connection_type)


def _check_iceberg(flow: Checked[Dataflow], settings: Checked[Settings]) -> None:
    """Refuse Iceberg tables on an object store whose folders are their catalog: two writers could take the same version."""
    lake = settings.text(*map(str, place_key(settings, "lake"))) or ""
    by_folders = (settings.text("iceberg", "catalog") or "hadoop") == "hadoop"
    if flow.text("target", "format") == "iceberg" and "://" in lake and by_folders:
        flow.refuse(
            ("target", "format"),
            "iceberg in a lake on an object store",
            "a catalog that commits one writer's version alone: iceberg: {catalog: jdbc, connection: NAME} or {catalog: rest, connection: NAME} in"
            " platform.yaml",
        )


def check_dataflow(flow: Checked[Dataflow], settings: Checked[Settings], folder: Path) -> None:
    """Check one file against the settings and Dagster's rules."""
    _name(flow)
    _source(flow, connection_types(settings))
    check_apart(flow, settings, folder)
    _check_iceberg(flow, settings)
    schema = _schema(flow)
    for key in ("partition_by", "cluster_by"):
        _single_columns(flow, key, schema)
    _clustered(flow, schema)
    _for_dagster(flow)


def _source(flow: Checked[Dataflow], connections: Mapping[str, str] | None) -> None:
    kinds = [_reached(flow, where, connections) for where in source_keys(flow)]
    inputs = value_at(flow.value, ("watermark", "secondary_input"), [])
    for index, entry in enumerate(inputs if isinstance(inputs, list) else ()):
        if isinstance(value_at(entry, ("source",)), dict):
            _reached(flow, ("watermark", "secondary_input", index, "source"), connections)
    on_spark = (
        flow.text("watermark", "engine") == "structured_streaming"
    )  # of which the model says what it reads
    for kind in () if on_spark else kinds:
        refused = source_refusal(flow.text("watermark", "type") or "", kind or "")
        if refused is not None:
            flow.refuse(refused.key, refused.found, refused.expected)


def _reached(flow: Checked[Dataflow], where: Key, connections: Mapping[str, str] | None) -> str | None:
    """Check how the source at a key is reached; return its type."""
    kind, key = flow.text(*where, "type"), (*where, "connection")
    source = SOURCES.get(kind or "", FilesSource)
    if kind is not None and kind not in SOURCES:
        pass  # the model says so, and nobody knows which connection it should have
    elif source.holds_files:
        check_place(flow, (*where, "path"), key, connections)
    elif source.connection_type is not None:
        check_connection(flow, key, connections, source.connection_type)
    _no_secrets(flow, where)
    return kind


def _no_secrets(flow: Checked[Dataflow], where: Key) -> None:
    """Refuse secrets among the parameters of a source, wherever they come from: its definition is kept in the state."""
    for part in ("params", "body"):
        parameters = value_at(flow.value, (*where, part), {})
        for name in parameters if isinstance(parameters, dict) else ():
            if is_secret_parameter(str(name)):
                expected = f"it in a setting of the connection, as {{env: NAME}}; or another name, if {name} is no secret"
                flow.refuse((*where, part, name), f"the parameter {name}, a secret by its name", expected)


def check_tables(flows: Sequence[Checked[Dataflow]]) -> None:
    """Refuse dataflows that write the same table, unless each of them says so, and they lay it out alike."""
    by_table: dict[str, list[Checked[Dataflow]]] = {}
    for flow in flows:
        if flow.model is not None:
            by_table.setdefault(flow.model.table, []).append(flow)
            beside = [bad_records_table(flow.model), *(name for name, _ in side_tables(flow.model).values())]
            for table in filter(None, beside):
                by_table.setdefault(table, []).append(flow)
    for table, sharing in by_table.items():
        for flow in sharing if len(sharing) > 1 else ():
            _share(flow, table, [other for other in sharing if other is not flow])


def check_assets(flows: Sequence[Checked[Dataflow]]) -> None:
    """Refuse a dataflow that is named like the asset of another one's late rows: Dagster has each asset once, and would load none."""
    named = {flow.model.asset: flow for flow in flows if flow.model is not None}
    for flow in flows:
        for asset in flow.model.tables_beside if flow.model is not None else ():
            if (other := named.get(asset)) is not None:
                flow.refuse(
                    ("watermark", "late"),
                    f"the asset {asset} of its late rows, which is also {_where(other)}",
                    "another name or layer there, or late: drop or fail",
                )
                other.refuse(
                    ("layer",),
                    f"the asset {asset}, which is also that of the late rows of {_where(flow)}",
                    "another name of the file, or another layer",
                )


def _share(flow: Checked[Dataflow], table: str, others: Sequence[Checked[Dataflow]]) -> None:
    """Check one of several dataflows with the same table."""
    assert flow.model is not None
    target = flow.model.target
    alone = [other for other in (flow, *others) if other.model and not other.model.target.shared]
    if alone:
        flow.refuse(
            ("target", "table"),
            f"the table {table}, which is also that of {', '.join(map(_where, others))}",
            "a table of its own, or target.shared: true in each of these files",
        )
        return
    for other in others:
        if other.model is None:
            continue
        alike = (
            ("format", target.format, other.model.target.format),
            ("partition_by", _listed(target.partition_by), _listed(other.model.target.partition_by)),
        )
        for key, value, other_value in alike:
            if value != other_value:
                flow.refuse(
                    ("target", key),
                    f"{value}, and {other_value} in {_where(other)}",
                    f"the same in each file whose table is {table}",
                )
                return
        clustered = other.model.target.cluster_by
        if clustered and target.cluster_by not in ((), clustered):
            flow.refuse(
                ("target", "cluster_by"),
                f"{_listed(target.cluster_by)}, and {_listed(clustered)} in {_where(other)}",
                f"the same in each file whose table is {table} and that has the key",
            )
            return
        # One that keeps its columns would be refused once another has widened them.
        if (other.model.target.schema_mode == "merge") != (target.schema_mode == "merge"):
            flow.refuse(
                ("target", "schema_mode"),
                f"{target.schema_mode}, and {other.model.target.schema_mode} in {_where(other)}",
                f"schema_mode: merge in each file whose table is {table}, or in none",
            )
            return


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) or "nothing"


def check_cycles(flows: Sequence[Checked[Dataflow]]) -> None:
    """Refuse dataflows that read their own output, directly or through others."""
    lineage = Lineage(flow.model for flow in flows if flow.model)
    for flow in flows:
        name = flow.model.name if flow.model else None
        for table, maker in lineage.circular(name) if name else ():
            if maker == name:
                problem, expected = (
                    "the dataflow's own table",
                    "another table: a run would load its own output",
                )
            else:
                problem = f"made by {maker}, into which rows of {name} come"
                expected = "no cycle of dataflows: none of them could run first"
            flow.refuse(table.key, f"{table.name}, {problem}", expected)


def check_waiting(flows: Sequence[Checked[Dataflow]]) -> None:
    """Refuse windows that wait for the watermark of a stream whose table they do not read. A maker whose file has errors is not judged."""
    for flow in flows:
        reader = flow.model
        if reader is None or not isinstance(reader.watermark, WindowWatermark):
            continue
        table = reader.source.lake_table
        if any(other.model is None and _table(other) == table for other in flows):
            continue
        makers = tuple(other.model for other in flows if other.model and other.model.table == table)
        if (refusal := refused(reader, makers)) is not None:
            flow.refuse(refusal.key, refusal.found, refusal.expected)


def _table(flow: Checked[Dataflow]) -> str:
    """Return the table of a file that may have errors."""
    stem = Path(flow.document.file).stem
    return flow.text("target", "table") or f"{flow.text('layer') or 'bronze'}/{stem}"


def connection_types(settings: Checked[Settings]) -> Mapping[str, str] | None:
    """Return the types of all connections by name, also of connections with mistakes; None if the settings cannot be read."""
    connections = settings.value.get("connections", {})
    if not settings.document.readable or not isinstance(connections, dict):
        return None
    return {name: str(value_at(fields, ("type",), "s3")) for name, fields in connections.items()}


def _where(flow: Checked[Dataflow]) -> str:
    return f"{flow.document.file}:{flow.document.line(('target', 'table'))}"


def _name(flow: Checked[Dataflow]) -> None:
    path = Path(flow.document.file)
    if not NAME.fullmatch(path.stem):
        fitting = re.sub(r"[^a-z0-9_]+", "_", path.stem.lower()).strip("_0123456789")
        expected = "a name of the letters a-z, digits and underscores that starts with a letter"
        flow.refuse((), f"the file name {path.name}", expected, f"{fitting}.yaml" if fitting else None)
    if flow.text("layer") == "watermark":
        flow.refuse(
            ("layer",), "watermark", "another layer: watermark/<name> are the assets of the watermarks"
        )


def _schema(flow: Checked[Dataflow]) -> list[Column]:
    columns: list[Column] = []
    for where in source_keys(flow):
        text = flow.text(*where, "schema")
        try:
            of_source = parse_ddl(text) if text is not None else []
        except DdlError as error:
            flow.refuse((*where, "schema"), error.found, error.expected, error.nearest)
            continue
        required = next((column.name for column in of_source if column.is_required), None)
        if required is not None and flow.text(*where, "type") != "files":
            flow.refuse(
                (*where, "schema"),
                f"{required} NOT NULL",
                "columns that may be NULL (only files are held against NOT NULL; `sql` with a WHERE leaves records out)",
            )
        columns += of_source
    return columns


def _single_columns(flow: Checked[Dataflow], name_of_key: str, schema: Sequence[Column]) -> None:
    """Check the columns in a key of ``target``. A column outside the schema may be a hive folder or come from a transform."""
    listed = value_at(flow.value, ("target", name_of_key), [])
    nested = {column.name.casefold() for column in schema if column.type in _NESTED}
    changed = flow.document.has(("transform",)) or flow.document.has(("sql",))
    seen: set[str] = set()
    for index, name in enumerate(_texts(listed)):
        key: Key = ("target", name_of_key, index)
        if not name:
            flow.refuse(key, "no name", "the name of a column")
        elif name.casefold() in seen:
            flow.refuse(key, f"the column {name} again", "each column once")
        elif name.casefold() in nested and not changed:
            flow.refuse(
                key,
                f"{name}, which the schema makes an array, a map or a struct",
                "a column with single values",
            )
        seen.add(name.casefold())


def _clustered(flow: Checked[Dataflow], schema: Sequence[Column]) -> None:
    """Refuse to cluster by columns that the table will not have. Of files a folder may bring one, which a run finds out, or ``maintain``."""
    model = flow.model
    if model is None or not schema or any(source.holds_files for source in model.source.parts.values()):
        return
    if model.has_step or model.target.schema_mode != "strict" or model.watermark.type == "stream":
        return
    names = [column.name for column in schema]
    cut = model.source.row_columns
    column_names = {name.casefold() for name in (*names, cut.window or "", *dict(cut.units).values())}
    for index, name in enumerate(model.target.cluster_by):
        # Loading adds columns whose names begin so.
        if name and not name.startswith("_") and name.casefold() not in column_names:
            flow.refuse(
                ("target", "cluster_by", index),
                f"{name}, which source.schema lacks",
                f"columns of the table, such as {', '.join(names[:3])}; or sql or transform that makes it",
                nearest(name, names),
            )


def _for_dagster(flow: Checked[Dataflow]) -> None:
    for index, owner in enumerate(_texts(flow.value.get("owners"))):
        if not _OWNER.fullmatch(owner):
            flow.refuse(("owners", index), flow.shown("owners", index), "an e-mail address or team:NAME")
    tags = flow.value.get("tags")
    for name, value in tags.items() if isinstance(tags, dict) else ():
        if not _TAG.fullmatch(name) or not _TAG_VALUE.fullmatch(str(value)):
            expected = "up to 63 of the letters A-Z and a-z, digits, _ . and - on either side"
            flow.refuse(("tags", name), f"the tag {name}: {flow.shown('tags', name)}", expected)
    schedule = flow.value.get("schedule")
    if isinstance(schedule, str) and schedule and not is_cron(schedule):
        expected = 'a cron text of five fields (minute, hour, day, month, weekday) with a time that occurs, such as "0 6 * * *" or "*/15 * * * *"; or @daily and its like'
        flow.refuse(("schedule",), flow.shown("schedule"), expected)
    freshness = flow.model.freshness if flow.model else None
    if freshness and min(freshness.fail, freshness.warn or freshness.fail) < _SHORTEST:
        flow.refuse(("freshness",), "less than a minute", "durations of at least PT1M")
    if freshness and freshness.warn and freshness.warn >= freshness.fail:
        flow.refuse(
            ("freshness", "warn"),
            flow.shown("freshness", "warn"),
            f"less than fail, {flow.shown('freshness', 'fail')}",
        )


def _texts(value: Any) -> list[str]:
    return [item if isinstance(item, str) else "" for item in value] if isinstance(value, list) else []
