"""XML files: one record for each element with the name that the user gives (``rowTag``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from typing_extensions import override

from partitions.dataflow import Dataflow
from partitions.path.source import SourceFile
from partitions.records.forms import TextOptions
from partitions.records.options import non_utf8_encoding, with_lower_names
from partitions.sources.formats import Option
from resources.connections.places import Place
from resources.sources.files.checked import CheckedFiles
from resources.sources.files.formats.format import FormatReader
from resources.sources.files.formats.xml_documents import DocumentCache
from resources.sources.files.formats.xml_inferring import XmlColumns
from resources.sources.files.formats.xml_options import XmlOptions
from resources.sources.files.formats.xml_record_check import XmlCheck
from resources.sources.files.pinned import PinnedSchema
from resources.sources.files.scan import Scanner
from resources.sources.files.text_values import convert_texts, with_texts
from resources.sql import quoted
from resources.staging import Staging

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

_OLD_PARSER = "useLegacyXMLParser"
_TRIMS = "ignoreSurroundingSpaces"


class XmlFiles(FormatReader):
    """A reader of XML files; records are elements of one name, anywhere in the document."""

    READER: ClassVar[str] = "xml"
    READS_DOCUMENTS: ClassVar[bool] = True

    def __init__(self, place: Place, dataflow: Dataflow, staging: Staging) -> None:
        """Store the parts; read nothing."""
        super().__init__(place, dataflow, staging)
        options = XmlOptions(self.source.options)
        self._documents = DocumentCache(place, options)
        self.columns = XmlColumns(self, self._documents, options)
        self._check = XmlCheck(self, self._documents, options)

    @property
    def remarks(self) -> Sequence[str]:
        """The warnings about files without a record."""
        return self._documents.remarks

    @override
    def options(self, path: str, *, infer: bool) -> Mapping[str, Option]:
        """Return the reader options.

        Spaces around a text are kept in reads. Inference trims them, since Spark infers no type of a text with
        spaces.
        """
        is_chosen = bool(with_lower_names(self.source.options).get(_TRIMS.lower()))
        # Only the older parser reads a document without a declaration in the encoding that options name.
        parser_options = {_OLD_PARSER: True} if non_utf8_encoding(self.source.options) else {}
        return parser_options if is_chosen else {_TRIMS: infer, **parser_options}

    def scan_key(self, path: str) -> str:
        """Return the key that separates scans: files with texts that need a conversion get their own."""
        return "converted" if path in self._check.converted_paths else ""

    def scan_rows(
        self,
        spark: SparkSession,
        files: Sequence[SourceFile],
        schema: StructType,
        scanner: Scanner | None = None,
        /,
        **changes: str,
    ) -> DataFrame:
        """Scan files; as texts that are converted if they have values that Spark's reader does not take."""
        from pyspark.sql import functions as F

        if not any(file.path in self._check.converted_paths for file in files):
            return self.scan(spark, files, schema, scanner, **changes)
        rows = self.scan(spark, files, with_texts(schema), scanner, **changes)
        null = TextOptions.of(self.source.options).null
        columns = [
            convert_texts(F.col(quoted(field.name)), field.dataType, null, self.own_options).alias(field.name)
            for field in schema.fields
        ]
        return rows.select(*columns)

    def check(self, spark: SparkSession, files: Sequence[SourceFile], pinned: PinnedSchema) -> CheckedFiles:
        """Read all leaves as texts, and judge the files with an inexact one."""
        return self._check.check(spark, files, pinned)
