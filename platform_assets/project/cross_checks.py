"""Checks of a dataflow against settings, other dataflows, and Dagster's rules.

They use the file's values, not the model, so that a file with one mistake shows its other mistakes, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from partitions.dataflow import Dataflow
from partitions.ddl import Column, DdlError, parse_ddl
from partitions.lineage import Lineage
from partitions.sources import SOURCES, FilesSource
from partitions.spelling import nearest_name
from partitions.stream.completeness import completeness_refusal
from partitions.supported import source_refusal
from partitions.table_names import bad_records_table, side_tables
from partitions.window.upstream_refusals import input_refusal, refresh_refusal, upstream_refusal
from platform_assets.project.checked_file import Checked
from platform_assets.project.dagster_rules import _texts, check_dagster_rules
from platform_assets.project.document import Key, value_at
from platform_assets.project.places import (
    PLACES,
    check_connection,
    check_database,
    check_not_own_output,
    check_place,
    place_key,
    source_keys,
)
from platform_assets.project.settings import Settings
from resources.connections.api import is_secret_parameter
from resources.connections.postgres import is_database

_NESTED = ("array", "map", "struct")
_CATALOG_CONNECTIONS = {"jdbc": "jdbc", "rest": "iceberg_rest"}
"""The type of connection that a catalog of Iceberg tables needs."""


def check_settings(settings: Checked[Settings]) -> None:
    """Refuse a wrong address or connection of the state, the lake or the catalog of Iceberg tables."""
    for name in PLACES:
        key, connection = place_key(settings, name), (name, "connection")
        if name == "state" and is_database(settings.text(*key) or ""):
            check_database(settings, key, connection)
        else:
            check_place(settings, key, connection, connection_types(settings))
    _check_catalog(settings)


def _check_catalog(settings: Checked[Settings]) -> None:
    """Refuse a catalog of Iceberg tables with a missing or a superfluous connection."""
    key, name = ("iceberg", "connection"), settings.text("iceberg", "connection")
    catalog = settings.text("iceberg", "catalog") or "hadoop"
    if (connection_type := _CATALOG_CONNECTIONS.get(catalog)) is None:
        if name is not None and catalog == "hadoop":
            expected = "no such key with catalog: hadoop, or catalog: jdbc or rest"
            settings.refuse(key, settings.written_text(*key), expected)
    elif name is None:
        type_text = "jdbc, to PostgreSQL," if connection_type == "jdbc" else connection_type
        settings.refuse(
            key, "nothing", f"the name of a connection of type {type_text} with catalog: {catalog}"
        )
    else:
        check_connection(settings, key, connection_types(settings), connection_type)


def _check_iceberg(flow: Checked[Dataflow], settings: Checked[Settings]) -> None:
    """Refuse Iceberg tables on an object store without a catalog.

    Folders cannot be the catalog there: two writers could commit the same version.
    """
    lake = settings.text(*map(str, place_key(settings, "lake"))) or ""
    by_folders = (settings.text("iceberg", "catalog") or "hadoop") == "hadoop"
    if flow.text("target", "format") == "iceberg" and "://" in lake and by_folders:
        flow.refuse(
            ("target", "format"),
            "iceberg in a lake on an object store",
            "a catalog that accepts one of two commits of the same version: iceberg: {catalog: jdbc, connection: "
            "NAME} or {catalog: rest, connection: NAME} in platform.yaml",
        )


def check_dataflow(flow: Checked[Dataflow], settings: Checked[Settings], folder: Path) -> None:
    """Check one file against the settings and Dagster's rules."""
    _check_layer(flow)
    _check_sources(flow, connection_types(settings))
    check_not_own_output(flow, settings, folder)
    _check_iceberg(flow, settings)
    schema = _check_schema(flow)
    for key in ("partition_by", "cluster_by"):
        _check_single_columns(flow, key, schema)
    _check_clustering(flow, schema)
    check_dagster_rules(flow)


