"""Branches of an Iceberg table on which Spark makes a commit before readers see it, if they still see what it began on (docs/explanation/adr/0019)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import uuid4

from partitions.errors import TargetError, WriteConflict
from resources.sql import quoted
from resources.tables.contract.commits import Tag
from resources.tables.iceberg.catalog import Catalog
from resources.tables.iceberg.conflicts import BranchLost
from resources.tables.iceberg.metadata import MAIN, Metadata
from resources.tables.iceberg.refs import RefChange

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_BRANCH = "strandline_"
"""Before the names of branches on which commits are made."""


@dataclass(frozen=True)
class Branches:
    """The branches of one dataflow.

    Attributes:
        catalog: of the table.
        tag: of the commit that is made.
    """

    catalog: Catalog
    tag: Tag

    def publish(
        self, session: SparkSession, metadata: Metadata, work: Callable[[str], Iterator[None]]
    ) -> None:
        """Do work on a branch that begins at the newest snapshot, and show it to readers if they still see that snapshot.

        Args:
            session: a session.
            metadata: of the table.
            work: yields after each of its commits to the branch.
        """
        name, snapshot = self.catalog.name(session), metadata.current
        branch = f"{_BRANCH}{self.tag.app_id[:12]}_{self.tag.number}_{uuid4().hex[:8]}"
        assert snapshot is not None
        if not self.catalog.change_refs(RefChange({}, {branch: snapshot.id}, self.abandoned(metadata))):
            raise BranchLost(f"branch {branch} could not be made")
        try:
            tip = snapshot.id
            for _ in work(f"{name}.{quoted(f'branch_{branch}')}"):
                tip = self._tip_after(tip, branch)
            self._show(branch, snapshot.id, tip)
        except BaseException:
            with suppress(Exception):  # the next commit drops it
                self.catalog.change_refs(RefChange(dropped=(branch,)))
            raise

    def drop_abandoned(self, metadata: Metadata) -> None:
        """Drop what runs that died have left."""
        if abandoned := self.abandoned(metadata):
            with suppress(TargetError):  # the next commit drops them
                self.catalog.change_refs(RefChange(dropped=abandoned))

    def abandoned(self, metadata: Metadata) -> tuple[str, ...]:
        """Return what runs that died have left. A writer that still runs on such a branch loses it, as it would lose its number."""
        return tuple(ref for ref in metadata.refs if ref.startswith(f"{_BRANCH}{self.tag.app_id[:12]}_"))

    def _show(self, branch: str, base: int, tip: int) -> None:
        """Have readers see the newest snapshot of a branch, which goes.

        Raises:
            WriteConflict: they see another one than the branch began at.
        """
        if not self.catalog.change_refs(RefChange(branches={MAIN: tip}, dropped=(branch,), seen=base)):
            raise WriteConflict(f"readers see another snapshot than {base}, where the branch begins")

    def _tip_after(self, tip: int, branch: str) -> int:
        """Return the snapshot of a branch after one more commit to it, which is on the one before, or that one if it changed nothing.

        Iceberg makes a branch that was dropped meanwhile again, from what readers see now: it would be theirs already, whatever came since.

        Raises:
            BranchLost: it is on another one; or there is no such branch.
        """
        metadata = self.catalog.newest()
        now = (
            metadata.snapshots.get(metadata.refs.get(branch, {}).get("snapshot-id", -1)) if metadata else None
        )
        if now is None or tip not in (now.id, now.parent):
            raise BranchLost(f"branch {branch} was dropped while it was written to")
        return now.id
