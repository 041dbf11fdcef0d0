"""Find the fault of an XML record by comparing its elements with the columns."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from partitions.records.forms import TextOptions
from partitions.records.judge import Fault, fault_of_text, no_known_field_fault, sql_type_name
from resources.sources.files.custom_formats import misread_fault
from resources.sources.files.elements import Element
from resources.sources.files.fields import is_leaf, item_type
from resources.sources.files.text_values import XML_SPACES
from resources.sources.files.xml_names import XSI_NIL

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType


class XmlFaults:
    """A finder of the first fault of a record."""

    def __init__(
        self,
        schema: StructType,
        text_options: TextOptions,
        prefix: str,
        value_tag: str,
        *,
        nil_as_empty_text: bool,
        requires_known_field: bool,
    ) -> None:
        """Store the columns and options.

        Args:
            schema: the columns of the records.
            text_options: how the definition reads texts, such as its text for NULL and its date formats.
            prefix: the prefix of the names of attributes.
            value_tag: the name of the text beside attributes.
            nil_as_empty_text: whether a text column accepts ``xsi:nil``, which becomes an empty text.
            requires_known_field: whether a record must have an element or attribute with a column, unless
                it is empty.
        """
        self._nil_as_empty_text, self._requires_known_field = nil_as_empty_text, requires_known_field
        self._schema, self._text_options, self._prefix, self._value_tag = (
            schema,
            text_options,
            prefix,
            value_tag,
        )

    def find_first(
        self, element: Element, misread_texts: Mapping[str, Collection[str]] | None = None
    ) -> tuple[int, Fault] | None:
        """Return the line and fault of an element; None if the columns hold it exactly.

        An empty text and the text for NULL are never a fault.

        Args:
            element: a record.
            misread_texts: by a column's dotted name, the file's texts that do not match the column's
                custom date or number format, from :meth:`XmlRule.misread_texts`.
        """
        fault = self._fault_in(element, self._schema, "", misread_texts or {})
        return (
            self._fault_without_known_field(element)
            if fault is None and self._requires_known_field
            else fault
        )

    def _fault_without_known_field(self, element: Element) -> tuple[int, Fault] | None:
        """Return the line and fault of a record without any known field; None for an empty record."""
        attributes = [name for name in element.attributes if name.partition(":")[0] not in ("xmlns", "xsi")]
        names = [*(child.name for child in element.children), *(self._prefix + name for name in attributes)]
        if element.text.strip(XML_SPACES):
            names.append(self._value_tag)
        columns = self._schema.names
        if not names or any(_belongs_to_column(name, column) for name in names for column in columns):
            return None
        return element.line, no_known_field_fault(columns, names)

    def is_attribute(self, name: str) -> bool:
        """Return whether a column is an attribute; an element has it at most once."""
        return name != self._value_tag and name.startswith(self._prefix)

    def _fault_in(
        self, element: Element, schema: StructType, prefix: str, misread_texts: Mapping[str, Collection[str]]
    ) -> tuple[int, Fault] | None:
        from pyspark.sql.types import ArrayType, MapType, StructType

        for field in schema.fields:
            name = f"{prefix}{field.name}"
            is_array = isinstance(field.dataType, ArrayType)
            inner = item_type(field.dataType)
            if self.is_attribute(field.name) or field.name == self._value_tag:
                texts = self._texts(element, field.name)
                fault = self._fault_of_texts(
                    texts, inner, name, misread_texts.get(name, ()), several=is_array
                )
                if fault is not None:
                    return element.line, fault
                continue
            children = [child for child in element.children if _belongs_to_column(child.name, field.name)]
            if len(children) > 1 and not is_array:
                spellings = list(dict.fromkeys(child.name for child in children))
                count = len(children) if len(spellings) == 1 else f"{len(children)} ({', '.join(spellings)})"
                why = f"field {name}: expected one element, found {count}; to hold several, declare an array in source.schema"
                return children[1].line, Fault(why)
            for child in children:
                if isinstance(inner, StructType):
                    text = child.text.strip(XML_SPACES)
                    if text and self._value_tag not in inner.names:
                        why = f"field {name}: expected elements, found text beside them, which only a column {self._value_tag} in it would hold"
                        return child.line, Fault(why, text)
                    found_inside = self._fault_in(child, inner, f"{name}.", misread_texts)
                    if found_inside is not None:
                        return found_inside
                elif is_leaf(inner):
                    if not self._nil_as_empty_text and inner.simpleString() == "string" and _is_nil(child):
                        return child.line, self._fault_of_nil(name, is_array=is_array)
                    if child.children and inner.simpleString() != "string":
                        return child.line, Fault(
                            f"field {name}: expected {sql_type_name(inner.jsonValue())}, found elements"
                        )
                    fault = self._text_fault(child.text, inner, name, misread_texts.get(name, ()))
                    if fault is not None:
                        return child.line, fault
                elif isinstance(inner, MapType) and is_leaf(inner.valueType):
                    map_fault = self._fault_of_values(child, inner.valueType, name)
                    if map_fault is not None:
                        return map_fault
        return None

    def _fault_of_values(self, element: Element, data_type: DataType, name: str) -> tuple[int, Fault] | None:
        """Return the line and fault of the first faulty value of a map."""
        texts = [
            (element.line, text)
            for text in (*element.attributes.values(), *self._texts(element, self._value_tag))
        ]
        texts += [(child.line, child.text) for child in element.children]
        for line, text in texts:
            if (fault := self._text_fault(text, data_type, name, ())) is not None:
                return line, fault
        return None

    def _fault_of_nil(self, name: str, *, is_array: bool) -> Fault:
        column_type = f"struct<`{self._prefix}{XSI_NIL}`: boolean, {self._value_tag}: string>"
        return Fault(
            f"field {name}: expected a text, found an element with {XSI_NIL}, which a text column cannot tell from an empty text; leave the element out,"
            f" declare {name} in source.schema as {f'array<{column_type}>' if is_array else column_type}, or set `unknown_fields: ignore` at the top level of the dataflow for empty texts"
        )

    def _texts(self, element: Element, name: str) -> list[str]:
        """Return the texts of an element, or of its attribute."""
        if name == self._value_tag:
            return [text for text in element.texts if text.strip(XML_SPACES)]
        own = element.attributes.items()
        return [value for key, value in own if _belongs_to_column(key, name.removeprefix(self._prefix))]

    def _fault_of_texts(
        self,
        texts: Sequence[str],
        data_type: DataType,
        name: str,
        misread_texts: Collection[str],
        *,
        several: bool,
    ) -> Fault | None:
        if len(texts) > 1 and not several:
            return Fault(
                f"field {name}: expected one text, found {len(texts)} with elements or comments between them; to hold several, declare an"
                " array in source.schema"
            )
        faults = (self._text_fault(text, data_type, name, misread_texts) for text in texts)
        return next((fault for fault in faults if fault is not None), None)

    def _text_fault(
        self, text: str, data_type: DataType, name: str, misread_texts: Collection[str]
    ) -> Fault | None:
        stripped = text.strip(XML_SPACES)
        if stripped in ("", self._text_options.null):
            return None
        if stripped in misread_texts:
            return misread_fault(name, data_type.jsonValue(), stripped)
        why = fault_of_text(stripped, data_type.jsonValue(), self._text_options)
        if why is None:
            return None
        return Fault(f"field {name}: expected {sql_type_name(data_type.jsonValue())}, found {why}", stripped)


def _is_nil(element: Element) -> bool:
    """Return whether ``xsi:nil`` marks an element as NULL."""
    return element.attributes.get(XSI_NIL, "").strip() in ("true", "1")


def _belongs_to_column(name: str, column: str) -> bool:
    """Return whether an element or attribute belongs to a column; Spark ignores case and prefix."""
    return column.casefold() in (name.casefold(), name.rpartition(":")[2].casefold())
