"""Find names in XML records that the schema lacks: Spark's reader drops them silently."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from resources.sources.files.elements import ElementNames
from resources.sources.files.fields import item_type

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType

XSI_NIL = "xsi:nil"


class Strays(NamedTuple):
    """The content of a file that a schema does not take.

    Attributes:
        names: the dotted names of fields that it lacks.
        nils: the dotted names of text columns with an ``xsi:nil`` element, which would become an empty text.
    """

    names: list[str]
    nils: list[str]


@dataclass(frozen=True)
class NameRules:
    """The rules by which elements and attributes name columns.

    Attributes:
        prefix: the prefix of the names of attributes.
        value_tag: the name of the text beside attributes and elements.
        wildcard: the name of a column that takes all other elements.
        is_local: whether namespace prefixes are dropped.
        has_attributes: whether attributes are read.
    """

    prefix: str
    value_tag: str
    wildcard: str = "xs_any"
    is_local: bool = False
    has_attributes: bool = True

    def attributes(self, names: ElementNames) -> Iterator[str]:
        """Yield the columns of attributes; skip namespace declarations, and ``xsi:type`` and its like."""
        for name in names.attributes if self.has_attributes else ():
            if name != "xmlns" and not name.startswith(("xmlns:", "xsi:")):
                yield self.prefix + (name.rpartition(":")[2] if self.is_local else name)

    def columns(self, names: ElementNames) -> list[str]:
        """Return the columns of the elements at one place."""
        texts = [self.value_tag] if names.has_text else []
        return list(dict.fromkeys([*self.attributes(names), *names.children, *texts]))

    def strays(self, names: ElementNames, schema: StructType) -> Strays:
        """Return the names of records that a schema does not take."""
        strays = Strays([], [])
        self._in_struct(names, schema, "", strays)
        return strays

    def find_case_conflict(self, names: ElementNames, schema: StructType) -> tuple[str, str] | None:
        """Return two dotted names of one column that differ in case only; None if there are none."""
        return next(self._doubled(names, schema, ""), None)

    def _in_struct(self, names: ElementNames, schema: StructType, prefix: str, strays: Strays) -> None:
        types = {field.name: field.dataType for field in schema.fields}
        strays.names.extend(f"{prefix}{name}" for name in self.attributes(names) if name not in types)
        for name, inside in names.children.items():
            if name in types:
                self._in_value(inside, types[name], f"{prefix}{name}", strays)
            elif self.wildcard not in types:
                strays.names.append(f"{prefix}{name}")
        is_beside = not prefix or names.attributes or names.children
        if names.has_text and is_beside and self.value_tag not in types:
            strays.names.append(f"{prefix}{self.value_tag}")

    def _in_value(self, names: ElementNames, data_type: DataType, name: str, strays: Strays) -> None:
        from pyspark.sql.types import MapType, StringType, StructType, VariantType

        inner_type = item_type(data_type)
        if isinstance(inner_type, StructType):
            self._in_struct(names, inner_type, f"{name}.", strays)
        elif isinstance(inner_type, MapType):
            for inside in names.children.values():
                self._in_value(inside, inner_type.valueType, name, strays)
        elif not isinstance(inner_type, VariantType):
            # A text column takes only the text of an element, not its attributes.
            strays.names.extend(f"{name}.{attribute}" for attribute in self.attributes(names))
            if isinstance(inner_type, StringType) and XSI_NIL in names.attributes:
                strays.nils.append(name)

    def _doubled(self, names: ElementNames, schema: StructType, prefix: str) -> Iterator[tuple[str, str]]:
        from pyspark.sql.types import StructType

        types = {field.name.casefold(): item_type(field.dataType) for field in schema.fields}
        spellings: dict[str, str] = {}
        for name in self.columns(names):
            first = spellings.setdefault(name.casefold(), name)
            if name.casefold() in types and first != name:
                yield f"{prefix}{first}", f"{prefix}{name}"
        for name, inside in names.children.items():
            inner_type = types.get(name.casefold())
            if isinstance(inner_type, StructType):
                yield from self._doubled(inside, inner_type, f"{prefix}{name}.")
