"""Check that rules fit the rows of a slice, before its intent: nothing is read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from partitions.errors import ConfigurationError
from partitions.reconcile.families import type_in_table, type_in_words
from partitions.rules.definition import COLUMNS, Rule, rejects
from partitions.rules.values import accepted_literal, are_comparable
from partitions.sources.database_types import ColumnType
from partitions.sql_condition import named_columns
from resources.loop.context import RunContext
from resources.spark.failures import root_cause
from resources.spark.frames import analyse_condition
from resources.tables.rows.deduplicate import has_no_order

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_REMEDY = "Correct the rule, or add the column in sql or transform"
_CAST = "Correct the rule, or cast the column in sql"


def column_types(rows: DataFrame) -> dict[str, ColumnType | None]:
    """Return the types of columns by their names without case; None: a nested type."""
    return _types(rows.schema.jsonValue())


def check_row_rules(run: RunContext[Any], rows: DataFrame) -> None:
    """Raise if a rule does not fit the rows; nothing is read.

    Raises:
        ConfigurationError: code ``query``: it names no column of the rows, or one that they lack; its values
            are not the column's; or Spark refuses its condition.
    """
    rules = run.dataflow.rules
    if not rules:
        return  # on Spark Connect nothing is looked at before it is asked for
    own_columns = [name for name in rows.columns if name.casefold() in COLUMNS]
    if own_columns and rejects(rules):
        raise ConfigurationError(
            f"dataflow {run.name}: rules: expected rows without the columns that a table of rejected rows adds, found "
            f"{', '.join(own_columns)}. Name them otherwise in sql",
            code="query",
        )
    types = column_types(rows)
    for rule in rules:
        problem = _missing(rule, rows) or _misfit(run, rule, types) or _refused(rule, rows)
        if problem:
            raise ConfigurationError(f"dataflow {run.name}: rule {rule.label}: {problem}", code="query")


def _missing(rule: Rule, rows: DataFrame) -> str | None:
    """Return, for people, which columns of a rule the rows lack."""
    names = {name.casefold() for name in rows.columns}
    missing = [name for name in rule.columns if name.casefold() not in names]
    names_none = rule.expect is not None and not named_columns(rule.expect, rows.columns)
    if not missing and not names_none:
        return None
    lack = f"no column {', '.join(missing)}" if missing else f"none of them in {rule.expect!r}"
    return f"expected columns of the rows ({', '.join(rows.columns)}), found {lack}. {_REMEDY}"


def _misfit(run: RunContext[Any], rule: Rule, types: Mapping[str, ColumnType | None]) -> str | None:
    """Return, for people, what a rule compares with a column that has no such values."""
    for name, values in (rule.accepted or {}).items():
        type_ = types[name.casefold()]
        unfit = next((value for value in values if accepted_literal(value, type_) is None), None)
        if unfit is not None:
            return (
                f"expected values of column {name}, which holds {_in_words(type_)}, found {unfit!r}. {_CAST}"
            )
    for name, reference in rule.referenced.items():
        schema = run.references.tables[reference.table].contents.schema()
        columns = {} if schema is None else _types(json.loads(schema[1]))
        if reference.column.casefold() not in columns:
            return (
                f"expected a column of table {reference.table}, found no {reference.column} among "
                f"{', '.join(columns)}. Correct the rule"
            )
        own, other = types[name.casefold()], columns[reference.column.casefold()]
        if not are_comparable(own, other):
            return (
                f"expected columns of the same type, found {name} with {_in_words(own)}, and {reference.table}."
                f"{reference.column} with {_in_words(other)}. {_CAST}"
            )
    return None


def _refused(rule: Rule, rows: DataFrame) -> str | None:
    """Return, for people, why Spark refuses a condition, or cannot compare a rule's columns."""
    if rule.unique is not None:
        names = {name.casefold() for name in rule.unique}
        for name, data_type in rows.dtypes:
            if name.casefold() in names and has_no_order(data_type):
                return (
                    f"expected columns whose values can be compared, found {name} of type {data_type}. "
                    "In sql, replace it by parts of it or by to_json of it"
                )
    if rule.expect is None:
        return None
    try:
        analyse_condition(rows, rule.expect)
    except Exception as error:  # noqa: BLE001 - each kind of session has errors of its own
        return (
            f"expected a condition on the rows' columns ({', '.join(rows.columns)}), found {rule.expect!r}: "
            f"{root_cause(error).rstrip(' .;')}. {_REMEDY}"
        )
    return None


def _in_words(type_: ColumnType | None) -> str:
    return "a nested type" if type_ is None else type_in_words(type_)


def _types(schema: Mapping[str, Any]) -> dict[str, ColumnType | None]:
    return {field["name"].casefold(): type_in_table(field["type"]) for field in schema["fields"]}
