"""The changes of each commit of a table, as others read them: Spark for Delta and for Iceberg, and pyiceberg.

A reader returns the changes of the commits that it can tell, by version, and nothing of the others.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote
from uuid import uuid4

from resources.tables.contract.commit_log import CHANGE, INSERT, VERSION, LoggedCommit
from tests.support.commit_histories import Rows, SqlTable, plain_row
from tests.support.iceberg import newest_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

Net = tuple[Rows, Rows]
"""The rows that a commit inserts, and those that it deletes."""
Nets = dict[int, Net]
"""By version."""
Read = Callable[[SqlTable, Sequence[LoggedCommit]], Nets]

_OF_CHANGES = (
    "_change_type",
    "_commit_version",
    "_commit_timestamp",
    "_change_ordinal",
    "_commit_snapshot_id",
)
_NEW = ("insert", "update_postimage", "INSERT", "UPDATE_AFTER")
_FILE = "_file_of_row"


class Refused(Exception):
    """A reader cannot read a table."""


def our_nets(table: SqlTable, commits: Sequence[LoggedCommit]) -> Nets:
    """Return the net change of each commit, as Strandline reads it, from one query."""
    rows = _sides(table.net(*commits).collect(), VERSION, lambda row: bool(row[CHANGE] == INSERT))
    return {commit.version: rows[commit.version] for commit in commits}


def true_nets(table: SqlTable, commits: Sequence[LoggedCommit]) -> Nets:
    """Return what differs between the rows after each commit and those before it, by time travel."""
    from pyspark.sql import functions as F

    changing = [one for one in commits if one.kind != "nothing" or one is commits[-1]]
    frames = [table.read(one).withColumn(VERSION, F.lit(one.version).cast("long")) for one in changing]
    rows = _sides(_union(frames).collect(), VERSION, lambda row: True)
    nets, before = Nets(), Rows()
    for commit in commits:
        after = rows[commit.version][0] if commit in changing else before
        nets[commit.version] = (after - before, before - after)
        before = after
    return nets


def change_feed(table: SqlTable, commits: Sequence[LoggedCommit]) -> Nets:
    """Return what Spark's ``readChangeFeed`` tells, from the version on that has a feed."""
    start = _start_of_feed(table.folder)
    if start is None:
        return {}
    reader = (
        table.spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", start)
    )
    rows = _sides(reader.load(str(table.folder)).collect(), "_commit_version", _is_new)
    return {commit.version: _net(rows[commit.version]) for commit in commits if commit.version >= start}


def delta_stream(table: SqlTable, commits: Sequence[LoggedCommit]) -> Nets:
    """Return what Spark's stream of a Delta table tells of each commit that it does not skip.

    The file of a row tells its commit.
    """
    from pyspark.sql import functions as F

    actions = list(_actions(table.folder))
    changing = {version for version, action in actions if action.get("remove", {}).get("dataChange")}
    versions_of: defaultdict[str, list[int]] = defaultdict(list)
    for version, action in actions:
        if version not in changing and action.get("add", {}).get("dataChange"):
            versions_of[_name_of(action["add"]["path"])].append(version)
    reader = table.spark.readStream.format("delta").option("startingVersion", 0)
    if changing:
        reader = reader.option("skipChangeCommits", "true")
    place = table.scratch / f"stream-{uuid4().hex}"
    rows = reader.load(str(table.folder)).withColumn(_FILE, F.input_file_name())
    writer = rows.writeStream.format("parquet").option("checkpointLocation", f"{place}-checkpoint")
    writer.trigger(availableNow=True).start(str(place)).awaitTermination()
    read: defaultdict[int, Rows] = defaultdict(Counter)
    if list(place.glob("*.parquet")):
        for row in table.spark.read.parquet(str(place)).collect():
            versions = versions_of[_name_of(unquote(row[_FILE]))]
            read[versions.pop(0) if len(versions) > 1 else versions[0]][plain_row(row, _FILE)] += 1
    return {one.version: (read[one.version], Counter()) for one in commits if one.version not in changing}


def changelog(table: SqlTable, commits: Sequence[LoggedCommit]) -> Nets:
    """Return what the procedure ``create_changelog_view`` of Iceberg's Spark tells.

    It cannot compare maps: of a table that has some, what the view reads is read (``TABLE.changes``).

    Raises:
        Refused: the table has delete files.
    """
    view = f"changes_{uuid4().hex}"
    has_maps = any(kind.startswith("map") for _, kind in table.spark.table(table.name).dtypes)
    try:
        if has_maps:
            read = table.spark.table(f"{table.name}.changes").collect()
        else:
            call = f"CALL {{C}}.system.create_changelog_view(table => 'bronze.events', changelog_view => '{view}')"
            table.sql(call)
            read = table.spark.table(view).collect()
    except Exception as error:
        if "delete files" not in str(error).lower():
            raise
        raise Refused(str(error).partition("\n")[0]) from error
    rows = _sides(read, "_commit_snapshot_id", _is_new)
    nets = Nets()
    for commit in commits:
        sides = [rows[snapshot] for snapshot in _snapshots(table, commit)]
        nets[commit.version] = _net((_sum(new for new, _ in sides), _sum(old for _, old in sides)))
    return nets


