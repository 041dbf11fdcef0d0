"""XML files looked through before they are loaded: Spark reads each leaf as texts, and files with a text that is not exact are judged element by element."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from partitions.errors import ConfigurationError
from partitions.records.forms import WHOLE_BITS, Reading
from partitions.records.judge import Fault
from resources.sources.files.elements import Element
from resources.sources.files.exact_texts import is_exact
from resources.sources.files.fields import is_leaf, item_type
from resources.sources.files.own_forms import has_own_form, misread
from resources.sources.files.text_values import trimmed, value_of
from resources.sources.files.xml_faults import XmlFaults
from resources.sql import all_of, any_of, quoted

if TYPE_CHECKING:
    from pyspark.sql import Column
    from pyspark.sql.types import DataType, StructType

    TextRule = Callable[[Column, DataType, bool], Column]
    """Returns whether a text is so, by the type of its column, and whether it is an attribute."""

_LEAST = r"^-0*(?:2147483648|9223372036854775808)$"
"""Whole numbers that Spark's reader of XML does not take, since it makes the number before the sign."""


class XmlRule:
    """What records must be.

    An element stands once, unless its column is an array; a text is exact for its column's type; an element with a type of values has no elements
    in it. Spaces around a text are part of it in a column of texts, and say nothing in others.
    """

    def __init__(
        self,
        schema: StructType,
        reading: Reading,
        prefix: str,
        value_tag: str,
        options: Mapping[str, str],
        *,
        takes_nil: bool = True,
        must_know_some: bool = False,
    ) -> None:
        """Use the columns of the records, what the definition says of texts, how attributes and texts beside them are named, and the reader's options.

        Without ``takes_nil`` an element that ``xsi:nil`` makes none is a fault in a column of texts, where it would be an empty one.
        With ``must_know_some`` a record with elements or attributes of which no column takes one is a fault.

        Raises:
            ConfigurationError: a type would take other values than the texts say.
        """
        for field in schema.fields:
            if re.search(r"(?:^|[:<,])variant\b", field.dataType.simpleString()):
                raise ConfigurationError(
                    f"source.schema: expected types that take texts as they are written, found {field.name} {field.dataType.simpleString()}: XML tells no"
                    " types, and Spark would guess them (007 is 7). Declare string, or a struct of its elements"
                )
        self._must_know_some, self._options = must_know_some, options
        self._schema, self._reading, self._value_tag = schema, reading, value_tag
        self._faults = XmlFaults(
            schema, reading, prefix, value_tag, takes_nil=takes_nil, must_know_some=must_know_some
        )

    def as_texts(self) -> StructType:
        """Return the columns to read files with for the look: texts, as many as there are elements."""
        return self._struct(self._schema)

    def is_bad(self) -> Column:
        """Return whether a row that was read as texts is a record that cannot be loaded."""
        is_bad = self._any(self._schema, _column, self._is_bad_text, counts=True)
        return is_bad | self._has_no_value() if self._must_know_some else is_bad

    def _has_no_value(self) -> Column:
        """Return whether no column has a value, as in a record without any known element; one without any element is no bad one."""
        return all_of([_column(name).isNull() for name in self._schema.names])

    def is_converted(self) -> Column:
        """Return whether a row that was read as texts holds one that Spark's reader does not take as it stands, though it is a value of its type."""
        return self._any(self._schema, _column, self._is_converted_text, counts=False)

    def misread_texts(self) -> dict[str, Column]:
        """Return the texts of a row that are none of the form that options name for their type, by the dotted name of their column."""
        from pyspark.sql import functions as F

        columns: dict[str, Column] = {}
        for field in self._schema.fields:
            wide = self._wide(field.name, field.dataType)
            for path, texts in texts_at(F.col(quoted(field.name)), wide):
                kind = _type_at(field.dataType, path)
                if kind is not None and has_own_form(kind.jsonValue(), self._reading):
                    bad = F.filter(F.array_compact(texts), _asked(self._is_bad_text, kind, False))
                    columns[".".join((field.name, *path))] = F.transform(bad, trimmed)
        return columns

    def texts(self, name: str) -> Column:
        """Return the texts that a row has for a column without parts, as an array."""
        from pyspark.sql import functions as F

        value = F.col(quoted(name))
        texts = F.array(value) if self._faults.stands_alone(name) else value
        return F.filter(texts, lambda text: text.isNotNull() & ~trimmed(text).isin("", self._reading.null))

    def fault(
        self, element: Element, misread_texts: Mapping[str, Collection[str]] | None = None
    ) -> tuple[int, Fault] | None:
        """Return the line of what is wrong in an element, and what it is; None if the columns hold it exactly.

        Args:
            element: a record.
            misread_texts: of the file, as :meth:`misread_texts` tells them.
        """
        return self._faults.first(element, misread_texts)

    def _struct(self, schema: StructType) -> StructType:
        from pyspark.sql.types import StructField, StructType

        return StructType(
            [StructField(field.name, self._wide(field.name, field.dataType)) for field in schema.fields]
        )

    def _wide(self, name: str, data_type: DataType) -> DataType:
        from pyspark.sql.types import ArrayType, MapType, StringType, StructType

        if self._faults.stands_alone(name):
            return StringType()
        inner = item_type(data_type)
        if isinstance(inner, StructType):
            inside = self._struct(inner)
            if self._value_tag not in inside.names:  # a text that no column takes would be lost
                inside = inside.add(self._value_tag, StringType())
            return ArrayType(inside)
        if isinstance(inner, MapType) and is_leaf(inner.valueType):
            return ArrayType(MapType(StringType(), StringType()))
        return ArrayType(StringType()) if is_leaf(inner) else data_type

    def _any(
        self, schema: StructType, column: Callable[[str], Column], is_so: TextRule, *, counts: bool
    ) -> Column:
        """Return whether a text at any depth is so; or, if ``counts``, whether there are elements or texts that the columns do not take.

        The texts of one type are asked about together: a record may have hundreds of them.
        """
        from pyspark.sql import functions as F
        from pyspark.sql.types import ArrayType, MapType, StructType

        texts: dict[tuple[str, bool], tuple[DataType, list[Column]]] = {}
        conditions: list[Column] = []
        numbers: list[Column] = []
        for field in schema.fields:
            value, kind = column(field.name), field.dataType
            inner = item_type(kind)
            is_attribute = self._faults.stands_alone(field.name)
            if is_attribute:
                value = F.array(value)
            elif not isinstance(self._wide(field.name, kind), ArrayType):
                continue  # of a type that is read as it is
            elif not isinstance(kind, ArrayType):
                numbers.append(F.size(value))
            if isinstance(inner, MapType):
                inner, value = inner.valueType, F.flatten(F.array_compact(F.transform(value, F.map_values)))
            if isinstance(inner, StructType):
                conditions.append(F.exists(value, self._any_inside(inner, is_so, counts=counts)))
            elif inner.simpleString() != "string":
                texts.setdefault((inner.json(), is_attribute), (inner, []))[1].append(value)
        for (_, is_attribute), (kind, columns) in texts.items():
            together = F.flatten(F.array_compact(F.array(*columns)))
            conditions.append(F.exists(together, _asked(is_so, kind, is_attribute)))
        if counts and numbers:
            conditions.append(F.array_max(F.array(*numbers)) > 1)
        return any_of([F.coalesce(condition, F.lit(False)) for condition in conditions])

    def _any_inside(self, schema: StructType, is_so: TextRule, *, counts: bool) -> Callable[[Column], Column]:
        from pyspark.sql import functions as F

        def inside(item: Column) -> Column:
            condition = self._any(schema, item.getField, is_so, counts=counts)
            if not counts or self._value_tag in schema.names:
                return condition
            text = trimmed(item.getField(self._value_tag))
            return any_of([condition, F.coalesce(text != "", F.lit(False))])

        return inside

    def _is_bad_text(self, text: Column, data_type: DataType, _is_attribute: bool) -> Column:
        from pyspark.sql import functions as F
        from pyspark.sql.types import StringType

        bare, kind = trimmed(text), data_type.jsonValue()
        is_value = F.coalesce(~bare.isin("", self._reading.null), F.lit(False))
        if not has_own_form(kind, self._reading):
            return is_value & F.coalesce(~is_exact(bare, kind, self._reading), F.lit(False))
        return is_value & misread(
            lambda kind: bare if isinstance(kind, StringType) else value_of(bare, kind, self._options),
            data_type,
        )

    def _is_converted_text(self, text: Column, data_type: DataType, is_attribute: bool) -> Column:
        from pyspark.sql import functions as F

        conditions = [text != trimmed(text)]
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


