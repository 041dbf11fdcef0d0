"""What a query of a database reads: the table, or the user's query with its placeholders filled (docs/reference/project-files.md).

Belongs here: how an end of a window is written into the user's query, so that no row is missed. Which rows are asked for of it is
:mod:`resources.sources.jdbc.row_queries`.
"""

from __future__ import annotations

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
"""What stands for the window if only the columns are asked for; its units are NULL."""


class Relation:
    """The table or query of one source, as it stands behind FROM. No value reaches it but as a literal of the dialect."""

    def __init__(self, source: JdbcSource, dialect: Dialect, zone: tzinfo) -> None:
        """Use a source.

        Args:
            source: what is read.
            dialect: of its database.
            zone: of local times and days.

        Raises:
            ConfigurationError: if the query's placeholders stand in what the database reads as quotes or a comment.
        """
        source.check(dialect.lexical_rules)
        self._source, self._dialect, self._zone = source, dialect, zone

    def whole(self) -> str:
        """The table, or a query without placeholders."""
        if self._source.placeholders:
            raise AssertionError(self._source.placeholders)
        return self.sample()

    def sample(self) -> str:
        """The same for the columns alone: placeholders stand for some window, and for NULL as its unit."""
        return self.within(_SAMPLE, None)

    def within(self, extent: Extent, kind: ValueType | None) -> str:
        """The same for an extent of one unit.

        A query stands on lines of its own: a comment at its end ends there.

        Args:
            extent: that placeholders stand for.
            kind: what the column with a row's time holds; None: there is none.

        Raises:
            ConfigurationError: it lacks an end, or a value of the unit, that a placeholder stands for.
            PlanError: no text of a placeholder's form names an end exactly, and no column tells a row's time.
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
        exact, filters = as_datetime(ms, self._zone), self._source.window_column is not None
        # Rows that tell their time are filtered again, so a bound may lie further out: also beside a column that knows no offset.
        says_offset = self._dialect.moment_says_offset and not filters
        words = bound_format(
            self._source.request_placeholders, placeholder.name, self._zone, plain_says_offset=says_offset
        )
        if filters:
            words = replace(words, says_offset=False)
        elif not words.names(exact) and extent is not _SAMPLE:
            raise PlanError(inexpressible_bound(placeholder.name, exact))
        moment = exact
        if filters:
            moment = self._outwards(placeholder, words, exact)
            if kind == "instant" and self._is_local_time(placeholder, words):
                moment = self._outwards_in_utc(placeholder, words, exact, moment)
        if placeholder.form is None:
            return self._dialect.moment(moment)
        return self._dialect.text(format_moment(placeholder, moment))

    @staticmethod
    def _outwards(placeholder: Placeholder, words: BoundFormat, exact: datetime) -> datetime:
        return words.below(exact) if placeholder.name == "start" else words.above(exact)

    def _outwards_in_utc(
        self, placeholder: Placeholder, words: BoundFormat, exact: datetime, moment: datetime
    ) -> datetime:
        """A bound that is also far enough out for a database that takes it for a time in its session's zone, which is UTC, beside an instant."""
        in_utc = self._outwards(placeholder, replace(words, zone=UTC), exact)
        if placeholder.name == "end":
            return max(moment, in_utc, key=_wall)
        outer = min(moment, in_utc, key=_wall)
        if latest_instant(_wall(outer), self._zone) <= exact:
            return outer
        # Clocks of the zone skip it, and some take it for a later time then: no bound lies there.
        return words.below(earliest_instant(_wall(outer), self._zone) - _INSTANT)

    def _is_local_time(self, placeholder: Placeholder, words: BoundFormat) -> bool:
        """Whether a literal is a bound without an offset that may stand beside an instant.

        A day, or what is coarser, is one if the other end is told so, too; else it may name the day of a column of days, by equality.
        """
        if placeholder.form is None:
            return not self._dialect.moment_says_offset
        if "%z" in placeholder.form:
            return False
        forms_of_other_end = {
            other.form for other in self._source.request_placeholders if other.name != placeholder.name
        }
        return not words.is_coarser_than("hour") or placeholder.form in forms_of_other_end


def _wall(moment: datetime) -> datetime:
    """The local time of a moment, which is what is written of it."""
    return moment.replace(tzinfo=None, fold=0)
