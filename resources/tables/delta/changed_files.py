"""Read the rows of files that commits of a Delta table add and remove.

The change data feed of a commit is read like its data files: the log names its files, which have one more
column. Only commits that wrote such files are read that way.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote

from resources.sql import quoted
from resources.tables.contract.changed_file import CAME, CHANGE_TYPE
from resources.tables.contract.commit_log import VERSION, LoggedCommit
from resources.tables.contract.scratch import ScratchFolder
from resources.tables.delta.commit import file_name
from resources.tables.delta.file_reads import read_named_files
from resources.tables.delta.log import DeltaLog
from resources.tables.delta.log_state import Action, LogState, StateReader, file_key, read_state
from resources.tables.delta.logged_commit import FILE_ACTIONS
from resources.tables.delta.staged_log import read_staged
from resources.tables.row_columns import as_type
from resources.tables.rows.net_rows import SIGN, tagged_columns, with_known_columns, with_tags

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructType

_FILE = "_strandline_file"
_FEED = 0
"""Instead of a sign: the rows of a file of the feed have their own."""


class DeltaFileRead(NamedTuple):
    """A file whose rows came or went with a version.

    Attributes:
        version: version number.
        sign: 1 if its rows came, -1 if they went, ``_FEED`` if each row says so.
        file: action that names the file.
        state: columns and protocol by which the file is read.
    """

    version: int
    sign: int
    file: Action
    state: LogState

    @property
    def name(self) -> str:
        """Name of the file, without escapes."""
        return unquote(file_name(str(self.file["path"])))


def changed_files(
    log: DeltaLog, commits: Sequence[LoggedCommit], *, inserts_only: bool
) -> list[DeltaFileRead]:
    """Return the files to read for the rows that commits change.

    Args:
        log: log of the table.
        commits: consecutive commits.
        inserts_only: whether commits that may change or remove rows are left out.
    """
    reading = [commit for commit in commits if commit.files and not (inserts_only and commit.changes)]
    if not reading:
        return []
    states = StateReader(log)
    reads = [read for commit in reading for read in _files_of(log, states, commit)]
    newest = states.at(commits[-1].version)
    return [read._replace(state=_mapped_state(read.state, newest)) for read in reads]


def columns_at(log: DeltaLog, version: int) -> StructType:
    """Return the columns of a version."""
    return _columns(read_state(log, version))


def read_rows(
    log: DeltaLog,
    spark: SparkSession,
    reads: Sequence[DeltaFileRead],
    columns: StructType,
    scratch: ScratchFolder,
) -> DataFrame:
    """Return the rows of files with ``VERSION`` and ``SIGN``, in the given columns.

    Values of a column that had another type are cast; NULL if they cannot be.
    """
    frames = []
    for group in _readable_groups(reads):
        state = _with_feed(group[0].state) if group[0].sign == _FEED else group[0].state
        files = [read.file for read in group]
        rows = read_named_files(log, spark, state, files, _FILE)
        if rows is None:
            rows = read_staged(log.place, spark, state, files, _FILE, scratch)
        rows = rows.withColumn(_FILE, _plain_name())
        tagged = with_tags(rows, _FILE, [(read.name, read.version, read.sign) for read in group])
        frames.append(_aligned(tagged, _columns(state), columns))
    if not frames:
        return spark.createDataFrame([], tagged_columns(columns, VERSION, SIGN))
    rows = reduce(lambda above, below: above.unionAll(below), frames)
    return with_known_columns(rows, columns, VERSION, SIGN)


def _plain_name() -> Column:
    """Return the file's name without the escapes with which Spark reports spaces, ``%``, ``#`` and ``?``."""
    from pyspark.sql import functions as F

    return F.url_decode(F.regexp_replace(F.col(_FILE), r"\+", "%2B"))


def _files_of(log: DeltaLog, states: StateReader, commit: LoggedCommit) -> Iterator[DeltaFileRead]:
    version = commit.version
    if commit.holds_all_files:
        state = read_state(log, version, with_files=True)
        yield from (DeltaFileRead(version, 1, add, state) for add in state.files)
        return
    actions = log.actions(version, *FILE_ACTIONS)
    feed = [action["cdc"] for action in actions if "cdc" in action]
    if feed and _mapping(states.at(version)) != "id":  # by ids no reader finds the feed's own column
        yield from (DeltaFileRead(version, _FEED, file, states.at(version)) for file in feed)
        return
    removed = [a["remove"] for a in actions if "remove" in a and a["remove"].get("dataChange", True)]
    if removed:
        state = states.at(version - 1)
        yield from (DeltaFileRead(version, -1, file, state) for file in _described(log, version, removed))
    added = [a["add"] for a in actions if "add" in a and a["add"].get("dataChange", True)]
    yield from (DeltaFileRead(version, 1, add, states.at(version)) for add in added)


