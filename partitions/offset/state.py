"""The state of an offset watermark: the position up to which a table's log is read.

See docs/reference/offsets.md.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

from typing_extensions import override

from partitions.errors import CorruptWatermark
from partitions.log_position import LogPosition
from partitions.sentinels import Watermark, value_text
from partitions.watermark import is_empty
from partitions.watermark_state import ReadVersion, WatermarkState

_FORM = (
    'offset watermark: expected {"offset": {"table": "…", "version": 41, "commit": "…"}}, or with "snapshot" and '
    '"sequence" of an Iceberg table in place of the last two'
)


@dataclass(frozen=True)
class SnapshotProgress:
    """How far the rows are read that a table held at the position where a dataflow began.

    Attributes:
        version: number of the commit whose files are read.
        files_done: number of files that are read, in the order of their paths.
        files: number of all files of that version.
    """

    version: int
    files_done: int
    files: int


@dataclass(frozen=True)
class OffsetState(WatermarkState):
    """The committed state.

    Attributes:
        position: the position up to which the log is read; None: nothing is read.
        snapshot: the first read, while some of its files are left; None: it is done, or there was none.
        accepted: the last commit up to which an operator has accepted to pass over changes; None: there is
            none.
        unreadable: the commits behind the position that an operator has accepted never to read.
        number: the number that rows of the last commit have as ``_commit_version``; None: all rows have the
            versions of their commits. They differ after a rollback of an Iceberg table, which has no number of
            its own.
    """

    position: LogPosition | None = None
    snapshot: SnapshotProgress | None = None
    accepted: LogPosition | None = None
    unreadable: tuple[LogPosition, ...] = ()
    number: int | None = None

    @classmethod
    def of(cls, watermark: Mapping[str, Any] | None) -> Self:
        """Parse a stored watermark; an empty one is the state of a new source.

        Raises:
            CorruptWatermark: it has another form.
        """
        if watermark is None or is_empty(watermark):
            return cls()
        values = {name: value for name, value in watermark.items() if value is not None}
        try:
            position = LogPosition.of(values.pop("offset"))
            progress = values.pop("snapshot", None)
            snapshot = None if progress is None else SnapshotProgress(**progress)
            accepted = values.pop("accepted", None)
            unreadable = tuple(LogPosition.of(stored) for stored in values.pop("unreadable", ()))
            number = values.pop("number", None)
            state = cls(
                position,
                snapshot,
                None if accepted is None else LogPosition.of(accepted),
                unreadable,
                number,
            )
            is_sound = not values and state._is_sound()
        except (KeyError, TypeError, ValueError, AttributeError):
            is_sound = False
        if not is_sound:
            raise CorruptWatermark(f"{_FORM}, found {value_text(dict(watermark))}")
        return state

    @staticmethod
    @override
    def read_version(watermark: Mapping[str, Any], /) -> ReadVersion | None:
        """Return the position, and whether the first read is not done."""
        state = OffsetState.of(watermark)
        position = state.position
        if position is None:
            return None
        in_first_read = state.snapshot is not None
        return ReadVersion(position.version, position.id, in_first_read=in_first_read, table=position.table)

    def _is_sound(self) -> bool:
        counts = [] if self.snapshot is None else [self.snapshot.files_done, self.snapshot.files]
        counts += [] if self.number is None else [self.number]
        return all(type(count) is int and count >= 0 for count in counts)

    def watermark(self) -> Watermark:
        """Return the state as it is stored."""
        if self.position is None:
            return {}
        snapshot = self.snapshot
        progress = (
            {}
            if snapshot is None
            else {
                "snapshot": {
                    "version": snapshot.version,
                    "files_done": snapshot.files_done,
                    "files": snapshot.files,
                }
            }
        )
        accepted = {} if self.accepted is None else {"accepted": self.accepted.to_plain()}
        unreadable = [position.to_plain() for position in self.unreadable]
        return {
            "offset": self.position.to_plain(),
            **progress,
            **accepted,
            **({"unreadable": unreadable} if unreadable else {}),
            **({} if self.number is None else {"number": self.number}),
        }

    def covers(self, older: OffsetState) -> bool:
        """Return whether everything that an older state has read is read; True for another table."""
        if older.position is None:
            return True
        if self.position is None:
            return False
        if self.position.table != older.position.table:
            return True
        return self._order >= older._order

    @property
    def _order(self) -> tuple[int, bool, int]:
        """The order of states of one table: a snapshot that is read in part lies below the whole one."""
        assert self.position is not None
        is_whole = self.snapshot is None
        return self.position.version, is_whole, self.snapshot.files_done if self.snapshot else 0

    @property
    def last_number(self) -> int | None:
        """The number of the last commit; None: nothing is read."""
        if self.number is not None or self.position is None:
            return self.number
        return self.position.version

    def number_of(self, version: int) -> int:
        """Return the number of the next commit, which is above all numbers before it."""
        return version if self.last_number is None else max(version, self.last_number + 1)

    def at(
        self, position: LogPosition, passed: Collection[LogPosition] = (), *, number: int | None = None
    ) -> OffsetState:
        """Return the state after everything up to a position; answers about what was passed are forgotten.

        Args:
            position: the position.
            passed: the positions of the commits up to it.
            number: the number of the last of them; None: that of the state, or the position's version if it
                is higher.
        """
        numbers = (position.version, self.last_number if number is None else number)
        highest = max(value for value in numbers if value is not None)
        has_other_numbers = self.position is not None and self.number is not None
        return OffsetState(
            position,
            None,
            None if self.accepted in passed else self.accepted,
            tuple(commit for commit in self.unreadable if commit not in passed),
            highest if has_other_numbers or highest != position.version else None,
        )

    def continued(self, before: OffsetState) -> OffsetState:
        """Return the state with the numbers of rows that were loaded before: later ones lie above them.

        Args:
            before: the state that it takes the place of.
        """
        if self.position is None or before.last_number is None:
            return self
        own = self.position.version if self.number is None else self.number
        has_other_numbers = before.number is not None or before.last_number > own
        return replace(self, number=max(before.last_number, own)) if has_other_numbers else self

    def in_snapshot(
        self, position: LogPosition, progress: SnapshotProgress, number: int | None = None
    ) -> OffsetState:
        """Return the state after some files of a first read; after the last file it is done.

        Args:
            position: the position of the version that is read.
            progress: the files that are read.
            number: the number of its rows; None: the position's version.
        """
        whole = self.at(position, number=number)
        return whole if progress.files_done >= progress.files else replace(whole, snapshot=progress)
