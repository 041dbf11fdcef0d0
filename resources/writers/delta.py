"""Delta as a target: ``txnAppId``/``txnVersion`` make a write idempotent, the user metadata says whose it is (spec 05, Tag)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from partitions.errors import NeedsDecision, TargetError
from resources.places import Place
from resources.readers.rows import rows, scanned_rows
from resources.sql import literal, quoted
from resources.watermarks.blobs import open_blobs
from resources.writers.delta_log import Commit, DeltaLog
from resources.writers.target import Adopted, Landed, Room, TableCommit, TableHead, Tag

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameWriter, SparkSession

_LONGEST_STATE = 8 * 1024
"""Characters of a state that a commit carries itself (spec 05, Write)."""

_MOST_TEXTS = 100_000_000
"""Of a column: more than the files that anybody has loaded one by one."""

_TAGS_EXPIRE = "delta.setTransactionRetentionDuration"
"""The property by which Delta forgets tags, so that a write of an old number would not be skipped."""

_NEEDS_MAPPING = frozenset(" ,;{}()\n\t=")
"""Characters that Delta takes in a column's name only with column mapping."""


class DeltaTarget:
    """One Delta table in the lake."""

    def __init__(self, place: Place, partition_by: Sequence[str] = ()) -> None:
        """Use the table at a place, which is made by the first write, partitioned as given."""
        self._place = place
        self._partition_by = tuple(partition_by)
        self._log = DeltaLog(place)

    def head(self, recorded: TableCommit | None, app_id: str | None) -> TableHead:
        """Compare the table's log with what was recorded of it: one listing, and one read for each commit from the recorded one on.

        Raises:
            TargetError: if the log cannot be read.
        """
        since = recorded.version if recorded else None
        versions = self._log.versions(since - 1 if since else None)
        if not versions and since is None:
            return TableHead(None)
        commits = [self._log.read(version) for version in versions]
        kept = since is None or bool(commits and recorded and self._kept(recorded, commits[0], app_id))
        if not kept:
            return self._other(app_id)
        cleaned = commits[0].version > (since or 0)
        later = [commit for commit in commits if since is None or commit.version > since]
        landed = _landed_under(app_id, later)
        return TableHead(
            _recorded(commits[-1]),
            True,
            cleaned and since is not None,
            self._highest(app_id, landed, whole=not cleaned, before=recorded.number if recorded else 0),
            landed,
            self._undone(recorded, later, landed, app_id),
            bool(cleaned and recorded and recorded.file and not self._held(recorded.file, versions)),
            self._expiry(commits, whole=cleaned),
        )

    def _undone(
        self,
        recorded: TableCommit | None,
        later: Sequence[Commit],
        landed: Sequence[Landed],
        app_id: str | None,
    ) -> str | None:
        """The commit of somebody else that has put rows aside which were there; None if the table goes back to all of them again."""
        found = next((_told(commit) for commit in reversed(later) if _undoes(commit, app_id)), None)
        if found is None or recorded is None or recorded.version is None:
            return found
        since = recorded.version
        line = takewhile(lambda commit: commit.version >= since, _Line(self._log, app_id))
        return None if {since, *(one.version for one in landed)} <= {one.version for one in line} else found

    def _other(self, app_id: str | None) -> TableHead:
        """The head of a table that does not have the recorded commit: whatever is in it came otherwise."""
        commits = self._log.commits(None)
        if not commits:
            return TableHead(None, kept=False)
        landed = _landed_under(app_id, commits)
        tag = self._highest(app_id, landed, whole=commits[0].version == 0)
        expiry = self._expiry(commits, whole=commits[0].version > 0)
        return TableHead(_recorded(commits[-1]), kept=False, tag=tag, landed=landed, tags_expire=expiry)

    def _held(self, file: str, versions: Sequence[int]) -> bool:
        """Whether a data file is part of the table, or was until one of these versions removed it."""
        return file in self._log.files() or any(self._log.removes(version, file) for version in versions)

    def _highest(self, app_id: str | None, landed: Sequence[Landed], *, whole: bool, before: int = 0) -> int:
        """The highest number under an app id: of the commits that were read, or of the table where these are not the whole of its log."""
        if app_id and not whole:
            return self.tag(app_id)
        return max((one.number for one in landed), default=before)

    def _kept(self, recorded: TableCommit, first: Commit, app_id: str | None) -> bool:
        """Whether the recorded commit is the table's own: by its id, or by the table's tag where it was cleaned from the log."""
        if first.version == recorded.version:
            return recorded.id in (None, _id(first))
        return not app_id or self.tag(app_id) >= recorded.number

    def _expiry(self, commits: Sequence[Commit], *, whole: bool) -> str | None:
        """The property by which tags are forgotten, as the newest commit that sets properties has it."""
        set_by = next((one.configuration for one in reversed(commits) if one.configuration is not None), None)
        if set_by is None and whole:
            table = self._log.table()
            set_by = table.metadata().configuration if table else {}
        return _TAGS_EXPIRE if set_by and set_by.get(_TAGS_EXPIRE) else None

    def has_data(self) -> bool:
        """Whether the table holds rows, whoever wrote them, or remembers a tag. A file without statistics counts as rows."""
        table = self._log.table()
        if table is None:
            return False
        counts = table.get_add_actions(flatten=True).column("num_records").to_pylist()
        if any(count is None or count > 0 for count in counts):
            return True
        return any(commit.tags for commit in self._log.commits(None))

    def tip(self, app_id: str | None) -> TableHead:
        """The newest commit, and what the whole table says of tags."""
        table = self._log.table()
        if table is None:
            return TableHead(None)
        newest = self._log.read(self._log.versions(None)[-1])
        tag = (table.transaction_version(app_id) if app_id else None) or 0
        return TableHead(
            replace(_recorded(newest), number=tag),
            tag=tag,
            tags_expire=_TAGS_EXPIRE if table.metadata().configuration.get(_TAGS_EXPIRE) else None,
        )

    def tag(self, app_id: str) -> int:
        """The highest number under an app id that the table knows; 0 where it knows none."""
        table = self._log.table()
        return (table.transaction_version(app_id) if table else None) or 0

    def counted(self, landed: Landed, before: int) -> Landed:
        """The commit with all of its counts. One that only deletes does not count rows: the table before and after it tells.

        Where the version before was cleaned from the log, the watermark log's own count stands in for it.
        """
        if not landed.uncounted:
            return landed
        try:
            before, after = self._rows_at(landed.version - 1), self._rows_at(landed.version)
        except TargetError:
            after = self._rows_at(None)
        return replace(landed, removed=max(0, before + landed.rows - after), uncounted=False)

    def count_rows(self) -> int:
        """All rows of the table, from its files' statistics, or by a scan where a file has none; 0 where there is no table."""
        return self._rows_at(None)

    def _rows_at(self, version: int | None) -> int:
        table = self._log.table(version)
        if table is None:
            return 0
        counts = table.get_add_actions(flatten=True).column("num_records").to_pylist()
        return scanned_rows(table, self._place) if None in counts else sum(counts)

    def columns(self) -> list[str]:
        """The names of its columns; none where there is no table."""
        table = self._log.table()
        return [field.name for field in table.schema().fields] if table else []

    def schema(self) -> tuple[int, str] | None:
        """The newest version, and its columns as Spark's JSON; None where there is no table."""
        table = self._log.table()
        return (table.version(), table.schema().to_json()) if table else None

    def adopted(self, app_id: str | None = None) -> Adopted | None:
        """What the commits of Strandline tell that the table's rows go back to.

        A commit's state says that all rows up to it are in the table. That holds as long as the commit that the state before was true of
        is one that the table's rows go back to: not where a RESTORE or another writer's overwrite came between the two, or the table was
        removed there.

        Args:
            app_id: whose commits count; None are those of whoever wrote the newest.

        Returns:
            None where there is no commit of Strandline, and nobody has put rows aside either.

        Raises:
            NeedsDecision: code ``state_object_missing``: the watermark lies beside the table, and is gone or is another one.
        """
        beyond = False
        line = _Line(self._log, app_id)
        for commit in line:
            ours = _ours(commit) if app_id is None or app_id in commit.tags else {}
            if not ours or ours.get("gives_up"):  # which says nothing of the rows that are there
                continue
            number = int(ours.get("number", 0))
            app_id = app_id or next((key for key, tag in commit.tags.items() if tag == number), None)
            if self._goes_on(ours.get("after"), commit.version, app_id):
                state, rewound = self._stored(ours, commit), bool(ours.get("rewound"))
                return Adopted(state, app_id, number, str(ours.get("owner")), beyond, rewound)
            beyond = True
        return Adopted(None, app_id, beyond=True) if beyond or line.ended else None

    def _goes_on(self, after: Mapping[str, Any] | None, version: int, app_id: str | None) -> bool:
        """Whether the rows that a commit was added to are still among those that the table's rows go back to."""
        if after is None:
            return True
        line = _Line(self._log, app_id, version)
        for commit in line:
            if commit.version <= after["version"]:
                return bool(commit.version == after["version"] and _id(commit) == after["id"])
        return bool(after["version"] <= line.cleaned)

    def texts(self, column: str) -> set[str]:
        """All texts of a column, each once; none where there is no such column. Reads the column's data."""
        if column not in self.columns():
            return set()
        found = rows(self._place, [column], most=_MOST_TEXTS)
        return {row[column] for row in found if row[column] is not None}

    def _stored(self, ours: Mapping[str, Any], commit: Commit) -> str:
        """The state of a commit, from its text or from beside the table."""
        if "state" in ours:
            return str(ours["state"])
        name, wanted = ours.get("state_object"), ours.get("state_sha256")
        data = open_blobs(self._place, "table").get(str(name)) if name else None
        if data is None or hashlib.sha256(data).hexdigest() != wanted:
            raise NeedsDecision(
                f"table {self._place}: expected the watermark of version {commit.version} in {name}, found {'nothing' if data is None else 'another one'}."
                " An older commit's would load rows a second time",
                code="state_object_missing",
            )
        return data.decode()

    def write(
        self, df: DataFrame, tag: Tag, metadata: str, *, new: bool = True, room: Room | None = None
    ) -> None:
        """Write in one commit. A repeated tag commits nothing and raises nothing, so the caller looks at the commit."""
        mode = "append" if new or room is None else "overwrite"
        writer = self._tagged(df.write.format("delta").mode(mode), tag, metadata)
        whole = mode == "overwrite" and room is not None and room.where is None
        if whole:  # a table that begins anew has the columns and the partitions of what it begins with
            self._allow(df)
            # Whatever the session says: only the partitions of what is written would make room.
            writer = writer.option("overwriteSchema", "true").option("partitionOverwriteMode", "static")
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
        if any("timestamp_ntz" in kind for _, kind in df.dtypes):
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
            "after": {"version": tag.after.version, "id": tag.after.id} if tag.after else None,
            "rewound": tag.rewound,
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
        open_blobs(self._place, "table").put(name, metadata.encode())
        return {"state_object": name, "state_sha256": hashlib.sha256(metadata.encode()).hexdigest()}


