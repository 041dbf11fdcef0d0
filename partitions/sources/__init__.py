"""Sources as a user declares them: one module per source type, and their union.

See docs/reference/project-files.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Discriminator, Field, Tag

from partitions.sources.api import ApiSource
from partitions.sources.files import FilesSource
from partitions.sources.jdbc import JdbcSource
from partitions.sources.python import FunctionName, PythonSource
from partitions.sources.several import SeveralSources
from partitions.sources.table import TableName, TableSource

OneSource = Annotated[
    FilesSource | JdbcSource | ApiSource | PythonSource | TableSource, Field(discriminator="type")
]


def _form(value: Any) -> str:
    return "several" if isinstance(value, list | tuple | SeveralSources) else "one"


Source = Annotated[
    Annotated[OneSource, Tag("one")] | Annotated[SeveralSources, Tag("several")], Discriminator(_form)
]
"""One source, or a list of them."""

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
    "OneSource",
    "PythonSource",
    "SeveralSources",
    "Source",
    "TableName",
    "TableSource",
]
