"""The pinned schema: every slice of files is read with it, and the log stores it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from partitions.schema_types import Schema, all_nullable
from partitions.untyped_columns import has_untyped, typed_fields

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


@dataclass(frozen=True)
class PinnedSchema:
    """The schema that every slice is read with.

    Attributes:
        columns: Spark's JSON form of all columns, folders' included; fields that had no value yet are ``void``.
        folders: the columns whose values stand in the names of folders.
        declared: ``source.schema`` as it was when it was pinned; None if the schema was inferred.
    """

    columns: str
    folders: tuple[str, ...]
    declared: str | None = None

    @property
    def struct(self) -> StructType:
        """All columns that have a type."""
        return _typed_struct(self.columns)

    @property
    def has_untyped(self) -> bool:
        """Whether a field has no type yet."""
        return has_untyped(json.loads(self.columns))

    @property
    def data(self) -> StructType:
        """The columns that stand in the files themselves."""
        from pyspark.sql.types import StructType

        return StructType([field for field in self.struct.fields if field.name not in self.folders])

    def with_untyped(self, columns: StructType) -> Schema:
        """Return some of the columns, together with the fields that have no type yet.

        Records may have such fields as long as they have no value.
        """
        schema = json.loads(self.columns)
        if not has_untyped(schema):
            plain: Schema = columns.jsonValue()
            return plain
        typed = {field["name"] for field in typed_fields(schema)["fields"]}
        names = set(columns.names)
        fields = [field for field in schema["fields"] if field["name"] in names or field["name"] not in typed]
        return {**schema, "fields": fields}

    def for_folders(self, folders: Iterable[str]) -> PinnedSchema:
        """Return the schema for files whose folders name exactly these columns.

        All other columns are read from records.
        """
        lower_names = {name.lower() for name in folders}
        folders_of = tuple(field.name for field in self.struct.fields if field.name.lower() in lower_names)
        return self if set(folders_of) == set(self.folders) else replace(self, folders=folders_of)

    def to_text(self) -> str:
        """Return the schema as JSON text."""
        declared = {} if self.declared is None else {"declared": self.declared}
        return json.dumps({"columns": json.loads(self.columns), "folders": list(self.folders), **declared})

    @classmethod
    def of(cls, text: str) -> PinnedSchema:
        """Parse the JSON text of a schema."""
        raw = json.loads(text)
        return cls(json.dumps(all_nullable(raw["columns"])), tuple(raw["folders"]), raw.get("declared"))


@lru_cache(maxsize=16)
def _typed_struct(columns: str) -> StructType:
    """Return the columns that have a type, cached; callers must not change them.

    Each file of a slice asks for them, and a wide schema takes a millisecond to parse.
    """
    from pyspark.sql.types import StructType

    return StructType.fromJson(dict(typed_fields(json.loads(columns))))
