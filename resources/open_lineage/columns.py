"""The columns that a column of ``sql`` comes from, and the tables that a query names.

sqlglot parses them. What it cannot tell has no lineage: a run never fails by it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

How = Literal["IDENTITY", "AGGREGATION", "TRANSFORMATION"]
"""OpenLineage's words for what becomes of the values of a column."""

_QUOTES = '"`'

_UNCHECKED: dict[str, Any] = {"validate_qualify_columns": False, "identify": False}
"""Columns that loading adds to the views have no schema here."""


class Origin(NamedTuple):
    """A column that another one is made of.

    Attributes:
        view: the view of ``sql``.
        column: its column, spelled as in the view.
        how: OpenLineage's word for what becomes of its values.
    """

    view: str
    column: str
    how: How


def origins(sql: str, views: Mapping[str, Sequence[str]]) -> Mapping[str, Sequence[Origin]]:
    """Return the origins of each column of a query, by its name in lower case; empty if they are unknown.

    Args:
        sql: a query in Spark's SQL.
        views: the columns of each view.
    """
    try:
        from sqlglot import exp
        from sqlglot.errors import SqlglotError
        from sqlglot.lineage import lineage
        from sqlglot.optimizer.qualify import qualify
    except ImportError:
        return {}
    schema: dict[str, Any] = {view: dict.fromkeys(columns, "string") for view, columns in views.items()}
    spelled = {
        (view.casefold(), column.casefold()): (view, column)
        for view, columns in views.items()
        for column in columns
    }
    try:
        parsed: Any = exp.maybe_parse(sql, dialect="spark")
        query: Any = qualify(parsed, schema=schema, dialect="spark", **_UNCHECKED)
        by_column: dict[str, Sequence[Origin]] = {}
        for select in query.selects:
            name = select.alias_or_name
            node = lineage(name, query.copy(), schema=schema, dialect="spark", **_UNCHECKED)
            leaves = [
                spelled.get(
                    (step.expression.name.casefold(), step.name.rpartition(".")[2].strip(_QUOTES).casefold())
                )
                for step in node.walk()
                if isinstance(step.expression, exp.Table)
            ]
            how = _how(
                [step.expression for step in node.walk() if not isinstance(step.expression, exp.Table)]
            )
            by_column[name.casefold()] = [Origin(*leaf, how) for leaf in dict.fromkeys(filter(None, leaves))]
    except (SqlglotError, RecursionError, ValueError, KeyError):
        return {}
    return by_column


def tables_of_query(query: str, dialect: str) -> Sequence[tuple[str, ...]]:
    """Return the tables that a query names, each as the parts of its name; none if it does not parse.

    Args:
        query: a SELECT.
        dialect: sqlglot's name of its SQL.
    """
    try:
        from sqlglot import exp, parse_one
        from sqlglot.errors import SqlglotError
    except ImportError:
        return ()
    try:
        tree = parse_one(query, dialect=dialect)
    except (SqlglotError, RecursionError):
        return ()
    own = {cte.alias.casefold() for cte in tree.find_all(exp.CTE)}
    tables = (
        tuple(part.name for part in table.parts)
        for table in tree.find_all(exp.Table)
        if table.db or table.name.casefold() not in own
    )
    return tuple(dict.fromkeys(filter(all, tables)))


def _how(steps: Sequence[Any]) -> How:
    """Return what becomes of values on the way through the expressions of a column."""
    from sqlglot import exp

    if any(step.find(exp.AggFunc) for step in steps):
        return "AGGREGATION"
    return "IDENTITY" if all(isinstance(step.unalias(), exp.Column) for step in steps) else "TRANSFORMATION"
