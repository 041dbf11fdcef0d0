"""The user's options for XML: which elements are records, and how columns are named."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from partitions.records.options import encoding_of, with_lower_names
from partitions.sources.formats import Option
from resources.sources.files.elements import XmlForm
from resources.sources.files.xml_names import NameRules


@dataclass(frozen=True)
class XmlOptions:
    """The options of one source; keys in any case.

    Attributes:
        options: as in the definition.
    """

    options: Mapping[str, Option]

    @property
    def row_tag(self) -> str:
        """The name of the elements that are records."""
        return self._option("rowTag", "")

    @property
    def names(self) -> tuple[str, str]:
        """The prefix of attribute names, and the name of the text beside attributes."""
        return self._option("attributePrefix", "_"), self._option("valueTag", "_VALUE")

    @property
    def form(self) -> XmlForm:
        """The form of documents."""
        return XmlForm(self.row_tag, encoding_of(self.options) or "", self._is_local)

    @property
    def name_rules(self) -> NameRules:
        """The rules by which elements and attributes name columns."""
        has_attributes = self._option("excludeAttribute", "false").lower() != "true"
        return NameRules(
            *self.names, self._option("wildcardColName", "xs_any"), self._is_local, has_attributes
        )

    @property
    def _is_local(self) -> bool:
        return self._option("ignoreNamespace", "false").lower() == "true"

    def _option(self, name: str, default: str) -> str:
        return with_lower_names(self.options).get(name.lower(), default)
