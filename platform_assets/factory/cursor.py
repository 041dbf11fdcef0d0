"""What a tick of a sensor leaves for the next one."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, replace

from pydantic import TypeAdapter, ValidationError

from partitions.pauses import RetryBackoff
from platform_assets.factory.in_flight import Sign


@dataclass(frozen=True)
class SensorCursor:
    """What a tick leaves for the next; small, since every tick keeps a copy.

    Attributes:
        attempts: how often a run was requested since the last progress.
        seen: the number of the newest entry at the last tick.
        sign: what was seen of a run on another machine.
        resume: where a listing that ran out of its budget continues, or "".
        handled: the changes of upstream tables that need no run any more, or "".
        awaited: the runs of upstream dataflows that the sensor waits for.
        paused: the attempt whose pause the asset's page shows, or "".
    """

    attempts: RetryBackoff = field(default_factory=RetryBackoff)
    seen: int = 0
    sign: Sign = field(default_factory=Sign)
    resume: str = ""
    handled: str = ""
    awaited: tuple[str, ...] = ()
    paused: str = ""

    @classmethod
    def read(cls, text: str | None) -> SensorCursor:
        """Return the cursor of a text; an empty one if the text is none (of another version, or edited by hand), since it holds no truth."""
        try:
            return _STORED.validate_json(text or "{}")
        except ValidationError:
            return cls()

    def write(self) -> str:
        """Return JSON text, without what is as at the beginning."""
        fresh = asdict(SensorCursor())
        return json.dumps({name: value for name, value in asdict(self).items() if value != fresh[name]})

    def after_nothing(self, resume: str = "", handled: str = "") -> SensorCursor:
        """Return the cursor after a look that found nothing to do. Only a look that saw everything ends the attempts."""
        attempts = self.attempts if resume else RetryBackoff()
        return replace(self, attempts=attempts, sign=Sign(), resume=resume, handled=handled)


_STORED = TypeAdapter(SensorCursor)
