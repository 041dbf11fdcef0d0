"""The manager: watermarks as dicts of values, over a provider.

See docs/explanation/watermarks.md, Log, provider and manager.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from partitions.errors import NeedsDecision, ProviderError, StrandlineError
from partitions.sentinels import Watermark, deserialise, serialise
from partitions.watermark import compare_values
from resources.watermarks.provider import WatermarkProvider

_LOG = logging.getLogger(__name__)


class WatermarkManager:
    """Read and save watermarks as values; an unexpected failure of the provider is a ProviderError."""

    def __init__(self, provider: WatermarkProvider, warn: Callable[[str], None] = _LOG.warning) -> None:
        """Use a provider.

        Args:
            provider: the store.
            warn: called once for each id under which a watermark is saved.
        """
        self._provider, self._warn = provider, warn
        self._warned: set[str] = set()
        self._saved: dict[str, Watermark] = {}

    def get_watermark(self, dataflow_id: str) -> Watermark | None:
        """Return the newest watermark; None if there is no entry, or an empty one.

        A dict of nulls is returned as it is.

        Raises:
            CorruptWatermark: the text does not read.
            ProviderError: the provider failed.
        """
        with _wrapped(dataflow_id):
            text = self._provider.get_watermark(dataflow_id)
        self._saved[dataflow_id] = deserialise(text)
        return self._saved[dataflow_id] or None

    def save_watermark(
        self,
        dataflow_id: str,
        watermark: Mapping[str, Any],
        *,
        job_id: str | None = None,
        dataflow_run_id: str | None = None,
    ) -> None:
        """Save a watermark as the next entry. No value may fall below the last one read or saved here.

        This is **not one commit with any rows**: if the process dies between the write of the rows and this
        call, rows are loaded again or lost. ``@incremental_asset`` commits rows and watermark together
        (docs/how-to/incremental-assets.md). A warning says so once for each id.

        Raises:
            InvalidWatermarkValue: before anything is written.
            NeedsDecision: code ``would_fall``; nothing is written.
            ConfigurationError: runs load the dataflow and save its watermark themselves, or two values
            have no common order.
            Conflict: another writer saved since this object's provider last read.
            ProviderError: the provider failed in another way.
        """
        text = serialise(watermark)
        if dataflow_id not in self._saved:
            self.get_watermark(dataflow_id)
        _check_rises(dataflow_id, self._saved[dataflow_id], watermark)
        if dataflow_id not in self._warned:
            self._warned.add(dataflow_id)
            self._warn(
                f"watermark {dataflow_id}: saved apart from any rows, so it is not one commit with them. If the run dies between the two, rows are"
                " loaded again or lost. A function with @incremental_asset saves both in one commit: docs/how-to/incremental-assets.md"
            )
        with _wrapped(dataflow_id):
            self._provider.update_watermark(dataflow_id, text, job_id=job_id, dataflow_run_id=dataflow_run_id)
        self._saved[dataflow_id] = deserialise(text)


def _check_rises(dataflow_id: str, saved: Watermark, watermark: Mapping[str, Any]) -> None:
    for column, before in saved.items():
        after = watermark.get(column)
        if before is not None and (after is None or compare_values(after, before) < 0):
            raise NeedsDecision(
                f"{dataflow_id}: expected {column} at or above {before}, found {'nothing' if after is None else after}: nothing was saved,"
                " since a saved watermark never falls. To begin again, save under another id",
                code="would_fall",
            )


@contextmanager
def _wrapped(dataflow_id: str) -> Iterator[None]:
    try:
        yield
    except StrandlineError:  # already has a message
        raise
    except Exception as error:
        raise ProviderError(
            f"watermark provider failed for {dataflow_id}: {type(error).__name__}: {error}"
        ) from error
