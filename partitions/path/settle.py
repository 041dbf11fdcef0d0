"""Hold back files that may still be written, and all files after them (docs/reference/files.md)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from itertools import groupby

from partitions.instants import milliseconds
from partitions.path.definition import PathWatermark
from partitions.path.order import FileKey
from partitions.path.source import SourceFile
from partitions.plan import Skip, format_duration, pluralize

_CLOCKS_DIFFER = timedelta(minutes=1)
"""How far in the future a file's time may lie without a warning: clocks differ, and a listing takes time."""


def is_settling(definition: PathWatermark, file: SourceFile, now: datetime) -> bool:
    """Return whether a file is so young that it may still be written."""
    if not definition.settle:
        return False
    return file.modified > int((now - definition.settle).timestamp() * 1000)


def settled_files(
    definition: PathWatermark, files: Sequence[SourceFile], now: datetime
) -> tuple[SourceFile, ...]:
    """Return the new files, in pair order, that a run would load now."""
    return split_settled(definition, tuple(files), now)[0]


def split_settled(
    definition: PathWatermark, files: tuple[SourceFile, ...], now: datetime
) -> tuple[tuple[SourceFile, ...], tuple[Skip, ...]]:
    """Return the files to load, and skips for young files and all files after them in order.

    Otherwise the watermark would pass the young ones.
    """
    if not definition.settle or definition.tracking == "set":
        return split_settled_each(definition, files, now)
    ready_files: list[SourceFile] = []
    skips: list[Skip] = []
    groups = (
        [files]
        if definition.scope == "global"
        else [tuple(group) for _, group in groupby(files, lambda file: FileKey.of(file.path).partition)]
    )
    for group in groups:
        first = next(
            (index for index, file in enumerate(group) if is_settling(definition, file, now)), len(group)
        )
        ready_files.extend(group[:first])
        skips.extend(
            Skip(
                file.path,
                f"younger than settle ({format_duration(definition.settle.total_seconds())})"
                if index == 0
                else "after a file that is still settling",
            )
            for index, file in enumerate(group[first:])
        )
    return tuple(ready_files), tuple(skips)


def split_settled_each(
    definition: PathWatermark, files: Sequence[SourceFile], now: datetime
) -> tuple[tuple[SourceFile, ...], tuple[Skip, ...]]:
    """Return the files to load, and skips for the young files alone."""
    young = tuple(
        Skip(file.path, f"younger than settle ({format_duration(definition.settle.total_seconds())})")
        for file in files
        if is_settling(definition, file, now)
    )
    return tuple(file for file in files if not is_settling(definition, file, now)), young


def future_file_warnings(
    definition: PathWatermark, fresh: Sequence[SourceFile], pending: Sequence[SourceFile], now: datetime
) -> Iterator[str]:
    """Yield a warning if a file's time lies in the future, so that the run skips it."""
    if not definition.settle:
        return
    latest = milliseconds(now + _CLOCKS_DIFFER)
    files = [file for file in (*fresh, *pending) if file.modified > latest]
    if not files:
        return
    first, other_count = files[0], len(files) - 1
    after = ""
    if first in fresh and definition.tracking == "watermark":
        after = (
            f", and all new files after it{' in its partition' if definition.scope == 'partition' else ''}"
        )
    like = (
        f" ({pluralize(other_count, 'more file')} {'is' if other_count == 1 else 'are'} like it)"
        if other_count
        else ""
    )
    yield (
        f"{first.path}: its modification time lies "
        f"{format_duration((first.modified - milliseconds(now)) / 1000)} in the future{like}, so `settle` "
        f"holds the file back until then{after}. Set its time (`touch`) or copy it again, and correct the "
        "clock of the machine that writes it"
    )
