"""A list of sources in one dataflow, for a union or join of Spark's engine.

See docs/reference/streams-on-spark.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from partitions.model import Model
from partitions.refusal import Refusal
from partitions.sources.definition import SourceDefinition
from partitions.sources.files import FilesSource
from partitions.sources.table import TableSource
from partitions.spark_stream.delay import Delay


class NamedSource(Model):
    """The keys that a source has only inside a list.

    Attributes:
        name: unique in the list; the second source of a join names columns with it.
        timeout: Spark's ``delayThreshold`` of its rows; None: the watermark's.
    """

    name: Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_]*$")]
    timeout: Delay | None = None


class NamedFiles(FilesSource, NamedSource):
    """Files as one source of a list."""

    def identity(self) -> dict[str, Any]:
        """Return the keys that identify the source; its timeout is not one of them."""
        return {"name": self.name, **super().identity()}


class NamedTable(TableSource, NamedSource):
    """A table of the lake as one source of a list."""

    def identity(self) -> dict[str, Any]:
        """Return the keys that identify the source; its timeout is not one of them."""
        return {"name": self.name, **super().identity()}


class SeveralSources(SourceDefinition):
    """At least two sources, in the order in which Spark's checkpoint numbers them.

    Attributes:
        sources: written by a user as a list, without this key.
    """

    written_as: ClassVar[str | None] = "sources"

    type: Literal["several"] = "several"
    sources: tuple[Annotated[NamedFiles | NamedTable, Field(discriminator="type")], ...]

    @model_validator(mode="before")
    @classmethod
    def _parse_list(cls, value: Any) -> Any:
        if not isinstance(value, list | tuple):
            return value
        if len(value) < 2:
            raise ValueError("expected at least two sources, or one source without a list")
        return {"sources": value}

    @property
    def parts(self) -> Mapping[tuple[str | int, ...], SourceDefinition]:
        """The sources, by their positions in the list."""
        return {("source", index): source for index, source in enumerate(self.sources)}

    @property
    def label(self) -> str:
        """The sources by their names."""
        return ", ".join(f"{source.name} ({source.label})" for source in self.sources)

    @property
    def form(self) -> str:
        """A list of sources."""
        return "a list of sources"

    def identity(self) -> dict[str, Any]:
        """Return the keys that identify the list, in order: the checkpoint knows sources by position.

        See docs/reference/state.md.
        """
        return {"type": self.type, "sources": [source.identity() for source in self.sources]}

    def reading(self) -> dict[str, Any]:
        """Return further keys that their rows depend on."""
        return {"readings": [source.reading() for source in self.sources]}

    def refusals(self) -> Iterator[Refusal]:
        """Yield what is wrong with a source, and names that occur twice, ignoring case as Spark does."""
        names = [source.name.casefold() for source in self.sources]
        for index, source in enumerate(self.sources):
            if names.index(names[index]) < index:
                expected = "a name that no other source has, ignoring case"
                yield Refusal(("source", index, "name"), f"{source.name} again", expected)
            yield from at_source_key(("source", index), source.refusals())

    def window_refusals(self, **_: object) -> Iterator[Refusal]:
        """Yield nothing: a list cannot have windows at all."""
        yield from ()


def at_source_key(key: tuple[str | int, ...], refusals: Iterator[Refusal]) -> Iterator[Refusal]:
    """Yield refusals of one source under its own key: ``("source",)``, or its position in a list."""
    for refusal in refusals:
        is_source_key = refusal.key[:1] == ("source",)
        yield refusal._replace(key=(*key, *refusal.key[1:])) if is_source_key else refusal
