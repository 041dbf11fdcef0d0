"""Names that stand in records of XML and that a schema does not take: Spark's reader leaves them out without a word."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from resources.sources.files.elements import Names
from resources.sources.files.fields import item_type

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType

XSI_NIL = "xsi:nil"


class Strays(NamedTuple):
    """What a file has that a schema does not take.

    Attributes:
        names: of the fields that it lacks, dotted.
        nils: elements that ``xsi:nil`` makes none, though their column is a text, which would be an empty one; dotted.
    """

    names: list[str]
    nils: list[str]


@dataclass(frozen=True)
class NameRules:
    """How the names of columns are made.

    Attributes:
        prefix: of the names of attributes.
        value_tag: the name of the text beside attributes and elements.
        wildcard: the name of a column that takes all elements without one.
        is_local: whether prefixes of namespaces are no part of names.
        has_attributes: whether attributes are read.
    """

    prefix: str
    value_tag: str
    wildcard: str = "xs_any"
    is_local: bool = False
    has_attributes: bool = True

    def attributes(self, names: Names) -> Iterator[str]:
        """Yield the columns of attributes; declarations of namespaces, and ``xsi:type`` and its like, are none."""
        for name in names.attributes if self.has_attributes else ():
            if name != "xmlns" and not name.startswith(("xmlns:", "xsi:")):
                yield self.prefix + (name.rpartition(":")[2] if self.is_local else name)

    def columns(self, names: Names) -> list[str]:
        """Return the columns that elements of one place have."""
        texts = [self.value_tag] if names.has_text else []
        return list(dict.fromkeys([*self.attributes(names), *names.children, *texts]))

    def strays(self, names: Names, schema: StructType) -> Strays:
        """Return what a schema does not take of the names of records."""
        strays = Strays([], [])
        self._in_struct(names, schema, "", strays)
        return strays

    def spelt_in_two_cases(self, names: Names, schema: StructType) -> tuple[str, str] | None:
        """Return two names that stand at one place for the same column, and differ in upper and lower case; dotted. None if there are none."""
        return next(self._doubled(names, schema, ""), None)

    def _in_struct(self, names: Names, schema: StructType, above: str, strays: Strays) -> None:
        types = {field.name: field.dataType for field in schema.fields}
        strays.names.extend(f"{above}{name}" for name in self.attributes(names) if name not in types)
        for name, inside in names.children.items():
            if name in types:
                self._in_value(inside, types[name], f"{above}{name}", strays)
            elif self.wildcard not in types:
                strays.names.append(f"{above}{name}")
        is_beside = not above or names.attributes or names.children
        if names.has_text and is_beside and self.value_tag not in types:
            strays.names.append(f"{above}{self.value_tag}")

    def _in_value(self, names: Names, data_type: DataType, name: str, strays: Strays) -> None:
        from pyspark.sql.types import MapType, StringType, StructType, VariantType

        kind = item_type(data_type)
        if isinstance(kind, StructType):
            self._in_struct(names, kind, f"{name}.", strays)
        elif isinstance(kind, MapType):
            for inside in names.children.values():
                self._in_value(inside, kind.valueType, name, strays)
        elif not isinstance(kind, VariantType):
            # The type of a text takes the text alone of an element with attributes.
            strays.names.extend(f"{name}.{attribute}" for attribute in self.attributes(names))
            if isinstance(kind, StringType) and XSI_NIL in names.attributes:
                strays.nils.append(name)

    def _doubled(self, names: Names, schema: StructType, above: str) -> Iterator[tuple[str, str]]:
        from pyspark.sql.types import StructType

        types = {field.name.casefold(): item_type(field.dataType) for field in schema.fields}
        spellings: dict[str, str] = {}
        for name in self.columns(names):
            first = spellings.setdefault(name.casefold(), name)
            if name.casefold() in types and first != name:
                yield f"{above}{first}", f"{above}{name}"
        for name, inside in names.children.items():
            kind = types.get(name.casefold())
            if isinstance(kind, StructType):
                yield from self._doubled(inside, kind, f"{above}{name}.")
