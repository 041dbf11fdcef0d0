"""Take over the position of a stream of Spark from its checkpoint.

See docs/how-to/from-delta-streaming.md.
"""

from __future__ import annotations

from partitions.errors import ConfigurationError, SourceError
from partitions.log_position import LogPosition
from partitions.offset.spark_offsets import DeltaStreamOffset, IcebergStreamOffset, parse_stream_offset
from resources.connections.places import Place
from resources.kinds.offset.source_log import SourceLog
from resources.listing.failures import store_failures
from resources.tables.contract.commit_log import LoggedCommit

_FINISH = "Start the stream once more with trigger(availableNow=True), wait until it has ended, and run this command again"


def position_of_checkpoint(log: SourceLog, checkpoint: Place) -> LogPosition:
    """Return the position up to which a stream has read the table of a dataflow, and has written its rows.

    Args:
        log: the log of the table.
        checkpoint: the folder that the stream's option ``checkpointLocation`` names.

    Raises:
        ConfigurationError: it is no checkpoint over this table; or the stream has begun a batch, a version or a
            snapshot that it has not finished, so that no position says what is read.
        SourceError: the folder or the table cannot be read.
    """
    batch = _last_batch(checkpoint)
    try:
        offset = parse_stream_offset(_read(checkpoint, f"offsets/{batch}"))
    except ConfigurationError as error:
        raise ConfigurationError(f"checkpoint {checkpoint}, offsets/{batch}: {error.message}") from error
    if isinstance(offset, DeltaStreamOffset):
        return _behind_version(log, checkpoint, offset)
    return _behind_snapshot(log, checkpoint, offset)


def _last_batch(checkpoint: Place) -> int:
    """Return the number of the last batch, which must be committed."""
    planned, committed = (_numbers(checkpoint, folder) for folder in ("offsets", "commits"))
    if not planned:
        raise ConfigurationError(
            f"checkpoint {checkpoint}: expected a folder offsets with a file for each batch of a stream, found none"
        )
    last = planned[-1]
    if last not in committed:
        raise ConfigurationError(
            f"checkpoint {checkpoint}: expected batch {last} to be finished (commits/{last}), found it begun: nothing here tells whether its"
            f" rows are written. {_FINISH}"
        )
    return last


def _behind_version(log: SourceLog, checkpoint: Place, offset: DeltaStreamOffset) -> LogPosition:
    table, _ = log.commits.newest()
    if table != offset.table:
        raise _other_table_error(log, checkpoint, f"table {offset.table}", f"table {table}")
    if not offset.is_between_versions:
        raise ConfigurationError(
            f"checkpoint {checkpoint}: expected a stream that has read whole versions, found one that has read version {offset.next_version} of table"
            f" {log.label} in part. {_FINISH}"
        )
    if offset.next_version == 0:
        raise ConfigurationError(
            f"checkpoint {checkpoint}: expected a stream that has read a version of table {log.label}, found one that has read none. Run the dataflow"
            " with source.from: earliest"
        )
    return log.position_of(offset.next_version - 1)


def _behind_snapshot(log: SourceLog, checkpoint: Place, offset: IcebergStreamOffset) -> LogPosition:
    logged = log.commits.since(None)
    commit = next((commit for commit in logged.commits if commit.id == offset.snapshot), None)
    if commit is None:
        raise _other_table_error(
            log, checkpoint, f"snapshot {offset.snapshot}", "a history without this snapshot"
        )
    files = _files_of(log, commit, offset)
    if offset.files != files:
        files_read = (
            f"{offset.files:,} of its {files:,} files" if files is not None else "one that also removes files"
        )
        raise ConfigurationError(
            f"checkpoint {checkpoint}: expected a stream that has read all files of snapshot {offset.snapshot} of table {log.label}, found {files_read}."
            f" {_FINISH}"
        )
    return log.position_at(logged.table, commit.read_position)


def _files_of(log: SourceLog, commit: LoggedCommit, offset: IcebergStreamOffset) -> int | None:
    """Return how many files a stream reads of a snapshot; None if it cannot be told."""
    if offset.reads_all_files or commit.holds_all_files:
        return len(log.commits.snapshot_files(commit.read_position))
    return commit.files if commit.kind == "appends" else None


def _other_table_error(log: SourceLog, checkpoint: Place, read: str, table: str) -> ConfigurationError:
    return ConfigurationError(
        f"checkpoint {checkpoint}: expected a stream that reads table {log.label}, found that it has read {read}, and that {log.label} is {table}"
    )


def _numbers(checkpoint: Place, folder: str) -> list[int]:
    """Return the numbers of the batches that a folder has a file for, ascending."""
    import obstore

    with store_failures(checkpoint):
        pages = obstore.list(checkpoint.store, prefix=f"{folder}/")
        names = [entry["path"].rpartition("/")[2] for page in pages for entry in page]
    return sorted(int(name) for name in names if name.isascii() and name.isdigit())


def _read(checkpoint: Place, path: str) -> str:
    import obstore

    with store_failures(checkpoint):
        data = obstore.get(checkpoint.store, path).bytes()
    try:
        return bytes(data).decode()
    except UnicodeDecodeError as error:
        raise SourceError(f"checkpoint {checkpoint}: expected text in {path}, found other bytes") from error