def _ours(commit: Commit) -> dict[str, Any]:
    """What we have written into a commit's text; nothing where it is somebody else's."""
    try:
        return dict(json.loads(commit.metadata or "null")["strandline"])
    except (ValueError, TypeError, KeyError):
        return {}


def _id(commit: Commit) -> str:
    """What tells a commit from any other: the id of the intent or give-up that it belongs to, else the hash of its text."""
    return str(_ours(commit).get("owner") or commit.digest)


def _recorded(commit: Commit) -> TableCommit:
    return TableCommit(commit.version, _id(commit), file=commit.file)


def _undoes(commit: Commit, app_id: str | None) -> bool:
    """Whether somebody else's commit put aside all rows that were there: a table that was restored, made again or overwritten.

    One that deletes rows is not meant: whoever deletes wants them gone.

    Args:
        commit: any.
        app_id: the dataflow's; None: Strandline's own commits all count as the dataflow's.
    """
    if _ours(commit) and (app_id is None or app_id in commit.tags):
        return False
    overwrites = str(commit.parameters.get("mode")).lower() == "overwrite" and not commit.partial
    overwrites = overwrites or str(commit.parameters.get("outputMode")).lower() == "complete"  # of a stream
    return commit.operation == "RESTORE" or "REPLACE TABLE" in commit.operation or overwrites