def _check_sources(flow: Checked[Dataflow], connections: Mapping[str, str] | None) -> None:
    source_types = [_check_connection_of(flow, where, connections) for where in source_keys(flow)]
    inputs = value_at(flow.value, ("watermark", "secondary_input"), [])
    for index, entry in enumerate(inputs if isinstance(inputs, list) else ()):
        if isinstance(value_at(entry, ("source",)), dict):
            _check_connection_of(flow, ("watermark", "secondary_input", index, "source"), connections)
    on_spark = (
        flow.text("watermark", "engine") == "structured_streaming"
    )  # the model says what that engine reads
    for source_type in () if on_spark else source_types:
        refused = source_refusal(flow.text("watermark", "type") or "", source_type or "")
        if refused is not None:
            flow.refuse(refused.key, refused.actual, refused.expected)


def _check_connection_of(
    flow: Checked[Dataflow], where: Key, connections: Mapping[str, str] | None
) -> str | None:
    """Check the connection or place of the source at a key; return the source's type."""
    source_type, key = flow.text(*where, "type"), (*where, "connection")
    source = SOURCES.get(source_type or "", FilesSource)
    if source_type is not None and source_type not in SOURCES:
        pass  # the model reports the type; its connection cannot be checked
    elif source.holds_files:
        check_place(flow, (*where, "path"), key, connections)
    elif source.connection_type is not None:
        check_connection(flow, key, connections, source.connection_type)
    _refuse_secrets(flow, where)
    return source_type


def _refuse_secrets(flow: Checked[Dataflow], where: Key) -> None:
    """Refuse secrets among a source's parameters, even from the environment: the state stores them."""
    for part in ("params", "body"):
        parameters = value_at(flow.value, (*where, part), {})
        for name in parameters if isinstance(parameters, dict) else ():
            if is_secret_parameter(str(name)):
                expected = f"it in a setting of the connection, as {{env: NAME}}; or another name, if {name} is no secret"
                flow.refuse((*where, part, name), f"the parameter {name}, a secret by its name", expected)


def check_names(flows: Sequence[Checked[Dataflow]]) -> None:
    """Refuse dataflows of one name: their states and jobs would be one."""
    by_name: dict[str, list[Checked[Dataflow]]] = {}
    for flow in flows:
        by_name.setdefault(flow.name, []).append(flow)
    for name, namesakes in by_name.items():
        for flow in namesakes if len(namesakes) > 1 else ():
            others = ", ".join(
                f"{other.document.file}:{other.document.line(('name',))}{_import_of(other)}"
                for other in namesakes
                if other is not flow
            )
            problem = f"the name {name}{_import_of(flow)}, which is also that of {others}"
            flow.refuse(("name",), problem, "each name once")
            flow.model = None


def check_tables(flows: Sequence[Checked[Dataflow]]) -> None:
    """Refuse dataflows that write one table, unless all declare it shared and lay it out alike."""
    users: dict[str, list[Checked[Dataflow]]] = {}
    for flow in flows:
        if flow.model is not None:
            users.setdefault(flow.model.table, []).append(flow)
            more_tables = [
                bad_records_table(flow.model),
                *(name for name, _ in side_tables(flow.model).values()),
            ]
            for table in filter(None, more_tables):
                users.setdefault(table, []).append(flow)
    for table, sharing in users.items():
        for flow in sharing if len(sharing) > 1 else ():
            _check_sharing(flow, table, [user for user in sharing if user is not flow])


