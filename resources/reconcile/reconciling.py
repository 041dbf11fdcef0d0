"""Reconcile one dataflow: fix state and version, compare, and note the result."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime

from partitions.dataflow import Dataflow
from partitions.errors import ConfigurationError, StrandlineError
from partitions.reconcile.result import Reconciliation
from resources.notes.reconciled import note_reconciled
from resources.platform.opener import Opener
from resources.reconcile.options import ReconcileOptions
from resources.tables.contract.commits import Version
from resources.watermarks.entry import Entry

_LOOKS = 5
"""Most attempts to read state and table between two entries."""


def reconcile(
    platform: Opener, dataflow: Dataflow, options: ReconcileOptions, now: datetime
) -> Reconciliation:
    """Compare the source with the table up to the watermark, and note the result beside the log.

    Args:
        platform: the project's resources.
        dataflow: the definition.
        options: what to compare.
        now: the clock, aware.

    Raises:
        ConfigurationError: this dataflow cannot be compared; the message says what is in the way.
        NeedsDecision: as a run would.
        SourceError: the source refuses, or does not answer.
    """
    make_kind = platform.registered_kind(dataflow).reconcile
    if make_kind is None:
        kinds = sorted(kind.name for kind in platform.kinds.values() if kind.reconcile is not None)
        raise ConfigurationError(
            f"dataflow {dataflow.name}: reconcile compares dataflows with a watermark of type {' or '.join(kinds)}, "
            f"found {dataflow.kind}: its rows wait, are merged or come late by event time, so those of the table need not be"
            " those of the source"
        )
    entry, version = _fixed(platform, dataflow)
    if entry is None or version is None:
        raise ConfigurationError(
            f"dataflow {dataflow.name}: expected loaded rows to compare, found none: it has loaded nothing yet",
            choices=(f"strandline run {dataflow.name}",),
        )
    kind = make_kind(platform, dataflow, options, entry, now)
    kind.check()
    result = kind.compared(version)
    with suppress(StrandlineError):  # the result is shown in any case
        note_reconciled(platform.log, result)
    return result


def _fixed(platform: Opener, dataflow: Dataflow) -> tuple[Entry | None, Version | None]:
    """Return the newest entry, and a version of the table that holds its rows."""
    table = platform.table(dataflow)
    for _ in range(_LOOKS):
        entry = platform.checked_entry(dataflow)
        version = table.contents.newest_version() if entry is not None and table.exists() else None
        newest = platform.log.newest(dataflow.name)
        if (newest and newest.number) == (entry and entry.number):
            break
    return entry, version
