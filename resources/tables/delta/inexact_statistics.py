"""Find file statistics that leave rows out, and replace them by exact ones.

See docs/how-to/maintenance.md.

delta-rs stores the bound of a decimal as the nearest double. For more than 15 digits this bound may lie
inside the file's range, and a reader that skips files by it misses rows. For doubles delta-rs leaves out
NaN, which Spark sorts above all numbers.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from partitions.decimal_bounds import decimal_digits
from partitions.errors import TargetError, shorten_to_line
from partitions.loads import Append
from resources.connections.places import Place
from resources.spark.settings import set_all
from resources.tables.data_files.footers import file_footer
from resources.tables.data_files.statistics import column_bounds, delta_statistics
from resources.tables.delta.log import DeltaLog
from resources.tables.delta.own_limits import (
    can_remove,
    is_exact_bound,
    is_supported_location,
    partition_text,
    unmet_demand,
)

if TYPE_CHECKING:
    from deltalake import DeltaTable
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

Path = tuple[str, ...]
_FLOATS = ("float", "double")
_TIMES = ("timestamp", "timestamp_ntz")
_SKIPPING = "spark.databricks.delta.stats.skipping"
_MAX_ATTEMPTS = 20
"""Number of attempts while other writers take the next version."""


def is_long_decimal(data_type: Any) -> bool:
    """Return whether a type is a decimal with more digits than a double holds."""
    digits = decimal_digits(data_type)
    return digits is not None and digits.precision > sys.float_info.dig


def needs_spark_to_join(table: DeltaTable) -> bool:
    """Return whether delta-rs would write bounds that leave rows out, for long decimals or NaN."""
    fields = _fields(table)
    return any(_holds_long_decimal(field["type"]) for field in fields) or bool(
        _files_with_bounds(table, _leaves_of_types(fields, _FLOATS), _may_hide_nan)
    )


def files_with_doubtful_bounds(table: DeltaTable) -> list[str]:
    """Return the paths of the files whose bound of a long decimal may be a rounded double."""
    leaves = [path for path, data_type in _typed_leaves(_fields(table)) if is_long_decimal(data_type)]
    return _files_with_bounds(table, leaves, _may_be_double)


def misread_columns(table: DeltaTable, columns: Collection[str]) -> frozenset[str]:
    """Return the columns whose text bounds deltalake may misread."""
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


def disable_data_skipping(session: SparkSession, table: DeltaTable | None) -> None:
    """Turn off Delta's data skipping in a session if a table's statistics may leave rows out.

    It stays off for the rest of the session, which is that of one run, because a user's own conditions are
    compared with statistics, too.
    """
    if table is not None and files_with_doubtful_bounds(table):
        set_all(session, {_SKIPPING: "false"})


def files_with_wrong_bounds(log: DeltaLog, table: DeltaTable) -> list[str]:
    """Return the paths of the files whose bounds of a long decimal or a misread text leave rows out.

    Their footers decide.

    Raises:
        SourceError: a file cannot be read.
    """
    typed_leaves = list(_typed_leaves(_fields(table)))
    decimals = [path for path, data_type in typed_leaves if is_long_decimal(data_type)]
    texts = [path for path, data_type in typed_leaves if data_type == "string"]
    doubtful = {
        *_files_with_bounds(table, decimals, _may_be_double),
        *_files_with_bounds(table, texts, _may_be_misread),
    }
    if not doubtful:
        return []
    return [
        action["path"]
        for action in _actions(table)
        if action["path"] in doubtful and _has_wrong_bounds(log.place, action, decimals, texts)
    ]


def correct_statistics(log: DeltaLog) -> int:
    """Write exact statistics of the files whose bounds leave rows out; return the number of files.

    A table that needs more of a writer stays as it is.

    Raises:
        SourceError: a file cannot be read.
        TargetError: they cannot be written; no row was changed.
    """
    table = log.table()
    if table is None or not can_write_statistics(log, table):
        return 0
    paths = files_with_wrong_bounds(log, table)
    return write_exact_statistics(log, paths) if paths else 0


def write_exact_statistics(log: DeltaLog, paths: Sequence[str]) -> int:
    """Add files of a table once more with exact statistics, in one commit that changes no row.

    The caller has checked :func:`can_write_statistics`.

    Args:
        log: log of the table.
        paths: paths of the files in the log; files that the table no longer has are left out.

    Returns:
        The number of files.

    Raises:
        TargetError: its log cannot be written.
    """
    for _ in range(_MAX_ATTEMPTS):
        table = log.table()
        if table is None:
            return 0
        chosen_paths = set(paths)
        actions = [action for action in _actions(table) if action["path"] in chosen_paths]
        if not actions:
            return 0
        try:
            _commit(log, table, actions)
        except Exception as error:
            newest_table = log.table()
            if newest_table is None or newest_table.version() == table.version():
                raise TargetError(
                    f"table {log.place}: its statistics cannot be written: {shorten_to_line(str(error))}. No row was changed"
                ) from error
        else:
            return len(actions)
    raise TargetError(
        f"table {log.place}: other writers committed first {_MAX_ATTEMPTS} times in a row. No row was changed. Run again"
    )


def has_cut_bounds(table: DeltaTable) -> bool:
    """Return whether a table has columns whose bounds a join of files cuts or omits.

    Times are cut to milliseconds; long decimals and NaN are inexact.
    """
    return any(
        data_type in (*_TIMES, *_FLOATS) or is_long_decimal(data_type)
        for _, data_type in _typed_leaves(_fields(table))
    )


def can_write_statistics(log: DeltaLog, table: DeltaTable) -> bool:
    """Return whether our own commit can write statistics of a table's files.

    The table must be plain, and deltalake must write its paths and partition values as they stand in the
    log.
    """
    if not is_supported_location(log.place) or unmet_demand(table, Append()) is not None:
        return False
    columns = [f"partition.{name}" for name in table.metadata().partition_columns]
    return all(
        can_remove(action["path"])
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


def _has_wrong_bounds(
    place: Place, action: Mapping[str, Any], decimals: Sequence[Path], texts: Sequence[Path]
) -> bool:
    """Return whether the log's bounds of a file lie inside its footer's; False if the footer has none."""
    footer = file_footer(place, unquote(action["path"]), action["size_bytes"])
    for path in (*decimals, *texts):
        bounds = column_bounds(footer, path)
        name = ".".join(path)
        if bounds is None or action.get(f"null_count.{name}") is None:
            continue
        lower, upper = action.get(f"min.{name}"), action.get(f"max.{name}")
        if path in decimals and (lower is None or upper is None):
            return True  # a double in a form that deltalake cannot parse
        if (lower is not None and lower > bounds[0]) or (upper is not None and upper < bounds[1]):
            return True
    return False


def _files_with_bounds(
    table: DeltaTable, leaves: Sequence[Path], is_doubtful: Callable[[Any], bool]
) -> list[str]:
    """Return the paths of the files with a doubtful bound among these columns."""
    if not leaves:
        return []
    actions = _actions(table)
    return [
        action["path"]
        for action in actions
        if any(_has_doubtful_bound(action, ".".join(path), is_doubtful) for path in leaves)
    ]


def _has_doubtful_bound(action: Mapping[str, Any], name: str, is_doubtful: Callable[[Any], bool]) -> bool:
    nulls, rows = action.get(f"null_count.{name}"), action.get("num_records")
    lower, upper = action.get(f"min.{name}"), action.get(f"max.{name}")
    if lower is None and upper is None and (nulls is None or nulls == rows):
        return False  # the log has no statistics of the column, or every value is NULL
    return is_doubtful(lower) or is_doubtful(upper)


def _may_be_double(bound: Any) -> bool:
    """Return whether a bound may be a rounded double.

    None is a bound that deltalake cannot parse, such as 1.2e+17.
    """
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


def _leaves_of_types(fields: Sequence[Mapping[str, Any]], data_types: Sequence[str]) -> list[Path]:
    return [path for path, data_type in _typed_leaves(fields) if data_type in data_types]


def _typed_leaves(fields: Sequence[Mapping[str, Any]], parent_path: Path = ()) -> Iterator[tuple[Path, str]]:
    """Yield path and type of each column that can have bounds; lists and maps have none."""
    for field in fields:
        data_type, path = field["type"], (*parent_path, field["name"])
        if isinstance(data_type, str):
            yield path, data_type
        elif data_type.get("type") == "struct":
            yield from _typed_leaves(data_type["fields"], path)


def _holds_long_decimal(data_type: Any) -> bool:
    if isinstance(data_type, str):
        return is_long_decimal(data_type)
    return any(
        _holds_long_decimal(inner_type)
        for inner_type in (
            *(field["type"] for field in data_type.get("fields", ())),
            *(data_type[key] for key in ("elementType", "keyType", "valueType") if key in data_type),
        )
    )
