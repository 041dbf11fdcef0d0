"""Several sources of one dataflow, as a list: what a union or a join of Spark's engine reads (docs/reference/streams-on-spark.md)."""

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


class Named(Model):
    """What a source of a list has beside its own keys.

    Attributes:
        name: of which no other source has the like; the second source of a join names columns by it.
        timeout: Spark's ``delayThreshold`` of its rows; None: the watermark's.
    """

    name: Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_]*$")]
    timeout: Delay | None = None


class NamedFiles(FilesSource, Named):
    """Files, one source of several."""

    def identity(self) -> dict[str, Any]:
        """Return what makes it another source; its timeout does not."""
        return {"name": self.name, **super().identity()}


class NamedTable(TableSource, Named):
    """A table of the lake, one source of several."""

    def identity(self) -> dict[str, Any]:
        """Return what makes it another source; its timeout does not."""
        return {"name": self.name, **super().identity()}


class SeveralSources(SourceDefinition):
    """At least two sources, in the order in which Spark's checkpoint numbers them.

    Attributes:
        sources: a user writes them as a list, without this key.
    """

    written_as: ClassVar[str | None] = "sources"

    type: Literal["several"] = "several"
    sources: tuple[Annotated[NamedFiles | NamedTable, Field(discriminator="type")], ...]

    @model_validator(mode="before")
    @classmethod
    def _listed(cls, value: Any) -> Any:
        if not isinstance(value, list | tuple):
            return value
        if len(value) < 2:
            raise ValueError("expected at least two sources, or one that is no list")
        return {"sources": value}

    @property
    def parts(self) -> Mapping[tuple[str | int, ...], SourceDefinition]:
        """Each of them."""
        return {("source", index): source for index, source in enumerate(self.sources)}

    @property
    def shown(self) -> str:
        """The sources by their names."""
        return ", ".join(f"{source.name} ({source.shown})" for source in self.sources)

    @property
    def form(self) -> str:
        """A list: its records are those of its sources."""
        return "a list of sources"

    def identity(self) -> dict[str, Any]:
        """Return what makes them others: the checkpoint knows them by their order (docs/reference/state.md)."""
        return {"type": self.type, "sources": [source.identity() for source in self.sources]}

    def reading(self) -> dict[str, Any]:
        """Return what else their rows depend on."""
        return {"readings": [source.reading() for source in self.sources]}

    def refusals(self) -> Iterator[Refusal]:
        """Yield what is wrong with one of them, and names that two have; Spark's columns know no case."""
        names = [source.name.casefold() for source in self.sources]
        for index, source in enumerate(self.sources):
            if names.index(names[index]) < index:
                expected = "a name that no other source has, upper and lower case being the same"
                yield Refusal(("source", index, "name"), f"{source.name} again", expected)
            yield from within(("source", index), source.refusals())

    def window_refusals(self, **_: object) -> Iterator[Refusal]:
        """Yield nothing: windows are refused a list as a whole."""
        yield from ()


def within(key: tuple[str | int, ...], refusals: Iterator[Refusal]) -> Iterator[Refusal]:
    """Yield what is refused of one source at its key in the file: ``("source",)``, or its place in a list."""
    for refusal in refusals:
        of_source = refusal.key[:1] == ("source",)
        yield refusal._replace(key=(*key, *refusal.key[1:])) if of_source else refusal
