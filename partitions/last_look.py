"""Tell from a source's outside whether another run may find rows (docs/reference/columns.md).

This is for sources such as files, where only a read tells which rows they hold.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import tzinfo
from typing import Any, Self

from partitions.local_time import latest_local, local, local_day
from partitions.unit_values import ValueType


@dataclass(frozen=True)
class SourceSnapshot:
    """What a source shows of its contents at one time, without a read of rows.

    Attributes:
        contents: a text that changes whenever the source's contents change.
        newest: the time of the source's last change, epoch milliseconds.
        settled: up to this time rows could be read then, epoch milliseconds.
        kinds: the value types of the watermark's columns.
    """

    contents: str
    newest: int
    settled: int
    kinds: tuple[ValueType, ...] = ()

    def may_hold_more(self, contents: str, settled: int, zone: tzinfo) -> bool:
        """Return whether a run may find rows that the run of this snapshot did not find.

        It may if the source has changed, or if rows as recent as the last change can be read only now.

        Args:
            contents: the text of the source as it is now.
            settled: up to this time rows can be read now, epoch milliseconds.
            zone: zone of days.
        """
        if contents != self.contents:
            return True
        return any(
            _reaches(settled, self.newest, value_type, zone)
            and not _reaches(self.settled, self.newest, value_type, zone)
            for value_type in self.kinds
        )

    def as_json(self) -> dict[str, Any]:
        """Return it as plain data."""
        return asdict(self) | {"kinds": list(self.kinds)}

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> Self:
        """Read it back from plain data.

        Raises:
            KeyError, TypeError: the data is something else.
        """
        return cls(stored["contents"], stored["newest"], stored["settled"], tuple(stored["kinds"]))


def _reaches(settled: int, newest: int, value_type: ValueType, zone: tzinfo) -> bool:
    """Return whether a read up to ``settled`` covers ``newest``.

    A day can be read once it is over, a repeated hour once both passes are over.
    """
    match value_type:
        case "instant":
            return settled >= newest
        case "local":
            return local(settled, zone) >= latest_local(newest, zone)
        case "day":
            return local_day(settled, zone) > latest_local(newest, zone).date()
    return True
