"""How the last attempt to load a dataflow ended: a note beside its log, which every run writes at its end.

The log tells what was committed. A run that failed before it committed anything leaves no entry, and without DAGSTER_HOME no
run is kept either: only the note tells of it. It is a chore and no truth. A store that refuses it fails no run, nothing is
decided by it, and if it is gone nothing is known of the last attempt.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from typing import Any

from partitions.errors import ProviderError, StrandlineError
from resources.outcome import Outcome, error_json
from resources.watermarks.entry import utc_now
from resources.watermarks.log import WatermarkLog

_ATTEMPT, _SAID = "attempt", "said"
_BAD = ("failed", "blocked")
_UNDECIDED = ("held", "skipped")
_MOST_SAID = 200

_SAMPLE = re.compile(r"'[^']*'|(?<![\w:.,-])\d[\d,]*(?![\w:.-])")
"""What changes in a warning from run to run: how many, and such as which."""


@dataclass(frozen=True)
class Attempt:
    """The last attempt to load a dataflow.

    Attributes:
        time: when it ended, ISO in UTC; of a run that goes on or died, when it began.
        status: as of a run; also ``running``, and ``died`` if a run began and its process is gone.
        error: code, message and choices; None if it did not fail.
        failing_since: when the first of the attempts failed that have failed one after the other; None if the last one did not.
        run_id: Dagster's.
    """

    time: str
    status: str
    error: Mapping[str, Any] | None = None
    failing_since: str | None = None
    run_id: str | None = None

    def as_json(self) -> dict[str, Any]:
        """The attempt in the public JSON form: docs/reference/cli.md."""
        return asdict(self)


def note_attempt(log: WatermarkLog, outcome: Outcome) -> None:
    """Note how a run ended. If the store fails, the note before stands."""
    if isinstance(outcome.error, ProviderError):
        return  # the store has just failed, and would be waited for once more
    now, status = utc_now(), outcome.status
    with suppress(StrandlineError):
        before = last_attempt(log, outcome.dataflow) if outcome.error else None
        since = before.failing_since if before else None
        since = (since or now) if status in _BAD else since if status in _UNDECIDED else None
        made = Attempt(now, status, error_json(outcome.error), since, outcome.run_id)
        log.put_note(outcome.dataflow, _ATTEMPT, asdict(made))


def last_attempt(log: WatermarkLog, dataflow: str) -> Attempt | None:
    """What the last run has noted; None if there is no note, or one that does not read.

    Raises:
        ProviderError: if the store cannot be read.
    """
    note = log.note(dataflow, _ATTEMPT) or {}
    try:
        return Attempt(
            **{field_.name: note[field_.name] for field_ in fields(Attempt) if field_.name in note}
        )
    except TypeError:
        return None


def said_before(log: WatermarkLog, dataflow: str, warnings: Sequence[str]) -> frozenset[str]:
    """Which of these warnings an earlier run has given already, whatever it counted; the others are noted as given now."""
    if not warnings:
        return frozenset()
    try:
        known = (log.note(dataflow, _SAID) or {}).get("warnings")
        said = [warning for warning in known if isinstance(warning, str)] if isinstance(known, list) else []
        new = [warning for warning in dict.fromkeys(map(_kind, warnings)) if warning not in said]
        if new:
            log.put_note(dataflow, _SAID, {"warnings": [*said, *new][-_MOST_SAID:]})
    except StrandlineError:
        return frozenset()
    return frozenset(warning for warning in warnings if _kind(warning) not in new)


def _kind(warning: str) -> str:
    return _SAMPLE.sub("#", warning)


def not_begun(log: WatermarkLog, dataflow: str, error: StrandlineError, run_id: str | None = None) -> Outcome:
    """The outcome of a run that never came to its loop, with the state as it is, and the note of it.

    If the state cannot be read, that is what is wrong.
    """
    try:
        newest = log.newest(dataflow)
    except StrandlineError as unreadable:
        newest, error = None, unreadable
    before = newest.state() if newest else {}
    outcome = Outcome(dataflow, run_id, before, newest.number if newest else 0, newest=newest, error=error)
    note_attempt(log, outcome)
    return outcome
