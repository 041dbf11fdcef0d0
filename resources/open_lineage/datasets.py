"""Names of datasets by the naming rules of OpenLineage's specification."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from partitions.sources import ApiSource, JdbcSource
from partitions.sources.definition import SourceDefinition
from resources.connections.api import ApiConnection
from resources.connections.jdbc import JdbcConnection
from resources.connections.places import Place
from resources.connections.source_connection import SourceConnection
from resources.open_lineage.columns import tables_of_query

_PORTS = {"postgresql": 5432, "mariadb": 3306}
_SCHEMES = {"postgresql": "postgres", "mariadb": "mysql"}
_DIALECTS = {"postgresql": "postgres", "mariadb": "mysql"}
_PLACEHOLDER = re.compile(r"\{[^{}]*\}")
_ACCOUNT = "AZURE_STORAGE_ACCOUNT_NAME"


class DatasetName(NamedTuple):
    """The name of a dataset, unique within a namespace."""

    namespace: str
    name: str


def names_of_source(source: SourceDefinition, connection: SourceConnection) -> Sequence[DatasetName]:
    """Return the datasets that a source reads; none of code of the user, which has no name.

    A query has those of its tables, as far as its text tells.
    """
    match source, connection:
        case _, Place():
            return [name_of_place(connection)]
        case JdbcSource(), JdbcConnection():
            return _names_of_tables(source, connection)
        case ApiSource(), ApiConnection():
            parts = urlsplit(connection.base_url)
            return [DatasetName(f"{parts.scheme}://{parts.netloc}", f"{parts.path.rstrip('/')}{source.path}")]
    return []


def name_of_place(place: Place) -> DatasetName:
    """Return the name of a folder, a table of the lake, or a prefix of an object store."""
    if place.local is not None:
        return DatasetName("file", str(place.local))
    scheme, _, rest = place.url.partition("://")
    bucket, _, prefix = rest.partition("/")
    account = os.environ.get(_ACCOUNT)
    if scheme == "az" and account:
        return DatasetName(f"abfss://{bucket}@{account}.dfs.core.windows.net", prefix or "/")
    return DatasetName(f"{scheme}://{bucket}", prefix or "/")


def _names_of_tables(source: JdbcSource, connection: JdbcConnection) -> Sequence[DatasetName]:
    hosts, _, database = connection.display_url.partition("://")[2].partition("/")
    host, _, port = hosts.split(",")[0].partition(":")
    namespace = f"{_SCHEMES[connection.system]}://{host}:{port or _PORTS[connection.system]}"
    if source.table is not None:
        tables: Sequence[tuple[str, ...]] = [source.table_parts]
    else:
        query = _PLACEHOLDER.sub("NULL", source.query or "")
        tables = tables_of_query(query, _DIALECTS[connection.system])
    defaults = (unquote(database), "public") if connection.system == "postgresql" else (unquote(database),)
    length = len(defaults) + 1
    full_names = [(*defaults[: length - len(parts)], *parts)[-length:] for parts in tables]
    return [DatasetName(namespace, ".".join(parts)) for parts in full_names]
