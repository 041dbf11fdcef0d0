"""Branches on which Spark commits before readers see the rows (docs/explanation/adr/0019).

Readers get the branch only if they still see the snapshot that it started from.
"""

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
"""Prefix of the branches on which commits are made."""


@dataclass(frozen=True)
class Branches:
    """The branches of one dataflow.

    Attributes:
        catalog: catalog of the table.
        tag: tag of the commit.
    """

    catalog: Catalog
    tag: Tag

    def publish(
        self, session: SparkSession, metadata: Metadata, work: Callable[[str], Iterator[None]]
    ) -> None:
        """Run ``work`` on a branch from the newest snapshot, then show its tip to readers.

        Args:
            session: session.
            metadata: metadata of the table.
            work: yields after each of its commits to the branch.

        Raises:
            BranchLost: the branch cannot be created, or was dropped meanwhile.
            WriteConflict: readers see another snapshot than the one that the branch started from.
        """
        name, snapshot = self.catalog.name(session), metadata.current
        branch = f"{_BRANCH}{self.tag.app_id[:12]}_{self.tag.number}_{uuid4().hex[:8]}"
        assert snapshot is not None
        if not self.catalog.change_refs(
            RefChange({}, {branch: snapshot.id}, self.abandoned_branches(metadata))
        ):
            raise BranchLost(f"branch {branch} could not be created")
        try:
            tip = snapshot.id
            for _ in work(f"{name}.{quoted(f'branch_{branch}')}"):
                tip = self._new_tip(tip, branch)
            self._fast_forward(branch, snapshot.id, tip)
        except BaseException:
            with suppress(Exception):  # the next commit drops it
                self.catalog.change_refs(RefChange(dropped=(branch,)))
            raise

    def drop_abandoned(self, metadata: Metadata) -> None:
        """Drop the branches that dead runs of the dataflow left."""
        if branches := self.abandoned_branches(metadata):
            with suppress(TargetError):  # the next commit drops them
                self.catalog.change_refs(RefChange(dropped=branches))

    def abandoned_branches(self, metadata: Metadata) -> tuple[str, ...]:
        """Return the branches of the dataflow in a version: its earlier runs have died.

        A writer that still runs on a branch loses the branch, as it loses its number.
        """
        return tuple(ref for ref in metadata.refs if ref.startswith(f"{_BRANCH}{self.tag.app_id[:12]}_"))

    def _fast_forward(self, branch: str, base: int, tip: int) -> None:
        """Make a branch's tip visible to readers, and drop the branch.

        Raises:
            WriteConflict: readers see another snapshot than the one that the branch started from.
        """
        if not self.catalog.change_refs(
            RefChange(branches={MAIN: tip}, dropped=(branch,), expected_main=base)
        ):
            raise WriteConflict(f"readers see another snapshot than {base}, where the branch starts")

    def _new_tip(self, tip: int, branch: str) -> int:
        """Return the branch's newest snapshot; raise BranchLost unless it is ``tip`` or a child of it.

        Iceberg recreates a branch that was dropped meanwhile from what readers see now. Such a branch
        would skip the check for other writers.
        """
        metadata = self.catalog.newest()
        branch_tip = (
            metadata.snapshots.get(metadata.refs.get(branch, {}).get("snapshot-id", -1)) if metadata else None
        )
        if branch_tip is None or tip not in (branch_tip.id, branch_tip.parent):
            raise BranchLost(f"branch {branch} was dropped while it was written to")
        return branch_tip.id
