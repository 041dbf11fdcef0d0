"""Spark conditions that test XML records; Spark reads each leaf as text to find inexact values."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from partitions.errors import ConfigurationError
from partitions.records.forms import WHOLE_BITS, TextOptions
from partitions.records.judge import Fault
from resources.sources.files.custom_formats import has_custom_format, is_misread
from resources.sources.files.elements import Element
from resources.sources.files.exact_texts import is_exact
from resources.sources.files.fields import is_leaf, item_type
from resources.sources.files.text_values import parse_text, trim
from resources.sources.files.xml_faults import XmlFaults
from resources.sql import all_of, any_of, quoted

if TYPE_CHECKING:
    from pyspark.sql import Column
    from pyspark.sql.types import DataType, StructType

    TextRule = Callable[[Column, DataType, bool], Column]
    """Tests a text, given the type of its column and whether it is an attribute."""

_LEAST = r"^-0*(?:2147483648|9223372036854775808)$"
"""The smallest integers, which Spark's XML reader refuses: it parses the number before the sign."""


class XmlRule:
    """The rule that records must follow.

    An element occurs once, unless its column is an array. A text is exact for its column's type. An element with a
    simple type contains no elements. Spaces around a text count in a text column only.
    """

    def __init__(
        self,
        schema: StructType,
        reading: TextOptions,
        prefix: str,
        value_tag: str,
        options: Mapping[str, str],
        *,
        nil_as_empty_text: bool = True,
        requires_known_field: bool = False,
    ) -> None:
        """Store the columns and options.

        Args:
            schema: the columns of the records.
            reading: how the definition reads texts.
            prefix: the prefix of the names of attributes.
            value_tag: the name of the text beside attributes.
            options: the reader's options.
            nil_as_empty_text: whether ``xsi:nil`` is accepted in a text column, where it would become an empty text.
            requires_known_field: whether a record must have an element or attribute with a column, unless it is empty.

        Raises:
            ConfigurationError: Spark would guess the values of a type.
        """
        for field in schema.fields:
            if re.search(r"(?:^|[:<,])variant\b", field.dataType.simpleString()):
                raise ConfigurationError(
                    f"source.schema: expected types that keep text as it is written, found {field.name} "
                    f"{field.dataType.simpleString()}: XML has no types, and Spark would guess them (007 becomes 7). "
                    "Declare string, or a struct of its elements"
                )
        self._requires_known_field, self._options = requires_known_field, options
        self._schema, self._reading, self._value_tag = schema, reading, value_tag
        self._faults = XmlFaults(
            schema,
            reading,
            prefix,
            value_tag,
            nil_as_empty_text=nil_as_empty_text,
            requires_known_field=requires_known_field,
        )

    def as_texts(self) -> StructType:
        """Return the columns to check files with: texts, in arrays that hold repeated elements."""
        return self._text_struct(self._schema)

    def is_bad(self) -> Column:
        """Return whether a row of texts is a record that cannot be loaded."""
        is_bad = self._any_text(self._schema, _column, self._is_bad_text, counts=True)
        return is_bad | self._has_no_value() if self._requires_known_field else is_bad

    def _has_no_value(self) -> Column:
        """Return whether no column has a value, as in a record without any known element."""
        return all_of([_column(name).isNull() for name in self._schema.names])

    def is_converted(self) -> Column:
        """Return whether a row has a value that Spark's XML reader does not take as it is written."""
        return self._any_text(self._schema, _column, self._is_converted_text, counts=False)

    def misread_texts(self) -> dict[str, Column]:
        """Return, by a column's dotted name, the texts of a row that do not match the format in the options."""
        from pyspark.sql import functions as F

        columns: dict[str, Column] = {}
        for field in self._schema.fields:
            wide = self._text_type(field.name, field.dataType)
            for path, texts in leaf_texts(F.col(quoted(field.name)), wide):
                leaf_type = _type_at(field.dataType, path)
                if leaf_type is not None and has_custom_format(leaf_type.jsonValue(), self._reading):
                    bad = F.filter(F.array_compact(texts), _apply_rule(self._is_bad_text, leaf_type, False))
                    columns[".".join((field.name, *path))] = F.transform(bad, trim)
        return columns

    def texts(self, name: str) -> Column:
        """Return the texts that a row has for a simple column, as an array."""
        from pyspark.sql import functions as F

        value = F.col(quoted(name))
        texts = F.array(value) if self._faults.is_attribute(name) else value
        return F.filter(texts, lambda text: text.isNotNull() & ~trim(text).isin("", self._reading.null))

    def fault(
        self, element: Element, misread_texts: Mapping[str, Collection[str]] | None = None
    ) -> tuple[int, Fault] | None:
        """Return the line and fault of an element; None if the columns hold it exactly.

        Args:
            element: a record.
            misread_texts: the file's misread texts, from :meth:`misread_texts`.
        """
        return self._faults.find_first(element, misread_texts)

    def _text_struct(self, schema: StructType) -> StructType:
        from pyspark.sql.types import StructField, StructType

        return StructType(
            [StructField(field.name, self._text_type(field.name, field.dataType)) for field in schema.fields]
        )

    def _text_type(self, name: str, data_type: DataType) -> DataType:
        from pyspark.sql.types import ArrayType, MapType, StringType, StructType

        if self._faults.is_attribute(name):
            return StringType()
        inner = item_type(data_type)
        if isinstance(inner, StructType):
            inside = self._text_struct(inner)
            if self._value_tag not in inside.names:  # otherwise a text without a column would be lost
                inside = inside.add(self._value_tag, StringType())
            return ArrayType(inside)
        if isinstance(inner, MapType) and is_leaf(inner.valueType):
            return ArrayType(MapType(StringType(), StringType()))
        return ArrayType(StringType()) if is_leaf(inner) else data_type

    def _any_text(
        self, schema: StructType, column: Callable[[str], Column], text_rule: TextRule, *, counts: bool
    ) -> Column:
        """Return whether a text at any depth matches.

        With ``counts`` also whether columns lack room for elements or texts. Texts of one type are tested together:
        a record may have hundreds of them.
        """
        from pyspark.sql import functions as F
        from pyspark.sql.types import ArrayType, MapType, StructType

        texts: dict[tuple[str, bool], tuple[DataType, list[Column]]] = {}
        conditions: list[Column] = []
        numbers: list[Column] = []
        for field in schema.fields:
            value, data_type = column(field.name), field.dataType
            inner = item_type(data_type)
            is_attribute = self._faults.is_attribute(field.name)
            if is_attribute:
                value = F.array(value)
            elif not isinstance(self._text_type(field.name, data_type), ArrayType):
                continue  # a type that is read unchanged
            elif not isinstance(data_type, ArrayType):
                numbers.append(F.size(value))
            if isinstance(inner, MapType):
                inner, value = inner.valueType, F.flatten(F.array_compact(F.transform(value, F.map_values)))
            if isinstance(inner, StructType):
                conditions.append(F.exists(value, self._any_text_inside(inner, text_rule, counts=counts)))
            elif inner.simpleString() != "string":
                texts.setdefault((inner.json(), is_attribute), (inner, []))[1].append(value)
        for (_, is_attribute), (data_type, columns) in texts.items():
            together = F.flatten(F.array_compact(F.array(*columns)))
            conditions.append(F.exists(together, _apply_rule(text_rule, data_type, is_attribute)))
        if counts and numbers:
            conditions.append(F.array_max(F.array(*numbers)) > 1)
        return any_of([F.coalesce(condition, F.lit(False)) for condition in conditions])

    def _any_text_inside(
        self, schema: StructType, text_rule: TextRule, *, counts: bool
    ) -> Callable[[Column], Column]:
        from pyspark.sql import functions as F

        def inside(item: Column) -> Column:
            condition = self._any_text(schema, item.getField, text_rule, counts=counts)
            if not counts or self._value_tag in schema.names:
                return condition
            text = trim(item.getField(self._value_tag))
            return any_of([condition, F.coalesce(text != "", F.lit(False))])

        return inside

    def _is_bad_text(self, text: Column, data_type: DataType, _is_attribute: bool) -> Column:
        from pyspark.sql import functions as F
        from pyspark.sql.types import StringType

        bare, kind = trim(text), data_type.jsonValue()
        is_value = F.coalesce(~bare.isin("", self._reading.null), F.lit(False))
        if not has_custom_format(kind, self._reading):
            return is_value & F.coalesce(~is_exact(bare, kind, self._reading), F.lit(False))
        return is_value & is_misread(
            lambda kind: bare if isinstance(kind, StringType) else parse_text(bare, kind, self._options),
            data_type,
        )

    def _is_converted_text(self, text: Column, data_type: DataType, is_attribute: bool) -> Column:
        from pyspark.sql import functions as F

        conditions = [text != trim(text)]
        if is_attribute:
            conditions.append(text == "")
        if data_type.typeName() in ("integer", "long"):
            conditions.append(text.rlike(_LEAST))
        if data_type.typeName() in WHOLE_BITS:
            conditions.append(text.isin(*self._reading.specials))
        return F.coalesce(any_of(conditions), F.lit(False))


