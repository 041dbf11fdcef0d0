"""Which rows fail a rule, as conditions of Spark.

Tables are read for ``unique`` and ``references`` alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from partitions.loads import ByKeys, Load, Replace, ReplaceAll, Scd2, Upsert
from partitions.predicate import NOTHING
from partitions.rules.definition import Rule
from partitions.rules.values import accepted_literal
from partitions.sources.database_types import ColumnType
from partitions.target import DELETES_COLUMN, HELPER_PREFIX
from resources.dialects.predicates import predicate_sql
from resources.dialects.spark import SPARK
from resources.loop.context import RunContext
from resources.loop.rules.fitting import column_types
from resources.sql import all_of, any_of, quoted
from resources.tables.rows.delete_marks import is_delete
from resources.watermarks.entry import Intent

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_HELPER = f"{HELPER_PREFIX}rule_"
"""Prefix of helper columns: what a table or the slice's other rows say of a row."""


@dataclass(frozen=True)
class Failures:
    """Rows, and the conditions by which they fail rules.

    Attributes:
        rows: the rows, with helper columns.
        by_rule: by the name of each rule, whether a row fails it; never NULL.
        helpers: names of the helper columns.
    """

    rows: DataFrame
    by_rule: Mapping[str, Column]
    helpers: Sequence[str]


class PlannedTables(NamedTuple):
    """The tables that rules look into, at the versions of an intent.

    Attributes:
        run: the run, which reads them.
        intent: the slice's intent, which fixes their versions.
    """

    run: RunContext[Any]
    intent: Intent


def failures(tables: PlannedTables | None, rows: DataFrame, rules: Sequence[Rule], load: Load) -> Failures:
    """Return the conditions by which rows of a slice fail its rules.

    Args:
        tables: the tables that rules look into; None: only the rows themselves count.
        rows: the slice's rows, with the marks of deletes.
        rules: the rules.
        load: the load of the slice: rows of the table that it replaces do not count.
    """
    columns = list(rows.columns)
    by_rule: dict[str, Column] = {}
    types = column_types(rows)
    for number, rule in enumerate(rules):
        if rule.unique is not None:
            rows, by_rule[rule.label] = _not_unique(tables, rows, rule.unique, load, number)
        elif rule.references is not None:
            rows, by_rule[rule.label] = _unreferenced(tables, rows, rule, number)
        else:
            by_rule[rule.label] = _fails(rule, types)
    helpers = [name for name in rows.columns if name not in columns]
    return Failures(rows, by_rule, helpers)


def _fails(rule: Rule, types: Mapping[str, ColumnType | None]) -> Column:
    """Return whether a row fails a rule that only its own values decide."""
    from pyspark.sql import functions as F

    if rule.expect is not None:
        return ~F.coalesce(F.expr(f"({rule.expect})"), F.lit(True))
    if rule.not_null is not None:
        return any_of([F.col(quoted(name)).isNull() for name in rule.not_null])
    assert rule.accepted is not None
    fails = []
    for name, values in rule.accepted.items():
        literals = [accepted_literal(value, types.get(name.casefold())) for value in values]
        fitting = [literal for literal in literals if literal is not None]  # no row has one of the others
        fails.append(F.coalesce(~F.col(quoted(name)).isin(fitting), F.lit(False)))
    return any_of(fails)


