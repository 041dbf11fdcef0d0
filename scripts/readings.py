"""Readings of three devices, one every five minutes, interpolated from the demo's hourly weather.

A file holds the readings that arrive in half an hour. The device at LGA has a slow line: its readings
arrive an hour late, in order.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from scripts.landing import table

LATE, LATE_BY = "LGA", timedelta(hours=1)
EVERY = timedelta(minutes=5)
_HOUR, _FILE = timedelta(hours=1), timedelta(minutes=30)


class Reading(NamedTuple):
    """A measurement of a device.

    Attributes:
        device: the airport.
        at: the time of measurement.
        temperature: degrees Fahrenheit.
    """

    device: str
    at: datetime
    temperature: float


def readings(start: datetime, until: datetime) -> list[Reading]:
    """Return all readings of a half-open stretch of time, in their order of arrival."""
    hourly: dict[str, dict[datetime, float]] = {}
    for row in table("weather"):
        origin, at, temperature = row["origin"], row["time_hour"], row["temp"]
        assert origin is not None
        assert at is not None
        if at[:10] > f"{until:%Y-%m-%d}" and at > until.isoformat():
            continue
        if temperature is not None:
            hourly.setdefault(origin, {})[datetime.fromisoformat(at)] = float(temperature)
    all_readings = [
        reading
        for device, by_hour in hourly.items()
        for reading in _between(device, by_hour)
        if start <= reading.at < until
    ]
    return sorted(all_readings, key=lambda reading: (arrives(reading), reading.device))


def arrives(reading: Reading) -> datetime:
    """Return when a reading arrives."""
    return reading.at + (LATE_BY if reading.device == LATE else timedelta(0))


Arrived = list[tuple[datetime, list[Reading]]]
"""Files: when the last of their readings has arrived, and all of them."""


def files(start: datetime, until: datetime) -> Arrived:
    """Return the readings that arrive in each half hour of a stretch, with the half hour's end.

    Readings from before the stretch are left out.
    """
    arrived = Arrived()
    all_of_it = readings(start, until)
    while start < until:
        end = min(start + _FILE, until)
        arrived.append((end, [reading for reading in all_of_it if start <= arrives(reading) < end]))
        start = end
    return arrived


def land(arrived: Arrived, landing: Path) -> int:
    """Write files into a landing zone, each in one step; return the number of readings."""
    landing.mkdir(parents=True, exist_ok=True)
    for end, rows in arrived:
        draft = landing / f".{int(end.timestamp())}.part"
        draft.write_text("".join(f"{json.dumps(_plain(row))}\n" for row in rows))
        os.utime(draft, (end.timestamp(), end.timestamp()))  # Spark reads files in this order
        draft.rename(landing / f"{int(end.timestamp())}.ndjson")
    return sum(len(rows) for _, rows in arrived)


def _between(device: str, hourly: dict[datetime, float]) -> Iterator[Reading]:
    for hour, temperature in sorted(hourly.items()):
        after = hourly.get(hour + _HOUR)
        if after is None:
            continue
        for number in range(_HOUR // EVERY):
            part = number * EVERY / _HOUR
            yield Reading(device, hour + number * EVERY, round(temperature + (after - temperature) * part, 2))


def _plain(reading: Reading) -> dict[str, object]:
    at = reading.at.strftime("%Y-%m-%dT%H:%M:%SZ")
    return {"device": reading.device, "measured_at": at, "temperature": reading.temperature}
