"""What ``strandline watch`` knows of one dataflow from look to look, and whether a run of it is due."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from datetime import datetime

from partitions.pauses import RetryBackoff


@dataclass(frozen=True)
class Finding:
    """What a look at one dataflow has found.

    Attributes:
        time: of the look.
        work: identifies what is worth a run; "" if nothing is.
        progress: identifies the newest entry if it made progress with the work; "" if it made none.
        upstream: identifies the newest loads of the dataflows upstream, before the look; "" if there are none to wait for.
        problem: why nothing is known, or why a run would fail; "" if a run may begin.
    """

    time: datetime
    work: str = ""
    progress: str = ""
    upstream: str = ""
    problem: str = ""


@dataclass(frozen=True)
class WatchedDataflow:
    """What is known of a dataflow from look to look.

    Attributes:
        backoff: how often a run was begun since the last progress.
        read: the loads upstream that the dataflow has read, as :attr:`Finding.upstream` names them; "" if none is known to be read.
    """

    backoff: RetryBackoff = field(default_factory=RetryBackoff)
    read: str = ""

    def is_woken(self, upstream: str) -> bool:
        """Return whether upstream has loaded what this dataflow has not read: then all that is due is worth a run."""
        return bool(upstream) and upstream != self.read

    def may_run(self, finding: Finding) -> bool:
        """Return whether the work of a finding may begin now: there is some, and no pause after a failure goes on."""
        if not finding.work:
            return False
        return self.backoff.wait(self._progress(finding), finding.work, finding.time.timestamp()) <= 0

    def attempted(self, finding: Finding) -> RetryBackoff:
        """Return the back-off after the work of a finding has begun once more."""
        return self.backoff.next(self._progress(finding), finding.work, finding.time.timestamp())

    def after_nothing(self, finding: Finding) -> WatchedDataflow:
        """Return the state after a look that found no work: whatever was loaded upstream is read."""
        return replace(self, read=finding.upstream)

    def after_run(
        self, finding: Finding, attempt: RetryBackoff, *, was_held: bool, has_read: bool
    ) -> WatchedDataflow:
        """Return the state after a run.

        Args:
            finding: that the run was begun for.
            attempt: the back-off with this run.
            was_held: whether another run was at work, so that this one was no attempt.
            has_read: whether it loaded something, or ended well. What fails of a run that has loaded something must not have all else read again.
        """
        read = finding.upstream if has_read else self.read
        return WatchedDataflow(self.backoff if was_held else attempt, read)

    def _progress(self, finding: Finding) -> str:
        return finding.progress or self.backoff.done


def is_about_to_change(upstream: Collection[str], running: Collection[str]) -> bool:
    """Return whether a dataflow is better loaded later: one that it reads from, however far up, is being loaded now."""
    return not set(upstream).isdisjoint(running)
