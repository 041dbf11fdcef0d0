"""A table of the lake (docs/reference/project-files.md)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field

from partitions.refusal import Refusal
from partitions.sources.definition import version_refusals
from partitions.sources.rows import RowsSource


def _check_table_name(text: str) -> str:
    parts = text.split("/")
    if len(parts) != 2 or not all(
        part.isidentifier() and part.isascii() and not part.startswith("_") for part in parts
    ):
        raise ValueError("expected <layer>/<name>, letters, digits and underscores")
    return text


TableName = Annotated[str, AfterValidator(_check_table_name)]


class TableSource(RowsSource):
    """A table of the lake, written by a dataflow or not.

    Attributes:
        table: ``<layer>/<name>``.
        from_: the first version that a stream reads; ``latest``: the versions after its first run.
        on_change: whether a version that removes or changes rows stops a stream, or is skipped.
    """

    has_chunks: ClassVar[bool] = True
    version_keys: ClassVar[tuple[str, ...]] = ("from_", "on_change")

    type: Literal["table"]
    table: TableName
    from_: Annotated[
        Literal["earliest", "latest"] | Annotated[int, Field(ge=0, strict=True)], Field(alias="from")
    ] = "earliest"
    on_change: Literal["stop", "skip"] = "stop"

    @property
    def label(self) -> str:
        """The table's name."""
        return self.table

    @property
    def lake_table(self) -> str:
        """The table itself."""
        return self.table

    def identity(self) -> dict[str, Any]:
        """Return the keys that identify the source: a change makes it another one (docs/reference/state.md)."""
        first_version = {} if self.from_ == "earliest" else {"from": self.from_}
        return self.model_dump(include={"type", "table", "window_column", "unit_columns"}) | first_version

    def unit_refusals(self) -> Iterator[Refusal]:
        """Yield keys that only windows or streams have."""
        yield from version_refusals(self)
        yield from super().unit_refusals()
