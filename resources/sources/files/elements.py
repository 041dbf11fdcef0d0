"""The elements of an XML file, read without Spark and without holding the file: to name what is to blame."""

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
from resources.sources.files.lines import opened, streamed
from resources.sources.files.text_values import XML_SPACES

_PIECE = 64 * 1024
_OF_A_STORE = 8 * 2**20
"""Bytes that a store sends at once: a document is not held."""
_NATIVE = ("", "utf-8", "utf-16", "iso-8859-1", "us-ascii")
"""Encodings that a document may declare without help; "": none is declared."""

_UNREADABLE = (OSError, EOFError, zlib.error)


@dataclass
class Element:
    """An element with all that is in it.

    Attributes:
        name: as it stands there, prefix included.
        line: on which it begins, from 1.
        attributes: by name.
        children: in their order.
        texts: its own, without those of its children: one from each child, comment or instruction to the next.
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
    """A file stops being XML that can be read.

    Attributes:
        line: from 1.
        why: in words.
        is_xml: whether it is XML all the same, of which Spark leaves out a part.
    """

    def __init__(self, line: int, why: str, *, is_xml: bool = False) -> None:
        """Keep where and why."""
        super().__init__(why)
        self.line, self.why, self.is_xml = line, why, is_xml


@dataclass
class Names:
    """The names that stand in elements of one place, such as all records, or all elements ``line`` of records.

    Attributes:
        attributes: of them, as they are written.
        children: the elements in them, by name.
        has_text: whether one has text of its own.
    """

    attributes: dict[str, None] = field(default_factory=dict)
    children: dict[str, Names] = field(default_factory=dict)
    has_text: bool = False


@dataclass
class _Around:
    """An element around records.

    Attributes:
        has_records: whether a record stands in it itself.
        stray: the line and the words of the first thing in it that may be a record without its tags; None if it has none yet.
    """

    has_records: bool = False
    stray: tuple[int, str] | None = None


@dataclass(frozen=True)
class XmlForm:
    """What a definition says of documents.

    Attributes:
        tag: the name of elements that are records.
        encoding: of the text; "": the document tells it.
        is_local: whether prefixes of namespaces are no part of names.
    """

    tag: str
    encoding: str = ""
    is_local: bool = False

    def name_of(self, name: str) -> str:
        """Return the name of a column, of that of an element or attribute."""
        return name.rpartition(":")[2] if self.is_local else name


class XmlLook(NamedTuple):
    """What a document holds.

    Attributes:
        names: of its records.
        broken: where and how it is broken; None if it is whole.
    """

    names: Names
    broken: BrokenXmlError | None


def elements(place: Place, path: str, form: XmlForm) -> Iterator[Element]:
    """Yield the elements that are records, in their order, without those inside another; nothing of a file that cannot be opened.

    Raises:
        BrokenXmlError: the file is broken behind those that were yielded.
    """
    reader = _Reader(form)
    try:
        for _ in _fed(reader.parser, place, path, form.encoding):
            yield from reader.taken()
    except BrokenXmlError:
        yield from reader.taken()
        raise
    except _UNREADABLE:
        return


def names_before(place: Place, path: str, name: str, most: int) -> list[str] | None:
    """Return the names of the elements of a file, each once and at most so many; None if an element of the name is among them.

    A file that cannot be opened, or is broken, has the elements in front of that. Nothing is read behind an element of the name.
    """
    names: dict[str, None] = {}
    parser = expat.ParserCreate()
    parser.StartElementHandler = lambda found, _attributes: names.setdefault(found)
    with suppress(expat.ExpatError, OSError, EOFError), opened(place, path) as file:
        while name not in names and (piece := file.read(_PIECE)):
            parser.Parse(piece, False)
    return None if name in names else list(names)[:most]


def look_through(place: Place, path: str, form: XmlForm) -> XmlLook:
    """Parse a whole document, and return which names its records have, and where and how it is broken, if it is.

    Spark reads records, takes the end of a file for the end of its document, and leaves out what its columns do not name. A file that cannot be
    opened has no names: Spark tells why.
    """
    look = _Look(form)
    try:
        for _ in _fed(look.parser, place, path, form.encoding):
            pass
    except BrokenXmlError as broken:
        return XmlLook(look.records, broken)
    except _UNREADABLE:
        pass
    return XmlLook(look.records, None)


def _fed(parser: expat.XMLParserType, place: Place, path: str, encoding: str) -> Iterator[None]:
    """Parse a document piece by piece, and yield after each.

    Raises:
        BrokenXmlError: it is broken.
        SourceError: the store refuses, or does not answer.
    """
    from obstore.exceptions import BaseError

    codec = ""
    try:
        with streamed(place, path, _OF_A_STORE) as file:
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
        raise BrokenXmlError(parser.CurrentLineNumber, f"bytes that are no {codec}") from None
    except LookupError:
        raise BrokenXmlError(1, f"in the encoding {codec}, which is not known here") from None
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


class _Look:
    """Notes the names of records while a file is parsed.

    Spark takes nothing from a document type. So what stands in records for a text or an attribute that such a type tells breaks the document. Text
    between records, and elements whose name is that of records but for its case or prefix, do, too: Spark passes over them without a word.
    """

    def __init__(self, form: XmlForm) -> None:
        self._form = form
        self._open: list[Names] = []
        self._around: list[_Around] = []
        self._defaults: dict[str, set[str]] = {}
        self.records = Names()
        self.parser = _parser()
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._text
        self.parser.specified_attributes = True
        self.parser.AttlistDeclHandler = self._declare
        self.parser.DefaultHandler = self._other  # with which Expat leaves entities as they stand

    def _declare(
        self, element: str, attribute: str, _type: str, default: str | None, _required: bool
    ) -> None:
        if default is not None:
            self._defaults.setdefault(element, set()).add(attribute)

    def _other(self, text: str) -> None:
        if text.startswith("&"):
            raise self._broken(f"{text}, which stands for what the document type says; write that out")

    def _broken(self, what: str) -> BrokenXmlError:
        why = f"expected values that stand in the document itself, found {what}"
        return BrokenXmlError(self.parser.CurrentLineNumber, why, is_xml=True)

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        if self._open:
            siblings, own = self._open[-1].children, self._form.name_of(name)
            if (names := siblings.get(own)) is None:
                names = siblings[own] = Names()
        elif self._form.name_of(name) == self._form.tag:
            names = self.records
            for around in self._around[-1:]:
                around.has_records = True
                self._check_between(around)
        else:
            if (differs := _differs_in(self._form.name_of(name), self._form.tag)) is not None:
                self._note_stray(self.parser.CurrentLineNumber, f"{name}, which differs in {differs} only")
            self._around.append(_Around())
            return
        if attributes:
            names.attributes.update(dict.fromkeys(attributes))
        for attribute in self._defaults.get(name, ()):
            if attribute not in attributes:
                raise self._broken(
                    f"{name} without {attribute}, for which the document type has a value; write it out"
                )
        self._open.append(names)

    def _end(self, _: str) -> None:
        (self._open or self._around).pop()

    def _text(self, text: str) -> None:
        if self._open:
            self._open[-1].has_text = self._open[-1].has_text or bool(text.strip(XML_SPACES))
        elif rest := text.lstrip(XML_SPACES):
            line = self.parser.CurrentLineNumber - rest.count("\n")
            self._note_stray(line, "text beside them, which is part of no record")

    def _note_stray(self, line: int, what: str) -> None:
        for around in self._around[-1:]:
            around.stray = around.stray or (line, what)
            self._check_between(around)

    def _check_between(self, around: _Around) -> None:
        if around.has_records and around.stray is not None:
            line, what = around.stray
            why = f"expected elements {self._form.tag}, found {what}"
            raise BrokenXmlError(line, why, is_xml=True)


def _differs_in(name: str, tag: str) -> str | None:
    """Return in what alone a name differs from that of records; None if it is another name."""
    if name.casefold() == tag.casefold():
        return "upper and lower case"
    if name.rpartition(":")[2].casefold() == tag.rpartition(":")[2].casefold():
        return "its prefix (the option ignoreNamespace: true takes any)"
    return None


def _parser() -> expat.XMLParserType:
    parser = expat.ParserCreate()
    parser.buffer_text = True
    return parser


class _Reader:
    """Builds elements while a file is parsed."""

    def __init__(self, form: XmlForm) -> None:
        self._form = form
        self._open: list[Element] = []
        self._done: list[Element] = []
        self.parser = _parser()
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._text
        self.parser.CommentHandler = lambda _: self._divide()
        self.parser.ProcessingInstructionHandler = lambda *_: self._divide()

    def taken(self) -> list[Element]:
        """Return the elements that are finished since the last call."""
        done, self._done = self._done, []
        return done

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        if not self._open and self._form.name_of(name) != self._form.tag:
            return
        made = Element(name, self.parser.CurrentLineNumber, attributes)
        if self._open:
            self._open[-1].children.append(made)
            self._divide()
        self._open.append(made)

    def _end(self, _: str) -> None:
        if self._open:
            ended = self._open.pop()
            if not self._open:
                self._done.append(ended)

    def _text(self, text: str) -> None:
        if self._open:
            self._open[-1].texts[-1] += text

    def _divide(self) -> None:
        if self._open:
            self._open[-1].texts.append("")
