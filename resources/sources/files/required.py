"""Find records without a value of a NOT NULL column; Spark would load NULL, or fail."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from partitions.errors import BadFile
from partitions.path.source import SourceFile
from partitions.plan import pluralize
from resources.sources.files.checked import MAX_NAMED_RECORDS
from resources.sources.files.failures import bad_document_error
from resources.sources.files.paths import SOURCE_FILE
from resources.sql import any_of, quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_RECORD, _LACKS = "record", "lacks_{}"


def missing_value_errors(
    read: Callable[[Sequence[SourceFile]], DataFrame],
    files: Sequence[SourceFile],
    required: Sequence[str],
    paths_with_bad_records: Sequence[str] = (),
) -> dict[str, BadFile]:
    """Return the error for each file with such records, by path.

    An error names the first records by number, with all columns that they lack.

    Args:
        read: returns the rows of files with their paths.
        files: files that can be read.
        required: the names of columns, at least one.
        paths_with_bad_records: the paths of files whose bad records are left out of the rows.
    """
    from pyspark.sql import functions as F

    lacks = [F.col(quoted(name)).isNull() for name in required]
    counts = (
        read(files).groupBy(F.col(SOURCE_FILE).alias("path")).agg(F.count_if(any_of(lacks)).alias("count"))
    )
    numbers = {row["path"]: row["count"] for row in counts.where("count > 0").collect()}
    bad_files: dict[str, BadFile] = {}
    for file in files:
        if file.path not in numbers:
            continue
        flags = [flag.alias(_LACKS.format(place)) for place, flag in enumerate(lacks)]
        # One partition keeps the rows in the order of the file, and the ids count from 0.
        rows = read([file]).coalesce(1).select(F.monotonically_increasing_id().alias(_RECORD), *flags)
        is_short = " OR ".join(_LACKS.format(place) for place in range(len(required)))
        reasons = [
            f"record {row[_RECORD] + 1}: expected a value of"
            f" {', '.join(name for place, name in enumerate(required) if row[_LACKS.format(place)])}, which source.schema declares NOT NULL, found none"
            for row in rows.where(is_short).limit(MAX_NAMED_RECORDS).collect()
        ]
        if numbers[file.path] > 1:
            reasons.append(f"{pluralize(numbers[file.path], 'such record')} in all")
        if file.path in paths_with_bad_records:
            reasons.append("records that are set aside are not counted")
        bad_files[file.path] = bad_document_error(file.path, "; ".join(reasons))
    return bad_files