def _column(name: str) -> Column:
    from pyspark.sql import functions as F

    return F.col(quoted(name))


def _apply_rule(text_rule: TextRule, data_type: DataType, is_attribute: bool) -> Callable[[Column], Column]:
    return lambda text: text_rule(text, data_type, is_attribute)


def _type_at(data_type: DataType, path: Sequence[str]) -> DataType | None:
    """Return the type of a leaf in a column; None if it is no leaf, or only the check reads it."""
    from pyspark.sql.types import StructType

    inner = item_type(data_type)
    if not path:
        return inner if is_leaf(inner) else None
    is_known = isinstance(inner, StructType) and path[0] in inner.names
    return _type_at(inner[path[0]].dataType, path[1:]) if is_known else None  # type: ignore[index]


def leaf_texts(value: Column, data_type: DataType) -> list[tuple[tuple[str, ...], Column]]:
    """Return the path of each leaf of a text value, and an array of the leaf's texts."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import ArrayType, StructType

    if isinstance(data_type, ArrayType):
        below = (
            leaf_texts(value, data_type.elementType)
            if not isinstance(data_type.elementType, StructType)
            else None
        )
        if below is not None:
            return [((), value)]
        leaves: list[tuple[tuple[str, ...], Column]] = []
        assert isinstance(data_type.elementType, StructType)
        for field in data_type.elementType.fields:
            inner = field.dataType
            for path, _ in leaf_texts(F.lit(None), inner):
                texts = F.flatten(F.transform(value, _leaf_of(field.name, inner, path)))
                leaves.append(((field.name, *path), texts))
        return leaves
    if isinstance(data_type, StructType):
        return [
            ((field.name, *path), texts)
            for field in data_type.fields
            for path, texts in leaf_texts(value.getField(field.name), field.dataType)
        ]
    return [((), F.array(value))]


def _leaf_of(name: str, data_type: DataType, path: tuple[str, ...]):  # type: ignore[no-untyped-def] # noqa: ANN202 - of two arguments that Spark makes
    def texts(item: Column) -> Column:
        return dict(leaf_texts(item.getField(name), data_type))[path]

    return texts