def _asked(is_so: TextRule, data_type: DataType, is_attribute: bool) -> Callable[[Column], Column]:
    return lambda text: is_so(text, data_type, is_attribute)


def _type_at(data_type: DataType, path: Sequence[str]) -> DataType | None:
    """The type of a leaf in a column; None if it is no leaf, or of the look alone."""
    from pyspark.sql.types import StructType

    inner = item_type(data_type)
    if not path:
        return inner if is_leaf(inner) else None
    known = isinstance(inner, StructType) and path[0] in inner.names
    return _type_at(inner[path[0]].dataType, path[1:]) if known else None  # type: ignore[index]


def texts_at(value: Column, data_type: DataType) -> list[tuple[tuple[str, ...], Column]]:
    """Return the texts of each leaf of a value whose leaves were read as texts: its path below the value, and an array of all of them."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import ArrayType, StructType

    if isinstance(data_type, ArrayType):
        below = (
            texts_at(value, data_type.elementType)
            if not isinstance(data_type.elementType, StructType)
            else None
        )
        if below is not None:
            return [((), value)]
        leaves: list[tuple[tuple[str, ...], Column]] = []
        assert isinstance(data_type.elementType, StructType)
        for field in data_type.elementType.fields:
            inner = field.dataType
            for path, _ in texts_at(F.lit(None), inner):
                texts = F.flatten(F.transform(value, _leaf_of(field.name, inner, path)))
                leaves.append(((field.name, *path), texts))
        return leaves
    if isinstance(data_type, StructType):
        return [
            ((field.name, *path), texts)
            for field in data_type.fields
            for path, texts in texts_at(value.getField(field.name), field.dataType)
        ]
    return [((), F.array(value))]


def _leaf_of(name: str, data_type: DataType, path: tuple[str, ...]):  # type: ignore[no-untyped-def] # noqa: ANN202 - of two arguments that Spark makes
    def texts(item: Column) -> Column:
        return dict(texts_at(item.getField(name), data_type))[path]

    return texts
