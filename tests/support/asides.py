"""Replays that stand aside, as tests make them: all that a source has, in a table aside, of which a range is to be promoted."""

from __future__ import annotations

from datetime import datetime

from partitions.sentinels import serialise
from resources.aside.claim import begin
from resources.aside.definition import definition_of_rows
from resources.aside.standing import Aside, mark
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
) -> Aside:
    """Load the source into a table aside."""
    platform, flow = feed.platform, feed.dataflow
    newest = platform.log.newest(flow.name)
    aside = begin(
        platform.log,
        Aside(
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
    outcome = platform.loop(aside.of(flow), now).run()
    if outcome.error is not None:
        raise outcome.error
    if complete:
        mark(platform.log, aside, "complete")
    return aside
