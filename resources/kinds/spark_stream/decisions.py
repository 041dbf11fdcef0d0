"""The rules of streams on Spark's engine: its checkpoint allows a new state or the current one only."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal, NoReturn

from typing_extensions import override

from partitions.dataflow import Dataflow
from partitions.errors import ConfigurationError
from partitions.fingerprint import fingerprint
from partitions.sentinels import deserialise
from partitions.stream.state import StreamState
from resources.kinds.contract.decisions import LoadedBefore, StateRules
from resources.watermarks.entry import Entry


class SparkStreamRules(StateRules):
    """The rules of one stream on Spark's engine."""

    never_goes_back: Literal[True] = True

    def __init__(self, dataflow: Dataflow) -> None:
        """Bind the rules to a dataflow."""
        self._dataflow = dataflow

    def _refuse(self, refusal: str) -> NoReturn:
        """Raise ConfigurationError; ``refusal`` is the clause that says what cannot be done."""
        name = self._dataflow.name
        raise ConfigurationError(
            f"dataflow {name}: {refusal}: only Spark can change its checkpoint. Run `state reset "
            "--replace` to read the source again",
            choices=(f"strandline state reset {name} --replace --reason TEXT",),
        )

    @override
    def parse_watermark(self, text: str) -> str:
        """Raise ConfigurationError: no watermark can be set."""
        self._refuse("the watermark of a stream on Spark's engine cannot be set")

    @override
    def migrate_watermark(self, text: str, now: datetime, last: Entry | None) -> str:
        """Return the watermark unchanged: a checkpoint belongs to one definition.

        Raises:
            ConfigurationError: the definition has changed, and the watermark is not empty.
        """
        changed = last is not None and last.fingerprint != fingerprint(self._dataflow)
        if changed and not StreamState.holds_nothing(deserialise(text)):
            self._refuse(
                "the watermark of a stream on Spark's engine cannot be used under another definition"
            )
        return text

    def watermark_from_rows(self) -> None:
        """Return None: the table's rows do not show what Spark has read."""
        return

    def replaces_reloaded_rows(self) -> bool:
        """Return False: rows do not show their batch."""
        return False

    @override
    def loaded_upper_bound(self, entry: Entry) -> str:
        """Raise ConfigurationError: Spark cannot read again from an earlier point."""
        self._refuse("rewind")

    def check_rewind(self) -> None:
        """Raise ConfigurationError: Spark cannot read again from an earlier point."""
        self._refuse("rewind")

    def count_already_loaded(self, slices: Sequence[Any], last: Entry | None) -> LoadedBefore:
        """Return how many batches the table has, and the noun "batch"; 0 unless slices start anew."""
        loaded = StreamState.of(last.state() if last else None)
        starts_anew = any(not slice_.after.position for slice_ in slices)
        return LoadedBefore((loaded.epoch if loaded.position and starts_anew else 0), "batch")
