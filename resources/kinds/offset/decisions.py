"""The rules of offsets for operators' decisions (docs/reference/state.md)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from typing_extensions import override

from partitions.dataflow import Dataflow
from partitions.errors import ConfigurationError, CorruptWatermark, NeedsDecision, name_dataflow
from partitions.log_position import LogPosition
from partitions.offset.slices import OffsetSlice
from partitions.offset.state import OffsetState
from partitions.offset.words import state_in_words
from partitions.sentinels import deserialise, serialise
from resources.connections.places import Place
from resources.kinds.contract.decisions import (
    AcceptedSource,
    AcceptsSource,
    ContinuesSet,
    LoadedBefore,
    OnlyForwards,
)
from resources.kinds.offset.accepting import accept_log
from resources.kinds.offset.source_log import SourceLog
from resources.kinds.offset.spark_checkpoint import position_of_checkpoint
from resources.kinds.state_of_entry import state_of
from resources.watermarks.entry import Entry


class OffsetRules(OnlyForwards, AcceptsSource, ContinuesSet):
    """The rules of one dataflow."""

    def __init__(self, dataflow: Dataflow, log: SourceLog, open_place: Callable[[str], Place]) -> None:
        """Bind the rules to a dataflow, to the log of the table that it reads, and to places by their address."""
        self._dataflow, self._log, self._open_place = dataflow, log, open_place

    def parse_watermark(self, text: str) -> str:
        """Parse a whole state, or what says up to where everything was read.

        That is a version, as ``41`` or ``{"version": 41}``, or the checkpoint of a stream of Spark, as
        ``{"spark_checkpoint": "/checkpoints/orders"}``.

        Raises:
            ConfigurationError: the text has another form, the table has no such version, or the checkpoint names
                none.
        """
        try:
            stated = deserialise(text) if not text.strip().isdigit() else {"version": int(text)}
            match stated:
                case {"spark_checkpoint": str(checkpoint)} if len(stated) == 1:
                    return serialise(OffsetState(self._position_of_stream(checkpoint)).watermark())
            if set(stated) == {"version"} and type(stated["version"]) is int:
                return serialise(OffsetState(self._log.position_of(stated["version"])).watermark())
            return serialise(OffsetState.of(stated).watermark())
        except CorruptWatermark as error:
            raise ConfigurationError(
                f"dataflow {self._dataflow.name}: expected a version of table {self._log.label}, such as"
                f' {{"version": 41}}, or a whole watermark as `state export` writes it; found {text[:200]} ({error.message})'
            ) from error

    def _position_of_stream(self, checkpoint: str) -> LogPosition:
        try:
            return position_of_checkpoint(self._log, self._open_place(checkpoint))
        except ConfigurationError as error:
            error.args = (name_dataflow(self._dataflow.name, error.message),)
            raise

    @override
    def migrate_watermark(self, text: str, now: datetime, last: Entry | None) -> str:
        """Return the watermark unchanged: a position means the same commits under any definition."""
        return text

    def continued_set(self, watermark: str, last: Entry) -> str:
        """Return a typed position with the numbers of change rows going on.

        A whole watermark that counts the files of a first read may be set.

        Raises:
            NeedsDecision: code ``would_rise``: the rest of a first read would never be read.
        """
        state, name = state_of(OffsetState, self._dataflow, last), self._dataflow.name
        typed = OffsetState.of(deserialise(watermark))
        if state.snapshot is None or typed.snapshot is not None:
            return serialise(typed.continued(state).watermark())
        raise NeedsDecision(
            f"dataflow {name}: expected a first read that is done before its position is set, found {state_in_words(state)}: the rest would never be"
            " read. Run until it is done; or load the table as it is now with `state reset --replace`",
            code="would_rise",
            choices=(
                f"strandline run {name}",
                f"strandline state reset {name} --replace --reason TEXT",
            ),
        )

    def accept_source(self, last: Entry) -> AcceptedSource:
        """Return the state that takes the table as it is now.

        Changes that a run stopped at are passed over, and so are commits that the log no longer has. The
        rows of another table are new.
        """
        return accept_log(self._log, state_of(OffsetState, self._dataflow, last))

    def count_already_loaded(self, slices: Sequence[OffsetSlice], last: Entry | None) -> LoadedBefore:
        """Return how many slices begin below the position, and the noun "slice"."""
        state = state_of(OffsetState, self._dataflow, last)
        again = [slice_ for slice_ in slices if state.covers(OffsetState.of(slice_.upper))]
        return LoadedBefore(len(again) if state.position is not None else 0, "slice")

    @override
    def rewind_error(self) -> NeedsDecision:
        """Return the error for a decision that would lower the position."""
        name = self._dataflow.name
        return NeedsDecision(
            f"dataflow {name}: an offset cannot go back: rows do not tell which commit they come from, so they"
            " would be in the table twice. Run `state reset --replace` to read the table from the beginning",
            code="no_rewind",
            choices=(f"strandline state reset {name} --replace --reason TEXT",),
        )
