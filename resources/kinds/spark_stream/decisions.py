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
from resources.kinds.contract.decisions import StateRules
from resources.watermarks.entry import Entry


class SparkStreamRules(StateRules):
    """Decisions about a stream on Spark's engine."""

    never_goes_back: Literal[True] = True

    def __init__(self, dataflow: Dataflow) -> None:
        """Bind a dataflow."""
        self._dataflow = dataflow

    def _refuse(self, decision: str) -> NoReturn:
        name = self._dataflow.name
        raise ConfigurationError(
            f"dataflow {name}: expected no {decision}: what Spark's engine has read and remembers cannot be changed from outside."
            " Run `state reset --replace` to read the source again",
            choices=(f"strandline state reset {name} --replace --reason TEXT",),
        )

    @override
    def parse_watermark(self, text: str) -> str:
        """Refuse: no watermark can be set."""
        self._refuse("watermark to be set")

    @override
    def migrate_watermark(self, text: str, now: datetime, last: Entry | None) -> str:
        """Return the whole watermark, under its own definition: a checkpoint belongs to one definition."""
        another = last is not None and last.fingerprint != fingerprint(self._dataflow)
        if another and not StreamState.holds_nothing(deserialise(text)):
            self._refuse("watermark under another definition")
        return text

    def watermark_from_rows(self) -> None:
        """None: rows do not tell it."""
        return

    def replaces_reloaded_rows(self) -> bool:
        """Return False: rows do not tell their batch."""
        return False

    @override
    def loaded_upper_bound(self, entry: Entry) -> str:
        """Refuse."""
        self._refuse("rewind")

    def check_rewind(self) -> None:
        """Refuse."""
        self._refuse("rewind")

    def count_already_loaded(self, slices: Sequence[Any], last: Entry | None) -> tuple[int, str]:
        """Return the number of the table's batches, if the next run reads from the start."""
        loaded = StreamState.of(last.state() if last else None)
        anew = any(not slice_.after.position for slice_ in slices)
        return (loaded.epoch if loaded.position and anew else 0), "batch"
