"""XML: an element a record, whose name the user gives (``rowTag``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from partitions.path.source import SourceFile
from resources.sources.files.elements import Broken, Element, element
from resources.sources.files.formats.format import FormatReader
from resources.sources.files.formats.records import corrupt_files, first_corrupt
from resources.sources.files.formats.variants import unknown_in_records
from resources.sources.files.misfit import NOTHING_KNOWN, BadRecord, misfit_of_field
from resources.sources.files.pinned import PinnedSchema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType


class XmlFiles(FormatReader):
    """Elements of one name, wherever they stand in the document."""

    READER: ClassVar[str] = "xml"

    def unknown_fields(
        self, spark: SparkSession, files: Sequence[SourceFile], pinned: PinnedSchema
    ) -> Mapping[str, list[str]]:
        """Parse all records once for it."""
        return unknown_in_records(self, spark, files, pinned)

    def bad_records(
        self, spark: SparkSession, files: Sequence[SourceFile], pinned: PinnedSchema
    ) -> Mapping[str, BadRecord]:
        """Return the first bad one of the elements in each file: Spark gives a row for each of them, in their order."""
        return {
            file.path: self._bad_element(spark, file, schema)
            for file, schema in corrupt_files(self, spark, files, pinned)
        }

    def _bad_element(self, spark: SparkSession, file: SourceFile, schema: StructType) -> BadRecord:
        number, parsed = first_corrupt(self, spark, file, schema)
        found = element(self.place, file.path, self._option("rowTag", ""), number)
        if isinstance(found, Broken):
            return BadRecord("", f"expected XML, found text that is none ({found.why})", found.line)
        if found is None:
            return BadRecord("", f"record {number}: {NOTHING_KNOWN}")
        line, why = self._blamed(found, parsed, schema, "") or (found.line, NOTHING_KNOWN)
        return BadRecord(_shown(found), f"record {number}: {why}", line)

    def _blamed(
        self, found: Element, parsed: Mapping[str, Any], schema: StructType, above: str
    ) -> tuple[int, str] | None:
        """The line of a value that Spark could not read, and what it is."""
        from pyspark.sql.types import StructType

        prefix = self._option("attributePrefix", "_")
        for field in schema.fields:
            children = [child for child in found.children if child.name == field.name]
            attribute = found.attributes.get(field.name.removeprefix(prefix))
            read, name = parsed.get(field.name), f"{above}{field.name}"
            if isinstance(field.dataType, StructType) and isinstance(read, dict) and len(children) == 1:
                inner = self._blamed(children[0], read, field.dataType, f"{name}.")
                if inner:
                    return inner
            elif children and _is_lost(children, read):
                what = "elements" if any(child.children for child in children) else "other text"
                return children[0].line, misfit_of_field(name, field.dataType, what)
            elif not children and attribute and read is None and field.name.startswith(prefix):
                return found.line, misfit_of_field(name, field.dataType, "other text")
        return None

    def _option(self, name: str, default: str) -> str:
        """An option of the user's, whatever its case."""
        given = {key.lower(): str(value) for key, value in self.source.options.items()}
        return given.get(name.lower(), default)


def _is_lost(children: Sequence[Element], read: Any) -> bool:
    """Whether Spark could not read some of the elements of a field."""
    if isinstance(read, list):
        return len(read) != len(children) or any(each is None for each in read)
    return read is None and any(child.children or child.text.strip() for child in children)


def _shown(found: Element) -> str:
    """An element, roughly as it stands in the file."""
    attributes = "".join(f' {name}="{value}"' for name, value in found.attributes.items())
    inner = "".join(map(_shown, found.children)) or found.text.strip()
    return f"<{found.name}{attributes}>{inner}</{found.name}>"
