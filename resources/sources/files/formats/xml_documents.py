"""Cache the parsed documents of XML files, and note files without a record."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from partitions.path.source import SourceFile
from resources.connections.places import Place
from resources.sources.files.checked import BadRecord
from resources.sources.files.elements import BrokenXmlError, ParsedDocument, parse_document, read_names_before
from resources.sources.files.formats.xml_options import XmlOptions

_MAX_NAMES = 10


class DocumentCache:
    """A cache of parsed documents, for checks and questions about names."""

    def __init__(self, place: Place, options: XmlOptions) -> None:
        """Start with an empty cache.

        Args:
            place: the root of the files.
            options: the source's options.
        """
        self._place, self._options = place, options
        self._documents: dict[SourceFile, ParsedDocument] = {}
        self._remarks: dict[str, None] = {}

    @property
    def remarks(self) -> Sequence[str]:
        """The warnings about files without a record."""
        return tuple(self._remarks)

    def document(self, file: SourceFile) -> ParsedDocument:
        """Return the parsed document of a file."""
        if file not in self._documents:
            self._documents[file] = parse_document(self._place, file.path, self._options.form)
        return self._documents[file]

    def forget_others(self, files: Collection[SourceFile]) -> None:
        """Drop the documents of all other files."""
        self._documents = {file: document for file, document in self._documents.items() if file in files}

    def note_missing_tag(self, files: Sequence[SourceFile]) -> None:
        """Warn about files without a record: Spark reports no error for a wrong ``rowTag``."""
        tag = self._options.row_tag
        names_by_path: dict[str, list[str]] = {}
        for file in files if len(self._remarks) < _MAX_NAMES else ():
            names = read_names_before(self._place, file.path, tag, _MAX_NAMES) if file.size else None
            if names and len(names) > 1:  # a root alone is an empty document
                names_by_path[file.path] = names
        for path, names in list(names_by_path.items())[:1]:
            subject = (
                f"file {path} and {len(names_by_path) - 1} more have"
                if len(names_by_path) > 1
                else f"file {path} has"
            )
            remark = (
                f"{subject} no element {tag} and so no record; the elements are {', '.join(names)}. If one of them is "
                "a record, set options.rowTag to it"
            )
            self._remarks[remark] = None


def broken_record(xml_error: BrokenXmlError) -> BadRecord:
    """Return a broken document as a bad record, at the place of the fault."""
    why = (
        xml_error.why
        if xml_error.is_xml
        else f"expected XML, found text that does not parse as XML ({xml_error.why})"
    )
    return BadRecord("", why, xml_error.line)
