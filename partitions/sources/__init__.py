"""Where rows come from, as a user declares it: one module a source, and the union of them (docs/project-files.md)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field

from partitions.sources.api import ApiSource
from partitions.sources.files import FilesSource
from partitions.sources.jdbc import JdbcSource
from partitions.sources.python import FunctionName, PythonSource
from partitions.sources.table import TableName, TableSource

Source = Annotated[
    FilesSource | JdbcSource | ApiSource | PythonSource | TableSource, Field(discriminator="type")
]

SOURCES: Mapping[str, type[FilesSource | JdbcSource | ApiSource | PythonSource | TableSource]] = {
    "files": FilesSource,
    "jdbc": JdbcSource,
    "api": ApiSource,
    "python": PythonSource,
    "table": TableSource,
}
"""The sources by the ``type`` that a user writes."""

__all__ = [
    "SOURCES",
    "ApiSource",
    "FilesSource",
    "FunctionName",
    "JdbcSource",
    "PythonSource",
    "Source",
    "TableName",
    "TableSource",
]
