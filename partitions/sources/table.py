"""A table of the lake (docs/reference/project-files.md)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, AwareDatetime, Field
from typing_extensions import override

from partitions.model import Model
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


OnChange = Literal["stop", "skip", "apply", "keep"]


class FromTime(Model):
    """A start behind the last commit at or before a time."""

    time: AwareDatetime


class TableSource(RowsSource):
    """A table of the lake, written by a dataflow or not.

    Attributes:
        table: ``<layer>/<name>``.
        from_: where reading by versions begins: ``snapshot`` with the rows that are there, ``earliest`` with
            the first version of the log, ``latest`` after the first run; a version: a stream begins with
            it, an offset behind it; None: the watermark's own default.
        on_change: what becomes of versions that remove or change rows; None: the load's own default.
    """

    has_chunks: ClassVar[bool] = True
    version_keys: ClassVar[tuple[str, ...]] = ("from_", "on_change")

    type: Literal["table"]
    table: TableName
    from_: Annotated[
        Literal["snapshot", "earliest", "latest"]
        | Annotated[int, Field(ge=0, strict=True)]
        | FromTime
        | None,
        Field(alias="from"),
    ] = None
    on_change: OnChange | None = None

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
        first_version = self.model_dump(mode="json", include={"from_"}, exclude_none=True).get("from_")
        start = {} if first_version in (None, "earliest", "snapshot") else {"from": first_version}
        return self.model_dump(include={"type", "table", "window_column", "unit_columns"}) | start

    @override
    def append_refusals(self) -> Iterator[Refusal]:
        """Yield a start and a treatment of changes that only an offset knows."""
        if self.from_ == "snapshot" or isinstance(self.from_, FromTime):
            start = self.from_ if isinstance(self.from_, str) else "a time"
            yield Refusal(
                ("source", "from"),
                f"{start} beside a stream",
                "earliest, latest or a version, or a watermark of type offset",
            )
        if self.on_change in ("apply", "keep"):
            yield Refusal(
                ("source", "on_change"),
                f"{self.on_change} beside a stream",
                "stop or skip (a stream only adds rows), or a watermark of type offset",
            )

    def unit_refusals(self) -> Iterator[Refusal]:
        """Yield keys that only windows or streams have."""
        yield from version_refusals(self)
        yield from super().unit_refusals()
