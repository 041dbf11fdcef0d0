"""What every source says of itself, so that its type need not be asked."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from datetime import tzinfo
from typing import Any, ClassVar, Literal, NamedTuple

from partitions.bound_text import FIELDS, Wording
from partitions.model import Model
from partitions.placeholders import TIMES, Placeholder, wording
from partitions.refusal import Refusal

WHOLE_WINDOW = frozenset({"start", "end"})
"""The placeholders that stand for a window."""

NO_TIME = "a datetime entry in watermark.definition beside it (without one there are no windows)"


ConnectionType = Literal["s3", "jdbc", "api", "python"]
"""The types of connections that sources have."""


class RowColumns(NamedTuple):
    """The columns that tell a row's window and unit.

    Attributes:
        window: the time that decides on a row's window; None: no column tells it.
        units: the names of a unit's values to the columns that hold them.
    """

    window: str | None
    units: Mapping[str, str]


class AskedWindows(NamedTuple):
    """How windows are asked for.

    Attributes:
        by_range: whether any stretch of time can be asked for.
        names_place: whether a window is named by its start alone, and what is there belongs to it as a whole.
    """

    by_range: bool
    names_place: bool


class AskedAbove(NamedTuple):
    """How rows above a value are asked for.

    Attributes:
        saves_bound: whether a run saves the bound that it asked for, not the highest value that it has read.
        tells_what_is_new: whether these rows alone can be asked for, so that a short look tells whether there are any.
    """

    saves_bound: bool
    tells_what_is_new: bool


class BoundText(NamedTuple):
    """How an end of a window leaves as text.

    Attributes:
        name: ``start`` or ``end``.
        key: of the definition, where it is written.
        form: as the user has it.
        wording: what it says.
    """

    name: str
    key: tuple[str | int, ...]
    form: str
    wording: Wording


class SourceDefinition(Model):
    """A source as a user declares it.

    Attributes:
        type: the word that a user writes.
        connection_type: of the connection that it has or may have; None: it has none.
        holds_files: whether it is files under a root; else it is asked for rows, and has a schema of its own.
        asks_in: the key where placeholders stand, and where in words.
    """

    connection_type: ClassVar[ConnectionType | None] = None
    holds_files: ClassVar[bool] = False
    asks_in: ClassVar[tuple[str, str]] = ("path", "the path")

    type: str

    @property
    @abstractmethod
    def shown(self) -> str:
        """The source in a description."""

    @property
    @abstractmethod
    def form(self) -> str:
        """What its records are, in a message: the format of files, or the type of the source."""

    @property
    def placeholders(self) -> frozenset[str]:
        """What it asks for by ``{start}``, ``{end}``, ``{unit.NAME}``, without the braces."""
        return frozenset()

    @property
    def asked(self) -> Sequence[Placeholder]:
        """The placeholders of its query or requests, each as often as it stands there; folders name whole windows and have none here."""
        return ()

    @property
    def asked_windows(self) -> AskedWindows:
        """How windows are asked for."""
        return AskedWindows(by_range=False, names_place=self.placeholders & WHOLE_WINDOW == {"start"})

    @property
    def places(self) -> Sequence[Placeholder]:
        """The placeholders that tell windows apart, if nothing else tells the window of a row."""
        return ()

    def wordings(self, zone: tzinfo) -> Iterator[BoundText]:
        """Yield how placeholders of its query or requests write the ends of windows.

        Args:
            zone: of the windows.
        """
        for name in TIMES:
            forms = [placeholder for placeholder in self.asked if placeholder.name == name]
            if forms:
                coarsest = min(forms, key=lambda form: FIELDS.index(wording([form], name, zone).finest))
                words = wording(self.asked, name, zone)
                yield BoundText(name, ("source", self.asks_in[0]), coarsest.text, words)

    @property
    def parts(self) -> Mapping[tuple[str | int, ...], SourceDefinition]:
        """By their keys in the file: the sources that it is made of; one is itself."""
        return {("source",): self}

    @property
    def lake_table(self) -> str | None:
        """The table of the lake that it reads, ``<layer>/<name>``; None: it reads none."""
        return None

    @property
    def declared_schema(self) -> str | None:
        """The schema that the user has declared, Spark DDL; None: none."""
        return None

    @property
    def row_columns(self) -> RowColumns:
        """The columns that tell a row's window and unit, as far as the user has named some."""
        return RowColumns(None, {})

    @abstractmethod
    def identity(self) -> dict[str, Any]:
        """Return what makes it another source (docs/reference/state.md)."""

    def reading(self) -> dict[str, Any]:
        """Return what else its rows depend on."""
        return {}

    @abstractmethod
    def window_refusals(self, *, timed: bool, unit_fields: Sequence[str]) -> Iterator[Refusal]:
        """Yield why it cannot be read by windows and units: something must tell it which are asked for.

        Args:
            timed: whether there are windows of time.
            unit_fields: the names of a unit's values.
        """

    @property
    def asked_above(self) -> AskedAbove:
        """How rows above a value are asked for."""
        return AskedAbove(saves_bound=False, tells_what_is_new=True)

    def refusals(self) -> Iterator[Refusal]:
        """Yield what is wrong with it whatever reads it."""
        yield from ()

    def column_refusals(self) -> Iterator[Refusal]:
        """Yield keys and placeholders that it must not have to be read above a column watermark."""
        yield from ()

    def parameter_refusals(self, _columns: Sequence[str], _nulls: str, /) -> Iterator[Refusal]:
        """Yield why it cannot be told of bounds of these columns; ``nulls`` says what becomes of rows without a value."""
        yield from ()

    def unit_refusals(self) -> Iterator[Refusal]:
        """Yield keys and placeholders that it must not have to list units: its rows are read as they are, without Spark."""
        for name in sorted(self.placeholders):
            key = ("source", self.asks_in[0])
            yield Refusal(
                key, f"{{{name}}}", f"{self.asks_in[1]} without placeholders (it lists the units themselves)"
            )
        if self.declared_schema is not None:
            yield Refusal(
                ("source", "schema"), self.declared_schema, "no schema (units have the types of the source)"
            )

    def path_refusals(self) -> Iterator[Refusal]:
        """Yield why its files cannot be read above a path."""
        yield from ()


def rows_tell(source: SourceDefinition, *, timed: bool, unit_fields: Sequence[str]) -> bool:
    """Return whether columns of a source's rows tell their window and unit.

    Args:
        source: of the rows.
        timed: whether there are windows of time.
        unit_fields: the names of a unit's values.
    """
    if not timed and not unit_fields:  # one work unit is the whole source: there is nothing to tell
        return True
    if source.holds_files:  # its rows know their file; which window that was of is not in it
        return False
    columns = source.row_columns
    return (not timed or columns.window is not None) and set(unit_fields) <= set(columns.units)
