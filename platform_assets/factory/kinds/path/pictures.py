"""The arrivals of files in Dagster: a picture of how many came on which day."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, timedelta
from typing import Any

from dagster import MetadataValue

from partitions.plan import counted
from platform_assets.factory.kinds.image import FAILED, FULL, NONE, PART, image_of
from resources.kinds.path.arrivals import Arrived

_FEWEST, _MOST, _HIGH = 14, 60, 10
"""Days that are drawn, and cells of the highest bar."""


def arrivals_metadata(days: Mapping[str, Arrived], today: date) -> dict[str, Any]:
    """Return the picture; nothing if no file came."""
    drawn = picture(days, today)
    return {"arrivals": MetadataValue.md(drawn)} if drawn else {}


def picture(days: Mapping[str, Arrived], today: date) -> str:
    """Return an image with a bar for each day, as Markdown: files loaded, loaded late, put in quarantine; "" if none came.

    Args:
        days: by ISO day in UTC.
        today: the last day that is drawn, unless files came later by the clock of their run.
    """
    if not days:
        return ""
    last = max(today, date.fromisoformat(max(days)))
    count = min(_MOST, max(_FEWEST, (last - date.fromisoformat(min(days))).days + 1))
    shown = [(last - timedelta(days=count - 1 - number)).isoformat() for number in range(count)]
    bars = [days.get(day, Arrived()) for day in shown]
    most = max(sum(bar) for bar in bars) or 1
    columns = [_bar(bar, most) for bar in bars]
    image = image_of([list(row) for row in zip(*columns, strict=True)])
    fullest, total = counted(most, "file"), sum(map(sum, bars))
    legend = f"green: loaded, yellow: late, red: in quarantine; days in UTC from {shown[0]} to {shown[-1]}; {counted(total, 'file')}, {fullest} on the fullest day"
    return f"![arrivals]({image})\n\n{legend}"


def _bar(day: Arrived, most: int) -> list[int]:
    """Return the cells of a day from the top; whatever came shows, however little."""
    red, yellow, green = (-(-count * _HIGH // most) for count in (day.quarantined, day.late, day.files))
    green = max(0, min(green, _HIGH - red - yellow))
    cells = [FAILED] * red + [PART] * yellow + [FULL] * green
    return ([NONE] * _HIGH + cells)[-_HIGH:]
