"""The part of a ledger that `--from` and `--to` select (docs/reference/cli.md, The ledger)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo

from partitions.errors import ConfigurationError


@dataclass(frozen=True)
class LedgerBounds:
    """Bounds of a ledger: instants, or names of partitions. None: no bound.

    Attributes:
        start: partitions and windows from this instant on, inclusive, aware.
        end: up to this instant, exclusive, aware.
        first: names of partitions from this one on, inclusive, in byte order.
        until: up to this name, exclusive.
    """

    start: datetime | None = None
    end: datetime | None = None
    first: str | None = None
    until: str | None = None

    @property
    def by_name(self) -> bool:
        """Whether they are names of partitions."""
        return self.first is not None or self.until is not None

    @classmethod
    def parse(cls, start: str | None, end: str | None, zone: tzinfo = UTC) -> LedgerBounds:
        """Parse two texts: instants if both read as instants, else names of partitions.

        Args:
            start: the inclusive bound; None: none.
            end: the exclusive bound; None: none.
            zone: the zone of instants without one.

        Raises:
            ConfigurationError: the end is not above the start, or only one of them is an instant.
        """
        instants = [_instant(text, zone) if text is not None else None for text in (start, end)]
        texts = [text for text in (start, end) if text is not None]
        if texts and len([instant for instant in instants if instant is not None]) == len(texts):
            bounds = cls(start=instants[0], end=instants[1])
            is_empty = bounds.start is not None and bounds.end is not None and bounds.start >= bounds.end
        elif any(instants):
            raise ConfigurationError(
                f"--from and --to: expected two instants, or two names of partitions, found {start!r} and {end!r}"
            )
        else:
            bounds = cls(first=start, until=end)
            is_empty = start is not None and end is not None and start >= end
        if is_empty:
            raise ConfigurationError(f"--to: expected an end above --from {start!r}, found {end!r}")
        return bounds

    def holds(self, name: str, start: datetime | None) -> bool:
        """Return whether a partition with a name, and a start if its name has a time, lies within the bounds."""
        if self.by_name:
            return (self.first is None or name >= self.first) and (self.until is None or name < self.until)
        if self.start is None and self.end is None:
            return True
        if start is None:
            return False
        return (self.start is None or start >= self.start) and (self.end is None or start < self.end)


def _instant(text: str, zone: tzinfo) -> datetime | None:
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        return None
    return (instant if instant.tzinfo else instant.replace(tzinfo=zone)).astimezone(UTC)