def appends_by_spark(table: SqlTable, commits: Sequence[LoggedCommit]) -> Nets:
    """Return what Spark's incremental read of Iceberg tells (``start-snapshot-id``, which it needs)."""
    from pyspark.sql import functions as F

    told = [commit for commit in commits if _appends(table, commit) and _before(commit) is not None]
    frames = [
        table.spark.read.format("iceberg")
        .option("start-snapshot-id", str(_before(commit)))
        .option("end-snapshot-id", commit.id)
        .load(table.name)
        .withColumn(VERSION, F.lit(commit.version).cast("long"))
        for commit in told
    ]
    rows = _sides(_union(frames).collect(), VERSION, lambda row: True) if frames else {}
    return {commit.version: rows[commit.version] for commit in told}


def appends_by_pyiceberg(table: SqlTable, commits: Sequence[LoggedCommit]) -> Nets:
    """Return what pyiceberg's incremental append scan tells."""
    nets, newest = Nets(), newest_table(table.folder)
    for commit in commits:
        if _appends(table, commit):
            scan = newest.incremental_append_scan(
                from_snapshot_id_exclusive=_before(commit), to_snapshot_id_inclusive=int(commit.id)
            )
            read = scan.to_arrow()
            rows = table.spark.createDataFrame(read).collect() if read.num_rows else []
            nets[commit.version] = (Counter(plain_row(row) for row in rows), Counter())
    return nets


READERS: Mapping[str, Mapping[str, Read]] = {
    "delta": {"Spark's readChangeFeed": change_feed, "Spark's Delta stream": delta_stream},
    "iceberg": {
        "Spark's create_changelog_view": changelog,
        "Spark's incremental append read": appends_by_spark,
        "pyiceberg's incremental append scan": appends_by_pyiceberg,
    },
}
"""By format."""


def _sides(rows: Iterable[Row], version: str, is_new: Callable[[Row], bool]) -> defaultdict[int, Net]:
    """Return the new and the old rows of each version."""
    sides: defaultdict[int, Net] = defaultdict(lambda: (Counter(), Counter()))
    for row in rows:
        new, old = sides[row[version]]
        (new if is_new(row) else old)[plain_row(row, *_OF_CHANGES)] += 1
    return sides


def _is_new(row: Row) -> bool:
    return row["_change_type"] in _NEW


def _net(sides: Net) -> Net:
    new, old = sides
    return new - old, old - new


def _sum(counts: Iterable[Rows]) -> Rows:
    return reduce(lambda one, other: one + other, counts, Counter())


def _union(frames: Sequence[DataFrame]) -> DataFrame:
    return reduce(lambda one, other: one.unionByName(other), frames)


def _actions(folder: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    for file in sorted((folder / "_delta_log").glob("*.json")):
        for line in file.read_text().splitlines():
            yield int(file.stem), json.loads(line)


def _start_of_feed(folder: Path) -> int | None:
    """Return the first version whose properties turn the feed on."""
    for version, action in _actions(folder):
        if action.get("metaData", {}).get("configuration", {}).get("delta.enableChangeDataFeed") == "true":
            return version
    return None


def _name_of(path: str) -> str:
    return Path(unquote(path)).name


def _before(commit: LoggedCommit) -> int | None:
    return int(commit.before.id or 0) if commit.before is not None else None


def _snapshots(table: SqlTable, commit: LoggedCommit) -> Iterator[int]:
    """Yield the snapshots that became visible with a commit, newest first."""
    metadata, id_ = newest_table(table.folder), int(commit.id)
    while id_ != _before(commit):
        yield id_
        snapshot = metadata.snapshot_by_id(id_)
        if snapshot is None or snapshot.parent_snapshot_id is None:
            return
        id_ = snapshot.parent_snapshot_id


def _appends(table: SqlTable, commit: LoggedCommit) -> bool:
    newest = newest_table(table.folder)
    snapshots = [newest.snapshot_by_id(snapshot) for snapshot in _snapshots(table, commit)]
    return all(
        one is not None and one.summary is not None and one.summary.operation.value == "append"
        for one in snapshots
    )
