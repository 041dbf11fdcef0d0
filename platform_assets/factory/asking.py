"""How every sensor asks for runs: what was asked for and not done is asked for again after a pause that doubles.

The truth is the watermark log and nothing else. A run did something if there is an entry of it; an entry that only abandons a number
says that it did not. So a file that stays bad does not start a run every half minute for two weeks.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from dagster import AddDynamicPartitionsRequest, RunRequest, SensorResult, SkipReason

from partitions.pauses import Attempts
from platform_assets.factory.in_flight import Sign
from resources.watermarks.entry import Entry, Why
from resources.watermarks.log import WatermarkLog

ABANDONED: frozenset[Why] = frozenset({"abandon"})
"""Entries after which what was asked for is as it was."""

_FAR = 100
"""Entries that a look back for the newest done one reads at most; from tick to tick it reads only what is new."""


@dataclass(frozen=True)
class Cursor:
    """What a tick leaves for the next; small, since every tick keeps a copy.

    Attributes:
        attempts: how often a run was asked for since anything was done.
        seen: the number of the newest entry that was looked at.
        sign: what was seen of a run on another machine.
        resume: where a listing that ran out of its budget continues, or "".
    """

    attempts: Attempts = field(default_factory=Attempts)
    seen: int = 0
    sign: Sign = field(default_factory=Sign)
    resume: str = ""

    @classmethod
    def read(cls, text: str | None) -> Cursor:
        """Read a cursor; one that does not read (of another version) begins anew, since it holds no truth."""
        try:
            raw = json.loads(text or "{}")
            return cls(Attempts(**raw.pop("attempts", {})), sign=Sign(**raw.pop("sign", {})), **raw)
        except (ValueError, TypeError, AttributeError):
            return cls()

    def write(self) -> str:
        """As JSON text."""
        return json.dumps(asdict(self))

    def nothing(self, resume: str = "") -> Cursor:
        """After a look that found nothing to ask for. Only a look that saw everything ends the attempts."""
        return replace(self, attempts=self.attempts if resume else Attempts(), sign=Sign(), resume=resume)


@dataclass(frozen=True)
class Work:
    """What a tick has found to do.

    Attributes:
        done: tells what was done so far, as :func:`done` says.
        what: tells the work from other work, as :func:`what` says.
        seen: the number of the newest entry.
        unfinished: what is said of an attempt while its pause lasts; it is given the attempt's number and the seconds that are left.
    """

    done: str
    what: str
    seen: int = 0
    unfinished: str = "attempt {} did not commit; the next one is in {} s"


def ask(
    cursor: Cursor,
    work: Work,
    now: float,
    requests: Callable[[str], Sequence[RunRequest]],
    *,
    new_keys: Sequence[AddDynamicPartitionsRequest] = (),
    events: Sequence[Any] = (),
) -> SensorResult:
    """Ask for runs, unless the pause after the last attempt lasts.

    Args:
        cursor: of the last tick.
        work: what there is to do.
        now: epoch seconds.
        requests: the runs, for a text that no other attempt has: a run key counts once for ever, for failed runs too.
        new_keys: partitions that Dagster must be told first.
        events: what the tick reports beside it.
    """
    cursor = replace(cursor, seen=work.seen, resume="", sign=Sign())
    left = cursor.attempts.wait(work.done, work.what, now)
    if left > 0:
        return skip(work.unfinished.format(cursor.attempts.count, int(left)), cursor, events)
    after = cursor.attempts.next(work.done, work.what, now)
    asked = list(requests(after.name))
    return SensorResult(
        run_requests=asked,
        skip_reason=None
        if asked
        else SkipReason("partitions are added; the next tick asks for runs over them"),
        cursor=(replace(cursor, attempts=after) if asked else cursor).write(),
        dynamic_partitions_requests=list(new_keys),
        asset_events=events,
    )


def skip(reason: str, cursor: Cursor, events: Sequence[Any] = ()) -> SensorResult:
    """Ask for nothing, and say why."""
    return SensorResult(skip_reason=SkipReason(reason), cursor=cursor.write(), asset_events=events)


def done(
    log: WatermarkLog,
    dataflow: str,
    entry: Entry | None,
    cursor: Cursor,
    without: frozenset[Why] = ABANDONED,
) -> str:
    """Tell what was done of a dataflow so far: the id of the newest entry that counts, or "".

    Args:
        log: the entries.
        dataflow: its name.
        entry: the newest.
        cursor: of the last tick, which knows the answer of then.
        without: entries that do not count.
    """
    if entry is None:
        return ""
    if entry.why not in without:
        return entry.id
    for one in log.history(dataflow, _FAR):
        if one.number <= cursor.seen:
            break
        if one.why not in without:
            return one.id
    return cursor.attempts.done


def what(*parts: object) -> str:
    """Tell some work from other work, in a short text."""
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]
