"""Statistics of a Delta table's files that leave rows out: which they are, and how exact ones are written in their place (docs/maintenance.md).

delta-rs keeps the bound of a decimal as the nearest double. One of more than 15 digits may then lie inside of the file's range, and a reader that skips
files by it does not see the rows beyond. Of doubles delta-rs leaves NaN out, which is above all numbers for Spark.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from partitions.decimal_bounds import digits_of
from partitions.errors import TargetError, in_one_line
from partitions.loads import Append
from resources.connections.places import Place
from resources.spark.settings import set_all
from resources.tables.data_files.footers import file_footer
from resources.tables.data_files.statistics import column_bounds, delta_statistics
from resources.tables.delta.log import DeltaLog
from resources.tables.delta.own_limits import (
    demand_of,
    is_exact_bound,
    may_remove,
    partition_text,
    takes_place,
)

if TYPE_CHECKING:
    from deltalake import DeltaTable
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

Path = tuple[str, ...]
_FLOATS = ("float", "double")
_TIMES = ("timestamp", "timestamp_ntz")
_SKIPPING = "spark.databricks.delta.stats.skipping"
_TRIES = 20
"""Versions that other writers may take first, one after another."""


def is_long_decimal(kind: Any) -> bool:
    """Return whether a double does not hold each value of a type."""
    digits = digits_of(kind)
    return digits is not None and digits.precision > sys.float_info.dig


def must_be_joined_by_spark(table: DeltaTable) -> bool:
    """Return whether delta-rs would write bounds that leave rows out: of long decimals, nested ones too, and of NaN."""
    fields = _fields(table)
    return any(_holds_long_decimal(field["type"]) for field in fields) or bool(
        _files_with(table, _leaves(fields, _FLOATS), _may_hide_nan)
    )


def doubtful_files(table: DeltaTable) -> list[str]:
    """Return the paths of the files of which a bound of a long decimal may be a double, and not the value."""
    leaves = [path for path, kind in _typed_leaves(_fields(table)) if is_long_decimal(kind)]
    return _files_with(table, leaves, _may_be_double)


def misread_columns(table: DeltaTable, columns: Collection[str]) -> frozenset[str]:
    """Return those of some columns of which a text in the log may be read as another one."""
    texts = [
        field["name"] for field in _fields(table) if field["type"] == "string" and field["name"] in columns
    ]
    if not texts:
        return frozenset()
    return frozenset(
        name
        for action in _actions(table)
        for name in texts
        if not all(is_exact_bound(action.get(f"{side}.{name}")) for side in ("min", "max"))
    )


def distrust(session: SparkSession, table: DeltaTable | None) -> None:
    """Have Delta skip no file by its statistics in a session if some of a table that it uses may leave rows out.

    It holds for the rest of the session, which is that of one run: a user's own conditions are compared with statistics, too.
    """
    if table is not None and doubtful_files(table):
        set_all(session, {_SKIPPING: "false"})


def wrong_files(log: DeltaLog, table: DeltaTable) -> list[str]:
    """Return the paths of the files of which a bound of a long decimal, or of a text that is misread, leaves a row out, as their footers tell.

    Raises:
        SourceError: a file cannot be read.
    """
    kinds = list(_typed_leaves(_fields(table)))
    decimals = [path for path, kind in kinds if is_long_decimal(kind)]
    texts = [path for path, kind in kinds if kind == "string"]
    doubtful = {*_files_with(table, decimals, _may_be_double), *_files_with(table, texts, _may_be_misread)}
    if not doubtful:
        return []
    return [
        action["path"]
        for action in _actions(table)
        if action["path"] in doubtful and _is_wrong(log.place, action, decimals, texts)
    ]


def mend_wrong(log: DeltaLog) -> int:
    """Write exact statistics of the files whose bounds leave rows out; return of how many files. A table that asks more of a writer stays as it is.

    Raises:
        SourceError: a file cannot be read.
        TargetError: they cannot be written; no row was changed.
    """
    table = log.table()
    if table is None or not can_write(log, table):
        return 0
    wrong = wrong_files(log, table)
    return write_exact(log, wrong) if wrong else 0


def write_exact(log: DeltaLog, paths: Sequence[str]) -> int:
    """Add files that a table has once more, with the statistics of their footers, in one commit that changes no row.

    Args:
        log: of the table.
        paths: of the files, as the log has them; those that the table has no more are left out. :func:`can_write` has told that it can be done.

    Returns:
        the number of files.

    Raises:
        TargetError: its log cannot be written.
    """
    for _ in range(_TRIES):
        table = log.table()
        if table is None:
            return 0
        chosen = set(paths)
        actions = [action for action in _actions(table) if action["path"] in chosen]
        if not actions:
            return 0
        try:
            _commit(log, table, actions)
        except Exception as error:
            now = log.table()
            if now is None or now.version() == table.version():
                raise TargetError(
                    f"table {log.place}: its statistics cannot be written: {in_one_line(str(error))}. No row was changed"
                ) from error
        else:
            return len(actions)
    raise TargetError(
        f"table {log.place}: other writers were first {_TRIES} times in a row. No row was changed: run again"
    )


def has_cut_bounds(table: DeltaTable) -> bool:
    """Return whether a table has columns of which those who join files cut bounds: times to milliseconds, and numbers that may be NaN."""
    return any(
        kind in (*_TIMES, *_FLOATS) or is_long_decimal(kind) for _, kind in _typed_leaves(_fields(table))
    )


def can_write(log: DeltaLog, table: DeltaTable) -> bool:
    """Return whether statistics of a table's files can be written here: of a plain table, whose paths and partitions deltalake writes as they stand."""
    if not takes_place(log.place) or demand_of(table, Append()) is not None:
        return False
    columns = [f"partition.{name}" for name in table.metadata().partition_columns]
    return all(
        may_remove(action["path"])
        and all(action[name] is None or partition_text(action[name]) is not None for name in columns)
        for action in _actions(table)
    )


