"""XML: an element a record, whose name the user gives (``rowTag``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from typing_extensions import override

from partitions.dataflow import Dataflow
from partitions.path.source import SourceFile
from partitions.records.forms import Reading
from partitions.records.options import by_lower_name, other_encoding
from partitions.sources.formats import Option
from resources.connections.places import Place
from resources.sources.files.checked import CheckedFiles
from resources.sources.files.formats.format import FormatReader
from resources.sources.files.formats.xml_inferring import XmlColumns
from resources.sources.files.formats.xml_looks import XmlLooks
from resources.sources.files.formats.xml_options import XmlOptions
from resources.sources.files.formats.xml_record_check import XmlCheck
from resources.sources.files.pinned import PinnedSchema
from resources.sources.files.scan import Scanner
from resources.sources.files.text_values import typed, with_texts
from resources.sql import quoted
from resources.staging import Staging

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

_OLD_PARSER = "useLegacyXMLParser"
_TRIMS = "ignoreSurroundingSpaces"


class XmlFiles(FormatReader):
    """Elements of one name, wherever they stand in the document."""

    READER: ClassVar[str] = "xml"
    READS_DOCUMENTS: ClassVar[bool] = True

    def __init__(self, place: Place, dataflow: Dataflow, staging: Staging) -> None:
        """Look at no file yet."""
        super().__init__(place, dataflow, staging)
        options = XmlOptions(self.source.options)
        self._looks = XmlLooks(place, options)
        self.columns = XmlColumns(self, self._looks, options)
        self._check = XmlCheck(self, self._looks, options)

    @property
    def remarks(self) -> Sequence[str]:
        """Which files have no record."""
        return self._looks.remarks

    @override
    def options(self, path: str, *, infer: bool) -> Mapping[str, Option]:
        """Spaces around a text are part of it; Spark tells no type of a text with some."""
        is_chosen = bool(by_lower_name(self.source.options).get(_TRIMS.lower()))
        # Only the older parser reads a document without a declaration in the encoding that options name.
        of_encoding = {_OLD_PARSER: True} if other_encoding(self.source.options) else {}
        return of_encoding if is_chosen else {_TRIMS: infer, **of_encoding}

    def apart(self, path: str) -> str:
        """Files with texts that Spark's reader does not take as they stand are read apart from others, and converted."""
        return "converted" if path in self._check.converted else ""

    def scan_rows(
        self,
        spark: SparkSession,
        files: Sequence[SourceFile],
        schema: StructType,
        scanner: Scanner | None = None,
        /,
        **changes: str,
    ) -> DataFrame:
        """Scan files; those with numbers or times that stand between spaces as texts, which are converted."""
        from pyspark.sql import functions as F

        if not any(file.path in self._check.converted for file in files):
            return self.scan(spark, files, schema, scanner, **changes)
        rows = self.scan(spark, files, with_texts(schema), scanner, **changes)
        null = Reading.of(self.source.options).null
        columns = [
            typed(F.col(quoted(field.name)), field.dataType, null, self.own_options).alias(field.name)
            for field in schema.fields
        ]
        return rows.select(*columns)

    def check(self, spark: SparkSession, files: Sequence[SourceFile], pinned: PinnedSchema) -> CheckedFiles:
        """Read all leaves as texts, and judge files with one that is not exact."""
        return self._check.check(spark, files, pinned)
