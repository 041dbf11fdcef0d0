"""What a run has seen of a source that only a read tells more of, such as files: whether another run would find rows there (docs/reference/columns.md)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import tzinfo
from typing import Any, Self

from partitions.local_time import latest_local, local, local_day
from partitions.unit_values import Kind


@dataclass(frozen=True)
class SourceLook:
    """A look at the outside of a source.

    Attributes:
        contents: is another text whenever the source holds something else.
        newest: when the source was changed last, epoch milliseconds.
        settled: up to when rows with a time could be read then, epoch milliseconds.
        kinds: what the columns of the watermark hold.
    """

    contents: str
    newest: int
    settled: int
    kinds: tuple[Kind, ...] = ()

    def may_hold_more(self, contents: str, settled: int, zone: tzinfo) -> bool:
        """Return whether a run may find rows that the run of this look has not found.

        It may if the source has changed, or if the time has come by now up to which its rows may reach: that of the last change.

        Args:
            contents: of the source as it is now.
            settled: up to when rows with a time can be read now, epoch milliseconds.
            zone: of days.
        """
        if contents != self.contents:
            return True
        return any(
            _reaches(settled, self.newest, kind, zone) and not _reaches(self.settled, self.newest, kind, zone)
            for kind in self.kinds
        )

    def as_json(self) -> dict[str, Any]:
        """As plain data."""
        return asdict(self) | {"kinds": list(self.kinds)}

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> Self:
        """Read it back.

        Raises:
            KeyError, TypeError: it is something else.
        """
        return cls(stored["contents"], stored["newest"], stored["settled"], tuple(stored["kinds"]))


def _reaches(settled: int, newest: int, kind: Kind, zone: tzinfo) -> bool:
    """Whether rows up to a time are read; a day is read when it is over, and a repeated hour when both of its passes are."""
    match kind:
        case "instant":
            return settled >= newest
        case "local":
            return local(settled, zone) >= latest_local(newest, zone)
        case "day":
            return local_day(settled, zone) > latest_local(newest, zone).date()
    return True
