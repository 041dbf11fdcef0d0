"""Read the elements of an XML file without Spark and without holding the file, to find bad records."""

from __future__ import annotations

import codecs
import re
import zlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple
from xml.parsers import expat

from resources.connections.places import Place
from resources.listing.failures import store_failures
from resources.sources.files.lines import open_file, stream_file
from resources.sources.files.text_values import XML_SPACES

_PIECE = 64 * 1024
_STORE_READ_SIZE = 8 * 2**20
"""Bytes that a store sends at a time, so that no document is in memory as a whole."""
_NATIVE = ("", "utf-8", "utf-16", "iso-8859-1", "us-ascii")
"""Declared encodings that expat reads itself; "" is none."""

_UNREADABLE = (OSError, EOFError, zlib.error)


@dataclass
class Element:
    """An element with its content.

    Attributes:
        name: as written, prefix included.
        line: the line on which it begins, from 1.
        attributes: the values of the attributes, by name.
        children: the elements directly inside, in their order.
        texts: its own text, without its children's, split at each child, comment and instruction.
    """

    name: str
    line: int
    attributes: Mapping[str, str]
    children: list[Element] = field(default_factory=list)
    texts: list[str] = field(default_factory=lambda: [""])

    @property
    def text(self) -> str:
        """All of its own text."""
        return "".join(self.texts)


class BrokenXmlError(Exception):
    """A place where a file stops being readable XML.

    Attributes:
        line: the line of the fault, from 1.
        why: the reason.
        is_xml: whether the file is well-formed, but Spark would leave out a part.
    """

    def __init__(self, line: int, why: str, *, is_xml: bool = False) -> None:
        """Store the line and the reason."""
        super().__init__(why)
        self.line, self.why, self.is_xml = line, why, is_xml


@dataclass
class ElementNames:
    """The names in all elements at one place, such as in all records.

    Attributes:
        attributes: the attributes, as written.
        children: the elements inside, by name.
        has_text: whether one has text of its own.
    """

    attributes: dict[str, None] = field(default_factory=dict)
    children: dict[str, ElementNames] = field(default_factory=dict)
    has_text: bool = False


@dataclass
class _EnclosingElement:
    """An element that encloses records.

    Attributes:
        has_records: whether a record is its direct child.
        stray: the line and description of the first content that may be a record without its tags; None if
            there is none.
    """

    has_records: bool = False
    stray: tuple[int, str] | None = None


@dataclass(frozen=True)
class XmlForm:
    """The definition's options for documents.

    Attributes:
        tag: the name of elements that are records.
        encoding: the text's encoding; "": the document declares it.
        is_local: whether namespace prefixes are dropped from names.
    """

    tag: str
    encoding: str = ""
    is_local: bool = False

    def name_of(self, name: str) -> str:
        """Return the column's name for an element or attribute."""
        return name.rpartition(":")[2] if self.is_local else name


class ParsedDocument(NamedTuple):
    """The result of parsing a whole document.

    Attributes:
        names: the names in its records.
        error: where and why it is broken; None if it is whole.
    """

    names: ElementNames
    error: BrokenXmlError | None


def read_elements(place: Place, path: str, form: XmlForm) -> Iterator[Element]:
    """Yield the record elements in their order, without nested ones; nothing if the file cannot be opened.

    Raises:
        BrokenXmlError: the file is broken behind the yielded elements.
    """
    reader = _RecordBuilder(form)
    try:
        for _ in _parse_pieces(reader.parser, place, path, form.encoding):
            yield from reader.pop_finished()
    except BrokenXmlError:
        yield from reader.pop_finished()
        raise
    except _UNREADABLE:
        return