def _described(log: DeltaLog, version: int, removed: Sequence[Action]) -> list[Action]:
    """Return removed files with their partition values, which some writers leave out."""
    if all(file.get("partitionValues") is not None for file in removed):
        return list(removed)
    before = {file_key(file): file for file in read_state(log, version - 1, with_files=True).files}
    return [before[file_key(file)] for file in removed]


def _mapped_state(state: LogState, newest: LogState) -> LogState:
    """Return the newest columns for files of a table with column mapping, unless they were replaced.

    A renamed column keeps its name in the files. An overwrite with other columns gives them new names. If the
    mapping came later than the files, it keeps the names that they have.
    """
    is_mapped_later = (_mapping(state), _mapping(newest)) == ("none", "name")
    if _mapping(newest) == "none" or not (is_mapped_later or _mapping(state) == _mapping(newest)):
        return state
    shares_columns = bool(_physical_names(state) & _physical_names(newest))
    same_partitions = state.metadata.get("partitionColumns") == newest.metadata.get("partitionColumns")
    return newest if shares_columns and same_partitions else state


def _mapping(state: LogState) -> str:
    return _properties(state).get("delta.columnMapping.mode", "none")


def _properties(state: LogState) -> Mapping[str, str]:
    return state.metadata.get("configuration") or {}


def _physical_names(state: LogState) -> set[str]:
    fields = json.loads(state.metadata["schemaString"])["fields"]
    return {field["metadata"].get("delta.columnMapping.physicalName", field["name"]) for field in fields}


def _readable_groups(reads: Sequence[DeltaFileRead]) -> Iterator[list[DeltaFileRead]]:
    """Group files that one read can tell apart: with the same columns, and different names."""
    groups: dict[tuple[Any, ...], list[list[DeltaFileRead]]] = {}
    for read in reads:
        metadata = read.state.metadata
        columns = (metadata["schemaString"], json.dumps(metadata.get("partitionColumns")))
        key = (*columns, _mapping(read.state), json.dumps(read.state.protocol), read.sign == _FEED)
        groups.setdefault(key, [[]])[0].append(read)
    for ((all_reads,),) in ((group,) for group in groups.values()):
        yield from _layers(all_reads)


def _layers(reads: Sequence[DeltaFileRead]) -> list[list[DeltaFileRead]]:
    by_tag: dict[tuple[int, int], list[DeltaFileRead]] = {}
    layers: list[list[DeltaFileRead]] = []
    uses: dict[str, int] = {}
    for read in reads:
        by_tag.setdefault((read.version, read.sign), []).append(read)
        layer = uses.get(read.name, 0)
        uses[read.name] = layer + 1
        if layer == len(layers):
            layers.append([])
        layers[layer].append(read)
    return min(layers, list(by_tag.values()), key=len)


def _with_feed(state: LogState) -> LogState:
    """Return the state with the feed's own column."""
    schema = json.loads(state.metadata["schemaString"])
    mapping = {
        "delta.columnMapping.id": 1 + int(_properties(state).get("delta.columnMapping.maxColumnId", 0)),
        "delta.columnMapping.physicalName": CHANGE_TYPE,
    }
    metadata_of_field = {} if _mapping(state) == "none" else mapping
    field = {"name": CHANGE_TYPE, "type": "string", "nullable": True, "metadata": metadata_of_field}
    schema["fields"] = [*schema["fields"], field]
    metadata: Mapping[str, Any] = {**state.metadata, "schemaString": json.dumps(schema)}
    return LogState(metadata, state.protocol)


def _columns(state: LogState) -> StructType:
    from pyspark.sql.types import StructType

    fields = json.loads(state.metadata["schemaString"])["fields"]
    plain = [{**field, "nullable": True, "metadata": {}} for field in fields]
    return StructType.fromJson({"type": "struct", "fields": plain})


def _aligned(rows: DataFrame, source_columns: StructType, columns: StructType) -> DataFrame:
    """Return rows in the given columns, with their tags; a row of the feed gets its own sign."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import ArrayType, MapType, StructType

    nested, sign = (ArrayType, MapType, StructType), F.col(SIGN)
    if CHANGE_TYPE in source_columns.names and CHANGE_TYPE not in columns.names:
        sign = F.when(F.col(CHANGE_TYPE).isin(*CAME), 1).otherwise(-1)
    types = {field.name.casefold(): (field.name, field.dataType) for field in source_columns.fields}
    values = []
    for field in columns.fields:
        name, data_type = types.get(field.name.casefold(), (None, None))
        if name is None or data_type is None:
            value = F.lit(None).cast(field.dataType)
        elif isinstance(data_type, nested) and type(data_type) is type(field.dataType):
            value = as_type(F.col(quoted(name)), data_type, field.dataType)
        elif data_type != field.dataType:
            value = F.col(quoted(name)).try_cast(field.dataType)
        else:
            value = F.col(quoted(name))
        values.append(value.alias(field.name))
    return rows.select(*values, F.col(VERSION), sign.cast("int").alias(SIGN))
