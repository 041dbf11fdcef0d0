"""The relation that queries read: the table, or the user's query with its placeholders filled.

Belongs here: writing the ends of a window into the user's query so that no row is missed. Choosing rows is
:mod:`resources.sources.jdbc.row_queries`. See docs/reference/project-files.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta, tzinfo

from partitions.bound_text import BoundFormat
from partitions.errors import ConfigurationError, PlanError
from partitions.instants import as_datetime
from partitions.local_time import earliest_instant, latest_instant
from partitions.placeholders import Placeholder, bound_format, format_moment, inexpressible_bound
from partitions.sources import JdbcSource
from partitions.sql_text import strip_end
from partitions.unit_values import ValueType
from partitions.window.extent import Extent
from resources.dialects import Dialect

_INSTANT = timedelta(microseconds=1)

_SAMPLE = Extent(0, 1, ({},))
"""The window used when only the columns are queried; its units are NULL."""


class SourceQueries:
    """SQL over one source; every value is a literal of the dialect."""

    def __init__(self, source: JdbcSource, dialect: Dialect, zone: tzinfo, keys: Sequence[str] = ()) -> None:
        """Configure the queries.

        Args:
            source: the definition.
            dialect: the dialect of its database.
            zone: the zone of local times and days.
            keys: the columns that identify a row in errors.

        Raises:
            ConfigurationError: a placeholder is in what the database reads as quotes or a comment.
        """
        self._source, self._dialect, self._zone, self._keys = source, dialect, zone, keys
        self._relation = Relation(source, dialect, zone)


class Relation:
    """The table or query of one source, as SQL after FROM; every value is a literal of the dialect."""

    def __init__(self, source: JdbcSource, dialect: Dialect, zone: tzinfo) -> None:
        """Configure the relation.

        Args:
            source: the definition.
            dialect: the dialect of its database.
            zone: the zone of local times and days.

        Raises:
            ConfigurationError: a placeholder is in what the database reads as quotes or a comment.
        """
        source.check(dialect.lexical_rules)
        self._source, self._dialect, self._zone = source, dialect, zone

    def whole(self) -> str:
        """Return the table, or a query without placeholders."""
        if self._source.placeholders:
            raise AssertionError(self._source.placeholders)
        return self.sample()

    def sample(self) -> str:
        """Return the relation for its columns only: placeholders become a sample window, and NULL units."""
        return self.within(_SAMPLE, None)

    def within(self, extent: Extent, kind: ValueType | None) -> str:
        """Return the relation for an extent of one unit.

        A query has lines of its own, so that a comment at its end ends there.

        Args:
            extent: the window and the unit that fill the placeholders.
            kind: the data type of the column with a row's time; None: there is none.

        Raises:
            ConfigurationError: the extent lacks an end or a unit value that a placeholder needs.
            PlanError: a placeholder's format cannot express an end exactly, and no column has a row's
            time.
        """
        if self._source.query is None:
            return self._dialect.relation(self._source.table_parts)
        text = self._source.template.filled(lambda placeholder: self._literal(placeholder, extent, kind))
        return f"(\n{strip_end(text, self._dialect.lexical_rules)}\n) AS source"

    def _literal(self, placeholder: Placeholder, extent: Extent, kind: ValueType | None) -> str:
        name = placeholder.unit
        if name is None:
            return self._moment(placeholder, extent, kind)
        (unit,) = extent.units
        if name not in unit and extent is not _SAMPLE:
            raise ConfigurationError(
                f"source.query: expected a unit with a value {name} for {{unit.{name}}}, found {', '.join(unit) or 'no units'}"
            )
        return self._dialect.literal(unit.get(name))

    def _moment(self, placeholder: Placeholder, extent: Extent, kind: ValueType | None) -> str:
        ms = extent.lower if placeholder.name == "start" else extent.upper
        if ms is None:
            raise ConfigurationError(
                f"source.query: expected a watermark with a datetime entry for {{{placeholder.name}}}, found none"
            )
        bound, has_window_column = as_datetime(ms, self._zone), self._source.window_column is not None
        # Rows that have a time are filtered again, so a bound may lie further out, also beside a column without offset.
        says_offset = self._dialect.moment_says_offset and not has_window_column
        wording_ = bound_format(
            self._source.request_placeholders, placeholder.name, self._zone, plain_says_offset=says_offset
        )
        if has_window_column:
            wording_ = replace(wording_, says_offset=False)
        elif not wording_.is_unambiguous(bound) and extent is not _SAMPLE:
            raise PlanError(inexpressible_bound(placeholder.name, bound))
        moment = bound
        if has_window_column:
            moment = self._widen(placeholder, wording_, bound)
            if kind == "instant" and self._is_local_time(placeholder, wording_):
                moment = self._widen_for_utc(placeholder, wording_, bound, moment)
        if placeholder.form is None:
            return self._dialect.moment(moment)
        return self._dialect.text(format_moment(placeholder, moment))

    @staticmethod
    def _widen(placeholder: Placeholder, wording_: BoundFormat, bound: datetime) -> datetime:
        return wording_.below(bound) if placeholder.name == "start" else wording_.above(bound)

    def _widen_for_utc(
        self, placeholder: Placeholder, wording_: BoundFormat, bound: datetime, moment: datetime
    ) -> datetime:
        """Return a bound that is also wide enough if the database reads it in its session's zone, UTC."""
        in_utc = self._widen(placeholder, replace(wording_, zone=UTC), bound)
        if placeholder.name == "end":
            return max(moment, in_utc, key=_clock_time)
        outer = min(moment, in_utc, key=_clock_time)
        if latest_instant(_clock_time(outer), self._zone) <= bound:
            return outer
        # The zone's clocks skip this time, and some readers move it later: no bound may lie there.
        return wording_.below(earliest_instant(_clock_time(outer), self._zone) - _INSTANT)

    def _is_local_time(self, placeholder: Placeholder, wording_: BoundFormat) -> bool:
        """Return whether a literal is a bound without offset that may be compared with an instant.

        A day or a coarser unit is one only if the other end has the same form; else it may name the day of
        a date column, by equality.
        """
        if placeholder.form is None:
            return not self._dialect.moment_says_offset
        if "%z" in placeholder.form:
            return False
        forms_of_other_end = {
            placeholder_.form
            for placeholder_ in self._source.request_placeholders
            if placeholder_.name != placeholder.name
        }
        return not wording_.is_coarser_than("hour") or placeholder.form in forms_of_other_end


def _clock_time(moment: datetime) -> datetime:
    """Return the local time of a moment, as it is written."""
    return moment.replace(tzinfo=None, fold=0)
