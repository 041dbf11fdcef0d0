"""A position in the log of a lake table (docs/reference/offsets.md)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class LogPosition:
    """A position in the log of a table: every commit up to it is read.

    Attributes:
        table: id of the table; another table of the same name has another one.
        version: number of the commit: the version of a Delta or Parquet table, the sequence number of an
            Iceberg snapshot.
        id: identity of the commit, which another commit of the same number lacks; None: unknown.
        is_snapshot: whether ``id`` names a snapshot of an Iceberg table.
    """

    table: str
    version: int
    id: str | None = None
    is_snapshot: bool = False

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> LogPosition:
        """Parse the stored form.

        Raises:
            KeyError, TypeError, ValueError: it has another form.
        """
        values = {name: value for name, value in stored.items() if value is not None}
        if "snapshot" in values:
            table, snapshot, sequence = (values.pop(name) for name in ("table", "snapshot", "sequence"))
            position = cls(table, sequence, str(int(snapshot)), is_snapshot=True)
        else:
            position = cls(values.pop("table"), values.pop("version"), values.pop("commit", None))
        is_sound = isinstance(position.table, str) and type(position.version) is int and position.version >= 0
        if values or not is_sound or not isinstance(position.id, str | None):
            raise ValueError
        return position

    def to_plain(self) -> dict[str, Any]:
        """Return the form that :meth:`of` parses."""
        if self.is_snapshot:
            return {"table": self.table, "snapshot": int(self.id or 0), "sequence": self.version}
        return {"table": self.table, "version": self.version} | ({"commit": self.id} if self.id else {})

    @property
    def words(self) -> str:
        """The position for people."""
        if self.is_snapshot and self.id == "-1":
            return "the table without a snapshot"
        return f"snapshot {self.id}" if self.is_snapshot else f"version {self.version}"
