"""Change branches and tags of an Iceberg table in its metadata, without rows and without Spark.

We write the JSON ourselves because pyiceberg's models drop fields that they do not know, and refuse tables
with a VARIANT (docs/explanation/adr/0032).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from partitions.errors import WriteConflict
from resources.tables.contract.conflict_retries import retry_conflicts
from resources.tables.iceberg.metadata import (
    MAIN,
    Metadata,
    main_snapshot_fields,
    next_timestamp,
    next_version,
)


@dataclass(frozen=True)
class RefChange:
    """Branches and tags to create, move or drop.

    Attributes:
        tags: snapshot of each tag that is created or moved.
        branches: snapshot of each branch that is created or moved.
        dropped: names of branches and tags to drop.
        expected_main: snapshot that readers must see before the change; None: any.
    """

    tags: Mapping[str, int] = field(default_factory=dict)
    branches: Mapping[str, int] = field(default_factory=dict)
    dropped: tuple[str, ...] = ()
    expected_main: int | None = None

    def is_done(self, metadata: Metadata) -> bool:
        """Return whether the table already has the change."""
        snapshot_of_ref = {name: ref.get("snapshot-id") for name, ref in metadata.refs.items()}
        expected_snapshots = {**self.tags, **self.branches}
        return all(
            snapshot_of_ref.get(name) == snapshot for name, snapshot in expected_snapshots.items()
        ) and not (set(self.dropped) & snapshot_of_ref.keys())

    def is_possible(self, metadata: Metadata) -> bool:
        """Return whether the table has the snapshots, and readers see the expected one."""
        has_all = {*self.tags.values(), *self.branches.values()} <= metadata.snapshots.keys()
        return has_all and (
            self.expected_main is None
            or (metadata.current is not None and metadata.current.id == self.expected_main)
        )

    def apply(self, metadata: Metadata) -> dict[str, Any]:
        """Return the JSON of the next metadata version, with the change."""
        remaining_refs = {name: ref for name, ref in metadata.refs.items() if name not in self.dropped}
        new_refs = [("tag", *item) for item in self.tags.items()]
        new_refs += [("branch", *item) for item in self.branches.items()]
        # Keep a branch's other settings, such as its retention.
        changed_refs = {
            name: {**remaining_refs.get(name, {}), "snapshot-id": snapshot, "type": ref_type}
            for ref_type, name, snapshot in new_refs
        }
        return next_version(
            metadata,
            {
                **self._seen_from(next_timestamp(metadata), metadata.raw),
                "refs": {**remaining_refs, **changed_refs},
            },
        )

    def _seen_from(self, timestamp: int, raw: Mapping[str, Any]) -> dict[str, Any]:
        """Return the fields that make readers see another snapshot, if the change moves main."""
        main = self.branches.get(MAIN)
        if main is None or main == raw.get("current-snapshot-id"):
            return {}
        return main_snapshot_fields(timestamp, raw, main)


def commit_refs(
    change: RefChange,
    newest: Callable[[], Metadata | None],
    put_next: Callable[[Metadata, Mapping[str, Any]], bool],
) -> bool:
    """Commit a change of refs, with retries; return whether the table has it.

    Args:
        change: change of branches and tags.
        newest: returns the current metadata.
        put_next: writes the successor of a version, and returns whether it came first.
    """

    def once() -> bool:
        base = newest()
        if base is None:
            return False
        if change.is_done(base):
            return True
        if not change.is_possible(base):
            return False
        if not put_next(base, change.apply(base)):
            raise WriteConflict("another writer wrote the next version of the table's metadata first")
        return True

    return retry_conflicts(once)
