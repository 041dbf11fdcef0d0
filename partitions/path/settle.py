"""Files that settle: one so young that it may still be written waits, and all files after it in order (docs/reference/files.md)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from itertools import groupby

from partitions.instants import milliseconds
from partitions.path.definition import PathWatermark
from partitions.path.order import FileKey
from partitions.path.source import SourceFile
from partitions.plan import Skip, counted, lasting

_CLOCKS_DIFFER = timedelta(minutes=1)
"""How far a file's time may lie in the future without a word: by another clock, or because it came while a listing went on."""


def settles(definition: PathWatermark, file: SourceFile, now: datetime) -> bool:
    """Whether a file is so young that it may still be written."""
    if not definition.settle:
        return False
    return file.modified > int((now - definition.settle).timestamp() * 1000)


def ready(definition: PathWatermark, files: Sequence[SourceFile], now: datetime) -> tuple[SourceFile, ...]:
    """Those of some new files, in pair order, that a run would load now."""
    return settled(definition, tuple(files), now)[0]


def settled(
    definition: PathWatermark, files: tuple[SourceFile, ...], now: datetime
) -> tuple[tuple[SourceFile, ...], tuple[Skip, ...]]:
    """Return new files without young ones, and without every file after one in order: else the watermark would pass it."""
    if not definition.settle or definition.tracking == "set":
        return settled_each(definition, files, now)
    kept: list[SourceFile] = []
    skips: list[Skip] = []
    groups = (
        [files]
        if definition.scope == "global"
        else [tuple(group) for _, group in groupby(files, lambda file: FileKey.of(file.path).partition)]
    )
    for group in groups:
        first = next(
            (index for index, file in enumerate(group) if settles(definition, file, now)), len(group)
        )
        kept.extend(group[:first])
        skips.extend(
            Skip(
                file.path,
                f"younger than settle ({lasting(definition.settle.total_seconds())})"
                if index == 0
                else "after a file that is still settling",
            )
            for index, file in enumerate(group[first:])
        )
    return tuple(kept), tuple(skips)


def settled_each(
    definition: PathWatermark, files: Sequence[SourceFile], now: datetime
) -> tuple[tuple[SourceFile, ...], tuple[Skip, ...]]:
    """Return files without young ones, and why these are skipped."""
    young = tuple(
        Skip(file.path, f"younger than settle ({lasting(definition.settle.total_seconds())})")
        for file in files
        if settles(definition, file, now)
    )
    return tuple(file for file in files if not settles(definition, file, now)), young


def of_the_future(
    definition: PathWatermark, fresh: Sequence[SourceFile], pending: Sequence[SourceFile], now: datetime
) -> Iterator[str]:
    """Yield a warning that names the first file whose time lies in the future: it is skipped until then."""
    if not definition.settle:
        return
    latest = milliseconds(now + _CLOCKS_DIFFER)
    files = [file for file in (*fresh, *pending) if file.modified > latest]
    if not files:
        return
    first, others = files[0], len(files) - 1
    after = ""
    if first in fresh and definition.tracking == "watermark":
        after = (
            f", and all new files after it{' in its partition' if definition.scope == 'partition' else ''}"
        )
    like = f" ({counted(others, 'more file')} {'is' if others == 1 else 'are'} like it)" if others else ""
    yield (
        f"{first.path}: its modification time lies {lasting((first.modified - milliseconds(now)) / 1000)} in the future{like}, so `settle` holds"
        f" it back until then{after}. Set its time (`touch`) or copy it again, and correct the clock of what writes there"
    )
