"""The columns that sources of a union or a join must share (docs/reference/streams-on-spark.md).

Declared schemas and keys are checked here. The columns of a table are known when a run starts, and are
compared then (``resources.kinds.spark_stream.query``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise

from partitions.ddl import Column, DdlError, parse_ddl
from partitions.refusal import Refusal
from partitions.sources import FilesSource, SeveralSources
from partitions.sources.definition import SourceDefinition
from partitions.stream.operators import Join, Operator, Union

_SAME = {
    "byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint", "real": "float",
    "dec": "decimal", "numeric": "decimal", "character": "char", "timestamp_ltz": "timestamp",
}  # fmt: skip
"""Synonyms of type names."""

_SOURCES_OF_A_JOIN = 2
"""The number of sources of a join."""

_ONE_SIDED = ("right", "full")
"""Joins whose rows may lack the event time, which comes from the first source."""


def refusals(source: SourceDefinition, event_time: str, operators: Sequence[Operator]) -> Iterator[Refusal]:
    """Yield why several sources cannot be united or joined; nothing for a single one."""
    if not isinstance(source, SeveralSources) or not operators:
        return
    schemas = {index: columns for index, part in enumerate(source.sources) if (columns := _columns(part))}
    for index, columns in schemas.items():
        if event_time.casefold() not in columns:
            yield _missing_column(index, event_time, "the event time of each source")
    match operators[0]:
        case Union():
            yield from _union_refusals(source, event_time, schemas)
        case Join() as join:
            yield from _join_refusals(join, event_time, schemas, operators[1:])
            if len(schemas) == len(source.sources) == _SOURCES_OF_A_JOIN:
                yield from _name_clashes(source, schemas, join)


def joined_names(
    left_columns: Sequence[str], right_columns: Sequence[str], join: Join, name: str
) -> dict[str, str]:
    """Return the names in a join of the second source's columns, by their own names; without ``on``.

    Args:
        left_columns: columns of the first source.
        right_columns: columns of the second.
        join: how the sources are joined.
        name: the name of the second source.

    Raises:
        ValueError: if a new name exists already.
    """
    on, left_names = {column.casefold() for column in join.on}, {column.casefold() for column in left_columns}
    right_only = [column for column in right_columns if column.casefold() not in on]
    renamed = {
        column: f"{name}_{column}" if column.casefold() in left_names else column for column in right_only
    }
    all_names = [*left_names, *(column.casefold() for column in renamed.values())]
    if twice := next((column for column in renamed.values() if all_names.count(column.casefold()) > 1), None):
        raise ValueError(
            f"expected another name for the source {name}: the join would have two columns named {twice}"
        )
    return renamed


def _columns(source: SourceDefinition) -> Mapping[str, Column]:
    """Return the declared columns by lower-case name; empty if there are none, or they do not parse."""
    with suppress(DdlError):
        if source.declared_schema is not None:
            return {column.name.casefold(): column for column in parse_ddl(source.declared_schema)}
    return {}


def _union_refusals(
    source: SeveralSources, event_time: str, schemas: Mapping[int, Mapping[str, Column]]
) -> Iterator[Refusal]:
    first, *other_indexes = schemas or [0]
    first_columns, of_first = schemas.get(first, {}), source.sources[first].name
    for index in other_indexes:
        columns, own = schemas[index], source.sources[index].name
        for name in {**first_columns, **columns}:
            if name == event_time.casefold() and not (name in columns and name in first_columns):
                continue  # said already
            if name not in columns:
                yield _missing_column(
                    index,
                    first_columns[name].name,
                    f"the columns of {of_first} (all sources of a union have the same)",
                )
            elif name not in first_columns:
                yield _missing_column(
                    first, columns[name].name, f"the columns of {own} (all sources of a union have the same)"
                )
            elif _type(first_columns[name]) != _type(columns[name]):
                yield _type_difference(
                    index,
                    columns[name],
                    first_columns[name],
                    of_first,
                    "each column of a union has one type",
                )
    for index, part in enumerate(source.sources):
        if (
            twice := next((earlier for earlier in source.sources[:index] if _overlap(earlier, part)), None)
        ) is not None:
            key = "path" if isinstance(part, FilesSource) else "table"
            expected = f"a {key} whose rows {twice.name} does not read (a union would have them twice)"
            yield Refusal(("source", index, key), part.label, expected)


def _join_refusals(
    join: Join, event_time: str, schemas: Mapping[int, Mapping[str, Column]], after: Sequence[Operator]
) -> Iterator[Refusal]:
    for index, columns in schemas.items():
        for name in join.on:
            if name.casefold() not in columns:
                yield _missing_column(index, name, "the columns of `on`")
    for name in join.on:
        of_both = [columns[name.casefold()] for columns in schemas.values() if name.casefold() in columns]
        for column, next_column in pairwise(of_both):
            if _type(column) != _type(next_column):
                yield _type_difference(
                    1, next_column, column, "the first source", "a join compares values of one type"
                )
    if join.within is not None and join.is_on(event_time):
        expected = f"no such key, or on without {event_time} (rows with the same event time have no distance)"
        yield Refusal(("operators", 0, "within"), "both", expected)
    if join.how != "inner" and not join.is_bounded(event_time):
        expected = (
            f"within beside it, such as within: PT1H, or {event_time} among on, or how: inner (only a "
            "limit in time shows when an unmatched row can find no match any more)"
        )
        yield Refusal(("operators", 0, "how"), join.how, expected)
    if join.how in _ONE_SIDED and after:
        expected = (
            f"{', '.join(_ONE_SIDED)} last, or left with the sources swapped (rows without a match in the "
            "first source have no event time)"
        )
        yield Refusal(("operators", 0, "how"), f"{join.how} before {after[0].type}", expected)


def _name_clashes(
    source: SeveralSources, schemas: Mapping[int, Mapping[str, Column]], join: Join
) -> Iterator[Refusal]:
    left_columns, right_columns = (
        [column.name for column in columns.values()] for columns in schemas.values()
    )
    try:
        joined_names(left_columns, right_columns, join, source.sources[1].name)
    except ValueError as error:
        yield Refusal(("source", 1, "name"), source.sources[1].name, str(error).removeprefix("expected "))


def _overlap(source: SourceDefinition, second: SourceDefinition) -> bool:
    """Return whether both sources read the same rows: the same table, or a folder in a folder."""
    if isinstance(source, FilesSource) and isinstance(second, FilesSource):
        if source.connection != second.connection:
            return False
        shorter, longer = sorted((f"{part.path.rstrip('/')}/" for part in (source, second)), key=len)
        return longer.startswith(shorter)
    return source.lake_table is not None and source.lake_table == second.lake_table


def _type(column: Column) -> tuple[str, tuple[int, ...]]:
    return _SAME.get(column.type, column.type), column.numbers


def _missing_column(index: int, name: str, expected: str) -> Refusal:
    return Refusal(("source", index, "schema"), f"no column {name}", expected)


def _type_difference(index: int, column: Column, expected: Column, owner: str, why: str) -> Refusal:
    return Refusal(
        ("source", index, "schema"),
        f"{column.name} {column.type}",
        f"{expected.name} {expected.type}, as {owner} has it ({why})",
    )