def read_names_before(place: Place, path: str, name: str, max_names: int) -> list[str] | None:
    """Return at most ``max_names`` distinct element names of a file; None if ``name`` is among them.

    Stops at an element of this name. Returns the names before the fault if the file is broken, or none if it
    cannot be opened.
    """
    names: dict[str, None] = {}
    parser = expat.ParserCreate()
    parser.StartElementHandler = lambda tag, _attributes: names.setdefault(tag)
    with suppress(expat.ExpatError, OSError, EOFError), open_file(place, path) as file:
        while name not in names and (piece := file.read(_PIECE)):
            parser.Parse(piece, False)
    return None if name in names else list(names)[:max_names]


def parse_document(place: Place, path: str, form: XmlForm) -> ParsedDocument:
    """Parse a whole document, and return the names in its records and the first fault.

    Spark reads only records: it takes the end of the file for the end of the document, and drops what its
    columns do not name. A file that cannot be opened has no names: Spark reports why.
    """
    collector = _NameCollector(form)
    try:
        for _ in _parse_pieces(collector.parser, place, path, form.encoding):
            pass
    except BrokenXmlError as broken:
        return ParsedDocument(collector.records, broken)
    except _UNREADABLE:
        pass
    return ParsedDocument(collector.records, None)


def _parse_pieces(parser: expat.XMLParserType, place: Place, path: str, encoding: str) -> Iterator[None]:
    """Parse a document piece by piece, and yield after each.

    Raises:
        BrokenXmlError: the document is broken.
        SourceError: the store refuses, or does not answer.
    """
    from obstore.exceptions import BaseError

    codec = ""
    try:
        with stream_file(place, path, _STORE_READ_SIZE) as file:
            piece = file.read(_PIECE)
            codec = encoding or _declared_encoding(piece)
            if piece.startswith(codecs.BOM_UTF8) and codec.lower() not in ("", "utf-8", "utf8"):
                why = f"expected one encoding, found {codec} beside a byte order mark of UTF-8; one of them is wrong"
                raise BrokenXmlError(1, why, is_xml=True)
            is_native = not encoding and codec.lower() in _NATIVE
            decoder = None if is_native else codecs.getincrementaldecoder(codec or "utf-8")()
            while piece:
                parser.Parse(piece if decoder is None else decoder.decode(piece), False)
                yield
                piece = file.read(_PIECE)
            parser.Parse(b"" if decoder is None else decoder.decode(b"", True), True)
            yield
    except expat.ExpatError as error:
        raise _broken(error) from None
    except UnicodeError:
        raise BrokenXmlError(parser.CurrentLineNumber, f"bytes that are not {codec}") from None
    except LookupError:
        raise BrokenXmlError(1, f"its encoding {codec} is not supported") from None
    except BaseError:
        with store_failures(place):
            raise


def _declared_encoding(beginning: bytes) -> str:
    declared = re.match(rb"""\s*(?:\xef\xbb\xbf)*<\?xml[^>]*?encoding\s*=\s*["']([\w.:-]+)""", beginning)
    return "" if declared is None else declared[1].decode("ascii", "replace")


def _broken(error: expat.ExpatError) -> BrokenXmlError:
    why = expat.errors.messages[error.code]
    return BrokenXmlError(
        error.lineno, "it ends too early" if why == expat.errors.XML_ERROR_NO_ELEMENTS else why
    )


