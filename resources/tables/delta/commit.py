"""One version of a Delta table: what its log file says, and what Strandline has written into it (docs/adr/0004)."""

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

_OF_COLUMNS = ("SET TBLPROPERTIES", "ADD COLUMNS", "CHANGE COLUMN", "CHANGE COLUMNS")
"""Operations that change columns or properties alone."""


@dataclass(frozen=True)
class Commit:
    """One version of the table.

    Attributes:
        metadata: the commit's user metadata.
        tags: txn versions by app id.
        metrics: what the commit counted.
        partial: whether it replaced rows by a predicate, or whole partitions, and not the whole table: a table without partitions is
            replaced as a whole either way.
        operation: its name, as the writer gave it.
        parameters: of the operation.
        configuration: the table's properties, if the commit sets them.
        file: name of one of the data files that it adds; None if it adds none.
        digest: of its text.
    """

    version: int
    metadata: str | None = None
    tags: dict[str, int] = field(default_factory=dict)
    metrics: dict[str, str] = field(default_factory=dict)
    partial: bool = False
    operation: str = ""
    parameters: dict[str, Any] = field(default_factory=dict)
    configuration: dict[str, str] | None = None
    file: str | None = None
    digest: str = ""

    @classmethod
    def parse(cls, version: int, data: bytes) -> Commit:
        """Read a version's log file."""
        info: dict[str, Any] = {}
        tags: dict[str, int] = {}
        configuration: dict[str, str] | None = None
        first: dict[str, Any] = {}
        for line in data.splitlines():
            # A commit may hold many thousands of file actions, of which one is enough.
            if line.startswith(b'{"commitInfo"'):
                info = json.loads(line)["commitInfo"]
            elif line.startswith(b'{"txn"'):
                action = json.loads(line)["txn"]
                tags[action["appId"]] = int(action["version"])
            elif line.startswith(b'{"metaData"'):
                configuration = json.loads(line)["metaData"].get("configuration") or {}
            # A file that is added once more with a deletion vector was there before.
            elif not first and line.startswith(b'{"add"') and b'"deletionVector"' not in line:
                first = json.loads(line)["add"]
        parameters = info.get("operationParameters") or {}
        dynamic = bool(parameters.get("isDynamicPartitionOverwrite")) and first.get("partitionValues") != {}
        return cls(
            version,
            info.get("userMetadata"),
            tags,
            info.get("operationMetrics") or {},
            parameters.get("predicate") not in (None, "", "[]") or dynamic,
            operation=str(info.get("operation") or ""),
            parameters=parameters,
            configuration=configuration,
            file=file_name(first["path"]) if first else None,
            digest=hashlib.sha256(data).hexdigest()[:32],
        )

    @cached_property
    def ours(self) -> dict[str, Any]:
        """What Strandline has written into the commit's text; nothing if it is another writer's."""
        try:
            return dict(json.loads(self.metadata or "null")["strandline"])
        except (ValueError, TypeError, KeyError):
            return {}

    def is_of_another(self, dataflow: str | None) -> bool:
        """Return whether it is the commit of another dataflow that shares the table; None: nobody shares it."""
        return dataflow is not None and bool(self.ours) and self.ours.get("dataflow") != dataflow

    @property
    def changes_no_row(self) -> bool:
        """Return whether it changes nothing but columns or properties, as the commits do by which a table gets columns before their rows."""
        appends_nothing = self.operation == "WRITE" and str(self.parameters.get("mode")).lower() == "append"
        return not self.tags and self.file is None and (appends_nothing or self.operation in _OF_COLUMNS)

    @property
    def id(self) -> str:
        """What tells the commit from any other: the id of the intent or fence that it belongs to, else the hash of its text."""
        return str(self.ours.get("owner") or self.digest)

    @property
    def recorded(self) -> TableCommit:
        """As the watermark log records it."""
        return TableCommit(self.version, self.id, file=self.file)

    @property
    def shown(self) -> str:
        """In a few words, for people."""
        return f"{self.operation} (version {self.version})"

    def undoes(self, app_id: str | None) -> bool:
        """Return whether another writer's commit removed all rows that were there: a table that was restored, made again or overwritten.

        One that deletes rows is not meant: whoever deletes wants them gone.

        Args:
            app_id: the dataflow's; None: Strandline's own commits all count as the dataflow's.
        """
        if self.ours and (app_id is None or app_id in self.tags or "dataflow" in self.ours):
            return False  # of one that shares the table: it leaves the rows of others
        overwrites = str(self.parameters.get("mode")).lower() == "overwrite" and not self.partial
        overwrites = overwrites or str(self.parameters.get("outputMode")).lower() == "complete"  # of a stream
        return self.operation == "RESTORE" or "REPLACE TABLE" in self.operation or overwrites

    def tagged(self, app_id: str) -> TaggedCommit:
        """Return the commit as one under a dataflow's tag, which it carries."""
        removed = self._removed
        return TaggedCommit(
            self.ours.get("owner"),
            self.version,
            self._written,
            self._count("numOutputBytes") + self._count("numTargetBytesAdded"),
            bool(self.ours.get("gives_up")),
            removed,
            self.tags[app_id],
            uncounted=removed is None and self.partial,
            file=self.file,
            follows=self.version - 1 if self.version else None,
            committed_by=self.ours.get("committed_by"),
        )

    @property
    def _written(self) -> int:
        """Rows that the commit wrote and did not only move. A MERGE counts them under names of its own; a row that it updated it wrote again."""
        if self.operation == "MERGE":
            return self._count("numTargetRowsInserted") + self._count("numTargetRowsUpdated")
        return self._count("numOutputRows") - self._count("numCopiedRows")

    @property
    def _removed(self) -> int | None:
        """Rows that the commit deleted. One that removes files and does not count rows has removed all of them."""
        if self.operation == "MERGE":
            return self._count("numTargetRowsDeleted") + self._count("numTargetRowsUpdated")
        whole = self._count("numRemovedFiles") and "numDeletedRows" not in self.metrics
        return None if whole else self._count("numDeletedRows")

    def _count(self, metric: str) -> int:
        return int(self.metrics.get(metric, 0))


def file_name(path: str) -> str:
    """Return the last part of a data file's path, which writers make unique: the rest is written in more than one way."""
    return path.rsplit("/", 1)[-1]


def write_options(tag: Tag, text: str) -> dict[str, Any]:
    """Return the options of Spark's writer by which a commit carries a tag, and a text as its user metadata."""
    return {"txnAppId": tag.app_id, "txnVersion": tag.number, "userMetadata": text}


def merge_settings(tag: Tag, text: str) -> dict[str, str]:
    """Return the settings of a session by which the commit of a MERGE carries a tag, and a text as its user metadata."""
    return {
        "spark.databricks.delta.write.txnAppId": tag.app_id,
        "spark.databricks.delta.write.txnVersion": str(tag.number),
        "spark.databricks.delta.commitInfo.userMetadata": text,
        # A MERGE looks at its rows twice; a source is read once, and may have changed the second time.
        "spark.databricks.delta.merge.materializeSource": "all",
    }


def app_transaction(tag: Tag) -> Transaction:
    """Return what deltalake puts into a commit so that it carries a tag."""
    from deltalake.transaction import Transaction

    return Transaction(tag.app_id, tag.number, int(time.time() * 1000))
