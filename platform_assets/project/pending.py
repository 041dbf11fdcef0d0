"""What the specification describes and the product does not have yet.

One table. A row names a key and its values, and says what is there instead. When a feature lands, its row
is deleted; nothing else here changes. Without the table a user would read a cascade of unknown keys for a whole
part of the contract.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from platform_assets.project.document import Document, Key, within
from platform_assets.project.errors import ProjectError
from platform_assets.project.secrets import shown

Test = Callable[[Any], bool]


@dataclass(frozen=True)
class Pending:
    """Values of a key that are refused by name.

    Attributes:
        key: dotted; ``*`` is any name.
        test: which values.
        there: what is expected today.
        missing: the feature and its verb, ``column watermarks are``.
        part: the keys for which no other error is reported, since it would follow from this row; by default the
            key itself.
    """

    key: str
    test: Test
    there: str
    missing: str
    part: str | None = None

    @property
    def expected(self) -> str:
        """Return what the product has, and what it does not have yet."""
        return f"{self.there} ({self.missing} not there yet, see ROADMAP.md)"


def one_of(*values: str) -> Test:
    """Return a test for one of these texts."""
    return lambda value: value in values


def scheme(*schemes: str) -> Test:
    """Return a test for a URL with one of these schemes."""
    return lambda value: isinstance(value, str) and value.partition("://")[0] in schemes and "://" in value


def above_zero(value: Any) -> bool:
    """Return whether a value is a number above 0."""
    return isinstance(value, int | float) and not isinstance(value, bool) and value > 0


def anything(_: Any) -> bool:
    """Return True: the key itself is not there yet."""
    return True


_STORES = ("gs", "az", "abfs", "abfss")
_PLACE = "a folder or s3://bucket/prefix"
_TABLES = ("iceberg", "parquet")

SETTINGS: tuple[Pending, ...] = (
    *(
        Pending(f"{key}{path}", scheme(*_STORES), _PLACE, "other object stores are")
        for key in ("state", "lake")
        for path in ("", ".path")
    ),
    Pending("format", one_of(*_TABLES), "delta", "Iceberg and Parquet tables are"),
    Pending("iceberg", anything, "no such key", "Iceberg tables are"),
    Pending("connections.*.type", one_of("api"), "s3 or jdbc", "HTTP APIs are", part="connections.*"),
)

DATAFLOW: tuple[Pending, ...] = (
    Pending(
        "source.type",
        one_of("api"),
        "files, jdbc or table",
        "HTTP APIs as sources are",
        part="source",
    ),
    Pending(
        "source.format",
        one_of("avro", "xml", "excel"),
        "ndjson, json, csv or parquet",
        "Avro, XML and Excel are",
        part="source",
    ),
    Pending("source.path", scheme(*_STORES), _PLACE, "other object stores are"),
    Pending(
        "watermark.type",
        one_of("stream"),
        "path, column or window",
        "stream watermarks are",
        part="watermark",
    ),
    Pending(
        "target.load",
        one_of("overwrite", "full_load", "merge_upsert", "scd2"),
        "append or merge_overwrite",
        "other load types are",
        part="target",
    ),
    Pending("target.effective_column", anything, "no such key", "scd2 tables are"),
    Pending("target.format", one_of(*_TABLES), "delta", "Iceberg and Parquet tables are"),
    Pending("target.schema_mode", one_of("merge", "overwrite", "rescue"), "strict", "other schema modes are"),
    Pending("max_bad_records", above_zero, "0", "a quarantine of records is"),
)


def not_there(
    document: Document, value: dict[str, Any], rows: tuple[Pending, ...]
) -> tuple[list[ProjectError], list[Key]]:
    """Return the errors of a file for missing features, and the parts for which no other error must be reported.

    Args:
        document: the file as it was written.
        value: its values, with the environment's texts in them.
        rows: what is not there.
    """
    errors: list[ProjectError] = []
    parts: list[Key] = []
    for row in rows:
        for key, given in _matches(value, tuple(row.key.split("."))):
            if row.test(given) and not any(within(key, part) for part in parts):
                errors.append(document.error(key, shown(document.get(key), key), row.expected))
                parts.append(key[: row.part.count(".") + 1] if row.part else key)
    return errors, parts


def _matches(value: Any, key: tuple[str, ...], above: Key = ()) -> Iterator[tuple[Key, Any]]:
    """Yield every value at a dotted key with wildcards."""
    if not key:
        yield above, value
    elif isinstance(value, dict):
        for part in value if key[0] == "*" else [key[0]]:
            if part in value:
                yield from _matches(value[part], key[1:], (*above, part))
