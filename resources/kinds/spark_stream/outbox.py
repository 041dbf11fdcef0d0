"""The finished batches that the table lacks, checked against the state that they continue."""

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
        dataflow: name of the dataflow.
        folder: folder with checkpoint and outbox.
    """

    dataflow: str
    folder: StreamFolder

    def waiting(self, state: StreamState) -> list[BatchSlice]:
        """Return slices of the finished batches that the table lacks, ascending.

        A slice has one batch with rows, and the batches without rows before it. Batches without rows at
        the end join the last slice, or form one if there is no other.

        Raises:
            NeedsDecision: the checkpoint does not belong to the state, or rows of a finished batch are
                missing.
        """
        folder = self.folder
        query, newest, newest_loaded = folder.query(), folder.newest(), newest_batch(state)
        expected_query = state.position.get("query")
        if expected_query is not None and query != expected_query:
            expected = f"the checkpoint of Spark's query {expected_query}"
            if query is None:
                raise self._mismatch(expected, "none", code="checkpoint_lost")
            raise self._mismatch(
                expected, f"the checkpoint of another query ({query})", code="checkpoint_foreign"
            )
        if newest < newest_loaded:
            raise self._mismatch(
                f"a checkpoint that reaches batch {newest_loaded}, the newest in the table",
                f"one that ends at batch {newest}",
                code="checkpoint_behind",
            )
        finished_batches = folder.batches(newest_loaded)
        missing_batches = sorted(
            set(range(newest_loaded + 1, newest + 1)) - {batch.number for batch in finished_batches}
        )
        if missing_batches:
            raise self.rows_lost(f"{missing_batches[0]}, which the checkpoint lists as finished")
        slices: list[BatchSlice] = []
        numbers: list[int] = []
        for batch in finished_batches:
            numbers.append(batch.number)
            is_last = batch.number == newest
            if batch.has_rows or is_last:
                after = self._after(state, batch.number, query)
                if is_last and not batch.has_rows and slices:
                    before = slices.pop()
                    slices.append(BatchSlice((*before.batches, *numbers), after, before.bytes))
                else:
                    slices.append(BatchSlice(tuple(numbers), after, batch.bytes))
                numbers = []
        return slices

    def _after(self, state: StreamState, number: int, query: str | None) -> StreamState:
        """Return the state after a batch. The watermark never falls below the state's."""
        watermark = self.folder.watermark_after(number)
        value = max(filter(None, (state.value, watermark)), default=None)
        position = {
            "folder": self.folder.place.url.rpartition("/")[2],
            "query": query,
            "batch": number,
        }
        return StreamState(value=value, epoch=number + 1, position=position)

    def rows_lost(self, batch: str) -> NeedsDecision:
        """Return the error for a finished batch whose rows are missing from the outbox."""
        return self._mismatch(f"rows of batch {batch}", "none in the outbox", code="outbox_lost")

    def _mismatch(self, expected: str, actual: str, *, code: str) -> NeedsDecision:
        """Return the error for a folder that contradicts the watermark log."""
        name = self.dataflow
        return NeedsDecision(
            f"dataflow {name}: expected {expected}, found {actual}, in {self.folder.place}. Spark's "
            "folder and the watermark log disagree, so a run would lose rows or load them twice. The run "
            "stopped before it changed anything. Restore the folder; or empty the table and read the "
            "source from its start",
            code=code,
            choices=(f"strandline state reset {name} --replace --reason TEXT",),
        )


def newest_batch(state: StreamState) -> int:
    """Return the number of the newest batch in the table; -1 if it has none."""
    return int(state.position.get("batch", -1))
