"""XML files looked through before they are loaded: Spark reads each leaf as texts, and files with a text that is not exact are judged element by element."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from partitions.records.forms import Reading
from partitions.records.judge import Fault, fault_of_text, shown
from resources.sources.files.elements import Element
from resources.sources.files.exact_texts import is_exact
from resources.sql import any_of, quoted

if TYPE_CHECKING:
    from pyspark.sql import Column
    from pyspark.sql.types import DataType, StructType


_NIL = "xsi:nil"


class XmlRule:
    """What records must be.

    An element stands once, unless its column is an array; a text is exact for its column's type; an element with a type of values has no elements
    in it.
    """

    def __init__(
        self, schema: StructType, reading: Reading, prefix: str, value_tag: str, *, takes_nil: bool = True
    ) -> None:
        """Use the columns of the records, what the definition says of texts, and how attributes and texts beside them are named.

        Without ``takes_nil`` an element that ``xsi:nil`` makes none is a fault in a column of texts, where it would be an empty one.
        """
        self._takes_nil = takes_nil
        self._schema, self._reading, self._prefix, self._value_tag = schema, reading, prefix, value_tag

    def as_texts(self) -> StructType:
        """Return the columns to read files with for the look: texts, as many as there are elements."""
        return self._struct(self._schema)

    def is_bad(self) -> Column:
        """Return whether a row that was read as texts is a record that cannot be loaded."""
        from pyspark.sql import functions as F

        fields = self._schema.fields
        return any_of([self._bad(F.col(quoted(field.name)), field.name, field.dataType) for field in fields])

    def fault(self, element: Element) -> tuple[int, Fault] | None:
        """Return the line of what is wrong in an element, and what it is; None if the columns hold it exactly."""
        return self._fault_in(element, self._schema, "")

    def _struct(self, schema: StructType) -> StructType:
        from pyspark.sql.types import StructField, StructType

        return StructType(
            [StructField(field.name, self._wide(field.name, field.dataType)) for field in schema.fields]
        )

    def _wide(self, name: str, data_type: DataType) -> DataType:
        from pyspark.sql.types import ArrayType, StringType, StructType

        if self._stands_alone(name):
            return StringType()
        inner = data_type.elementType if isinstance(data_type, ArrayType) else data_type
        if isinstance(inner, StructType):
            inside = self._struct(inner)
            if self._value_tag not in inside.names:  # a text that no column takes would be lost
                inside = inside.add(self._value_tag, StringType())
            return ArrayType(inside)
        return ArrayType(StringType()) if _is_leaf(inner) else data_type

    def _bad(self, value: Column, name: str, data_type: DataType) -> Column:
        from pyspark.sql import functions as F
        from pyspark.sql.types import ArrayType, StructType

        if self._stands_alone(name):
            return self._bad_text(value, data_type)
        inner = data_type.elementType if isinstance(data_type, ArrayType) else data_type
        if isinstance(inner, StructType):
            fields = inner.fields

            def bad_struct(item: Column) -> Column:
                bad = [self._bad(item.getField(field.name), field.name, field.dataType) for field in fields]
                if self._value_tag not in inner.names:
                    bad.append(F.coalesce(F.trim(item.getField(self._value_tag)) != "", F.lit(False)))
                return any_of(bad)

            bad = F.exists(value, bad_struct)
        elif _is_leaf(inner):
            bad = F.exists(value, lambda text: self._bad_text(text, inner))
        else:
            return F.lit(False)
        if not isinstance(data_type, ArrayType):
            bad = bad | (F.size(value) > 1)
        return F.coalesce(bad, F.lit(False))

    def _bad_text(self, text: Column, data_type: DataType) -> Column:
        from pyspark.sql import functions as F

        exact = is_exact(text, data_type.jsonValue(), self._reading)
        return F.coalesce(~exact & ~text.isin("", self._reading.null), F.lit(False))

    def _stands_alone(self, name: str) -> bool:
        """Whether a column is an attribute, of which an element has one."""
        return name != self._value_tag and name.startswith(self._prefix)

    def _fault_in(self, element: Element, schema: StructType, above: str) -> tuple[int, Fault] | None:
        from pyspark.sql.types import ArrayType, StructType

        for field in schema.fields:
            name = f"{above}{field.name}"
            is_array = isinstance(field.dataType, ArrayType)
            inner = field.dataType.elementType if isinstance(field.dataType, ArrayType) else field.dataType
            if self._stands_alone(field.name) or field.name == self._value_tag:
                fault = self._fault_of_texts(self._texts(element, field.name), inner, name, several=is_array)
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
                    text = child.text.strip()
                    if text and self._value_tag not in inner.names:
                        why = f"field {name}: expected elements, found text beside them, which a column {self._value_tag} in it would take"
                        return child.line, Fault(why, text)
                    found_inside = self._fault_in(child, inner, f"{name}.")
                    if found_inside is not None:
                        return found_inside
                elif _is_leaf(inner):
                    if not self._takes_nil and inner.simpleString() == "string" and _is_nil(child):
                        return child.line, self._fault_of_nil(name, is_array=is_array)
                    if child.children and inner.simpleString() != "string":
                        return child.line, Fault(
                            f"field {name}: expected {shown(inner.jsonValue())}, found elements"
                        )
                    fault = self._text_fault(child.text, inner, name)
                    if fault is not None:
                        return child.line, fault
        return None

    def _fault_of_nil(self, name: str, *, is_array: bool) -> Fault:
        told = f"struct<`{self._prefix}{_NIL}`: boolean, {self._value_tag}: string>"
        return Fault(
            f"field {name}: expected a text, found an element with {_NIL}, which no column of texts tells from an empty one; leave the element out,"
            f" declare {name} in source.schema as {f'array<{told}>' if is_array else told}, or set `unknown_fields: ignore` for empty texts"
        )

    def _texts(self, element: Element, name: str) -> list[str]:
        """The texts of an element, or of its attribute."""
        if name == self._value_tag:
            return [text for text in element.texts if text.strip()]
        own = element.attributes.items()
        return [value for key, value in own if _is_called(key, name.removeprefix(self._prefix))]

    def _fault_of_texts(
        self, texts: Sequence[str], data_type: DataType, name: str, *, several: bool
    ) -> Fault | None:
        if len(texts) > 1 and not several:
            return Fault(
                f"field {name}: expected one text, found {len(texts)} with elements or comments between them; a column that holds several is an"
                " array, which source.schema declares"
            )
        faults = (self._text_fault(text, data_type, name) for text in texts)
        return next((fault for fault in faults if fault is not None), None)

    def _text_fault(self, text: str, data_type: DataType, name: str) -> Fault | None:
        stripped = text.strip()
        if stripped in ("", self._reading.null):
            return None
        why = fault_of_text(stripped, data_type.jsonValue(), self._reading)
        if why is None:
            return None
        return Fault(f"field {name}: expected {shown(data_type.jsonValue())}, found {why}", stripped)


def _is_nil(element: Element) -> bool:
    """Whether an element says of itself that it has no value."""
    return element.attributes.get(_NIL, "").strip() in ("true", "1")


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
