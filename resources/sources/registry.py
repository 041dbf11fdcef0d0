"""The registry of sources: which definition is opened as which source."""

from __future__ import annotations

from partitions.dataflow import Dataflow
from partitions.errors import ConfigurationError
from partitions.schema_policy import may_take_columns
from partitions.sources import ApiSource, FilesSource, JdbcSource, PythonSource, TableSource
from resources.connections.api import ApiConnection
from resources.connections.jdbc import JdbcConnection
from resources.connections.places import Place
from resources.connections.source_connection import SourceConnection
from resources.sources.api.source import ApiRows
from resources.sources.files.source import FileSource
from resources.sources.jdbc.source import JdbcRows
from resources.sources.python.source import PythonRows
from resources.sources.schema import named_columns
from resources.sources.source import RowSource
from resources.sources.table import TableRows
from resources.staging import Staging
from resources.tables.registry import find_table
from resources.user_functions import UserCode

Source = FileSource | RowSource


def open_source(dataflow: Dataflow, source_place: SourceConnection, staging: Staging) -> Source:
    """Return the source of a dataflow; nothing is opened before its first use.

    Args:
        dataflow: the dataflow's definition.
        source_place: the root of its files, the place of its table, its database, its API, or code of the
        user.
        staging: where rows are staged that only this process can fetch.
    """
    match dataflow.source, source_place:
        case FilesSource(), Place() as root:
            return FileSource(root, dataflow, staging)
        case JdbcSource() as definition, JdbcConnection() as connection:
            keys, mode = _identifying_columns(dataflow, definition), dataflow.target.schema_mode
            replaces_units = dataflow.target.replace_by_watermark
            return JdbcRows(
                connection, definition, dataflow.zone, mode, keys=keys, replaces_units=replaces_units
            )
        case ApiSource() as definition, ApiConnection() as api:
            return ApiRows(api, definition, dataflow, staging)
        case PythonSource() as definition, UserCode() as code:
            return PythonRows(dataflow, definition, code, staging)
        case TableSource() as definition, Place() as place:
            table, mode = find_table(place), dataflow.target.schema_mode
            return TableRows(
                table,
                definition,
                dataflow.zone,
                mode,
                may_merge=may_take_columns(dataflow),
                scratch=lambda: staging.folder,
            )
    raise ConfigurationError(
        f"dataflow {dataflow.name}: expected what a source of type {dataflow.source.type} reads, found {source_place}"
    )


def _identifying_columns(dataflow: Dataflow, source: JdbcSource) -> tuple[str, ...]:
    """Return the columns that identify a row in errors: keys, else those of the watermark or of windows."""
    columns = dataflow.target.merge_keys or dataflow.watermark.value_columns
    return columns or tuple(dict.fromkeys(named_columns(source).values()))
