"""Which columns of a source and of its table are compared, and why others are not."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from partitions.errors import ConfigurationError
from partitions.reconcile.families import MAX_DIMENSIONS, family_of, type_in_words
from partitions.sources.database_types import ColumnType


@dataclass(frozen=True)
class ComparedColumn:
    """A column that both sides have.

    Attributes:
        name: its name in the table.
        source_name: its name at the source.
        source_type: its type at the source.
        table_type: its type in the table.
    """

    name: str
    source_name: str
    source_type: ColumnType
    table_type: ColumnType


@dataclass(frozen=True)
class NotCompared:
    """A column that is not compared.

    Attributes:
        name: its name.
        why: the reason, in words.
    """

    name: str
    why: str

    def as_json(self) -> dict[str, str]:
        """Return the public JSON form (docs/reference/cli.md, reconcile)."""
        return {"column": self.name, "why": self.why}


@dataclass(frozen=True)
class MatchedColumns:
    """The columns of both sides.

    Attributes:
        compared: columns with a canonical text on both sides, in the table's order.
        others: columns that are not compared, each with its reason.
    """

    compared: Sequence[ComparedColumn]
    others: Sequence[NotCompared]

    def named(self, names: Sequence[str], dataflow: str, purpose: str) -> tuple[ComparedColumn, ...]:
        """Return some columns, which a comparison needs.

        Args:
            names: names in the table, in any case.
            dataflow: dataflow, for the error.
            purpose: what they are, in words, such as ``merge_keys``.

        Raises:
            ConfigurationError: one of them cannot be compared.
        """
        by_name = {column.name.casefold(): column for column in self.compared}
        whys = {other.name.casefold(): other.why for other in self.others}
        for name in names:
            if name.casefold() not in by_name:
                why = whys.get(name.casefold(), "neither side has it")
                raise ConfigurationError(
                    f"dataflow {dataflow}: expected {purpose} that both sides can compare, found {name}: {why}"
                )
        return tuple(by_name[name.casefold()] for name in names)


def match_columns(
    source: Mapping[str, ColumnType],
    table: Mapping[str, ColumnType | None],
    own_columns: Collection[str],
    immutable: Collection[str] = (),
) -> MatchedColumns:
    """Match the columns of both sides by name, ignoring case.

    Args:
        source: types at the source, by name.
        table: types in the table, by name; None: a nested type.
        own_columns: columns of the table that loading adds, which no source has.
        immutable: columns of the table that keep their first value.
    """
    at_source = {name.casefold(): name for name in source}
    added = {name.casefold() for name in own_columns}
    first_values = {name.casefold() for name in immutable}
    compared, others = list[ComparedColumn](), list[NotCompared]()
    for name, table_type in table.items():
        source_name = at_source.pop(name.casefold(), None)
        if source_name is None:
            if name.casefold() not in added:
                others.append(NotCompared(name, "the source does not have it"))
            continue
        source_type = source[source_name]
        if name.casefold() in first_values:
            others.append(NotCompared(name, "the table keeps its first value (target.immutable)"))
            continue
        if why := _why_not(source_type, table_type):
            others.append(NotCompared(name, why))
            continue
        assert table_type is not None
        is_time = source_type.is_time_of_day
        compared.append(
            ComparedColumn(name, source_name, source_type, replace(table_type, is_time_of_day=is_time))
        )
    others += [NotCompared(name, "the table does not have it") for name in at_source.values()]
    return MatchedColumns(compared, others)


def _why_not(source_type: ColumnType, table_type: ColumnType | None) -> str | None:
    """Return why two columns have no common canonical text; None if they have one."""
    if table_type is None or family_of(table_type) is None:
        return "the table holds a nested type, which has no canonical text"
    if family_of(source_type) is None:
        return f"the source has the type {source_type.data_type}, which has no canonical text"
    if source_type.dimensions > MAX_DIMENSIONS:
        return f"it is an array of more than {MAX_DIMENSIONS} dimensions"
    kinds = {
        "text" if family_of(type_) == "time" else family_of(type_) for type_ in (source_type, table_type)
    }
    if len(kinds) > 1 or source_type.dimensions != table_type.dimensions:
        return f"the source has {type_in_words(source_type)}, the table {type_in_words(table_type)}"
    return None
