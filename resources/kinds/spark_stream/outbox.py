"""The batches in Spark's outbox that the table lacks, if the checkpoint belongs to the state."""

from __future__ import annotations

from dataclasses import dataclass

from partitions.errors import NeedsDecision
from partitions.spark_stream.batches import BatchSlice
from partitions.stream.state import StreamState
from resources.kinds.spark_stream.folder import StreamFolder


@dataclass(frozen=True)
class Outbox:
    """The batches that Spark has written in one life of a state.

    Attributes:
        dataflow: its name.
        folder: of checkpoint and outbox.
    """

    dataflow: str
    folder: StreamFolder

    def waiting(self, state: StreamState) -> list[BatchSlice]:
        """Return the slices of the batches that the table does not have.

        Raises:
            NeedsDecision: the checkpoint is not the state's, or rows of a batch that has ended are gone.
        """
        folder = self.folder
        query, newest, loaded = folder.query(), folder.newest(), newest_batch(state)
        expected_query = state.position.get("query")
        if expected_query is not None and query != expected_query:
            expected = f"the checkpoint of Spark's query {expected_query}"
            if query is None:
                raise self._guarded(expected, "none", code="checkpoint_lost")
            raise self._guarded(expected, f"that of another query ({query})", code="checkpoint_foreign")
        if newest < loaded:
            raise self._guarded(
                f"a checkpoint up to batch {loaded}, which is in the table",
                f"one up to {newest}",
                code="checkpoint_behind",
            )
        written = folder.batches(loaded)
        missing_batches = sorted(set(range(loaded + 1, newest + 1)) - {batch.number for batch in written})
        if missing_batches:
            raise self.rows_lost(f"{missing_batches[0]}, which its checkpoint says has ended")
        slices: list[BatchSlice] = []
        numbers: list[int] = []
        for batch in written:
            numbers.append(batch.number)
            last = batch.number == newest
            if batch.has_rows or last:
                after = self._after(state, batch.number, query)
                if last and not batch.has_rows and slices:
                    before = slices.pop()
                    slices.append(BatchSlice((*before.batches, *numbers), after, before.bytes))
                else:
                    slices.append(BatchSlice(tuple(numbers), after, batch.bytes))
                numbers = []
        return slices

    def _after(self, state: StreamState, number: int, query: str | None) -> StreamState:
        reached = self.folder.watermark_after(number)
        value = max(filter(None, (state.value, reached)), default=None)
        position = {
            "folder": self.folder.place.url.rpartition("/")[2],
            "query": query,
            "batch": number,
        }
        return StreamState(value=value, epoch=number + 1, position=position)

    def rows_lost(self, batch: str) -> NeedsDecision:
        """Return the error of a batch that has ended, and whose rows are gone."""
        return self._guarded(f"rows of batch {batch}", "none in the outbox", code="outbox_lost")

    def _guarded(self, expected: str, actual: str, *, code: str) -> NeedsDecision:
        name = self.dataflow
        return NeedsDecision(
            f"dataflow {name}: expected {expected}, found {actual}, in {self.folder.place}. What Spark has read and remembers is not what the"
            " watermark log says, so nothing was done: rows would be lost, or loaded twice. Put the folder back as it was; or empty the"
            " table and read the source from its start",
            code=code,
            choices=(f"strandline state reset {name} --replace --reason TEXT",),
        )


def newest_batch(state: StreamState) -> int:
    """Return the number of the newest batch in the table; -1 if none is."""
    return int(state.position.get("batch", -1))
