"""Plan the commits of Spark's batches (docs/reference/streams-on-spark.md).

A run first has Spark read new input (:meth:`SparkStreamPlanning.run_ahead`). Then it commits the
batches in the outbox, slice by slice.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, ClassVar

from partitions.dataflow import Dataflow
from partitions.errors import ConfigurationError, NeedsDecision, StrandlineError
from partitions.plan import Plan, pluralize
from partitions.request import DUE, LateOnly, Request
from partitions.sentinels import deserialise
from partitions.spark_stream.batches import BatchSlice
from partitions.stream.state import StreamState
from resources.connections.places import Place
from resources.kinds.contract.planning import Planning, RunsAhead
from resources.kinds.spark_stream.ahead import ReadAhead
from resources.kinds.spark_stream.folder import StreamFolder, remove_others
from resources.kinds.spark_stream.inputs import Inputs
from resources.kinds.spark_stream.outbox import Outbox, newest_batch
from resources.kinds.state_of_entry import state_of
from resources.notes.looks import last_look
from resources.watermarks.entry import Entry
from resources.watermarks.log import WatermarkLog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass
class SparkStreamPlanning(Planning[BatchSlice], RunsAhead):
    """Plans of the batches above the last committed one.

    Attributes:
        dataflow: the definition.
        inputs: the sources that Spark reads.
        folders: place with a folder for each life of the dataflow's state.
        log: the watermark log.
        is_ahead: whether this object has already had Spark read new input.
    """

    replans_after_load: ClassVar[bool] = False
    """Spark reads the input that exists when a run starts; the next run reads later input."""
    pacing: ClassVar[timedelta] = timedelta(0)

    dataflow: Dataflow
    inputs: Inputs
    folders: Place
    log: WatermarkLog
    is_ahead: bool = field(default=False, init=False)

    def plan(self, entry: Entry | None, now: datetime, request: Request = DUE) -> Plan[BatchSlice]:
        """Return a plan of the batches in the outbox. Starts no Spark.

        If there are none, but a source has changed since the last run, the plan has one slice without
        batches.

        Raises:
            ConfigurationError: the request is neither for due work nor for late files.
            NeedsDecision: the checkpoint does not belong to the state, or a source table was replaced.
        """
        number = entry.number if entry else 0
        plan = Plan[BatchSlice](self.dataflow.name, "stream", number, now, "")
        if isinstance(request, LateOnly):
            return replace(plan, why="a stream has no late files")
        if request != DUE:
            raise ConfigurationError(
                f"dataflow {self.dataflow.name}: a forced run needs windows, and a stream has none"
            )
        state = state_of(StreamState, self.dataflow, entry)
        folder = self._folder(entry, state)
        waiting, snapshot = self._outbox(folder).waiting(state), self.inputs.look()
        plan = replace(plan, snapshot=snapshot)
        if not waiting and not self.is_ahead:
            # Only before Spark reads on: finished batches are loaded, whatever the source has become.
            self._check_tables(folder)
        last = last_look(self.log, self.dataflow.name, entry)
        if not waiting and not self.is_ahead and (last is None or last.contents != snapshot.contents):
            unread_input = BatchSlice((), state)
            return replace(plan, why="new input, which Spark has not read yet", slices=(unread_input,))
        why = f"{pluralize(len(waiting), 'finished Spark batch', 'finished Spark batches')} to commit"
        return replace(plan, why=why if waiting else "no new input", slices=tuple(waiting))

    def run_ahead(self, spark: SparkSession, entry: Entry | None) -> StrandlineError | None:
        """Have Spark read all new input into the outbox; batches that the table has are removed first.

        Returns:
            the bad file that stopped the copying; None if there is none. Input before its micro-batch is
                in the outbox.

        Raises:
            NeedsDecision: the checkpoint does not belong to the state.
            SchemaError: the query's columns differ from the pinned ones.
            StrandlineError: code ``query``: the query failed. Batches that finished before stay in the
                outbox.
        """
        state = state_of(StreamState, self.dataflow, entry)
        folder = self._folder(entry, state)
        self._outbox(folder).waiting(state)  # raises unless the checkpoint is the state's
        remove_others(self.folders, folder.place.url.rpartition("/")[2])
        folder.remove_up_to(newest_batch(state))
        ahead, pinned = ReadAhead(self.inputs), entry.pinned if entry else None
        ahead.check_columns(spark, self.log.get_schema(pinned) if pinned else None)
        self.is_ahead = True
        return ahead.read(spark, folder)

    def _folder(self, entry: Entry | None, state: StreamState) -> StreamFolder:
        """Return the folder of a state; an empty state gets a new one, named by its entry."""
        name = state.position.get("folder") or (f"after-{entry.id}" if entry else "first")
        return StreamFolder(self.folders.child(name))

    def _outbox(self, folder: StreamFolder) -> Outbox:
        return Outbox(self.dataflow.name, folder)

    def _check_tables(self, folder: StreamFolder) -> None:
        """Raise unless each source table still has the version that Spark has read.

        Spark continues by the version's number alone.

        Raises:
            NeedsDecision: code ``source_replaced``.
        """
        name, tables = self.dataflow.name, self.inputs.tables
        for source, commit in folder.noted_tables().items():
            head = tables[source].head(commit, None) if source in tables else None
            if head is not None and head.newest is not None and not head.has_recorded:
                raise NeedsDecision(
                    f"dataflow {name}: expected table {source}, of which Spark has read versions up to "
                    f"{commit.version}, found another table of that name, or an older version of it. "
                    "Restore the table; or run `state reset --replace` to read what it holds now",
                    code="source_replaced",
                    choices=(f"strandline state reset {name} --replace --reason TEXT",),
                )

    def covers(self, state: str, other: str) -> bool:
        """Return whether the number of batches does not fall; after a reset it starts again."""
        newer, older = (StreamState.of(deserialise(text)) for text in (state, other))
        return newer.epoch >= older.epoch
