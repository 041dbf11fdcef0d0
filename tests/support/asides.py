"""Isolated replays for tests: the whole source in an isolated table, a range of it to promote.

Also what others do beside them.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime

from partitions.errors import Conflict
from partitions.maintenance_periods import OPTIMIZE, VACUUM
from partitions.sentinels import serialise
from resources.decisions.maintenance import maintain
from resources.replay.isolated.claim import begin_isolated
from resources.replay.isolated.definition import definition_of_rows
from resources.replay.isolated.standing import IsolatedReplay, mark
from resources.watermarks.entry import new_id, utc_now
from tests.support.feed import Feed

TABLE = "aside/rows"


def stand_aside(
    feed: Feed,
    lower: datetime,
    upper: datetime,
    *,
    now: datetime,
    complete: bool = True,
    table: str = TABLE,
) -> IsolatedReplay:
    """Load the source into a table aside."""
    platform, flow = feed.platform, feed.dataflow
    newest = platform.log.newest(flow.name)
    aside = begin_isolated(
        platform.log,
        IsolatedReplay(
            id=new_id(),
            dataflow=flow.name,
            kind=flow.kind,
            table=table,
            request={"start": lower.isoformat(), "end": upper.isoformat(), "every": "1 days"},
            column="at",
            interval={"days": 1},
            range=serialise({"lower": lower, "upper": upper}),
            number=newest.number if newest else 0,
            watermark=newest.watermark if newest else "{}",
            definition=definition_of_rows(flow),
            time=utc_now(),
        ),
    )
    outcome = platform.loop(aside.loading_dataflow(flow), now).run()
    if outcome.error is not None:
        raise outcome.error
    if complete:
        mark(platform.log, aside, "complete")
    return aside


def care_for(feed: Feed) -> None:
    """Maintain the live table, unless a run has to finish something first."""
    with suppress(Conflict):
        maintain(feed.platform, feed.dataflow, (VACUUM, OPTIMIZE))
