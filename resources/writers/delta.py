"""Delta as a target: ``txnAppId``/``txnVersion`` make a write idempotent, the user metadata says whose it is (spec 05, Tag)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from partitions.errors import NeedsDecision
from resources.places import Place
from resources.watermarks.blobs import open_blobs
from resources.writers.delta_log import Commit, DeltaLog
from resources.writers.target import Landed, TableHead, Tag

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameWriter, SparkSession

_LONGEST_STATE = 8 * 1024
"""Characters of a state that a commit carries itself (spec 05, Write)."""

_NEEDS_MAPPING = frozenset(" ,;{}()\n\t=")
"""Characters that Delta takes in a column's name only with column mapping."""


class DeltaTarget:
    """One Delta table in the lake."""

    def __init__(self, place: Place, partition_by: Sequence[str] = ()) -> None:
        """Use the table at a place, which is made by the first write, partitioned as given."""
        self._place = place
        self._partition_by = tuple(partition_by)
        self._log = DeltaLog(place)

    def head(self, since: int | None) -> TableHead:
        """One listing, and one read for each commit of anybody after ``since``."""
        commits = self._log.commits(since)
        if not commits and since is not None:
            versions = self._log.versions(since - 1) or self._log.versions(
                None
            )  # where the table is older, or made anew
            return TableHead(versions[-1] if versions else None)
        tags = {app_id: number for commit in commits for app_id, number in commit.tags.items()}
        rows = any(commit.count("numOutputRows") for commit in commits) or (
            bool(commits) and commits[0].version > 0
        )
        return TableHead(commits[-1].version if commits else None, tags, rows)

    def landed(self, app_id: str, number: int, since: int | None) -> Landed | None:
        """Find the commit that holds the number.

        Raises:
            NeedsDecision: the table knows the number, but the commit that could say whose it is was cleaned up.
        """
        commits = self._log.commits(since)
        for commit in reversed(commits):
            if commit.tags.get(app_id) == number:
                return _landed(commit)
        gap = commits and since is not None and commits[0].version > since + 1
        if gap and (self._log.checkpointed_tag(app_id) or 0) >= number:
            raise NeedsDecision(
                f"table {self._place} holds number {number} under this dataflow's tag, but the commit that says whose write it was"
                " has been cleaned from the table's log",
                code="unknown_commit",
            )
        return None

    def count_rows(self) -> int:
        """All rows of the table, from its files' statistics; 0 where there is no table."""
        from deltalake import DeltaTable

        if not self._log.versions(None):
            return 0
        table = DeltaTable(self._place.url, storage_options=self._place.storage_options or None)
        return sum(table.get_add_actions(flatten=True).column("num_records").to_pylist())

    def append(self, df: DataFrame, tag: Tag, metadata: str, *, new: bool = True) -> None:
        """Append in one commit. A repeated tag commits nothing and raises nothing, so the caller looks at the commit."""
        writer = self._tagged(df.write.format("delta").mode("append"), tag, metadata)
        if self._partition_by and new:
            writer = writer.partitionBy(*self._partition_by)
        if any(_NEEDS_MAPPING & set(name) for name in df.columns):
            writer = writer.option("delta.columnMapping.mode", "name")
        writer.save(self._place.spark_url)

    def no_rows(self, spark: SparkSession) -> DataFrame:
        """The table, none of it."""
        return spark.read.format("delta").load(self._place.spark_url).limit(0)

    def _tagged(self, writer: DataFrameWriter, tag: Tag, metadata: str) -> DataFrameWriter:
        owned = {
            "owner": tag.owner,
            "number": tag.number,
            "gives_up": tag.gives_up,
            **self._state(tag, metadata),
        }
        text = json.dumps({"strandline": owned})
        return (
            writer.option("txnAppId", tag.app_id)
            .option("txnVersion", tag.number)
            .option("userMetadata", text)
        )

    def _state(self, tag: Tag, metadata: str) -> dict[str, str]:
        """The state as part of the commit's text; a long one lies beside the table, and the text has its hash."""
        if len(metadata) <= _LONGEST_STATE:
            return {"state": metadata}
        name = f"_strandline/{tag.owner}.json"
        open_blobs(self._place).put(name, metadata.encode())
        return {"state_object": name, "state_sha256": hashlib.sha256(metadata.encode()).hexdigest()}


def _landed(commit: Commit) -> Landed:
    try:
        ours = dict(json.loads(commit.metadata or "null")["strandline"])
    except (ValueError, TypeError, KeyError):
        ours = {}
    return Landed(
        ours.get("owner"),
        commit.version,
        commit.count("numOutputRows"),
        commit.count("numOutputBytes"),
        bool(ours.get("gives_up")),
    )
