"""What a run tells others when it starts and ends; ``resources.open_lineage`` sends it to a catalog."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from resources.outcome import Outcome


class RunEvents(Protocol):
    """Hears of one run. No method raises, or takes longer than a short time-out."""

    def start(self) -> None:
        """Tell that the run starts."""
        ...

    def end(self, outcome: Outcome) -> Sequence[str]:
        """Tell how the run has ended; return warnings, if nobody has heard it."""
        ...

    def abort(self) -> None:
        """Tell that the user has stopped the run."""
        ...


class NoRunEvents(RunEvents):
    """Nobody hears of the run."""

    def start(self) -> None:
        """Tell nobody."""

    def end(self, _: Outcome) -> Sequence[str]:
        """Tell nobody."""
        return ()

    def abort(self) -> None:
        """Tell nobody."""


def execute_and_tell(execute: Callable[[], Outcome], events: RunEvents) -> Outcome:
    """Execute a run and tell how it starts and ends; return its outcome."""
    events.start()
    try:
        outcome = execute()
    except BaseException:
        events.abort()
        raise
    outcome.warnings.extend(events.end(outcome))
    return outcome
