"""Track one dataflow of ``strandline watch`` from check to check, and decide whether it is due."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from datetime import datetime

from partitions.pauses import RetryBackoff


@dataclass(frozen=True)
class Finding:
    """The result of one check of a dataflow.

    Attributes:
        time: the check's time.
        work: identifies the work to run; "" if there is none.
        progress: identifies the newest entry if it made progress with the work; "" if it made none.
        upstream: identifies the newest loads of upstream dataflows before the check; "" if there are none
        to wait for.
        problem: why the check failed, or why a run would fail; "" if a run may start.
        source_was_asked: whether the check asked the source.
    """

    time: datetime
    work: str = ""
    progress: str = ""
    upstream: str = ""
    problem: str = ""
    source_was_asked: bool = True


@dataclass(frozen=True)
class WatchedDataflow:
    """The memory of a dataflow from check to check.

    Attributes:
        backoff: the attempts since the last progress.
        read: the upstream loads that the dataflow has read, as in :attr:`Finding.upstream`; "" if unknown.
    """

    backoff: RetryBackoff = field(default_factory=RetryBackoff)
    read: str = ""

    def is_woken(self, upstream: str) -> bool:
        """Return whether upstream has loads that this dataflow has not read.

        Then any due work is worth a run.
        """
        return bool(upstream) and upstream != self.read

    def may_run(self, finding: Finding) -> bool:
        """Return whether a finding has work that may start now, after any pause for a failure."""
        if not finding.work:
            return False
        return self.backoff.wait(self._progress(finding), finding.work, finding.time.timestamp()) <= 0

    def attempted(self, finding: Finding) -> RetryBackoff:
        """Return the back-off after another attempt at the finding's work."""
        return self.backoff.next(self._progress(finding), finding.work, finding.time.timestamp())

    def after_nothing(self, finding: Finding) -> WatchedDataflow:
        """Return the state after a check without work: all upstream loads are read."""
        return replace(self, read=finding.upstream)

    def after_run(
        self, finding: Finding, attempt: RetryBackoff, *, was_held: bool, has_read: bool
    ) -> WatchedDataflow:
        """Return the state after a run.

        Args:
            finding: the finding that started the run.
            attempt: the back-off with this run.
            was_held: whether another run held the dataflow, so that this one was no attempt.
            has_read: whether it loaded something, or succeeded. If it loaded something and then failed,
            the upstream loads still count as read.
        """
        read = finding.upstream if has_read else self.read
        return WatchedDataflow(self.backoff if was_held else attempt, read)

    def _progress(self, finding: Finding) -> str:
        return finding.progress or self.backoff.done


def is_about_to_change(upstream: Collection[str], running: Collection[str]) -> bool:
    """Return whether an upstream dataflow, direct or indirect, is loading now.

    Then it is better to load this one later.
    """
    return not set(upstream).isdisjoint(running)
