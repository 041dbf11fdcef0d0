"""XML files looked through before they are loaded: Spark reads each leaf as texts, and files with a text that is not exact are judged element by element."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from partitions.errors import ConfigurationError
from partitions.records.forms import WHOLE_BITS, Reading
from partitions.records.judge import Fault, fault_of_text, shown, without_known_fields
from resources.sources.files.elements import Element
from resources.sources.files.exact_texts import is_exact
from resources.sources.files.fields import item_type
from resources.sources.files.own_forms import fault as fault_of_form
from resources.sources.files.own_forms import has_own_form, misread
from resources.sources.files.text_values import XML_SPACES, trimmed, value_of
from resources.sources.files.xml_names import XSI_NIL
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
        self._takes_nil, self._must_know_some, self._options = takes_nil, must_know_some, options
        self._schema, self._reading, self._prefix, self._value_tag = schema, reading, prefix, value_tag

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
        texts = F.array(value) if self._stands_alone(name) else value
        return F.filter(texts, lambda text: text.isNotNull() & ~trimmed(text).isin("", self._reading.null))

    def fault(
        self, element: Element, misread_texts: Mapping[str, Collection[str]] | None = None
    ) -> tuple[int, Fault] | None:
        """Return the line of what is wrong in an element, and what it is; None if the columns hold it exactly.

        Args:
            element: a record.
            misread_texts: of the file, as :meth:`misread_texts` tells them.
        """
        fault = self._fault_in(element, self._schema, "", misread_texts or {})
        return self._fault_of_strangers(element) if fault is None and self._must_know_some else fault

    def _fault_of_strangers(self, element: Element) -> tuple[int, Fault] | None:
        """What is wrong with a record of which nothing is known, and its line."""
        attributes = [name for name in element.attributes if name.partition(":")[0] not in ("xmlns", "xsi")]
        names = [*(child.name for child in element.children), *(self._prefix + name for name in attributes)]
        if element.text.strip(XML_SPACES):
            names.append(self._value_tag)
        columns = self._schema.names
        if not names or any(_is_called(name, column) for name in names for column in columns):
            return None
        return element.line, without_known_fields(columns, names)

    def _struct(self, schema: StructType) -> StructType:
        from pyspark.sql.types import StructField, StructType

        return StructType(
            [StructField(field.name, self._wide(field.name, field.dataType)) for field in schema.fields]
        )

    def _wide(self, name: str, data_type: DataType) -> DataType:
        from pyspark.sql.types import ArrayType, MapType, StringType, StructType

        if self._stands_alone(name):
            return StringType()
        inner = item_type(data_type)
        if isinstance(inner, StructType):
            inside = self._struct(inner)
            if self._value_tag not in inside.names:  # a text that no column takes would be lost
                inside = inside.add(self._value_tag, StringType())
            return ArrayType(inside)
        if isinstance(inner, MapType) and _is_leaf(inner.valueType):
            return ArrayType(MapType(StringType(), StringType()))
        return ArrayType(StringType()) if _is_leaf(inner) else data_type

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
            is_attribute = self._stands_alone(field.name)
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

    def _stands_alone(self, name: str) -> bool:
        """Whether a column is an attribute, of which an element has one."""
        return name != self._value_tag and name.startswith(self._prefix)

    def _fault_in(
        self, element: Element, schema: StructType, above: str, misread_texts: Mapping[str, Collection[str]]
    ) -> tuple[int, Fault] | None:
        from pyspark.sql.types import ArrayType, MapType, StructType

        for field in schema.fields:
            name = f"{above}{field.name}"
            is_array = isinstance(field.dataType, ArrayType)
            inner = item_type(field.dataType)
            if self._stands_alone(field.name) or field.name == self._value_tag:
                texts = self._texts(element, field.name)
                fault = self._fault_of_texts(
                    texts, inner, name, misread_texts.get(name, ()), several=is_array
                )
                if fault is not None:
                    return element.line, fault
                continue
            children = [child for child in element.children if _is_called(child.name, field.name)]
            if len(children) > 1 and not is_array:
                spellings = list(dict.fromkeys(child.name for child in children))
                count = len(children) if len(spellings) == 1 else f"{len(children)} ({', '.join(spellings)})"
                why = f"field {name}: expected one element, found {count}; a column that holds several is an array, which source.schema declares"
                return children[1].line, Fault(why)
            for child in children:
                if isinstance(inner, StructType):
                    text = child.text.strip(XML_SPACES)
                    if text and self._value_tag not in inner.names:
                        why = f"field {name}: expected elements, found text beside them, which a column {self._value_tag} in it would take"
                        return child.line, Fault(why, text)
                    found_inside = self._fault_in(child, inner, f"{name}.", misread_texts)
                    if found_inside is not None:
                        return found_inside
                elif _is_leaf(inner):
                    if not self._takes_nil and inner.simpleString() == "string" and _is_nil(child):
                        return child.line, self._fault_of_nil(name, is_array=is_array)
                    if child.children and inner.simpleString() != "string":
                        return child.line, Fault(
                            f"field {name}: expected {shown(inner.jsonValue())}, found elements"
                        )
                    fault = self._text_fault(child.text, inner, name, misread_texts.get(name, ()))
                    if fault is not None:
                        return child.line, fault
                elif isinstance(inner, MapType) and _is_leaf(inner.valueType):
                    of_value = self._fault_of_values(child, inner.valueType, name)
                    if of_value is not None:
                        return of_value
        return None

    def _fault_of_values(self, element: Element, data_type: DataType, name: str) -> tuple[int, Fault] | None:
        """What is wrong with the values of a map, and the line."""
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
        told = f"struct<`{self._prefix}{XSI_NIL}`: boolean, {self._value_tag}: string>"
        return Fault(
            f"field {name}: expected a text, found an element with {XSI_NIL}, which no column of texts tells from an empty one; leave the element out,"
            f" declare {name} in source.schema as {f'array<{told}>' if is_array else told}, or set `unknown_fields: ignore` at the top level of the dataflow for empty texts"
        )

    def _texts(self, element: Element, name: str) -> list[str]:
        """The texts of an element, or of its attribute."""
        if name == self._value_tag:
            return [text for text in element.texts if text.strip(XML_SPACES)]
        own = element.attributes.items()
        return [value for key, value in own if _is_called(key, name.removeprefix(self._prefix))]

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
                f"field {name}: expected one text, found {len(texts)} with elements or comments between them; a column that holds several is an"
                " array, which source.schema declares"
            )
        faults = (self._text_fault(text, data_type, name, misread_texts) for text in texts)
        return next((fault for fault in faults if fault is not None), None)

    def _text_fault(
        self, text: str, data_type: DataType, name: str, misread_texts: Collection[str]
    ) -> Fault | None:
        stripped = text.strip(XML_SPACES)
        if stripped in ("", self._reading.null):
            return None
        if stripped in misread_texts:
            return fault_of_form(name, data_type.jsonValue(), stripped)
        why = fault_of_text(stripped, data_type.jsonValue(), self._reading)
        if why is None:
            return None
        return Fault(f"field {name}: expected {shown(data_type.jsonValue())}, found {why}", stripped)


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
        return inner if _is_leaf(inner) else None
    known = isinstance(inner, StructType) and path[0] in inner.names
    return _type_at(inner[path[0]].dataType, path[1:]) if known else None  # type: ignore[index]


def _is_nil(element: Element) -> bool:
    """Whether an element says of itself that it has no value."""
    return element.attributes.get(XSI_NIL, "").strip() in ("true", "1")


def _is_called(name: str, column: str) -> bool:
    """Whether an element or attribute of a name is of a column, as Spark takes it: whatever the case, and the prefix of an element's namespace."""
    return column.casefold() in (name.casefold(), name.rpartition(":")[2].casefold())


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


def _is_leaf(data_type: DataType) -> bool:
    from pyspark.sql.types import ArrayType, MapType, StructType, VariantType

    return not isinstance(data_type, ArrayType | MapType | StructType | VariantType)
