"""The data that waits to be loaded, from a short check of each source: no Spark, a few calls."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from partitions.dataflow import Dataflow
from partitions.errors import StrandlineError
from platform_assets.kinds import PROFILES, profile_of
from platform_assets.kinds.dead_servers import UnreachableServers
from resources.loop.guards.definition import check_definition
from resources.platform.platform import Platform
from resources.watermarks.entry import Entry

UNKNOWN: dict[str, Any] = {
    key: value
    for keys in (
        *(profile.unknown_waiting for profile in PROFILES.values()),
        {"more": False, "why": None, "warnings": []},
    )
    for key, value in keys.items()
}
"""The keys of all kinds: each dataflow has them."""

_WORK = ("files", "new_rows", "new_input", "work_units", "more")
"""The keys that a look with something to load has set."""


def look_found_work(waiting: Mapping[str, Any]) -> bool | None:
    """Return whether a check of a source found something to load; None if the source told nothing."""
    return None if waiting["why"] is not None else any(waiting[key] for key in _WORK)


class WaitingWork:
    """Checks the sources of a project's dataflows for new data."""

    def __init__(self, platform: Platform, now: datetime) -> None:
        """Use a project's resources and a clock."""
        self._platform, self._now, self._servers = platform, now, UnreachableServers()

    def of(self, flow: Dataflow, entry: Entry | None) -> dict[str, Any]:
        """Return what the next run would load, as public JSON (docs/reference/cli.md).

        If it is unknown, ``why`` has the reason.

        Args:
            flow: the definition.
            entry: its newest entry.
        """
        try:
            check_definition(flow, entry, self._platform.log)
            waiting = profile_of(flow).waiting(self._platform, flow, entry, self._now, self._servers)
        except StrandlineError as error:
            return UNKNOWN | {"why": error.message}
        return UNKNOWN | waiting