def check_assets(flows: Sequence[Checked[Dataflow]]) -> None:
    """Refuse a dataflow whose asset is also another one's asset of late rows.

    Dagster would load no definitions with an asset twice.
    """
    by_asset = {flow.model.asset: flow for flow in flows if flow.model is not None}
    for flow in flows:
        for asset in flow.model.tables_beside if flow.model is not None else ():
            if (namesake := by_asset.get(asset)) is not None:
                flow.refuse(
                    ("watermark", "late"),
                    f"the asset {asset} of its late rows, which is also {_location(namesake)}",
                    "another name or layer there, or late: drop or fail",
                )
                namesake.refuse(
                    ("layer",),
                    f"the asset {asset}, which is also the asset of the late rows of {_location(flow)}",
                    "another name of the file, or another layer",
                )


def _check_sharing(flow: Checked[Dataflow], table: str, sharing: Sequence[Checked[Dataflow]]) -> None:
    """Check one of several dataflows that share a table."""
    assert flow.model is not None
    target = flow.model.target
    alone = [user for user in (flow, *sharing) if user.model and not user.model.target.shared]
    if alone:
        flow.refuse(
            ("target", "table"),
            f"the table {table}, which is also the table of {', '.join(map(_location, sharing))}",
            "a table of its own, or target.shared: true in each of these files",
        )
        return
    for sharer in sharing:
        if sharer.model is None:
            continue
        shared_keys = (
            ("format", target.format, sharer.model.target.format),
            ("partition_by", _joined(target.partition_by), _joined(sharer.model.target.partition_by)),
        )
        for key, value, sharer_value in shared_keys:
            if value != sharer_value:
                flow.refuse(
                    ("target", key),
                    f"{value}, and {sharer_value} in {_location(sharer)}",
                    f"the same in each file whose table is {table}",
                )
                return
        clustered = sharer.model.target.cluster_by
        if clustered and target.cluster_by not in ((), clustered):
            flow.refuse(
                ("target", "cluster_by"),
                f"{_joined(target.cluster_by)}, and {_joined(clustered)} in {_location(sharer)}",
                f"the same in each file whose table is {table} and that has the key",
            )
            return
        # A dataflow with fixed columns would be refused once another has widened them.
        if (sharer.model.target.schema_mode == "merge") != (target.schema_mode == "merge"):
            flow.refuse(
                ("target", "schema_mode"),
                f"{target.schema_mode}, and {sharer.model.target.schema_mode} in {_location(sharer)}",
                f"schema_mode: merge in each file whose table is {table}, or in none",
            )
            return


def _joined(names: Sequence[str]) -> str:
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
                problem = f"loaded by {maker}, which reads rows of {name}"
                expected = "no cycle of dataflows: none of them could run first"
            flow.refuse(table.key, f"{table.name}, {problem}", expected)


def check_waiting(flows: Sequence[Checked[Dataflow]]) -> None:
    """Refuse windows that wait for a table that they do not read, or that nothing tells the end of.

    Skipped if the file of that dataflow has errors.
    """
    makers_by_table = _makers_by_table(flows)
    for flow in flows:
        reader = flow.model
        if reader is None:
            continue
        makers = makers_by_table.get(reader.source.lake_table or "", ())
        refusal = makers is not None and (
            completeness_refusal(reader, makers)
            or upstream_refusal(reader, makers)
            or refresh_refusal(reader, makers)
        )
        if refusal:
            flow.refuse(refusal.key, refusal.actual, refusal.expected)
            continue
        for name in reader.watermark.awaited_inputs:
            makers = makers_by_table.get(reader.inputs[name], ())
            if makers is not None and (refusal := input_refusal(reader, name, makers)) is not None:
                flow.refuse(refusal.key, refusal.actual, refusal.expected)


def _makers_by_table(flows: Sequence[Checked[Dataflow]]) -> Mapping[str, tuple[Dataflow, ...] | None]:
    """Return the dataflows that write each table; None if the file of one of them has errors."""
    makers: dict[str, tuple[Dataflow, ...] | None] = {}
    for flow in flows:
        table = flow.model.table if flow.model else _table_of(flow)
        earlier = makers.get(table, ())
        makers[table] = None if flow.model is None or earlier is None else (*earlier, flow.model)
    return makers


