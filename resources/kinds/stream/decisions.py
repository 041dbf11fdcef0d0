"""The rules of streams over splits for operators' decisions (docs/reference/state.md)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from typing_extensions import override

from partitions.dataflow import Dataflow
from partitions.errors import ConfigurationError, CorruptWatermark, NeedsDecision, name_dataflow
from partitions.sentinels import deserialise, serialise
from partitions.stream.operators import OverWindow, splits_operator
from partitions.stream.slices import EpochSlice
from partitions.stream.state import StreamState
from resources.kinds.contract.decisions import LoadedBefore, OnlyForwards
from resources.watermarks.entry import Entry


class StreamRules(OnlyForwards):
    """The rules of one stream over splits."""

    def __init__(self, dataflow: Dataflow) -> None:
        """Bind the rules to a dataflow."""
        self._dataflow = dataflow

    def parse_watermark(self, text: str) -> str:
        """Parse a whole state, in the form that ``state export`` writes.

        Raises:
            ConfigurationError: the text has another form.
        """
        try:
            return serialise(StreamState.of(deserialise(text)).watermark())
        except CorruptWatermark as error:
            raise ConfigurationError(name_dataflow(self._dataflow.name, error.message)) from error

    @override
    def migrate_watermark(self, text: str, now: datetime, last: Entry | None) -> str:
        """Return the watermark unchanged: only a reset can change what it depends on.

        Raises:
            ConfigurationError: the watermark was made by another engine or operator. The log is too short
                to show what was changed.
        """
        state, name = StreamState.of(deserialise(text)), self._dataflow.name
        has_over_window = isinstance(splits_operator(self._dataflow.operators), OverWindow)
        if "folder" in state.position or (state.carry is not None and not has_over_window):
            raise ConfigurationError(
                f"dataflow {name}: expected a state of the definition's engine and operator, found one of "
                "others. Restore the old definition, or run `state reset --replace`",
                choices=(f"strandline state reset {name} --replace --reason TEXT",),
            )
        return text

    def count_already_loaded(self, slices: Sequence[EpochSlice], last: Entry | None) -> LoadedBefore:
        """Return how many epochs have input that was read before, and the noun "epoch"."""
        state = StreamState.of(last.state() if last else None)
        return LoadedBefore(sum(1 for slice_ in slices if slice_.input.was_read(state.position)), "epoch")

    @override
    def rewind_error(self) -> NeedsDecision:
        """Return the error for a decision that would lower the watermark."""
        name = self._dataflow.name
        return NeedsDecision(
            f"dataflow {name}: a stream cannot go back: its table only grows, and rows that left the "
            "buffer do not return. Run `state reset --replace` to read the source from the beginning",
            code="no_rewind",
            choices=(f"strandline state reset {name} --replace --reason TEXT",),
        )
