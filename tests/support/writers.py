"""Writers of a watermark log as processes of their own, which a fork server starts and tests kill."""

from __future__ import annotations

import multiprocessing
import os
import signal
from multiprocessing.context import ForkServerContext
from multiprocessing.queues import SimpleQueue
from multiprocessing.synchronize import Barrier

from partitions.errors import Conflict
from resources.connections.places import Place
from resources.connections.postgres import Database
from resources.watermarks import copying
from resources.watermarks.blobs import open_blobs
from resources.watermarks.copying import copy_log
from resources.watermarks.entry import Entry, Intent, new_id, utc_now
from resources.watermarks.holder import current_holder
from resources.watermarks.log import WatermarkLog


def processes() -> ForkServerContext:
    """Return a starter of processes that takes milliseconds.

    Its own process has imported what they need, and has no threads or connections.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__, "resources.watermarks.blobs.postgres"])
    return context


def entry(number: int, value: int = 0) -> Entry:
    """Return an entry that names its writer."""
    return Entry(
        id=new_id(),
        number=number,
        previous=number - 1,
        watermark=f'{{"value": {value}}}',
        why="run",
        time=utc_now(),
        fingerprint="f",
        kind="path",
        app_id="app",
    )


def intent(number: int = 1, dataflow: str = "flow") -> Intent:
    """Return the intent of a slice of files."""
    return Intent(
        id=new_id(),
        number=number,
        dataflow=dataflow,
        kind="path",
        app_id="app",
        before="{}",
        watermark='{"path": "a"}',
        definition={},
        fingerprint="f",
        pinned=f"{dataflow}/schemas/x.ddl",
        file_list=f"{dataflow}/files/x.json.gz",
        holder=current_holder(None),
        time=utc_now(),
    )


def append_many(
    place: Place | Database,
    dataflow: str,
    writer: int,
    count: int,
    start: Barrier,
    results: SimpleQueue[tuple[list[str], int]],
) -> None:
    """Append ``count`` times, each time after the newest number; report the appended ids and conflicts."""
    log = WatermarkLog(open_blobs(place))
    won: list[str] = []
    conflicts = 0
    start.wait(60)
    while len(won) < count:
        newest = log.newest(dataflow)
        number = newest.number if newest else 0
        own_entry = entry(number + 1, writer)
        try:
            log.append(dataflow, own_entry, expected=number)
        except Conflict:
            conflicts += 1
        else:
            won.append(own_entry.id)
    results.put((won, conflicts))


def append_until_killed(place: Place | Database, dataflow: str) -> None:
    """Append for ever."""
    log = WatermarkLog(open_blobs(place))
    while True:
        newest = log.newest(dataflow)
        number = newest.number if newest else 0
        log.append(dataflow, entry(number + 1), expected=number)


def append_and_die(place: Place | Database, dataflow: str, number: int, before: str, count: int) -> None:
    """Append once, and die by SIGKILL just before the ``count``-th call of ``os.<before>``."""
    real, remaining = getattr(os, before), [count]

    def dying(*arguments: object, **named: object) -> object:
        remaining[0] -= 1
        if remaining[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*arguments, **named)

    setattr(os, before, dying)
    WatermarkLog(open_blobs(place)).append(dataflow, entry(number), expected=number - 1)


def copy_and_die(source: Place, target: Place, dataflow: str, count: int) -> None:
    """Copy a log one object after the other, and die by SIGKILL just before the ``count``-th is written."""
    copying._AT_ONCE = 1  # so that the writes have an order
    real, remaining = os.link, [count]

    def dying(temporary: str, name: str) -> None:
        remaining[0] -= 1
        if remaining[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        real(temporary, name)

    os.link = dying  # type: ignore[assignment]
    copy_log(open_blobs(source), open_blobs(target), dataflow)
