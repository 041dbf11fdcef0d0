"""The schema that every slice of files is read with, as it is kept beside the log."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


@dataclass(frozen=True)
class PinnedSchema:
    """The schema that every slice is read with.

    Attributes:
        columns: Spark's JSON form of all columns, those of folders included.
        folders: the columns whose values stand in the names of folders.
        declared: ``source.schema`` as it stood there when it was pinned; None if the schema was inferred.
    """

    columns: str
    folders: tuple[str, ...]
    declared: str | None = None

    @property
    def struct(self) -> StructType:
        """All columns."""
        from pyspark.sql.types import StructType

        return StructType.fromJson(json.loads(self.columns))

    @property
    def data(self) -> StructType:
        """The columns that stand in the files themselves."""
        from pyspark.sql.types import StructType

        return StructType([field for field in self.struct.fields if field.name not in self.folders])

    def beside(self, folders: Iterable[str]) -> PinnedSchema:
        """The same of files whose folders name these columns, too: a declared one may come at any time, and stands in no such file then."""
        named = {name.lower() for name in (*folders, *self.folders)}
        folders_of = tuple(field.name for field in self.struct.fields if field.name.lower() in named)
        return self if set(folders_of) == set(self.folders) else replace(self, folders=folders_of)

    def to_text(self) -> str:
        """As JSON text."""
        declared = {} if self.declared is None else {"declared": self.declared}
        return json.dumps({"columns": json.loads(self.columns), "folders": list(self.folders), **declared})

    @classmethod
    def of(cls, text: str) -> PinnedSchema:
        """Read the text back."""
        raw = json.loads(text)
        return cls(json.dumps(raw["columns"]), tuple(raw["folders"]), raw.get("declared"))
