"""A table of the lake (docs/project-files.md)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator

from partitions.sources.rows import RowsSource


def _table_name(text: str) -> str:
    parts = text.split("/")
    if len(parts) != 2 or not all(
        part.isidentifier() and part.isascii() and not part.startswith("_") for part in parts
    ):
        raise ValueError("expected <layer>/<name>, letters, digits and underscores")
    return text


TableName = Annotated[str, AfterValidator(_table_name)]


class TableSource(RowsSource):
    """A table of the lake, by dataflow or not; ``table`` is ``<layer>/<name>``."""

    type: Literal["table"]
    table: TableName

    @property
    def shown(self) -> str:
        """The table's name."""
        return self.table

    @property
    def lake_table(self) -> str:
        """The table itself."""
        return self.table

    def identity(self) -> dict[str, Any]:
        """Return what makes it another source (docs/state.md)."""
        return self.model_dump(include={"type", "table", "window_column", "unit_columns"})
