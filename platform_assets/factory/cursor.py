"""The cursor that a tick of a sensor leaves for the next one."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

from pydantic import Field, TypeAdapter, ValidationError

from partitions.pauses import RetryBackoff
from platform_assets.factory.in_flight import ObservedLease


@dataclass(frozen=True)
class SensorCursor:
    """The state that a tick leaves for the next one; small, since Dagster keeps a copy for every tick.

    Attributes:
        attempts: how often a run was requested since the last progress.
        entry_number: the number of the newest entry at the last tick.
        lease: the last observation of the lease of a run on another machine.
        resume: where a listing that ran out of its budget continues, or "".
        handled: the changes of upstream tables that need no further run, or "".
        awaited: the runs of upstream dataflows that the sensor waits for.
        paused: the attempt whose pause the asset's page shows, or "".
    """

    attempts: RetryBackoff = field(default_factory=RetryBackoff)
    entry_number: Annotated[int, Field(alias="seen")] = 0
    lease: Annotated[ObservedLease, Field(alias="sign")] = field(default_factory=ObservedLease)
    resume: str = ""
    handled: str = ""
    awaited: tuple[str, ...] = ()
    paused: str = ""

    @classmethod
    def read(cls, text: str | None) -> SensorCursor:
        """Return the cursor in a text; an empty one if it cannot be read.

        A text of another version, or edited by hand, may be dropped: the watermark log alone decides.
        """
        try:
            return _STORED.validate_json(text or "{}")
        except ValidationError:
            return cls()

    def write(self) -> str:
        """Return JSON text without the fields that have their initial value."""
        fresh = _document(SensorCursor())
        return json.dumps({name: value for name, value in _document(self).items() if value != fresh[name]})

    def after_nothing(self, resume: str = "", handled: str = "") -> SensorCursor:
        """Return the cursor after a tick without work. Only a tick that listed everything ends the attempts."""
        attempts = self.attempts if resume else RetryBackoff()
        return replace(self, attempts=attempts, lease=ObservedLease(), resume=resume, handled=handled)


_STORED = TypeAdapter(SensorCursor)


def _document(cursor: SensorCursor) -> dict[str, Any]:
    document: dict[str, Any] = _STORED.dump_python(cursor, mode="json", by_alias=True)
    return document