class _NameCollector:
    """A parser that collects the names in records.

    Spark ignores document types. So an entity or default attribute from one breaks the document if a record
    uses it. Text between records, and elements that differ from the record's name in case or prefix only,
    break it, too: Spark skips them silently.
    """

    def __init__(self, form: XmlForm) -> None:
        self._form = form
        self._open: list[ElementNames] = []
        self._enclosing: list[_EnclosingElement] = []
        self._defaults: dict[str, set[str]] = {}
        self.records = ElementNames()
        self.parser = _parser()
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._text
        self.parser.specified_attributes = True
        self.parser.AttlistDeclHandler = self._declare
        self.parser.DefaultHandler = self._check_entity  # with this handler expat does not expand entities

    def _declare(
        self, element: str, attribute: str, _type: str, default: str | None, _required: bool
    ) -> None:
        if default is not None:
            self._defaults.setdefault(element, set()).add(attribute)

    def _check_entity(self, text: str) -> None:
        if text.startswith("&"):
            raise self._broken(f"{text}, which only the document type defines; write its value out")

    def _broken(self, content: str) -> BrokenXmlError:
        why = f"expected values written in the document itself, found {content}"
        return BrokenXmlError(self.parser.CurrentLineNumber, why, is_xml=True)

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        if self._open:
            siblings, own = self._open[-1].children, self._form.name_of(name)
            if (names := siblings.get(own)) is None:
                names = siblings[own] = ElementNames()
        elif self._form.name_of(name) == self._form.tag:
            names = self.records
            for enclosing in self._enclosing[-1:]:
                enclosing.has_records = True
                self._check_between(enclosing)
        else:
            if (differs := _find_difference(self._form.name_of(name), self._form.tag)) is not None:
                self._note_stray(self.parser.CurrentLineNumber, f"{name}, which differs in {differs} only")
            self._enclosing.append(_EnclosingElement())
            return
        if attributes:
            names.attributes.update(dict.fromkeys(attributes))
        for attribute in self._defaults.get(name, ()):
            if attribute not in attributes:
                raise self._broken(
                    f"{name} without {attribute}, whose value only the document type defines; write it out"
                )
        self._open.append(names)

    def _end(self, _: str) -> None:
        (self._open or self._enclosing).pop()

    def _text(self, text: str) -> None:
        if self._open:
            self._open[-1].has_text = self._open[-1].has_text or bool(text.strip(XML_SPACES))
        elif rest := text.lstrip(XML_SPACES):
            line = self.parser.CurrentLineNumber - rest.count("\n")
            self._note_stray(line, "text between them, which belongs to no record")

    def _note_stray(self, line: int, description: str) -> None:
        for enclosing in self._enclosing[-1:]:
            enclosing.stray = enclosing.stray or (line, description)
            self._check_between(enclosing)

    def _check_between(self, enclosing: _EnclosingElement) -> None:
        if enclosing.has_records and enclosing.stray is not None:
            line, description = enclosing.stray
            why = f"expected elements {self._form.tag}, found {description}"
            raise BrokenXmlError(line, why, is_xml=True)


def _find_difference(name: str, tag: str) -> str | None:
    """Return the only difference between a name and the record's name; None if they differ in more."""
    if name.casefold() == tag.casefold():
        return "upper and lower case"
    if name.rpartition(":")[2].casefold() == tag.rpartition(":")[2].casefold():
        return "its prefix (the option ignoreNamespace: true takes any)"
    return None


def _parser() -> expat.XMLParserType:
    parser = expat.ParserCreate()
    parser.buffer_text = True
    return parser


class _RecordBuilder:
    """A parser that builds the record elements."""

    def __init__(self, form: XmlForm) -> None:
        self._form = form
        self._open: list[Element] = []
        self._finished: list[Element] = []
        self.parser = _parser()
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._text
        self.parser.CommentHandler = lambda _: self._divide()
        self.parser.ProcessingInstructionHandler = lambda *_: self._divide()

    def pop_finished(self) -> list[Element]:
        """Return the elements that were finished since the last call."""
        finished_elements, self._finished = self._finished, []
        return finished_elements

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        if not self._open and self._form.name_of(name) != self._form.tag:
            return
        element = Element(name, self.parser.CurrentLineNumber, attributes)
        if self._open:
            self._open[-1].children.append(element)
            self._divide()
        self._open.append(element)

    def _end(self, _: str) -> None:
        if self._open:
            ended = self._open.pop()
            if not self._open:
                self._finished.append(ended)

    def _text(self, text: str) -> None:
        if self._open:
            self._open[-1].texts[-1] += text

    def _divide(self) -> None:
        if self._open:
            self._open[-1].texts.append("")
