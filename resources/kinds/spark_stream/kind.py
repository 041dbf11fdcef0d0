"""The stream kind on Spark's own engine: batches that Structured Streaming has written to its outbox (docs/streams-on-spark.md).

A run has Spark read what is new (:meth:`SparkStreamKind.run_ahead`), and commits what lies in the outbox then, batch by batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, cast

from typing_extensions import override

from partitions.dataflow import Dataflow
from partitions.errors import ConfigurationError, NeedsDecision, StrandlineError, in_one_line
from partitions.last_look import SourceLook
from partitions.loads import ByValue, Load, ReplaceAll, load_into
from partitions.plan import Plan, counted
from partitions.predicate import NOTHING
from partitions.readings import source_readings
from partitions.request import DUE, LateOnly, Request
from partitions.sentinels import deserialise
from partitions.sources import FilesSource, TableSource
from partitions.sources.definition import SourceDefinition
from partitions.sources.several import NamedFiles, NamedTable
from partitions.spark_stream.batch_progress import BatchProgress
from partitions.spark_stream.batches import BatchSlice
from partitions.spark_stream.definition import StructuredStream
from partitions.stream.state import StreamState
from resources.connections.places import Place
from resources.kinds.contract.bad_parts import BadParts
from resources.kinds.contract.planning import Planning
from resources.kinds.contract.reading import Reading, SliceBase
from resources.kinds.contract.stored_slices import StoredSlices
from resources.kinds.contract.writing import Writing
from resources.kinds.spark_stream.folder import StreamFolder, listed, remove_others
from resources.kinds.spark_stream.inbox import Inbox, take_in
from resources.kinds.spark_stream.outbox import Outbox, newest_batch
from resources.kinds.spark_stream.query import StreamInput, stream_query
from resources.kinds.spark_stream.run import run_available
from resources.kinds.spark_stream.sources import columns_stream, inbox_stream, table_stream
from resources.kinds.state_of_entry import state_of
from resources.notes.looks import last_look
from resources.sources.files.failures import other_schema
from resources.sources.files.pinned import PinnedSchema
from resources.sources.files.source import FileSource
from resources.sources.schema import column_changes
from resources.spark.advice import without_advice
from resources.spark.errors import EngineLost
from resources.spark.failures import cause, is_of_values
from resources.spark.process import engine_lost
from resources.staging import Staging
from resources.tables.contract.table import Table
from resources.tables.registry import find_table
from resources.user_functions import user_function
from resources.watermarks.entry import Entry, Intent
from resources.watermarks.lists import ListKind, StoredList
from resources.watermarks.log import WatermarkLog

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

STREAM_BATCHES = ListKind("stream_batches", 1, ("batch", "bytes"))
"""The batches of a slice. The head has the folder that they lie in."""


class SparkStreamKind(
    Planning[BatchSlice],
    StoredSlices[BatchSlice],
    Reading[BatchSlice],
    Writing[BatchSlice],
    BadParts[BatchSlice],
):
    """Batches above the last committed one."""

    replans_after_load: ClassVar[bool] = False
    """Spark reads what is there when a run begins; what comes later is the next run's."""
    one_query: ClassVar[bool] = True
    """Folders are what slices differ in."""
    pacing: ClassVar[timedelta] = timedelta(0)

    def __init__(
        self,
        dataflow: Dataflow,
        roots: Sequence[Place],
        folders: Place,
        log: WatermarkLog,
        project: Path,
        staging: Staging,
    ) -> None:
        """Bind a dataflow to its sources, and to the folder of its checkpoints.

        Args:
            dataflow: with a watermark of this engine.
            roots: where the files or the table of each of its sources lie, in their order.
            folders: one for each life of its state.
            log: the watermark log.
            project: folder in which modules of the user may lie.
            staging: takes rows of files that Spark cannot read where they lie.
        """
        self._dataflow, self._folders, self._project = dataflow, folders, project
        self._sources = list(zip(dataflow.source.parts.values(), roots, strict=True))
        self._files = {
            number: FileSource(root, reading, staging)
            for number, (reading, root) in enumerate(zip(source_readings(dataflow), roots, strict=True))
            if isinstance(reading.source, FilesSource)
        }
        self._log, self._is_ahead = log, False

    @property
    def _definition(self) -> StructuredStream:
        return cast("StructuredStream", self._dataflow.watermark)

    @property
    def remarks(self) -> Sequence[str]:
        """What the sources have to say of their files."""
        return [remark for source in self._files.values() for remark in source.remarks]

    def plan(self, entry: Entry | None, now: datetime, request: Request = DUE) -> Plan[BatchSlice]:
        """Look at the outbox, and whether the source looks as it did. Starts no Spark.

        Raises:
            ConfigurationError: something else than what is due is asked for.
            NeedsDecision: the checkpoint is not the one that the state belongs to, or a table not the one that Spark has read.
        """
        number = entry.number if entry else 0
        plan = Plan[BatchSlice](self._dataflow.name, "stream", number, now, "")
        if isinstance(request, LateOnly):
            return replace(plan, why="a stream has no late files")
        if request != DUE:
            raise ConfigurationError(
                f"dataflow {self._dataflow.name}: expected a run of what is due; a stream on Spark's engine reads nothing again"
            )
        state = state_of(StreamState, self._dataflow, entry)
        folder = self._folder(entry, state)
        waiting, look = self._outbox(folder).waiting(state), self._look()
        plan = replace(plan, look=look)
        if not waiting and not self._is_ahead:
            # Before Spark reads on; what it has read already is loaded, whatever its source is by now.
            self._check_tables(folder)
        seen = last_look(self._log, self._dataflow.name, entry)
        if not waiting and not self._is_ahead and (seen is None or seen.contents != look.contents):
            new = BatchSlice((), state)
            return replace(plan, why="new input, which Spark has not read yet", slices=(new,))
        why = f"{counted(len(waiting), 'batch', 'batches')} of Spark's to commit"
        return replace(plan, why=why if waiting else "no new input", slices=tuple(waiting))

    def run_ahead(self, spark: SparkSession, entry: Entry | None) -> StrandlineError | None:
        """Have Spark read all that is new into the outbox; what is in the table already goes from there.

        Files are looked through, and copied into the inboxes, before Spark reads anything.

        Returns:
            the bad file that ends what could be read, if any; what comes before its micro-batch is in the outbox.

        Raises:
            NeedsDecision: as :meth:`plan`.
            SchemaError: its columns are not the pinned ones: what the table does not have would be read, and dropped.
            StrandlineError: code ``query``: the query failed; batches that have ended stay.
        """
        state = state_of(StreamState, self._dataflow, entry)
        folder = self._folder(entry, state)
        self._outbox(folder).waiting(state)  # raises unless the checkpoint is the state's
        remove_others(self._folders, folder.place.url.rpartition("/")[2])
        folder.remove_up_to(newest_batch(state))
        self._check_columns(self._query(spark).schema, entry)
        self._is_ahead = True
        inboxes, most = self._inboxes(folder), self._definition.checkpoint.interval_files
        for inbox in inboxes:
            inbox.open()
        with self._failures_of_query("its files were looked through"):
            taken, bad = take_in(spark, inboxes, most)
        if bad is None or taken:
            self._read_on(spark, folder, inboxes)
        return bad

    def _read_on(self, spark: SparkSession, folder: StreamFolder, inboxes: Sequence[Inbox]) -> None:
        """Have Spark read what is in the inboxes, and in the tables."""
        definition = self._definition
        if newest := {name: at for name, table in self._tables.items() if (at := table.tip(None).newest)}:
            folder.note_tables(newest)
        with self._failures_of_query("Spark read its stream"):
            reports = run_available(
                self._query(spark, inboxes),
                output_mode=definition.output_mode,
                policy=definition.policy,
                checkpoint=folder.checkpoint,
                outbox=folder.outbox,
            )
        folder.keep(reports)

    @contextmanager
    def _failures_of_query(self, when: str) -> Iterator[None]:
        """Tell a failure of Spark's as one of the dataflow."""
        try:
            yield
        except StrandlineError:
            raise
        except Exception as error:
            if lost := engine_lost(error):
                raise EngineLost.of(self._dataflow.name, when, lost) from error
            name = self._dataflow.name
            remedy = (
                ". It fails over the values of a row, as it would each time: correct transform, sql or operators, or the rows at the source, and read the"
                f" source anew: `strandline state reset {name} --replace --reason TEXT`"
                if is_of_values(error)
                else ". Batches that had ended are committed by the next run, which goes on behind them"
            )
            raise StrandlineError(
                f"dataflow {name}: Spark's query failed: {_reason(error)}{remedy}", code="query"
            ) from error

    def _check_columns(self, columns: StructType, entry: Entry | None) -> None:
        if entry is None or not entry.pinned:
            return
        if changes := column_changes(columns, self._log.get_schema(entry.pinned)):
            raise other_schema(
                f"dataflow {self._dataflow.name}: expected the columns of the stream that were pinned, found others: {'; '.join(changes.values())}",
                "Put the source, or source.schema, back",
                self._dataflow.name,
                next(iter(changes)),
            )

    def _folder(self, entry: Entry | None, state: StreamState) -> StreamFolder:
        """The folder that a state belongs to; for a state that holds nothing a new one, named by the entry that it begins behind."""
        name = state.position.get("folder") or (f"after-{entry.id}" if entry else "first")
        return StreamFolder(self._folders.child(name))

    def _outbox(self, folder: StreamFolder) -> Outbox:
        return Outbox(self._dataflow.name, folder)

    def _check_tables(self, folder: StreamFolder) -> None:
        """Raise unless each table has the version that Spark has read: it reads on by the number of a version, whatever the table is by now.

        Raises:
            NeedsDecision: code ``source_replaced``.
        """
        name, tables = self._dataflow.name, self._tables
        for source, commit in folder.noted_tables().items():
            head = tables[source].head(commit, None) if source in tables else None
            if head is not None and head.newest is not None and not head.kept:
                raise NeedsDecision(
                    f"dataflow {name}: expected table {source} of which Spark has read versions up to {commit.version}, found another table of that"
                    " name, or an older version of it. Put it back as it was; or reset the state with --replace to read what it holds now",
                    code="source_replaced",
                    choices=(f"strandline state reset {name} --replace --reason TEXT",),
                )

    @property
    def _tables(self) -> Mapping[str, Table]:
        """The tables among the sources, by their names in the lake."""
        return {
            source.table: find_table(root)
            for source, root in self._sources
            if isinstance(source, TableSource)
        }

    def _look(self) -> SourceLook:
        """How the sources look from outside; several by their order."""
        looks = (
            listed(root)
            if isinstance(source, FilesSource)
            else str(find_table(root).contents.newest_version())
            for source, root in self._sources
        )
        return SourceLook("; ".join(looks), 0, 0)

    def _inboxes(self, folder: StreamFolder) -> Sequence[Inbox]:
        """Where Spark reads the sources of files."""
        return [
            Inbox(_name(source), self._files[number], source.schema_ or "", folder, number)
            for number, (source, _) in enumerate(self._sources)
            if isinstance(source, FilesSource)
        ]

    def _query(self, spark: SparkSession, inboxes: Sequence[Inbox] | None = None) -> DataFrame:
        """The query over the inboxes; without them one of the same columns, which is not run."""
        definition = self._definition
        places = {inbox.number: inbox.place for inbox in inboxes or ()}
        return stream_query(
            [
                self._input(spark, source, root, places.get(number))
                for number, (source, root) in enumerate(self._sources)
            ],
            definition.event_time,
            self._dataflow.operators,
            output_mode=definition.output_mode,
            load_class=self._user_class,
        )

    def _input(
        self, spark: SparkSession, source: SourceDefinition, root: Place, inbox: Place | None
    ) -> StreamInput:
        """The rows of one source, with its name and its timeout if it is one of several."""
        most = self._definition.checkpoint.interval_files
        if not isinstance(source, FilesSource):
            rows = table_stream(spark, root, most)
        elif inbox is None:
            rows = columns_stream(spark, source.schema_ or "")
        else:
            rows = inbox_stream(spark, inbox, source.schema_ or "", most)
        named = source if isinstance(source, NamedFiles | NamedTable) else None
        delay = (named.timeout if named else None) or self._definition.timeout
        return StreamInput(_name(source) or "input", rows, delay)

    def _user_class(self, name: str) -> type[Any]:
        """A class of the user, which goes to Spark's Python processes with its whole module: they do not have the project's folder."""
        import sys

        from pyspark import cloudpickle

        function: Any = user_function("operators.function", name, self._project)
        cloudpickle.register_pickle_by_value(sys.modules[function.__module__])  # type: ignore[no-untyped-call]
        return function  # type: ignore[no-any-return]

    def covers(self, state: str, other: str) -> bool:
        """Compare the numbers of batches; after a reset they begin again."""
        newer, older = (StreamState.of(deserialise(text)) for text in (state, other))
        return newer.epoch >= older.epoch

    @property
    def list_kind(self) -> ListKind:
        """Batches."""
        return STREAM_BATCHES

    def to_rows(self, slice_: BatchSlice) -> StoredList:
        """The batches' numbers, in their folder."""
        rows = [(number, slice_.bytes) for number in slice_.batches]
        return StoredList(STREAM_BATCHES, rows, {"folder": slice_.after.position["folder"]})

    def from_rows(self, intent: Intent, stored: StoredList) -> BatchSlice:
        """The same batches, and the same state after them."""
        size = next((size for _, size in stored.rows), None)
        after = StreamState.of(deserialise(intent.watermark))
        return BatchSlice(tuple(number for number, _ in stored.rows), after, size)

    @override
    def pin(self, spark: SparkSession, pending: Sequence[BatchSlice]) -> str | None:
        """The columns of the query."""
        return PinnedSchema(self._query(spark).schema.json(), ()).to_text()

    @override
    def fix(self, slice_: BatchSlice, base: SliceBase) -> BatchSlice:
        """Itself: what is in the outbox does not change."""
        return slice_

    def read(self, spark: SparkSession, slice_: BatchSlice | None, pinned: str) -> DataFrame:
        """Return the rows of the batches."""
        schema = PinnedSchema.of(pinned).struct
        if slice_ is None:
            return spark.createDataFrame([], schema)
        folder = self._folder_of(slice_)
        places = {number: folder.rows_of(number) for number in slice_.batches}
        lost = next((number for number, place in places.items() if place is None), None)
        if lost is not None:
            raise self._outbox(folder).rows_lost(str(lost))
        return spark.read.schema(schema).parquet(*(place.spark_url for place in places.values() if place))

    def _folder_of(self, slice_: BatchSlice) -> StreamFolder:
        return StreamFolder(self._folders.child(slice_.after.position["folder"]))

    def reports(self, slice_: BatchSlice) -> Sequence[BatchProgress]:
        """Return what Spark has said of a slice's batches, those that were kept."""
        folder = self._folder_of(slice_)
        return [report for number in slice_.batches if (report := folder.report(number)) is not None]

    @override
    def find(self, spark: SparkSession, slice_: BatchSlice, pinned: str, error: Exception) -> None:
        """None: what is in the outbox can be read."""

    @override
    def load(self, slice_: BatchSlice, rows: DataFrame) -> Load:
        """Append; in mode update by keys, of which a batch has each once; in mode complete all rows anew."""
        if self._definition.output_mode == "complete":
            return ReplaceAll()
        order = tuple(ByValue(name) for name in rows.columns if name == "window_end")
        return load_into(self._dataflow.target, NOTHING, order)


def _reason(error: Exception) -> str:
    """Why a query failed: of code of the user's its own words, which stand below the last traceback."""
    _, traceback, rest = str(error).rpartition("Traceback (most recent call last):")
    lines = (line for line in rest.splitlines() if line and not line[0].isspace())
    reason = next(lines, None) if traceback else None
    return in_one_line(without_advice(reason) if reason else cause(error)).rstrip(" .;")


def _name(source: SourceDefinition) -> str | None:
    """The name of one of several sources; None of the only one."""
    return source.name if isinstance(source, NamedFiles | NamedTable) else None
