"""The contract of all source definitions, so that no caller needs to check a source's type."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from datetime import tzinfo
from typing import Any, ClassVar, Literal, NamedTuple

from partitions.bound_text import FIELDS, BoundFormat
from partitions.model import Flag, Model
from partitions.placeholders import TIMES, Placeholder, bound_format
from partitions.refusal import Refusal

WHOLE_WINDOW = frozenset({"start", "end"})
"""The placeholders for the two ends of a window."""

NO_TIME = "a datetime entry in watermark.definition with it (without one there are no windows)"


ConnectionType = Literal["s3", "jdbc", "api", "python"]
"""The types of connections that sources may have."""


class RowColumns(NamedTuple):
    """The columns that identify a row's window and unit.

    Attributes:
        window: the time that decides a row's window; None: there is no such column.
        units: by the name of a unit's value, the column that holds it.
    """

    window: str | None
    units: Mapping[str, str]


class WindowSupport(NamedTuple):
    """Which windows a source can read.

    Attributes:
        by_range: whether it can read any range of time.
        named_by_start: whether a window is named by its start alone, as a folder is, and can only be read
        as a whole.
    """

    by_range: bool
    named_by_start: bool


class IncrementalSupport(NamedTuple):
    """How a source reads rows above a value.

    Attributes:
        saves_bound: whether a run saves the upper bound that it sent, not the highest value that it read.
        detects_new_rows: whether the source can return new rows alone, so that a short query shows whether
        there are any.
        shows_transactions: whether it may show its open transactions, for which new rows can wait.
    """

    saves_bound: bool
    detects_new_rows: bool
    shows_transactions: bool = False


class RecordSupport(NamedTuple):
    """What can be done with records that do not fit.

    Attributes:
        always_checked: why fields that the schema lacks cannot be left out; None: they can.
        rescue_refusal: the schema modes to use since ``_rescued_data`` cannot keep values that do not fit;
        None: it can.
        lenient_options: the options, as set, that let Spark accept text that is not JSON.
        are_lines: whether each record is a line, so that a bad record can be set aside alone.
        name_fields: whether each record names its own fields, so that one can lack a field that others have.
    """

    always_checked: str | None = "its columns are pinned"
    rescue_refusal: str | None = "strict or merge (its values are typed, so there is no text to rescue)"
    lenient_options: tuple[str, ...] = ()
    are_lines: bool = False
    name_fields: bool = False


class BoundText(NamedTuple):
    """How an end of a window is written in a request.

    Attributes:
        name: ``start`` or ``end``.
        key: the key of the definition that contains it.
        form: as the user wrote it.
        wording: the precision and zone that it expresses.
    """

    name: str
    key: tuple[str | int, ...]
    form: str
    wording: BoundFormat


class SourceDefinition(Model):
    """A source as a user declares it.

    Attributes:
        type: the word that a user writes.
        complete: whether each read is the whole source, so that a key that it lacks is gone there.
        connection_type: the type of its connection; None: it has none.
        holds_files: whether it is files under a root; else it is queried for rows, and has its own schema.
        has_chunks: whether it can be read in chunks that never change, such as files.
        version_keys: the fields that only a reader of its versions has.
        placeholder_location: the key that may contain placeholders, and its name in messages.
    """

    connection_type: ClassVar[ConnectionType | None] = None
    holds_files: ClassVar[bool] = False
    has_chunks: ClassVar[bool] = False
    version_keys: ClassVar[tuple[str, ...]] = ()
    placeholder_location: ClassVar[tuple[str, str]] = ("path", "the path")

    type: str
    complete: Flag = False

    @property
    @abstractmethod
    def label(self) -> str:
        """The source in a description."""

    @property
    @abstractmethod
    def form(self) -> str:
        """The form of its records, in a message: the format of files, or the type of the source."""

    @property
    def placeholders(self) -> frozenset[str]:
        """The names of its placeholders, such as ``start``, ``end`` or ``unit.NAME``, without braces."""
        return frozenset()

    @property
    def request_placeholders(self) -> Sequence[Placeholder]:
        """The placeholders of its query or requests, including repetitions.

        Empty for files: their folders name whole windows.
        """
        return ()

    @property
    def window_support(self) -> WindowSupport:
        """Which windows it can read."""
        return WindowSupport(by_range=False, named_by_start=self.placeholders & WHOLE_WINDOW == {"start"})

    @property
    def window_placeholders(self) -> Sequence[Placeholder]:
        """The placeholders that distinguish windows, if nothing else identifies the window of a row."""
        return ()

    def bound_texts(self, zone: tzinfo) -> Iterator[BoundText]:
        """Yield how placeholders of its query or requests write the ends of windows.

        Args:
            zone: the zone of the windows.
        """
        for name in TIMES:
            forms = [placeholder for placeholder in self.request_placeholders if placeholder.name == name]
            if forms:
                coarsest = min(forms, key=lambda form: FIELDS.index(bound_format([form], name, zone).finest))
                words = bound_format(self.request_placeholders, name, zone)
                yield BoundText(name, ("source", self.placeholder_location[0]), coarsest.text, words)

    @property
    def parts(self) -> Mapping[tuple[str | int, ...], SourceDefinition]:
        """The sources that it consists of, by their keys in the file; a single source is its own part."""
        return {("source",): self}

    @property
    def lake_table(self) -> str | None:
        """The table of the lake that it reads, ``<layer>/<name>``; None: it reads none."""
        return None

    @property
    def declared_schema(self) -> str | None:
        """The schema that the user declared, as Spark DDL; None: none."""
        return None

    @property
    def takes_schema(self) -> bool:
        """Whether a user may declare a schema; else the source has types of its own."""
        return "schema_" in type(self).model_fields

    @property
    def sends_changes(self) -> bool:
        """Whether each of its records is a change of a row (``partitions.change_events``)."""
        return False

    @property
    def record_support(self) -> RecordSupport:
        """What can be done with records that do not fit."""
        return RecordSupport()

    @property
    def row_columns(self) -> RowColumns:
        """The columns that identify a row's window and unit, as far as the user named them."""
        return RowColumns(None, {})

    @abstractmethod
    def identity(self) -> dict[str, Any]:
        """Return the keys that identify the source: a change makes it another one (docs/reference/state.md)."""

    def reading(self) -> dict[str, Any]:
        """Return further keys that its rows depend on."""
        return {}

    @abstractmethod
    def window_refusals(self, *, timed: bool, unit_fields: Sequence[str]) -> Iterator[Refusal]:
        """Yield why it cannot be read by windows and units: each must appear in its requests or rows.

        Args:
            timed: whether there are windows of time.
            unit_fields: the names of a unit's values.
        """

    @property
    def incremental_support(self) -> IncrementalSupport:
        """How it reads rows above a value."""
        return IncrementalSupport(saves_bound=False, detects_new_rows=True)

    def refusals(self) -> Iterator[Refusal]:
        """Yield what is wrong with it, whichever watermark reads it."""
        yield from ()

    def windowless_refusals(self) -> Iterator[Refusal]:
        """Yield keys and placeholders that only windows and units have."""
        yield from ()

    def parameter_refusals(self, _columns: Sequence[str], _nulls: str, /) -> Iterator[Refusal]:
        """Yield why bounds of these columns cannot be sent to it.

        ``nulls`` is the rule for rows without a value.
        """
        yield from ()

    def append_refusals(self) -> Iterator[Refusal]:
        """Yield values that a reader of appended rows alone cannot follow, such as a stream."""
        yield from ()

    def unit_refusals(self) -> Iterator[Refusal]:
        """Yield keys and placeholders that a source of units does not allow.

        Its rows are read without Spark and without conversion.
        """
        for name in sorted(self.placeholders):
            key = ("source", self.placeholder_location[0])
            yield Refusal(
                key,
                f"{{{name}}}",
                f"{self.placeholder_location[1]} without placeholders (it lists the units themselves)",
            )
        if self.complete:
            yield Refusal(("source", "complete"), "true", "no such key (units are listed anew in each run)")
        if self.declared_schema is not None:
            yield Refusal(
                ("source", "schema"), self.declared_schema, "no schema (units have the types of the source)"
            )


def version_refusals(source: SourceDefinition) -> Iterator[Refusal]:
    """Yield keys that only a reader of versions has: a stream over splits, or an offset."""
    for name in source.version_keys:
        if name in source.model_fields_set:
            expected = (
                "no such key (only a watermark of type offset, or a stream with engine: splits, has it)"
            )
            yield Refusal(("source", name.rstrip("_")), str(getattr(source, name)), expected)


def rows_identify_work_unit(source: SourceDefinition, *, timed: bool, unit_fields: Sequence[str]) -> bool:
    """Return whether columns of a source's rows identify their window and unit.

    Args:
        source: the source of the rows.
        timed: whether there are windows of time.
        unit_fields: the names of a unit's values.
    """
    if not timed and not unit_fields:  # the whole source is one work unit
        return True
    if source.holds_files:  # rows know their file, but not the window that the file was read for
        return False
    columns = source.row_columns
    return (not timed or columns.window is not None) and set(unit_fields) <= set(columns.units)
