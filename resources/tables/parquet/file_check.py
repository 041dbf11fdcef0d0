"""Check which files of a Parquet table's folder are missing, and which no list names."""

from __future__ import annotations

from dataclasses import dataclass

from partitions.errors import SourceError, TargetError
from resources.tables.parquet.log import CommitLog
from resources.tables.parquet.placement import Placement
from resources.tables.parquet.plain_reader_files import visible_files
from resources.tables.parquet.staging import is_strandline_file


@dataclass(frozen=True)
class FileCheck:
    """The result of a check.

    Attributes:
        missing_paths: paths of files that are part of the table and exist nowhere.
        foreign_paths: paths of files that no list names, and that plain readers take for the table's.
        stray_paths: paths of Strandline's files that are no longer part of the table: late copies by a process
            that was believed dead.
    """

    missing_paths: tuple[str, ...] = ()
    foreign_paths: tuple[str, ...] = ()
    stray_paths: tuple[str, ...] = ()


def check_files(log: CommitLog, placement: Placement) -> FileCheck:
    """Compare the lists with the existing files, while others may commit and move files.

    Raises:
        TargetError: lists or files cannot be read.
    """
    before = log.snapshot()
    if before is None:
        return FileCheck()
    staged_keys = placement.staging.keys(before.newest)
    try:
        visible = visible_files(log.place)
    except SourceError as error:
        raise TargetError(error.message) from error
    current = log.snapshot()
    if current is None or current.newest.table != before.newest.table:
        return FileCheck()
    staged_paths = {
        file.path
        for file in before.newest.added
        if any(key.endswith(f"/{before.newest.staged}/{file.staged}") for key in staged_keys or ())
    }
    common_paths = (path for path in before.files if path in current.files)
    missing = [path for path in common_paths if path not in visible and path not in staged_paths]
    unlisted_paths = [path for path in visible if path not in before.files and path not in current.files]
    # While moves are pending, files that a commit removes may still lie in the folder.
    is_moving = staged_keys is not None or current.newest.version > before.newest.version
    set_aside = {*before.newest.set_aside, *current.newest.set_aside} if is_moving else set()
    return FileCheck(
        tuple(missing),
        tuple(path for path in unlisted_paths if not is_strandline_file(path) and path not in set_aside),
        tuple(path for path in unlisted_paths if is_strandline_file(path) and path not in set_aside),
    )
