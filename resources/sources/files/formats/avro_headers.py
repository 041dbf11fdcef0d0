"""The headers of the Avro files of a dataflow, read once: what they say of columns, and why a file cannot be loaded."""

from __future__ import annotations

from collections.abc import Mapping

from partitions.errors import BadFile
from partitions.path.source import SourceFile
from partitions.records.forms import Type
from partitions.records.options import by_lower_name
from resources.connections.places import Place
from resources.sources.files.avro_headers import Header, header_of
from resources.sources.files.avro_schemas import doubled_names, own_types, unreadable_field
from resources.sources.files.failures import bad_document, names_twice, unreadable_type

_MOST_HEADERS = 10_000


class AvroHeaders:
    """The headers of files under a root."""

    def __init__(self, place: Place, options: Mapping[str, str]) -> None:
        """Look at no file yet.

        Args:
            place: the root.
            options: of the source.
        """
        self._place, self._options = place, options
        self._known: dict[SourceFile, Header] = {}

    def _header(self, file: SourceFile) -> Header:
        if file not in self._known:
            if len(self._known) >= _MOST_HEADERS:
                del self._known[next(iter(self._known))]
            self._known[file] = header_of(self._place, file)
        return self._known[file]

    def own_types(self, text: str) -> Mapping[str, Type | None]:
        """The types of the columns of a header; of a union of several none is known if an option names its members."""
        name = "enablestableidentifiersforuniontype"
        return own_types(
            text, are_members_numbered=by_lower_name(self._options).get(name, "false").lower() != "true"
        )

    def schema(self, file: SourceFile) -> str | None:
        """Return the schema in a header, as JSON; None if the file has none, or none that reads."""
        return self._header(file).schema

    def fault(self, file: SourceFile) -> BadFile | None:
        """Why a file cannot be loaded, whatever its records are; None if it can."""
        text, fault = self._header(file)
        if fault is not None:
            return bad_document(file.path, fault)
        if text is None:
            return None
        twice, strange = doubled_names(text), unreadable_field(text)
        if twice is not None:
            return names_twice(file.path, *twice)
        return None if strange is None else unreadable_type(file.path, *strange)
