"""What becomes of the branches and tags of an Iceberg table in one version of its metadata, which writes no row and needs no Spark.

By hand, since pyiceberg's models drop fields of the metadata that they do not know, and refuse tables with a VARIANT (docs/explanation/adr/0032).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from partitions.errors import WriteConflict
from resources.tables.contract.conflict_retries import retry_conflicts
from resources.tables.iceberg.metadata import MAIN, Metadata, next_version, now_after, seen_from


@dataclass(frozen=True)
class RefChange:
    """Branches and tags that are made, moved or dropped.

    Attributes:
        tags: the snapshot of each that is made or moved.
        branches: likewise.
        dropped: names of those that go.
        seen: the snapshot that readers must see until then; None: any.
    """

    tags: Mapping[str, int] = field(default_factory=dict)
    branches: Mapping[str, int] = field(default_factory=dict)
    dropped: tuple[str, ...] = ()
    seen: int | None = None

    def is_done(self, metadata: Metadata) -> bool:
        """Return whether the table is already like that."""
        there = {name: ref.get("snapshot-id") for name, ref in metadata.refs.items()}
        moved = {**self.tags, **self.branches}
        return all(there.get(name) == snapshot for name, snapshot in moved.items()) and not (
            set(self.dropped) & there.keys()
        )

    def is_possible(self, metadata: Metadata) -> bool:
        """Return whether the table still has the snapshots, and readers see the one that they must."""
        has_all = {*self.tags.values(), *self.branches.values()} <= metadata.snapshots.keys()
        return has_all and (
            self.seen is None or (metadata.current is not None and metadata.current.id == self.seen)
        )

    def applied(self, metadata: Metadata) -> dict[str, Any]:
        """Return the next version of the metadata, with the change."""
        kept = {name: ref for name, ref in metadata.refs.items() if name not in self.dropped}
        made = [("tag", *item) for item in self.tags.items()]
        made += [("branch", *item) for item in self.branches.items()]
        # What else a branch says, as how long its snapshots are kept, stays.
        new = {
            name: {**kept.get(name, {}), "snapshot-id": snapshot, "type": kind}
            for kind, name, snapshot in made
        }
        return next_version(
            metadata, {**self._seen_from(now_after(metadata), metadata.raw), "refs": {**kept, **new}}
        )

    def _seen_from(self, now: int, raw: Mapping[str, Any]) -> dict[str, Any]:
        """What a table says beside its branches of the snapshot that readers see, if they get another one."""
        main = self.branches.get(MAIN)
        if main is None or main == raw.get("current-snapshot-id"):
            return {}
        return seen_from(now, raw, main)


def put_refs(
    change: RefChange,
    newest: Callable[[], Metadata | None],
    put_next: Callable[[Metadata, Mapping[str, Any]], bool],
) -> bool:
    """Put the next version of the metadata, as often as other writers are faster; return whether the table has the change.

    Args:
        change: of branches and tags.
        newest: returns the metadata that the table has.
        put_next: puts the version after one, and returns whether it was the first to.
    """

    def once() -> bool:
        before = newest()
        if before is None:
            return False
        if change.is_done(before):
            return True
        if not change.is_possible(before):
            return False
        if not put_next(before, change.applied(before)):
            raise WriteConflict("another writer was first to put a version of the table's metadata")
        return True

    return retry_conflicts(once)