def _not_unique(
    tables: PlannedTables | None, rows: DataFrame, columns: Sequence[str], load: Load, number: int
) -> tuple[DataFrame, Column]:
    """Return rows with a helper column, and whether their values occur more than once.

    All rows of the slice with the same values fail: nothing says which of them is right. Rows of one merge
    key are one row, however often it changes.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    repeated = f"{_HELPER}{number}"
    values = [F.col(quoted(name)) for name in columns]
    has_values = ~any_of([value.isNull() for value in values])
    window = Window.partitionBy(*values)
    counts = has_values & ~is_delete(DELETES_COLUMN if DELETES_COLUMN in rows.columns else None)
    if isinstance(load, ByKeys):
        key = F.when(counts, F.struct(*[F.col(quoted(name)) for name in load.keys]))
        is_repeated = F.min(key).over(window) != F.max(key).over(window)
    else:
        is_repeated = F.count(F.when(counts, 1)).over(window) > 1
    rows = rows.withColumn(repeated, has_values & F.coalesce(is_repeated, F.lit(False)))
    stored = None if tables is None else _stored_values(tables, columns, load, number)
    fails = F.col(repeated)
    if stored is None:
        return rows, fails
    same = [F.col(quoted(name)) == F.col(f"{_HELPER}{number}_v{place}") for place, name in enumerate(columns)]
    rows = rows.join(stored, all_of(same), "left")
    in_table = F.col(f"{_HELPER}{number}_v0").isNotNull()
    if isinstance(load, ByKeys):
        own_key = F.struct(*[F.col(quoted(name)) for name in load.keys])
        first, last = (F.col(f"{_HELPER}{number}_{end}") for end in ("first", "last"))
        in_table = in_table & ((first != own_key) | (last != own_key))
    return rows, fails | F.coalesce(in_table, F.lit(False))


def _stored_values(
    tables: PlannedTables, columns: Sequence[str], load: Load, number: int
) -> DataFrame | None:
    """Return the values that the table has in some columns, each once; None if it has none.

    Rows that the load replaces do not count. For a load by keys the lowest and the highest key with the
    values are returned as well.
    """
    from pyspark.sql import functions as F

    run, intent = tables
    empties = intent.replaces == "table" or isinstance(load, ReplaceAll)
    if empties or intent.table_version is None or not run.table.exists():
        return None
    needed = {name.casefold() for name in (*columns, *(load.keys if isinstance(load, ByKeys) else ()))}
    if not needed <= {name.casefold() for name in run.table.contents.columns()}:
        return None
    stored = run.table.contents.read(run.spark, intent.table_version)
    where = load.where if isinstance(load, Replace | Upsert) else NOTHING
    if where != NOTHING:
        stored = stored.where(f"NOT coalesce({predicate_sql(where, SPARK)}, false)")
    if isinstance(load, Scd2):
        stored = stored.where(F.col(quoted(load.names.is_current)))
    values = [F.col(quoted(name)).alias(f"{_HELPER}{number}_v{place}") for place, name in enumerate(columns)]
    stored = stored.where(~any_of([F.col(quoted(name)).isNull() for name in columns]))
    if not isinstance(load, ByKeys):
        return stored.select(*values).distinct()
    key = F.struct(*[F.col(quoted(name)) for name in load.keys])
    return stored.groupBy(*values).agg(
        F.min(key).alias(f"{_HELPER}{number}_first"), F.max(key).alias(f"{_HELPER}{number}_last")
    )


def _unreferenced(
    tables: PlannedTables | None, rows: DataFrame, rule: Rule, number: int
) -> tuple[DataFrame, Column]:
    """Return rows with helper columns, and whether they have a value that its table lacks."""
    from pyspark.sql import functions as F

    if tables is None:
        return rows, F.lit(False)
    run, intent = tables
    versions = (intent.rules or {}).get("versions", {})
    fails: list[Column] = []
    for place, (column, reference) in enumerate(rule.referenced.items()):
        helper = f"{_HELPER}{number}_r{place}"
        referenced = run.references.read(run.spark, {reference.table: versions[reference.table]})
        values = referenced[reference.table].select(F.col(quoted(reference.column)).alias(helper))
        rows = rows.join(
            values.where(F.col(helper).isNotNull()).distinct(), F.col(quoted(column)) == F.col(helper), "left"
        )
        fails.append(F.col(quoted(column)).isNotNull() & F.col(helper).isNull())
    return rows, any_of(fails)