def _table_of(flow: Checked[Dataflow]) -> str:
    """Return the table that a file names, even if it has errors."""
    return flow.text("target", "table") or f"{flow.text('layer') or 'bronze'}/{flow.name}"


def connection_types(settings: Checked[Settings]) -> Mapping[str, str] | None:
    """Return the types of all connections by name; None if the settings cannot be read.

    Connections with mistakes are included.
    """
    connections = settings.value.get("connections", {})
    if not settings.document.readable or not isinstance(connections, dict):
        return None
    return {name: str(value_at(fields, ("type",), "s3")) for name, fields in connections.items()}


def _import_of(flow: Checked[Dataflow]) -> str:
    return f", imported by {flow.imported_by}" if flow.imported_by else ""


def _location(flow: Checked[Dataflow]) -> str:
    return f"{flow.document.file}:{flow.document.line(('target', 'table'))}"


def _check_layer(flow: Checked[Dataflow]) -> None:
    if flow.text("layer") == "watermark":
        flow.refuse(
            ("layer",), "watermark", "another layer: watermark/<name> are the assets of the watermarks"
        )


def _check_schema(flow: Checked[Dataflow]) -> list[Column]:
    columns: list[Column] = []
    for where in source_keys(flow):
        text = flow.text(*where, "schema")
        try:
            source_columns = parse_ddl(text) if text is not None else []
        except DdlError as error:
            flow.refuse((*where, "schema"), error.actual, error.expected, error.nearest)
            continue
        required = next((column.name for column in source_columns if column.is_required), None)
        if required is not None and flow.text(*where, "type") != "files":
            flow.refuse(
                (*where, "schema"),
                f"{required} NOT NULL",
                "nullable columns (NOT NULL is checked for files only; a WHERE in `sql` drops records)",
            )
        columns += source_columns
    return columns


def _check_single_columns(flow: Checked[Dataflow], name_of_key: str, schema: Sequence[Column]) -> None:
    """Check that the columns in a key of ``target`` hold single values and occur once.

    A column that is not in the schema may be a hive folder, or come from a transform.
    """
    names = value_at(flow.value, ("target", name_of_key), [])
    nested = {column.name.casefold() for column in schema if column.type in _NESTED}
    is_transformed = flow.document.has(("transform",)) or flow.document.has(("sql",))
    seen_names: set[str] = set()
    for index, name in enumerate(_texts(names)):
        key: Key = ("target", name_of_key, index)
        if not name:
            flow.refuse(key, "no name", "the name of a column")
        elif name.casefold() in seen_names:
            flow.refuse(key, f"the column {name} again", "each column once")
        elif name.casefold() in nested and not is_transformed:
            flow.refuse(
                key,
                f"{name}, which the schema makes an array, a map or a struct",
                "a column with single values",
            )
        seen_names.add(name.casefold())


def _check_clustering(flow: Checked[Dataflow], schema: Sequence[Column]) -> None:
    """Refuse to cluster by columns that the table will not have.

    A folder of files may add a column; then a run, or ``maintain``, finds the mistake.
    """
    model = flow.model
    if model is None or not schema or any(source.holds_files for source in model.source.parts.values()):
        return
    if model.has_step or model.target.schema_mode != "strict" or model.watermark.takes_operators:
        return
    names = [column.name for column in schema]
    row_columns = model.source.row_columns
    column_names = {
        name.casefold() for name in (*names, row_columns.window or "", *dict(row_columns.units).values())
    }
    for index, name in enumerate(model.target.cluster_by):
        # Names of columns that loading adds start with an underscore.
        if name and not name.startswith("_") and name.casefold() not in column_names:
            flow.refuse(
                ("target", "cluster_by", index),
                f"{name}, which source.schema lacks",
                f"columns of the table, such as {', '.join(names[:3])}; or sql or transform that adds it",
                nearest_name(name, names),
            )
