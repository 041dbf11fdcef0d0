"""A moved table whose log names files by absolute addresses, and how its log gets the new ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from partitions.errors import NeedsDecision


class TableMoved(NeedsDecision):
    """A table whose log names another folder: it was moved, copied or restored elsewhere.

    Its rows cannot be told from those of the table at the old address, so nothing is read or written.
    """

    code = "table_moved"

    def __init__(self, place: object, named_address: str) -> None:
        """Build the message from both addresses."""
        super().__init__(
            f"table {place}: expected a log that names files below this address, found one that names "
            f"{named_address}: the table was moved or copied. Nothing was read or written. Run "
            "`strandline relocate`, which writes the new addresses and reads all rows back; or move the "
            "table back",
            choices=("strandline relocate",),
        )
        self.named_address = named_address


@dataclass(frozen=True)
class Relocation:
    """The new addresses of a moved table.

    Attributes:
        before: address that the log names.
        after: address of the table.
        versions: number of versions that stay readable.
        files: number of data files, which all exist at the new address.
        bytes: size of these files.
        rows: number of rows in the data files of the newest version.
        remarks: more for people to know before they agree.
    """

    before: str
    after: str
    versions: int
    files: int
    bytes: int
    rows: int
    remarks: tuple[str, ...] = ()


@runtime_checkable
class CanRelocate(Protocol):
    """A format whose log names files by absolute addresses."""

    def plan_relocation(self) -> Relocation | None:
        """Return what :meth:`relocate` would do; None if the log names the table's own address.

        Changes nothing, starts no Spark.

        Raises:
            TargetError: a file is missing at the new address, or the log cannot be rewritten.
        """
        ...

    def relocate(self) -> Relocation | None:
        """Write the new addresses in one commit that changes no row; return None if nothing was moved.

        All rows are read through the new addresses before the commit.

        A relocation that was stopped leaves the table as it was, or relocated. Repeating it does no harm.

        Raises:
            TargetError: as :meth:`plan_relocation`; or a file does not hold the rows that the log says.
        """
        ...
