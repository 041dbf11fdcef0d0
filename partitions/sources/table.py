"""A table of the lake (docs/reference/project-files.md)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field

from partitions.refusal import Refusal
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
    """A table of the lake, by dataflow or not.

    Attributes:
        table: ``<layer>/<name>``.
        from_: the first version that a stream reads; ``latest``: what comes after its first run.
        on_change: whether a version that removes or changes rows stops a stream, or is passed over.
    """

    OF_STREAMS: ClassVar[tuple[str, ...]] = ("from_", "on_change")

    type: Literal["table"]
    table: TableName
    from_: Annotated[
        Literal["earliest", "latest"] | Annotated[int, Field(ge=0, strict=True)], Field(alias="from")
    ] = "earliest"
    on_change: Literal["stop", "skip"] = "stop"

    @property
    def shown(self) -> str:
        """The table's name."""
        return self.table

    @property
    def lake_table(self) -> str:
        """The table itself."""
        return self.table

    def identity(self) -> dict[str, Any]:
        """Return what makes it another source (docs/reference/state.md)."""
        begins = {} if self.from_ == "earliest" else {"from": self.from_}
        return self.model_dump(include={"type", "table", "window_column", "unit_columns"}) | begins

    def stream_refusals(self) -> Iterator[Refusal]:
        """Yield what only streams over splits have."""
        for name in self.OF_STREAMS:
            if name in self.model_fields_set:
                key = name.rstrip("_")
                expected = "no such key (only a stream with engine: splits has it)"
                yield Refusal(("source", key), str(getattr(self, name)), expected)

    def unit_refusals(self) -> Iterator[Refusal]:
        """Yield what only streams have, too."""
        yield from self.stream_refusals()
        yield from super().unit_refusals()
