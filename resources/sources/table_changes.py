"""Tell which times and units of a lake table commits have changed, without Spark.

A file's bounds tell it first, its columns next. A commit may count rows as changed that did not; it never
leaves one out.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from threading import Lock
from typing import Any

from partitions.errors import NeedsDecision
from partitions.instants import milliseconds
from partitions.intervals import ALWAYS, Interval, intersect, union
from partitions.unit_values import TIMES, ValueType
from partitions.window.source_changes import ChangedStretch, unit_key
from resources.tables.contract.changed_file import ChangedFile
from resources.tables.contract.commit_log import LoggedCommit, TableCommits, log_position
from resources.tables.data_files.changed_values import changed_values
from resources.tables.parquet.files import FileMoved

_KEPT = 2_000
"""The most commits whose changes are kept; sensors ask for the same ones at each tick."""

_lock = Lock()
_answers: OrderedDict[tuple[Any, ...], tuple[ChangedStretch, ...]] = OrderedDict()


@dataclass(frozen=True)
class ChangedTimes:
    """Tells the changed times and units of one table.

    Attributes:
        commits: the table's commits.
        table: the table's id.
        time: the column with a row's time.
        types: the types of columns, as far as they are known.
        units: the names of a unit's values, with their columns.
        zone: the zone of times without one, and of days.
    """

    commits: TableCommits
    table: str
    time: str
    types: Mapping[str, ValueType]
    units: Mapping[str, str]
    zone: tzinfo

    @property
    def data_type(self) -> ValueType | None:
        """The type of a row's time; None if it is unknown."""
        return self.types.get(self.time)

    def stretches(
        self, commits: Sequence[LoggedCommit], relevant: Sequence[Interval]
    ) -> list[ChangedStretch]:
        """Return what commits have changed within some stretches, in their order.

        Rows that Strandline deleted for good count as unchanged.

        Args:
            commits: consecutive commits.
            relevant: ascending, disjoint; what has changed elsewhere may be left out.

        Raises:
            NeedsDecision: code ``versions_gone``: a file is gone, and nothing tells its times.
            SourceError: a file cannot be read.
        """
        if not relevant:
            return []
        changing = [commit for commit in commits if commit.files and not commit.deletes_for_good]
        with _lock:
            earlier = [(commit, _answers.get(self._key(commit))) for commit in changing]
        by_commit = {commit: stretches for commit, stretches in earlier if stretches is not None}
        unknown = [commit for commit in changing if commit not in by_commit]
        files = self._files_of(unknown)
        for commit in unknown:
            of_commit = files.get(commit, [])
            bounds = [self._bounds(file) for file in of_commit]
            if not any(_meets(bound, relevant) for bound in bounds):
                continue
            by_commit[commit] = self._keep(commit, self._stretches_of(commit, of_commit))
        return [stretch for commit in changing for stretch in by_commit.get(commit, ())]

    def _files_of(self, commits: Sequence[LoggedCommit]) -> dict[LoggedCommit, list[ChangedFile]]:
        """Return the files of each commit; a table that was set back may have several of one number."""
        files: dict[LoggedCommit, list[ChangedFile]] = {}
        for group in _with_rising_numbers(commits):
            by_version = {commit.version: commit for commit in group}
            for file in self.commits.changed_files(group):
                files.setdefault(by_version[file.version], []).append(file)
        return files

    def _key(self, commit: LoggedCommit) -> tuple[Any, ...]:
        types = tuple(self.types.get(column) for column in (self.time, *self.units.values()))
        columns = (self.time, tuple(self.units.items()), types, str(self.zone))
        return (self.table, commit.version, commit.id, commit.before, *columns)

    def _keep(
        self, commit: LoggedCommit, stretches: tuple[ChangedStretch, ...]
    ) -> tuple[ChangedStretch, ...]:
        with _lock:
            _answers[self._key(commit)] = stretches
            while len(_answers) > _KEPT:
                _answers.popitem(last=False)
        return stretches

    def _bounds(self, file: ChangedFile) -> Interval:
        """Return the times of a file's rows by the log; all times if it does not tell."""
        bounds = file.bounds.get(self.time)
        if bounds is None and self.time in file.constants and file.constants[self.time] is not None:
            bounds = (file.constants[self.time],) * 2
        if bounds is None:
            return ALWAYS
        low, high = (self._interval(bound, 1) or ALWAYS for bound in bounds)
        return low[0], high[1]

    def _stretches_of(self, commit: LoggedCommit, files: Sequence[ChangedFile]) -> tuple[ChangedStretch, ...]:
        name = log_position(self.commits, self.table, commit.read_position).words
        try:
            values = changed_values(files, [self.time, *dict.fromkeys(self.units.values())])
        except FileMoved as error:
            bounds = union(sorted(self._bounds(file) for file in files))
            if ALWAYS in bounds:
                raise NeedsDecision(
                    f"{error.message}, and the log does not tell the times of its rows ({commit.description})",
                    code="versions_gone",
                ) from error
            return tuple(ChangedStretch(None, start, end, name) for start, end in bounds)
        if values is None or self.data_type not in TIMES:
            return (ChangedStretch(None, *ALWAYS, name),)
        return tuple(self._of_values(values.rows.to_pylist(), values.step, name))

    def _of_values(
        self, rows: Iterable[Mapping[str, Any]], step: int, commit: str
    ) -> Iterator[ChangedStretch]:
        by_unit: dict[str | None, list[Interval]] = {}
        for row in rows:
            interval = self._interval(row[self.time], step)
            if interval is not None:
                by_unit.setdefault(self._unit_of(row), []).append(interval)
        for key, intervals in by_unit.items():
            for start, end in union(sorted(intervals)):
                yield ChangedStretch(key, start, end, commit)

    def _unit_of(self, row: Mapping[str, Any]) -> str | None:
        """Return the key of a row's unit; None if its values do not tell it, so that it may be any.

        Spark reads some bytes as a text, and a time in the name of a folder in a zone that it does not tell.
        """
        values: dict[str, Any] = {}
        for name, column in self.units.items():
            value, data_type = row[column], self.types.get(column)
            if isinstance(value, bytes) or (isinstance(value, str) and data_type in ("instant", "local")):
                return None
            is_instant = data_type == "instant" and isinstance(value, datetime)
            values[name] = value.replace(tzinfo=UTC) if is_instant else value
        return unit_key(values, self.zone)

    def _interval(self, value: Any, step: int) -> Interval | None:
        """Return the instants that a value may stand for; None for NULL, which lies in no window.

        A day belongs to the window that holds its end (:func:`partitions.local_time.local_day`).
        """
        if value is None:
            return None
        if isinstance(value, datetime):
            if self.data_type == "day":
                return ALWAYS
            if self.data_type == "instant":
                start = milliseconds(value.replace(tzinfo=UTC))
                return start, start + step
            passes = [milliseconds(value.replace(tzinfo=self.zone, fold=fold)) for fold in (0, 1)]
            return min(passes), max(passes) + step
        if not isinstance(value, date) or self.data_type != "day" or value == date.max:
            return ALWAYS
        midnight = datetime.combine(value + timedelta(days=1), time.min)
        ends = [milliseconds(midnight.replace(tzinfo=self.zone, fold=fold)) for fold in (0, 1)]
        return min(ends) - 1, max(ends)


def _with_rising_numbers(commits: Sequence[LoggedCommit]) -> list[list[LoggedCommit]]:
    groups: list[list[LoggedCommit]] = []
    for commit in commits:
        if groups and groups[-1][-1].version < commit.version:
            groups[-1].append(commit)
        else:
            groups.append([commit])
    return groups


def _meets(bounds: Interval, relevant: Sequence[Interval]) -> bool:
    return bool(intersect([(*bounds, None)], relevant))
