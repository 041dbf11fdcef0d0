"""Delta as a target: ``txnAppId``/``txnVersion`` make a write idempotent, the user metadata says whose it is (spec 05, Tag)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from partitions.errors import NeedsDecision
from resources.places import Place
from resources.readers.rows import rows
from resources.sql import literal, quoted
from resources.watermarks.blobs import open_blobs
from resources.writers.delta_log import Commit, DeltaLog
from resources.writers.target import Adopted, Landed, Room, TableHead, Tag

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameWriter, SparkSession

_LONGEST_STATE = 8 * 1024
"""Characters of a state that a commit carries itself (spec 05, Write)."""

_MOST_TEXTS = 100_000_000
"""Of a column: more than the files that anybody has loaded one by one."""

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
                return self._counted(commit)
        gap = commits and since is not None and commits[0].version > since + 1
        if gap and self.tag(app_id) >= number:
            raise NeedsDecision(
                f"table {self._place} holds number {number} under this dataflow's tag, but the commit that says whose write it was"
                " has been cleaned from the table's log",
                code="unknown_commit",
            )
        return None

    def version(self) -> int | None:
        """The newest version; None where there is no table."""
        versions = self._log.versions(None)
        return versions[-1] if versions else None

    def tag(self, app_id: str) -> int:
        """The highest number under an app id that the table knows; 0 where it knows none."""
        table = self._log.table()
        return (table.transaction_version(app_id) if table else None) or 0

    def _counted(self, commit: Commit) -> Landed:
        """What a commit did. One that only deletes does not count rows: the table before and after it tells."""
        landed = _landed(commit)
        if landed.removed is not None or not commit.partial:
            return landed
        before, after = (self._rows_at(version) for version in (commit.version - 1, commit.version))
        return replace(landed, removed=before + landed.rows - after)

    def count_rows(self) -> int:
        """All rows of the table, from its files' statistics; 0 where there is no table."""
        return self._rows_at(None)

    def _rows_at(self, version: int | None) -> int:
        table = self._log.table(version)
        return sum(table.get_add_actions(flatten=True).column("num_records").to_pylist()) if table else 0

    def columns(self) -> list[str]:
        """The names of its columns; none where there is no table."""
        table = self._log.table()
        return [field.name for field in table.schema().fields] if table else []

    def schema(self) -> tuple[int, str] | None:
        """The newest version, and its columns as Spark's JSON; None where there is no table."""
        table = self._log.table()
        return (table.version(), table.schema().to_json()) if table else None

    def adopted(self) -> Adopted | None:
        """What the newest commit of ours says; None where the table has none."""
        for version in reversed(self._log.versions(None)):
            commit = self._log.read(version)
            ours = _ours(commit)
            if ours and (state := self._stored(ours)):
                number = int(ours.get("number", 0))
                app_id = next((key for key, tag in commit.tags.items() if tag == number), None)
                return Adopted(state, app_id)
        return None

    def texts(self, column: str) -> set[str]:
        """All texts of a column, each once; none where there is no such column. Reads the column's data."""
        if column not in self.columns():
            return set()
        found = rows(self._place, [column], most=_MOST_TEXTS)
        return {row[column] for row in found if row[column] is not None}

    def _stored(self, ours: Mapping[str, Any]) -> str | None:
        """The state of a commit, from its text or from beside the table."""
        if "state" in ours:
            return str(ours["state"])
        name, wanted = ours.get("state_object"), ours.get("state_sha256")
        data = open_blobs(self._place).get(str(name)) if name else None
        return data.decode() if data is not None and hashlib.sha256(data).hexdigest() == wanted else None

    def write(
        self, df: DataFrame, tag: Tag, metadata: str, *, new: bool = True, room: Room | None = None
    ) -> None:
        """Write in one commit. A repeated tag commits nothing and raises nothing, so the caller looks at the commit."""
        mode = "append" if new or room is None else "overwrite"
        writer = self._tagged(df.write.format("delta").mode(mode), tag, metadata)
        whole = mode == "overwrite" and room is not None and room.where is None
        if whole:  # a table that begins anew has the columns and the partitions of what it begins with
            self._allow(df)
            writer = writer.option("overwriteSchema", "true")
        elif mode == "overwrite" and room:
            writer = writer.option("replaceWhere", room.where or "")
        if self._partition_by and (new or whole):
            writer = writer.partitionBy(*self._partition_by)
        if new and any(_NEEDS_MAPPING & set(name) for name in df.columns):
            writer = writer.option("delta.columnMapping.mode", "name")
        writer.save(self._place.spark_url)

    def _allow(self, df: DataFrame) -> None:
        """Give a table what columns need that it may not have had: Delta gives it to new tables by itself.

        A commit of its own, before the tagged one, which changes no row; done twice it does no harm.
        """
        needed = {}
        if any(_NEEDS_MAPPING & set(name) for name in df.columns):
            needed["delta.columnMapping.mode"] = "name"
        if "timestamp_ntz" in df.schema.simpleString():
            needed["delta.feature.timestampNtz"] = "supported"
        if needed:
            given = ", ".join(f"{literal(key)} = {literal(value)}" for key, value in needed.items())
            df.sparkSession.sql(
                f"ALTER TABLE delta.{quoted(self._place.spark_url)} SET TBLPROPERTIES ({given})"
            ).collect()

    def no_rows(self, spark: SparkSession) -> DataFrame:
        """The table, none of it."""
        return spark.read.format("delta").load(self._place.spark_url).limit(0)

    def prepare_next(self, spark: SparkSession) -> None:
        """Make the engine know the table's state, which Delta keeps until the next commit.

        The next write looks there for its tag, and makes the state first where it is not known. Of what only reads, the details
        of a table are what Delta takes out of it.
        """
        spark.sql(f"DESCRIBE DETAIL delta.{quoted(self._place.spark_url)}").collect()

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


def _ours(commit: Commit) -> dict[str, Any]:
    """What we have written into a commit's text; nothing where it is somebody else's."""
    try:
        return dict(json.loads(commit.metadata or "null")["strandline"])
    except (ValueError, TypeError, KeyError):
        return {}


def _landed(commit: Commit) -> Landed:
    ours = _ours(commit)
    return Landed(
        ours.get("owner"),
        commit.version,
        commit.count("numOutputRows") - commit.count("numCopiedRows"),
        commit.count("numOutputBytes"),
        bool(ours.get("gives_up")),
        removed=_removed(commit),
    )


def _removed(commit: Commit) -> int | None:
    """Rows that a commit deleted. One that removes files and does not count rows has removed all of them."""
    whole = commit.count("numRemovedFiles") and "numDeletedRows" not in commit.metrics
    return None if whole else commit.count("numDeletedRows")
