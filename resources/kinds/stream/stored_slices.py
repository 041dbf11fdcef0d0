"""Epochs as the log stores them: the splits' watermarks, the input, and the counts of rows."""

from __future__ import annotations

from partitions.sentinels import deserialise, serialise
from partitions.stream.inputs import input_of
from partitions.stream.slices import EpochJudgement, EpochSlice, Tally
from partitions.stream.state import StreamState
from resources.kinds.contract.stored_slices import StoredSlices
from resources.watermarks.entry import Intent
from resources.watermarks.lists import ListKind, StoredList

EPOCH_SPLITS = ListKind("epoch", 2, ("split", "bound"))
"""One row for each split with rows: its name, and the watermark before the epoch as sentinel JSON text.

The head has the input, and the counts of its rows.
"""


class StoredStreamSlices(StoredSlices[EpochSlice]):
    """Conversion of epochs to lists of splits."""

    @property
    def list_kind(self) -> ListKind:
        """Kind of the list: splits, with input and counts in the head."""
        return EPOCH_SPLITS

    def to_rows(self, slice_: EpochSlice) -> StoredList:
        """Return the splits with the watermarks that judge them, and the head."""
        judgement = slice_.judged
        head = {
            "number": slice_.number,
            "input": slice_.input.to_plain(),
            "counts": slice_.counts,
            "timeout": judgement.timeout,
            "latest": judgement.latest,
            "tally": list(judgement.tally),
        }
        rows = [[name, serialise({"at": at})] for name, at in judgement.bounds.items()]
        return StoredList(EPOCH_SPLITS, rows, head)

    def from_rows(self, intent: Intent, stored: StoredList) -> EpochSlice:
        """Restore the epoch, judged by the same watermarks."""
        head = stored.head
        before, after = (StreamState.of(deserialise(text)) for text in (intent.before, intent.watermark))
        bounds = {name: deserialise(text)["at"] for name, text in stored.rows}
        judgement = EpochJudgement(
            before, after, bounds, head["timeout"], head["latest"], Tally(*head["tally"])
        )
        return EpochSlice(
            head["number"],
            {"epoch": before.epoch, "global": before.value},
            input_of(head["input"]),
            head["counts"],
            judgement,
            deserialise(intent.since) if intent.since else None,
        )
