"""The condition of a delete: what it must be like, and which rows of the table match it.

See docs/how-to/deleting-and-keeping.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from partitions.dataflow import Dataflow
from partitions.errors import ConfigurationError
from partitions.sql_condition import changing_part, column_of_run, named_columns
from partitions.target import DATAFLOW_COLUMN
from resources.loop.context import RunContext
from resources.loop.deleting import fails_on_a_row, refused_condition
from resources.sources.files.paths import SOURCE_FILE
from resources.spark.failures import fails_on_values, root_cause
from resources.sql import quoted
from resources.tables.contract.table import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_EXAMPLES = 3
_LONGEST_VALUE = 40

_FILE = "_strandline_file"


@dataclass(frozen=True)
class Condition:
    """A condition that fits a table.

    Attributes:
        predicate: the condition in Spark's SQL.
        columns: types of the columns that it names, by name, in Spark's words.
    """

    predicate: str
    columns: Mapping[str, str]


@dataclass(frozen=True)
class MatchingRows:
    """The rows of a table that a condition matches now.

    Attributes:
        rows: their number.
        total: number of all rows of the dataflow in the table.
        files: number of data files that hold them.
        source_files: number of source files that they came from; None if the rows do not tell.
        partitions: number of partitions that hold them; None if the table has none.
        examples: some of them, with the columns that the condition names, the keys and the source file.
    """

    rows: int
    total: int
    files: int
    source_files: int | None = None
    partitions: int | None = None
    examples: Sequence[Mapping[str, str]] = ()

    def as_json(self) -> dict[str, Any]:
        """Return the counts in the public JSON form (docs/reference/cli.md, JSON)."""
        return {
            "rows": self.rows,
            "total_rows": self.total,
            "files": self.files,
            "source_files": self.source_files,
            "partitions": self.partitions,
            "examples": [dict(example) for example in self.examples],
        }


def check_condition(run: RunContext[Any], where: str) -> Condition:
    """Check the condition of a delete; return it with the types of its columns.

    Raises:
        ConfigurationError: code ``predicate``: it does not fit the table, or may mean something else later;
            code ``nothing_to_delete``: there is no table.
    """
    dataflow, table = run.dataflow, run.table
    predicate = where.strip()
    columns = table.contents.columns()
    if not columns:
        raise ConfigurationError(
            f"dataflow {dataflow.name}: expected a table with rows to delete, found none at {dataflow.table}. Run the dataflow first",
            code="nothing_to_delete",
            choices=(f"strandline run {dataflow.name}",),
        )
    names = named_columns(predicate, columns)
    _check_text(dataflow, predicate, columns, names)
    rows = table.contents.read(run.spark, table.contents.newest_version())
    try:
        # Rows of a slice have neither the table's name nor its hidden columns, such as _metadata.
        _ = _matching(run.spark.createDataFrame([], rows.schema), predicate).schema
    except Exception as error:
        raise refused_condition(
            dataflow, f"a condition that Spark accepts for the columns of {dataflow.table}", root_cause(error)
        ) from error
    types = dict(rows.dtypes)
    return Condition(predicate, {name: types[name] for name in names if name in types})


def _check_text(dataflow: Dataflow, predicate: str, columns: Sequence[str], names: Sequence[str]) -> None:
    """Raise ConfigurationError if a condition changes with time, names no column, or one of the run."""
    if changing := changing_part(predicate, columns):
        raise refused_condition(
            dataflow,
            "a condition that means the same at any time, since it stays in force",
            f"{changing} in {predicate!r}",
            "Write the value itself",
        )
    if not names:
        all_rows = f"strandline state reset {dataflow.name} --replace --reason TEXT"
        raise refused_condition(
            dataflow,
            f"a condition on columns of {dataflow.table} ({', '.join(columns)})",
            repr(predicate) if predicate else "nothing",
            f"To empty the table and load it again: {all_rows}",
        )
    if of_run := column_of_run(names, dataflow.target.history_columns(records_deletes=dataflow.deletes_keys)):
        raise refused_condition(
            dataflow,
            "columns of the rows themselves",
            f"{of_run}, whose value differs when a row is loaded again",
            f"Name the rows otherwise; to take back a run: strandline state rewind {dataflow.name} --to NUMBER --replace --reason TEXT",
        )


def matching_rows(run: RunContext[Any], condition: Condition) -> MatchingRows:
    """Count the rows of the table that a condition matches; return the counts with some examples.

    Raises:
        ConfigurationError: code ``predicate``: the condition fails on a row.
    """
    try:
        return _count_matching(run, condition)
    except Exception as error:
        if not fails_on_values(error):
            raise
        raise fails_on_a_row(run.dataflow, error) from error


def _count_matching(run: RunContext[Any], condition: Condition) -> MatchingRows:
    from pyspark.sql import functions as F

    dataflow, table = run.dataflow, run.table
    rows = own_rows(run, table)
    total = rows.count()
    matching = _matching(rows, condition.predicate)
    names = {name.casefold(): name for name in rows.columns}
    source_file = names.get(SOURCE_FILE.casefold())
    partition_columns = [
        names[name.casefold()] for name in dataflow.target.partition_by if name.casefold() in names
    ]
    located = matching.select("*", F.input_file_name().alias(_FILE))
    counts = [F.count(F.lit(1)).alias("rows"), F.countDistinct(F.col(_FILE)).alias("files")]
    if source_file:
        counts.append(F.countDistinct(F.col(quoted(source_file))).alias("source_files"))
    if partition_columns:
        partition = F.struct(*(F.col(quoted(name)) for name in partition_columns))
        counts.append(F.count_distinct(partition).alias("partitions"))
    (row,) = located.agg(*counts).collect()
    values = row.asDict()
    example_columns = dict.fromkeys(
        names[name.casefold()]
        for name in (*condition.columns, *dataflow.target.merge_keys, *([source_file] if source_file else ()))
        if name.casefold() in names
    )
    examples = matching.select(
        *(F.col(quoted(name)).cast("string").alias(name) for name in example_columns)
    ).limit(_EXAMPLES)
    return MatchingRows(
        values["rows"],
        total,
        values["files"],
        values.get("source_files"),
        values.get("partitions"),
        [
            {name: _shortened(value) for name, value in example.asDict().items()}
            for example in examples.collect()
        ]
        if values["rows"]
        else (),
    )


def own_rows(run: RunContext[Any], table: Table) -> DataFrame:
    """Return the dataflow's rows of the newest version of a table."""
    from pyspark.sql import functions as F

    rows = table.contents.read(run.spark, table.contents.newest_version())
    if run.dataflow.target.shared and DATAFLOW_COLUMN in rows.columns:
        return rows.where(F.col(DATAFLOW_COLUMN) == F.lit(run.name))
    return rows


def without_rows(rows: DataFrame, predicate: str) -> DataFrame:
    """Return the rows for which a condition is not true."""
    from pyspark.sql import functions as F

    return rows.where(~F.coalesce(F.expr(f"({predicate})"), F.lit(False)))


def _matching(rows: DataFrame, predicate: str) -> DataFrame:
    from pyspark.sql import functions as F

    return rows.where(F.expr(f"({predicate})"))


def _shortened(value: str | None) -> str:
    text = "NULL" if value is None else value
    return text if len(text) <= _LONGEST_VALUE else f"{text[: _LONGEST_VALUE - 1]}…"
