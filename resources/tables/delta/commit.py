"""One version of a Delta table: its log file and Strandline's metadata in it.

See docs/explanation/adr/0004.
"""

from __future__ import annotations

import hashlib
import json
import time
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from resources.tables.contract.commits import TableCommit, Tag, TaggedCommit

if TYPE_CHECKING:
    from deltalake.transaction import Transaction

DELETED_BY_KEY = "numTargetRowsDeleted"
"""Metric of a MERGE and of our own commit: rows that it deleted and did not write again."""

_COLUMN_OPERATIONS = ("SET TBLPROPERTIES", "ADD COLUMNS", "CHANGE COLUMN", "CHANGE COLUMNS")
"""Operations that change only columns or properties."""


@dataclass(frozen=True)
class DeltaCommit:
    """One version of a Delta table, read from its log file.

    Attributes:
        version: version number.
        metadata: user metadata of the commit.
        tags: txn versions by app id.
        metrics: counts in the commit.
        is_partial: whether an overwrite replaced rows by a predicate or single partitions. False if it
            replaced the whole table, as every overwrite of an unpartitioned table without a predicate
            does.
        operation: name that the writer gave the operation.
        parameters: parameters of the operation.
        configuration: properties of the table, if the commit sets them.
        file: name of one of the added data files; None if there are none.
        digest: hash of the log file.
        timestamp: time of the commit in epoch milliseconds; None if the writer recorded none.
        engine: name and version of the writing engine.
        user: name of the user, if the writer recorded it.
        table_id: id of the table, if the commit sets its columns or properties.
    """

    version: int
    metadata: str | None = None
    tags: dict[str, int] = field(default_factory=dict)
    metrics: dict[str, str] = field(default_factory=dict)
    is_partial: bool = False
    operation: str = ""
    parameters: dict[str, Any] = field(default_factory=dict)
    configuration: dict[str, str] | None = None
    file: str | None = None
    digest: str = ""
    timestamp: int | None = None
    engine: str = ""
    user: str = ""
    table_id: str | None = None

    @classmethod
    def parse(cls, version: int, data: bytes) -> DeltaCommit:
        """Parse the log file of a version."""
        info: dict[str, Any] = {}
        tags: dict[str, int] = {}
        table: dict[str, Any] | None = None
        first_add: dict[str, Any] = {}
        for line in data.splitlines():
            # A commit may hold many thousands of file actions; the first is enough.
            if line.startswith(b'{"commitInfo"'):
                info = json.loads(line)["commitInfo"]
            elif line.startswith(b'{"txn"'):
                action = json.loads(line)["txn"]
                tags[action["appId"]] = int(action["version"])
            elif line.startswith(b'{"metaData"'):
                table = json.loads(line)["metaData"]
            # An add with a deletion vector changes a file that existed before.
            elif not first_add and line.startswith(b'{"add"') and b'"deletionVector"' not in line:
                first_add = json.loads(line)["add"]
        parameters = info.get("operationParameters") or {}
        dynamic = (
            bool(parameters.get("isDynamicPartitionOverwrite")) and first_add.get("partitionValues") != {}
        )
        return cls(
            version,
            info.get("userMetadata"),
            tags,
            info.get("operationMetrics") or {},
            parameters.get("predicate") not in (None, "", "[]") or dynamic,
            operation=str(info.get("operation") or ""),
            parameters=parameters,
            configuration=None if table is None else table.get("configuration") or {},
            file=file_name(first_add["path"]) if first_add else None,
            digest=hashlib.sha256(data).hexdigest()[:32],
            timestamp=info.get("inCommitTimestamp") or info.get("timestamp"),
            engine=str(info.get("engineInfo") or ""),
            user=str(info.get("userName") or ""),
            table_id=None if table is None else str(table["id"]),
        )

    @cached_property
    def strandline_metadata(self) -> dict[str, Any]:
        """Strandline's part of the user metadata; empty for another writer's commit."""
        try:
            return dict(json.loads(self.metadata or "null")["strandline"])
        except (ValueError, TypeError, KeyError):
            return {}

    def is_of_other_dataflow(self, dataflow: str | None) -> bool:
        """Return whether another dataflow that shares the table made the commit.

        ``dataflow`` is None if no one shares the table.
        """
        return (
            dataflow is not None
            and bool(self.strandline_metadata)
            and self.strandline_metadata.get("dataflow") != dataflow
        )

    @property
    def changes_no_row(self) -> bool:
        """Return whether the commit only changes columns or properties.

        The commit that adds columns before their rows is one of these.
        """
        appends_nothing = self.operation == "WRITE" and str(self.parameters.get("mode")).lower() == "append"
        return (
            not self.tags and self.file is None and (appends_nothing or self.operation in _COLUMN_OPERATIONS)
        )

    @property
    def id(self) -> str:
        """Identity of the commit: the id of its intent or fence, otherwise the hash of its log file."""
        return str(self.strandline_metadata.get("owner") or self.digest)

    @property
    def as_table_commit(self) -> TableCommit:
        """Commit as the watermark log records it."""
        return TableCommit(self.version, self.id, file=self.file)

    @property
    def description(self) -> str:
        """Operation and version, for people."""
        return f"{self.operation} (version {self.version})"

    def removes_all_rows(self, app_id: str | None) -> bool:
        """Return whether another writer's commit removed all earlier rows.

        RESTORE, REPLACE TABLE and overwrites do.

        A DELETE does not count, because it removes rows on purpose.

        Args:
            app_id: app id of the dataflow; None: every commit of Strandline counts as the dataflow's own.
        """
        if self.strandline_metadata and (
            app_id is None or app_id in self.tags or "dataflow" in self.strandline_metadata
        ):
            return False  # a dataflow that shares the table leaves the rows of others
        overwrites = str(self.parameters.get("mode")).lower() == "overwrite" and not self.is_partial
        overwrites = (
            overwrites or str(self.parameters.get("outputMode")).lower() == "complete"
        )  # of a streaming query
        return self.operation == "RESTORE" or "REPLACE TABLE" in self.operation or overwrites

    def as_tagged(self, app_id: str) -> TaggedCommit:
        """Return the commit as one under a dataflow's tag, which it must carry."""
        removed_rows = self._removed_rows
        return TaggedCommit(
            self.strandline_metadata.get("owner"),
            self.version,
            self._written_rows,
            self._count("numOutputBytes") + self._count("numTargetBytesAdded"),
            bool(self.strandline_metadata.get("gives_up")),
            removed_rows,
            self.tags[app_id],
            uncounted=removed_rows is None and self.is_partial,
            file=self.file,
            follows=self.version - 1 if self.version else None,
            committed_by=self.strandline_metadata.get("committed_by"),
            deleted=self._count(DELETED_BY_KEY),
        )

    @property
    def _written_rows(self) -> int:
        """Number of rows that the commit wrote, without copied ones.

        A MERGE counts rows under its own names, and writes an updated row again.
        """
        if self.operation == "MERGE":
            return self._count("numTargetRowsInserted") + self._count("numTargetRowsUpdated")
        return self._count("numOutputRows") - self._count("numCopiedRows")

    @property
    def _removed_rows(self) -> int | None:
        """Number of rows that the commit deleted; None if it removed all rows.

        A commit that removes files without counting rows removed all of them.
        """
        if self.operation == "MERGE":
            return self._count(DELETED_BY_KEY) + self._count("numTargetRowsUpdated")
        removes_all = self._count("numRemovedFiles") and "numDeletedRows" not in self.metrics
        return None if removes_all else self._count("numDeletedRows")

    def _count(self, metric: str) -> int:
        return int(self.metrics.get(metric, 0))


def file_name(path: str) -> str:
    """Return the last part of a data file's path.

    Writers make this part unique; they spell the rest in more than one way.
    """
    return path.rsplit("/", 1)[-1]


def tag_options(tag: Tag, text: str) -> dict[str, Any]:
    """Return the options that make Spark's writer commit with a tag and user metadata."""
    return {"txnAppId": tag.app_id, "txnVersion": tag.number, "userMetadata": text}


def tag_settings(tag: Tag, text: str) -> dict[str, str]:
    """Return the session settings that make a MERGE commit with a tag and user metadata."""
    return {
        "spark.databricks.delta.write.txnAppId": tag.app_id,
        "spark.databricks.delta.write.txnVersion": str(tag.number),
        "spark.databricks.delta.commitInfo.userMetadata": text,
        # A MERGE reads its rows twice, and a source may change in between.
        "spark.databricks.delta.merge.materializeSource": "all",
    }


def app_transaction(tag: Tag) -> Transaction:
    """Return the deltalake transaction that gives a commit its tag."""
    from deltalake.transaction import Transaction

    return Transaction(tag.app_id, tag.number, int(time.time() * 1000))