class _Line:
    """The commits that a table's rows go back to, newest first: of a RESTORE those up to the version that it has brought back.

    Attributes:
        ended: whether it ends at a commit by which somebody else has put all rows aside; it is the last one then.
        cleaned: the newest version before these that the rows may go back to, too, and that was cleaned from the log; -1 if there is none.
    """

    def __init__(self, log: DeltaLog, app_id: str | None, before: int | None = None) -> None:
        """The line of the newest version, or of the one before a version; ``app_id`` is the dataflow's, as in :func:`_undoes`."""
        self._log, self._app_id = log, app_id
        self._versions = [one for one in log.versions(None) if before is None or one < before]
        self.ended = False
        self.cleaned = -1 if before is None else before - 1

    def __iter__(self) -> Iterator[Commit]:
        left = list(self._versions)
        while left:
            commit = self._log.read(left.pop())
            self.cleaned = commit.version - 1
            yield commit
            if not _undoes(commit, self._app_id):
                continue
            restored = self._restored(commit, left) if commit.operation == "RESTORE" else None
            if restored is None:
                self.ended, self.cleaned = True, -1
                return
            self.cleaned = restored
            left = [version for version in left if version <= restored]

    def _restored(self, commit: Commit, before: Sequence[int]) -> int | None:
        """The version that a RESTORE has brought back; None where it cannot be told.

        One that names an instant goes by the times of the log's files, which a copy of the table does not have: the files that are part
        of the table tell.
        """
        version = commit.parameters.get("version")
        if version not in (None, "", "null"):
            return int(version)
        files = self._log.files(commit.version)
        with suppress(TargetError):  # a version whose log was cleaned
            return next((one for one in reversed(before) if self._log.files(one) == files), None)
        return None


def _told(commit: Commit) -> str:
    return f"{commit.operation} (version {commit.version})"


def _landed_under(app_id: str | None, commits: Sequence[Commit]) -> tuple[Landed, ...]:
    """The commits under a dataflow's tag."""
    return tuple(_landed(commit, app_id) for commit in commits if app_id in commit.tags) if app_id else ()


def _landed(commit: Commit, app_id: str) -> Landed:
    ours, removed = _ours(commit), _removed(commit)
    return Landed(
        ours.get("owner"),
        commit.version,
        commit.count("numOutputRows") - commit.count("numCopiedRows"),
        commit.count("numOutputBytes"),
        bool(ours.get("gives_up")),
        removed,
        commit.tags[app_id],
        uncounted=removed is None and commit.partial,
        file=commit.file,
    )


def _removed(commit: Commit) -> int | None:
    """Rows that a commit deleted. One that removes files and does not count rows has removed all of them."""
    whole = commit.count("numRemovedFiles") and "numDeletedRows" not in commit.metrics
    return None if whole else commit.count("numDeletedRows")
