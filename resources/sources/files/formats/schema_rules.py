"""The rules that a dataflow's schema mode sets for its files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from partitions.dataflow import Dataflow
from partitions.schema_policy import defers_types, may_take_columns, named_texts
from partitions.schema_types import Schema
from partitions.untyped_columns import typed_fields, untyped_as_text

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


@dataclass(frozen=True)
class SchemaRules:
    """The rules of one dataflow."""

    dataflow: Dataflow

    @property
    def may_rescue(self) -> bool:
        """Whether the dataflow could use ``schema_mode: rescue``."""
        return may_take_columns(self.dataflow)

    @property
    def is_strict(self) -> bool:
        """Whether each file must have the pinned columns; mode overwrite pins them anew in each run."""
        return self.dataflow.target.schema_mode in ("strict", "overwrite")

    @property
    def refuses_unknown(self) -> bool:
        """Whether a file with fields that the pinned schema lacks is bad."""
        return self.is_strict and self.dataflow.unknown_fields == "check"

    @property
    def rescues(self) -> bool:
        """Whether values that do not fit go to ``_rescued_data``."""
        return self.dataflow.target.schema_mode == "rescue"

    @property
    def marks_absent(self) -> bool:
        """Whether each row says which fields its record lacks."""
        return self.dataflow.target.keeps_missing_columns and self.dataflow.source.record_support.name_fields

    def with_deferred_types(self, inferred: Schema) -> StructType:
        """Return an inferred schema in which fields without a value (``void``) stay untyped, if they may.

        Their first value then gives them a type; those that the definition names are text. If they may not,
        they are left out, or they are text where later values would be dropped as unknown fields.
        """
        from pyspark.sql.types import StructType

        if defers_types(self.dataflow):
            schema = untyped_as_text(inferred, named_texts(self.dataflow))
        elif self.dataflow.unknown_fields == "ignore":
            schema = untyped_as_text(inferred, None)
        else:
            schema = typed_fields(inferred)
        return StructType.fromJson(dict(schema))
