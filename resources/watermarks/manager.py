"""The manager: watermarks as dicts of values, over a provider (docs/watermarks.md, Log, provider and manager)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from partitions.errors import ProviderError, StrandlineError
from partitions.sentinels import Watermark, deserialise, serialise
from resources.watermarks.provider import WatermarkProvider


class WatermarkManager:
    """Serialises and delegates; what the provider raises comes out as one kind of error."""

    def __init__(self, provider: WatermarkProvider) -> None:
        """Use a provider."""
        self._provider = provider

    def get_watermark(self, dataflow_id: str) -> Watermark | None:
        """The newest watermark; None if there is no entry, or an empty one. A dict of nulls is returned as it is.

        Raises:
            CorruptWatermark: if the text does not read.
            ProviderError: whatever the provider raised.
        """
        with _wrapped(dataflow_id):
            text = self._provider.get_watermark(dataflow_id)
        return deserialise(text) or None

    def save_watermark(
        self,
        dataflow_id: str,
        watermark: Mapping[str, Any],
        *,
        job_id: str | None = None,
        dataflow_run_id: str | None = None,
    ) -> None:
        """Save a watermark as the next entry.

        Raises:
            InvalidWatermarkValue: before anything is written.
            Conflict: if another writer saved since this object's provider last read.
            ProviderError: whatever else the provider raised.
        """
        text = serialise(watermark)
        with _wrapped(dataflow_id):
            self._provider.update_watermark(dataflow_id, text, job_id=job_id, dataflow_run_id=dataflow_run_id)


@contextmanager
def _wrapped(dataflow_id: str) -> Iterator[None]:
    try:
        yield
    except StrandlineError:  # says already what happened, and is not wrapped twice
        raise
    except Exception as error:
        raise ProviderError(
            f"watermark provider failed for {dataflow_id}: {type(error).__name__}: {error}"
        ) from error
