"""Report each problem once when it starts and once when it ends (docs/how-to/alerts.md)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from partitions.alerts.alert import Alert, Condition

Receiver = TypeVar("Receiver", bound=Hashable)

_PASSING: frozenset[Condition] = frozenset({"late", "gaps"})
"""Conditions that the next run mostly ends: they are reported only if a second scan finds them, too."""

FOUND_ONCE, REPORTED = "seen", "told"
"""States of an alert: found by one scan, or reported. Cursors store these words."""


@dataclass(frozen=True)
class AlertChanges:
    """The changes of a scan to the states of alerts.

    Attributes:
        began: alerts to report.
        ended: keys of reported alerts that are over.
        reported: by key, the states after the report.
    """

    began: tuple[Alert, ...]
    ended: tuple[str, ...]
    reported: Mapping[str, str]

    @property
    def unreported(self) -> Mapping[str, str]:
        """By key, the states as long as the changes are not reported."""
        began, ended = {alert.key: FOUND_ONCE for alert in self.began}, dict.fromkeys(self.ended, REPORTED)
        return {**self.reported, **began, **ended}

    def by_receiver(self, receiver_of: Callable[[str], Receiver]) -> Mapping[Receiver, AlertChanges]:
        """Return the changes that each receiver gets, with the states of these changes alone.

        Args:
            receiver_of: returns the receiver of an alert, by its key.
        """
        keys_by_receiver: dict[Receiver, list[str]] = {}
        for key in (*(alert.key for alert in self.began), *self.ended):
            keys_by_receiver.setdefault(receiver_of(key), []).append(key)
        return {
            receiver: AlertChanges(
                tuple(alert for alert in self.began if alert.key in keys),
                tuple(key for key in self.ended if key in keys),
                {key: state for key, state in self.reported.items() if key in keys},
            )
            for receiver, keys in keys_by_receiver.items()
        }

    @property
    def any(self) -> bool:
        """Whether there is something to report."""
        return bool(self.began or self.ended)


def compare_alerts(
    states: Mapping[str, str], alerts: Collection[Alert], judged: Collection[str]
) -> AlertChanges:
    """Compare the alerts of a scan with the states after the last scan.

    Args:
        states: by key of an alert.
        alerts: the alerts of this scan.
        judged: the keys that this scan has judged; the states of others stay as they are.
    """
    current = {alert.key: alert for alert in alerts}
    after = {key: state for key, state in states.items() if key not in judged}
    began = []
    for key, alert in current.items():
        may_pass = alert.may_pass or alert.condition in _PASSING
        if states.get(key) != REPORTED and (not may_pass or key in states):
            began.append(alert)
        after[key] = REPORTED if states.get(key) == REPORTED or alert in began else FOUND_ONCE
    ended = tuple(
        key for key, state in states.items() if state == REPORTED and key not in current and key in judged
    )
    return AlertChanges(tuple(began), ended, after)
