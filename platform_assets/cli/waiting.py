"""What waits to be loaded, as far as a short look at the source tells: no Spark, and a few calls for each dataflow."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from partitions.dataflow import Dataflow
from partitions.errors import SourceUnreachable, StrandlineError
from resources.listing import Budget
from resources.loop.guards import check_definition
from resources.places import Place
from resources.platform import Platform
from resources.watermarks.entry import Entry

UNKNOWN: dict[str, Any] = {
    "files": None,
    "work_units": None,
    "failed_units": None,
    "more": False,
    "why": None,
}

_OF_A_STORE = Budget(pages=2, seconds=5.0)
_OF_A_FOLDER = Budget(pages=200, seconds=1.0)


class Waiting:
    """Looks at sources; one that did not answer is not asked again for the other dataflows that read it."""

    def __init__(self, platform: Platform, now: datetime) -> None:
        """Use a project's resources and a clock."""
        self._platform, self._now = platform, now
        self._silent: dict[str, str] = {}

    def of(self, flow: Dataflow, entry: Entry | None) -> dict[str, Any]:
        """What the next run would find, in the public JSON form: docs/cli.md. Where that cannot be told, ``why`` says why not.

        Args:
            flow: the definition.
            entry: its newest.
        """
        try:
            check_definition(flow, entry, self._platform.log)
            return UNKNOWN | (self._files(flow, entry) if flow.kind == "path" else self._windows(flow, entry))
        except StrandlineError as error:
            return UNKNOWN | {"why": error.message}

    def _files(self, flow: Dataflow, entry: Entry | None) -> dict[str, Any]:
        """Files above the watermark, and released ones; those that were found late are told apart."""
        root = self._platform.root_of(flow)
        server = _server(root)
        if server in self._silent:
            return {"why": self._silent[server]}
        budget = _OF_A_FOLDER if root.local is not None else _OF_A_STORE
        try:
            look = self._platform.path_kind(flow).peek(entry, self._now, budget, None)
        except SourceUnreachable as error:
            self._silent[server] = error.message
            raise
        return {"files": len(look.found.files), "more": not look.complete}

    def _windows(self, flow: Dataflow, entry: Entry | None) -> dict[str, Any]:
        """Work units that are new, grown, failed or left out; those that grace reads again wait for nothing."""
        plan = self._platform.kind(flow).plan(entry, self._now)
        due = [one for piece in plan.slices for one in piece.works if one.reason != "grace"]
        failed = (entry.state() if entry else {}).get("failed", {})
        count = sum(1 for of_unit in failed.values() for one in of_unit.values() if one[0])
        return {"work_units": len(due), "failed_units": count}


def _server(place: Place) -> str:
    """Who answers for a place."""
    connection = place.connection
    return (connection and connection.endpoint) or place.url.partition("://")[0]
