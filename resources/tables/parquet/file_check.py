"""A look at the files of a Parquet table's folder: which of those that its lists name are gone, and which came otherwise."""

from __future__ import annotations

from dataclasses import dataclass

from partitions.errors import SourceError, TargetError
from resources.tables.parquet.log import CommitLog
from resources.tables.parquet.placement import Placement
from resources.tables.parquet.plain_reader_files import visible_files
from resources.tables.parquet.staging import is_own


@dataclass(frozen=True)
class Look:
    """What was found.

    Attributes:
        missing: paths of files that are part of the table and nowhere.
        foreign: paths of files that no list names, and that plain readers take for the table's.
        stray: paths of files of Strandline's that are part of the table no more: a copy that came late, of a process that was believed dead.
    """

    missing: tuple[str, ...] = ()
    foreign: tuple[str, ...] = ()
    stray: tuple[str, ...] = ()


def look_at(log: CommitLog, placement: Placement) -> Look:
    """Compare the lists with the files that are there, while others may commit and move files.

    Raises:
        TargetError: lists or files cannot be read.
    """
    before = log.snapshot()
    if before is None:
        return Look()
    staged = placement.staging.keys(before.newest)
    try:
        visible = visible_files(log.place)
    except SourceError as error:
        raise TargetError(error.message) from error
    now = log.snapshot()
    if now is None or now.newest.table != before.newest.table:
        return Look()
    on_the_way = {
        file.path
        for file in before.newest.added
        if any(key.endswith(f"/{before.newest.staged}/{file.staged}") for key in staged or ())
    }
    there = (path for path in before.files if path in now.files)
    missing = [path for path in there if path not in visible and path not in on_the_way]
    unlisted = [path for path in visible if path not in before.files and path not in now.files]
    # What a commit has set aside that was finished before this look has come back.
    moving = staged is not None or now.newest.version > before.newest.version
    leaving = {*before.newest.set_aside, *now.newest.set_aside} if moving else set()
    return Look(
        tuple(missing),
        tuple(path for path in unlisted if not is_own(path) and path not in leaving),
        tuple(path for path in unlisted if is_own(path) and path not in leaving),
    )
