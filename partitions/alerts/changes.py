"""What a scan changes: each problem is reported once when it begins, and once more when it ends (docs/how-to/alerts.md)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from partitions.alerts.alert import Alert, Condition, dataflow_of

_PASSING: frozenset[Condition] = frozenset({"late", "gaps"})
"""What the next run mostly mends: reported if a second scan finds it, too."""

SEEN, TOLD = "seen", "told"
"""States of an alert: found by one scan, or reported. Cursors hold these words."""


@dataclass(frozen=True)
class AlertChanges:
    """What a scan changes in the states of alerts.

    Attributes:
        began: alerts to be reported.
        ended: keys of alerts that were reported, and are over.
        reported: by key, the states once the changes are reported.
    """

    began: tuple[Alert, ...]
    ended: tuple[str, ...]
    reported: Mapping[str, str]

    @property
    def unreported(self) -> Mapping[str, str]:
        """By key, the states as long as the changes are not reported."""
        began, ended = {alert.key: SEEN for alert in self.began}, dict.fromkeys(self.ended, TOLD)
        return {**self.reported, **began, **ended}

    @property
    def any(self) -> bool:
        """Whether there is something to report."""
        return bool(self.began or self.ended)


def compare(states: Mapping[str, str], alerts: Collection[Alert], scanned: Collection[str]) -> AlertChanges:
    """Compare the alerts of a scan with the states that the last scan has left.

    Args:
        states: by key of an alert.
        alerts: of this scan.
        scanned: the dataflows that this scan has judged; the alerts of others stay as they are.
    """
    current = {alert.key: alert for alert in alerts}
    after = {key: state for key, state in states.items() if dataflow_of(key) not in scanned}
    began = []
    for key, alert in current.items():
        if states.get(key) != TOLD and (alert.condition not in _PASSING or key in states):
            began.append(alert)
        after[key] = TOLD if states.get(key) == TOLD or alert in began else SEEN
    ended = tuple(
        key
        for key, state in states.items()
        if state == TOLD and key not in current and dataflow_of(key) in scanned
    )
    return AlertChanges(tuple(began), ended, after)
