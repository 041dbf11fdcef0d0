"""Files under a root: a folder, or a prefix of a bucket (docs/reference/project-files.md)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from partitions.ddl import parse_ddl
from partitions.placeholders import Placeholder, Template, adjacent_units
from partitions.records.options import lenient_options
from partitions.refusal import Refusal
from partitions.sources.definition import (
    NO_TIME,
    WHOLE_WINDOW,
    ConnectionType,
    RecordSupport,
    SourceDefinition,
)
from partitions.sources.event_columns import EVENT_COLUMNS
from partitions.sources.formats import FORMATS, FormatName, Option

CSV_UNIT_OPTIONS = ("encoding", "quote", "sep")
"""The CSV options that are allowed where units are read."""


class FilesSource(SourceDefinition):
    """Files under a root.

    Attributes:
        path: a folder (relative paths start at the project folder) or an object store's
        ``s3://bucket/prefix``.
        schema_: Spark DDL; without it the schema is inferred once from a bounded sample and pinned.
        options: the options of the format (``partitions.sources.formats``), or of Spark's reader.
        extensions: case-sensitive endings; by default the format's own, for text formats also with .gz,
        .bz2 and .zst.
        missing: what a missing or empty folder of a window means, if ``path`` has placeholders.
    """

    connection_type: ClassVar[ConnectionType | None] = "s3"
    holds_files: ClassVar[bool] = True
    has_chunks: ClassVar[bool] = True

    type: Literal["files"]
    path: Annotated[str, Field(min_length=1)]
    connection: str | None = None
    format: FormatName
    schema_: Annotated[str | None, Field(alias="schema", min_length=1)] = None
    options: dict[str, Option] = Field(default_factory=dict)
    extensions: Annotated[tuple[Annotated[str, Field(min_length=1)], ...], Field(min_length=1)] | None = None
    missing: Literal["fail", "empty"] | None = None

    @property
    def placeholders(self) -> frozenset[str]:
        """The names of its path's placeholders, without braces; only windows have them."""
        return Template.parse(self.path).names

    @property
    def window_placeholders(self) -> Sequence[Placeholder]:
        """The placeholders of its path: each window has its own folder."""
        return Template.parse(self.path).placeholders

    @property
    def root(self) -> str:
        """The folders of the path before the first placeholder."""
        first = min(
            (placeholder.position for placeholder in Template.parse(self.path).placeholders),
            default=len(self.path),
        )
        return (
            self.path[: self.path.rfind("/", 0, first) + 1].rstrip("/") or "/"
            if first < len(self.path)
            else self.path
        )

    @property
    def folder_template(self) -> Template:
        """The path below the root, with its placeholders."""
        return Template.parse(self.path[len(self.root) :])

    @property
    def endings(self) -> tuple[str, ...]:
        """The endings of the files that belong to the source."""
        if self.extensions is not None:
            return self.extensions
        return FORMATS[self.format].all_endings

    @property
    def label(self) -> str:
        """The path."""
        return self.path

    @property
    def form(self) -> str:
        """The format."""
        return self.format

    @property
    def declared_schema(self) -> str | None:
        """``schema``."""
        return self.schema_

    @property
    def sends_changes(self) -> bool:
        """Whether the format's records are changes of rows."""
        return FORMATS[self.format].sends_changes

    @property
    def record_support(self) -> RecordSupport:
        """What the format supports."""
        form = FORMATS[self.format]
        lenient = lenient_options(self.options) if self.format in ("json", "ndjson") else ()
        return RecordSupport(
            form.always_checked,
            form.rescue_refusal,
            tuple(lenient),
            form.records_are_lines,
            form.records_name_fields,
        )

    def identity(self) -> dict[str, Any]:
        """Return the keys that identify the source: a change makes it another one (docs/reference/state.md)."""
        return {
            "type": self.type,
            "connection": self.connection,
            "path": self.path,
            "extensions": sorted(self.endings),
        }

    def reading(self) -> dict[str, Any]:
        """Return further keys that its rows depend on."""
        options = {key: self.options[key] for key in sorted(self.options)}
        return {"format": self.format, "schema": self.schema_, "options": options}

    def window_refusals(self, *, timed: bool, unit_fields: Sequence[str]) -> Iterator[Refusal]:
        """Yield placeholders that its path lacks, or has too many: each folder must name one work unit."""
        key, placeholder_names = ("source", "path"), self.placeholders
        if timed and "start" not in placeholder_names:
            yield Refusal(
                key, self.path, "a path with {start}, such as ./landing/{start:%Y-%m-%d}, for windows"
            )
        if not timed and placeholder_names & WHOLE_WINDOW:
            yield Refusal(key, f"{{{min(placeholder_names & WHOLE_WINDOW)}}}", NO_TIME)
        for name in unit_fields:
            if f"unit.{name}" not in placeholder_names:
                yield Refusal(key, self.path, f"a path with {{unit.{name}}} (each unit has its folder)")
        if adjacent := adjacent_units(self.folder_template):
            names = "".join(placeholder.text for placeholder in adjacent)
            separated = "/".join(placeholder.text for placeholder in adjacent)
            yield Refusal(
                key,
                names,
                f"{separated}, or another separator that no value contains (two units could share a folder)",
            )
        unknown = sorted(
            {name.removeprefix("unit.") for name in placeholder_names - WHOLE_WINDOW} - set(unit_fields)
        )
        if unknown:
            allowed = ", ".join(unit_fields) or "it has none"
            yield Refusal(key, f"{{unit.{unknown[0]}}}", f"names of the definition's units ({allowed})")

    def refusals(self) -> Iterator[Refusal]:
        """Yield options that the format does not have, or needs."""
        yield from FORMATS[self.format].refusals(self.options, self.schema_)
        if self.sends_changes:
            yield from self._event_column_refusals()

    def _event_column_refusals(self) -> Iterator[Refusal]:
        """Yield declared columns that each event adds."""
        names = {column.name for column in parse_ddl(self.schema_)} if self.schema_ else set()
        for name in EVENT_COLUMNS:
            if name in names:
                yield Refusal(
                    ("source", "schema"), name, "the columns of the row alone (each event adds this one)"
                )

    def unit_refusals(self) -> Iterator[Refusal]:
        """Yield formats and options that only Spark can read."""
        yield from super().unit_refusals()
        yield from self.windowless_refusals()
        if not FORMATS[self.format].lists_units:
            *formats, last = (name for name, form in FORMATS.items() if form.lists_units)
            expected = f"{', '.join(formats)} or {last} (load other files by a dataflow, and name its table)"
            yield Refusal(("source", "format"), self.format, expected)
        for name in sorted(self.options) if self.format != "excel" else ():
            if self.format != "csv" or name not in CSV_UNIT_OPTIONS:
                allowed = f"one of {', '.join(CSV_UNIT_OPTIONS)}" if self.format == "csv" else "no options"
                yield Refusal(
                    ("source", "options", name),
                    f"the option {name}",
                    f"{allowed} (units are read without Spark)",
                )

    def windowless_refusals(self) -> Iterator[Refusal]:
        """Yield keys that only windows have."""
        if self.missing is not None:
            yield Refusal(
                ("source", "missing"), self.missing, "no such key (only windows have folders of their own)"
            )
