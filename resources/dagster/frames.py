"""Convert rows between Arrow and the types of frames that users' assets take and return.

See docs/reference/dagster.md, Your own assets. A type is recognised by its name, so that no library is imported before a parameter needs it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

from partitions.errors import ConfigurationError
from resources.sources.python.yielded import Raw, raw_batches

if TYPE_CHECKING:
    import polars as pl
    import pyarrow as pa

ReadRows = Callable[[Sequence[str] | None], "pa.RecordBatchReader"]
"""Returns columns (None: all) of the rows; each call reads them again."""


class ReturnedRows(NamedTuple):
    """The rows that an asset returned.

    Attributes:
        schema: their schema; None: the batches are dict rows, whose values tell it.
        batches: the rows, which can be read once.
        close: ends the read; a connection of DuckDB takes no other query before.
    """

    schema: pa.Schema | None
    batches: Iterable[Raw]
    close: Callable[[], None] = lambda: None


def _in_memory(frame: Any) -> ReturnedRows:
    (table,) = raw_batches(frame)
    return ReturnedRows(table.schema, [table])


@dataclass(frozen=True)
class ArrowFrame:
    """A type that Arrow's rows are converted to, and from.

    Attributes:
        name: the type, as a user writes it.
        package: the package that a user installs for it.
        module: the first part of the name of the type's module.
        convert: returns rows as this type.
        returned: returns the rows of a value of this type.
    """

    name: str
    package: str
    module: str
    convert: Callable[[ReadRows], Any]
    returned: Callable[[Any], ReturnedRows] = _in_memory

    def is_annotated_by(self, annotation: type) -> bool:
        """Return whether an annotation is this type."""
        module = annotation.__module__.split(".")[0].lstrip("_")
        return module == self.module and annotation.__name__ == self.name.rpartition(".")[2]

    def is_type_of(self, value: object) -> bool:
        """Return whether a value has this type, or a type that is derived from it."""
        return any(map(self.is_annotated_by, type(value).__mro__))

    def read(self, rows: ReadRows, what: str) -> Any:
        """Return the rows as this type.

        Args:
            rows: the rows.
            what: the input, for an error.

        Raises:
            ConfigurationError: the package is not installed.
        """
        try:
            return self.convert(rows)
        except ModuleNotFoundError as error:
            if (error.name or "").split(".")[0] != self.module:
                raise
            raise ConfigurationError(
                f"{what}: expected the package {self.package} for {self.name}, found none installed: pip install {self.package}"
            ) from error


def _to_table(rows: ReadRows) -> pa.Table:
    return rows(None).read_all()


def _to_dataset(rows: ReadRows) -> Any:
    import pyarrow.dataset as ds

    return ds.dataset(_to_table(rows))


def _to_pandas(rows: ReadRows) -> Any:
    import pandas as pd

    frame: pd.DataFrame = _to_table(rows).to_pandas()
    return frame


def _to_polars(rows: ReadRows) -> pl.DataFrame:
    import polars as pl

    frame = pl.from_arrow(_to_table(rows))
    assert isinstance(frame, pl.DataFrame)
    return frame


def _to_lazy_polars(rows: ReadRows) -> pl.LazyFrame:
    """Return a frame that reads the columns that a query needs when it is collected."""
    import polars as pl
    from polars.io.plugins import register_io_source

    def read(
        columns: list[str] | None, condition: pl.Expr | None, limit: int | None, _: int | None
    ) -> Iterator[pl.DataFrame]:
        for batch in rows(columns):
            frame = pl.from_arrow(batch)
            assert isinstance(frame, pl.DataFrame)
            if limit is not None:  # of all rows: Polars pushes no limit below a condition
                frame = frame.head(limit)
                limit -= frame.height
            yield frame if condition is None else frame.filter(condition)
            if limit == 0:
                return

    no_rows = pl.from_arrow(rows(None).schema.empty_table())
    assert isinstance(no_rows, pl.DataFrame)
    return register_io_source(read, schema=no_rows.schema)


def _to_duckdb(rows: ReadRows) -> Any:
    import duckdb

    return duckdb.from_arrow(_to_table(rows))


def _to_reader(rows: ReadRows) -> pa.RecordBatchReader:
    return rows(None)


def _of_dataset(dataset: Any) -> ReturnedRows:
    return ReturnedRows(dataset.schema, raw_batches(dataset))


def _of_reader(reader: pa.RecordBatchReader) -> ReturnedRows:
    return ReturnedRows(reader.schema, raw_batches(reader), reader.close)


def _of_duckdb(relation: Any) -> ReturnedRows:
    return _of_reader(relation.to_arrow_reader())


ARROW_FRAMES = (
    ArrowFrame("pandas.DataFrame", "pandas", "pandas", _to_pandas),
    ArrowFrame("polars.DataFrame", "polars", "polars", _to_polars),
    ArrowFrame("polars.LazyFrame", "polars", "polars", _to_lazy_polars),
    ArrowFrame("pyarrow.Table", "pyarrow", "pyarrow", _to_table),
    ArrowFrame("pyarrow.dataset.Dataset", "pyarrow", "pyarrow", _to_dataset, _of_dataset),
    ArrowFrame("duckdb.DuckDBPyRelation", "duckdb", "duckdb", _to_duckdb, _of_duckdb),
    ArrowFrame("pyarrow.RecordBatchReader", "pyarrow", "pyarrow", _to_reader, _of_reader),
)
"""All types that need no Spark."""

_SPARK_FRAMES = ("pyspark.sql.DataFrame", "pyspark.sql.connect.dataframe.DataFrame")


def frame_type(annotation: Any, what: str) -> ArrowFrame | None:
    """Return the type that an input is annotated with; None: a Spark DataFrame, or no annotation.

    Args:
        annotation: the type as Dagster tells it; ``Any`` and ``object`` mean none.
        what: the input, for an error.

    Raises:
        ConfigurationError: no table can be read as this type.
    """
    options = [part for part in get_args(annotation) if part is not type(None)]
    required_type = options[0] if len(options) == 1 else annotation
    if required_type is Any or required_type is object:
        return None
    if isinstance(required_type, type):
        for frame in ARROW_FRAMES:
            if frame.is_annotated_by(required_type):
                return frame
        if _is_spark_type(required_type):
            return None
    raise ConfigurationError(
        f"{what}: expected a parameter annotated with one of {', '.join(frame.name for frame in ARROW_FRAMES)},"
        f" {', '.join(_SPARK_FRAMES)}, or without an annotation (a Spark DataFrame), found {_spelling(required_type)}"
    )


def is_spark_frame(value: object) -> bool:
    """Return whether a value is a DataFrame of Spark, in this process or of Spark Connect."""
    return any(_is_spark_type(part) for part in type(value).__mro__)


def returned_rows(value: object, what: str) -> ReturnedRows:
    """Return the rows of a value that needs no Spark.

    Args:
        value: what an asset returned.
        what: the asset, for an error.

    Raises:
        ConfigurationError: no table can hold values of this type.
        InvalidYield: the value holds no rows of one type.
    """
    for frame in ARROW_FRAMES:
        if frame.is_type_of(value):
            return frame.returned(value)
    if isinstance(value, list) and all(isinstance(row, Mapping) for row in value):
        return ReturnedRows(None, list(raw_batches(value)))
    raise ConfigurationError(
        f"{what}: expected it to return one of {', '.join(frame.name for frame in ARROW_FRAMES)}, "
        f"{', '.join(_SPARK_FRAMES)}, a list of dicts, or None if there is nothing to store, found "
        f"{_spelling(type(value))}. Return one of these, or give the asset another IO manager"
    )


def check_spark_frame(frame: Any, annotation: Any, what: str) -> None:
    """Raise if a parameter is annotated with Spark Connect's DataFrame, and the session is another one.

    Raises:
        ConfigurationError: says what to annotate instead.
    """
    is_of_connect = isinstance(annotation, type) and ".connect." in annotation.__module__
    if is_of_connect and not isinstance(frame, annotation):
        raise ConfigurationError(
            f"{what}: expected a session of Spark Connect, as the annotation says, found Spark in this process."
            " Annotate pyspark.sql.DataFrame, which fits both, or set STRANDLINE_SPARK_REMOTE"
        )


def _is_spark_type(annotation: type) -> bool:
    return annotation.__module__.startswith("pyspark.sql.") and annotation.__name__ == "DataFrame"


def _spelling(annotation: Any) -> str:
    if isinstance(annotation, type):
        module = "" if annotation.__module__ == "builtins" else f"{annotation.__module__}."
        return f"{module}{annotation.__qualname__}"
    return str(annotation)
