"""The columns of XML: elements and attributes, and the first types that hold all texts of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from partitions.path.source import SourceFile
from partitions.records.forms import Reading
from resources.sources.files.formats.format import FormatReader
from resources.sources.files.inferring import types_of_texts
from resources.sources.files.text_values import trimmed
from resources.sources.files.xml_check import texts_at
from resources.sql import quoted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType


class XmlColumns(FormatReader):
    """Infers the types of the texts of elements and attributes."""

    def types_of_leaves(
        self, spark: SparkSession, files: Sequence[SourceFile], texts: StructType
    ) -> Mapping[tuple[str, ...], str]:
        """Return the types of the texts of files, by the paths of elements and attributes."""
        from pyspark.sql import functions as F

        rows = self.scan(spark, files, texts, mode="PERMISSIVE")
        leaves = [
            ((field.name, *path), column)
            for field in texts.fields
            for path, column in texts_at(F.col(quoted(field.name)), field.dataType)
        ]
        texts_with_values = [
            F.transform(column, lambda text: F.nullif(trimmed(text), F.lit(""))) for _, column in leaves
        ]
        reading = Reading.of(self.source.options, inferred=True)
        types = types_of_texts(rows, texts_with_values, self.source.options, reading, several=True)
        return dict(zip([path for path, _ in leaves], types, strict=True))


def with_types(data_type: Any, path: tuple[str, ...], types: Mapping[tuple[str, ...], str]) -> Any:
    """Return a type in Spark's JSON form, with the types of its leaves."""
    if isinstance(data_type, str):
        return types.get(path, data_type)
    if data_type["type"] == "struct":
        fields = [
            {**field, "type": with_types(field["type"], (*path, field["name"]), types)}
            for field in data_type["fields"]
        ]
        return {**data_type, "fields": fields}
    return {**data_type, "elementType": with_types(data_type["elementType"], path, types)}
