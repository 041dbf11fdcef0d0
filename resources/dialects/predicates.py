"""Write a predicate as SQL; the dialect writes names, literals and comparisons."""

from __future__ import annotations

from partitions.predicate import Among, AnyOf, Between, HasValue, Predicate, SqlCondition
from resources.dialects.dialect import SqlSyntax
from resources.dialects.spark import SPARK


def predicate_sql(predicate: Predicate, dialect: SqlSyntax) -> str:
    """Return the condition that exactly the predicate's rows match, in a dialect of SQL.

    It needs no parentheses after WHERE, but does beside other conditions.

    Raises:
        ValueError: the predicate has a condition in Spark's SQL, and the dialect is another.
    """
    if isinstance(predicate, AnyOf) and predicate.parts:
        return " OR ".join(f"({_conjunct(part, dialect)})" for part in predicate.parts)
    return _conjunct(predicate, dialect)


def _conjunct(predicate: Predicate, dialect: SqlSyntax) -> str:
    """Return a condition that needs no parentheses beside AND."""
    match predicate:
        case Among():
            return _among(predicate, dialect)
        case Between():
            return _between(predicate, dialect)
        case HasValue(column):
            return f"{dialect.name(column)} IS NOT NULL"
        case SqlCondition(sql):
            if dialect is not SPARK:
                raise ValueError(f"only Spark evaluates a condition in SQL: {sql}")
            return f"({sql})"
        case AnyOf(parts):
            return _either([_conjunct(part, dialect) for part in parts])
        case _:
            return " AND ".join(_conjunct(part, dialect) for part in predicate.parts) or "1 = 1"


def _either(conditions: list[str]) -> str:
    if len(conditions) <= 1:
        return "".join(conditions) or "1 = 0"
    return f"({' OR '.join(f'({condition})' for condition in conditions)})"


def _among(predicate: Among, dialect: SqlSyntax) -> str:
    values = [value for value in predicate.values if value is not None]
    conditions = [dialect.among(predicate.column, values)] if values else []
    if None in predicate.values:
        conditions.append(f"{dialect.name(predicate.column)} IS NULL")
    return _either(conditions)


def _between(predicate: Between, dialect: SqlSyntax) -> str:
    lower, upper = predicate.lower_inclusive, predicate.upper_inclusive
    bounds = [(">=" if lower else ">", predicate.lower), ("<=" if upper else "<", predicate.upper)]
    return " AND ".join(
        dialect.compared(predicate.column, sign, bound) for sign, bound in bounds if bound is not None
    )