def _commit(log: DeltaLog, table: DeltaTable, actions: Sequence[Mapping[str, Any]]) -> None:
    from deltalake import CommitProperties, PostCommitHookProperties
    from deltalake.transaction import AddAction, RemoveAction
    from pyspark.sql.types import StructType

    schema = StructType.fromJson(json.loads(table.schema().to_json()))
    partitions = table.metadata().partition_columns
    adds: list[AddAction | RemoveAction] = [
        AddAction(
            unquote(action["path"]),
            action["size_bytes"],
            {name: _partition_text(action[f"partition.{name}"]) for name in partitions},
            action["modification_time"],
            data_change=False,
            stats=_exact_statistics(log.place, action, schema, partitions),
        )
        for action in actions
    ]
    table.create_write_transaction(
        adds,
        "append",
        table.schema(),
        partition_by=list(partitions) or None,
        commit_properties=CommitProperties(max_commit_retries=0),
        post_commithook_properties=PostCommitHookProperties(
            create_checkpoint=False, cleanup_expired_logs=False
        ),
    )


def _partition_text(value: Any) -> str | None:
    return None if value is None else partition_text(value)


def _exact_statistics(
    place: Place, action: Mapping[str, Any], schema: StructType, partitions: Sequence[str]
) -> str:
    footer = file_footer(place, unquote(action["path"]), action["size_bytes"])
    return delta_statistics(footer, [field for field in schema.fields if field.name not in partitions])


def _is_wrong(
    place: Place, action: Mapping[str, Any], decimals: Sequence[Path], texts: Sequence[Path]
) -> bool:
    """Whether the log's bounds of a file are within those of its footer; False where the footer tells none."""
    footer = file_footer(place, unquote(action["path"]), action["size_bytes"])
    for path in (*decimals, *texts):
        bounds = column_bounds(footer, path)
        name = ".".join(path)
        if bounds is None or action.get(f"null_count.{name}") is None:
            continue
        lower, upper = action.get(f"min.{name}"), action.get(f"max.{name}")
        if path in decimals and (lower is None or upper is None):
            return True  # a double, in a form that deltalake does not take
        if (lower is not None and lower > bounds[0]) or (upper is not None and upper < bounds[1]):
            return True
    return False


def _files_with(table: DeltaTable, leaves: Sequence[Path], doubted: Callable[[Any], bool]) -> list[str]:
    """The paths of the files of which a bound is doubted, of the columns that the log has bounds of."""
    if not leaves:
        return []
    actions = _actions(table)
    return [
        action["path"]
        for action in actions
        if any(_is_doubted(action, ".".join(path), doubted) for path in leaves)
    ]


def _is_doubted(action: Mapping[str, Any], name: str, doubted: Callable[[Any], bool]) -> bool:
    nulls, rows = action.get(f"null_count.{name}"), action.get("num_records")
    lower, upper = action.get(f"min.{name}"), action.get(f"max.{name}")
    if lower is None and upper is None and (nulls is None or nulls == rows):
        return False  # the log tells nothing of the column, or there is no value
    return doubted(lower) or doubted(upper)


def _may_be_double(bound: Any) -> bool:
    """Whether a bound is one that a double has, too; None is one that deltalake does not take, such as 1.2e+17."""
    if not isinstance(bound, Decimal):
        return True
    return not is_exact_bound(bound) and Decimal(repr(float(bound))) == bound


def _may_be_misread(bound: Any) -> bool:
    return not is_exact_bound(bound)


def _may_hide_nan(bound: Any) -> bool:
    return bound is None or not math.isfinite(bound)


def _actions(table: DeltaTable) -> list[dict[str, Any]]:
    import pyarrow as pa

    actions: list[dict[str, Any]] = pa.table(table.get_add_actions(flatten=True)).to_pylist()
    return actions


def _fields(table: DeltaTable) -> list[dict[str, Any]]:
    partitions = table.metadata().partition_columns
    fields = json.loads(table.schema().to_json())["fields"]
    return [field for field in fields if field["name"] not in partitions]


def _leaves(fields: Sequence[Mapping[str, Any]], kinds: Sequence[str]) -> list[Path]:
    return [path for path, kind in _typed_leaves(fields) if kind in kinds]


def _typed_leaves(fields: Sequence[Mapping[str, Any]], above: Path = ()) -> Iterator[tuple[Path, str]]:
    """The columns that have bounds, each with its path and type: those of lists and maps have none."""
    for field in fields:
        kind, path = field["type"], (*above, field["name"])
        if isinstance(kind, str):
            yield path, kind
        elif kind.get("type") == "struct":
            yield from _typed_leaves(kind["fields"], path)


def _holds_long_decimal(kind: Any) -> bool:
    if isinstance(kind, str):
        return is_long_decimal(kind)
    return any(
        _holds_long_decimal(part)
        for part in (
            *(field["type"] for field in kind.get("fields", ())),
            *(kind[key] for key in ("elementType", "keyType", "valueType") if key in kind),
        )
    )
