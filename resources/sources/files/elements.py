"""The elements of an XML file, read without Spark and without holding the file: to name what is to blame."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from xml.parsers import expat

from partitions.path.source import SourceFile
from resources.places import Place
from resources.sources.files.lines import opened, part_of

_PIECE = 64 * 1024


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
    """A file stops being XML.

    Attributes:
        line: from 1.
        why: in words.
    """

    def __init__(self, line: int, why: str) -> None:
        """Keep where and why."""
        super().__init__(why)
        self.line, self.why = line, why


def elements(place: Place, path: str, name: str) -> Iterator[Element]:
    """Yield the elements of a name, in their order, without those inside another of the name; nothing of a file that cannot be opened.

    Raises:
        BrokenXmlError: the file is broken behind those that were yielded.
    """
    reader = _Reader(name)
    try:
        with opened(place, path) as file:
            while piece := file.read(_PIECE):
                reader.parser.Parse(piece, False)
                yield from reader.taken()
            reader.parser.Parse(b"", True)
    except expat.ExpatError as error:
        yield from reader.taken()
        raise _broken(error) from None
    except (OSError, EOFError):
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


def broken_end(
    place: Place, file: SourceFile, encoding: str | None, names: Collection[str] = ()
) -> BrokenXmlError | None:
    """Return where and how a document is broken; None if it ends with the end of its root, cannot be opened, or is in an encoding that is unknown here.

    Spark reads records, and takes the end of a file for the end of its document. The first and the last bytes prove the end of a long one; only if they
    do not, or an element inside may be called as the root, the whole file is parsed.

    Args:
        place: of the files.
        file: the document.
        encoding: of it, if the definition names one.
        names: of elements inside, case-folded, as far as they are known.
    """
    try:
        is_long = file.size > 2 * _PIECE and not _is_packed(file.path)
        if is_long and _ends_with_its_root(place, file, encoding, names):
            return None
        parser = expat.ParserCreate(encoding)
        with opened(place, file.path) as whole:
            while piece := whole.read(_PIECE):
                parser.Parse(piece, False)
            parser.Parse(b"", True)
    except expat.ExpatError as error:
        is_known = error.code != expat.errors.codes[expat.errors.XML_ERROR_UNKNOWN_ENCODING]
        return _broken(error) if is_known else None
    except (OSError, EOFError, LookupError, ValueError):
        return None
    return None


def _ends_with_its_root(place: Place, file: SourceFile, encoding: str | None, names: Collection[str]) -> bool:
    """Whether the last element that ends is called as the first one that begins, and no other one where is looked."""
    begun: list[str] = []
    parser = expat.ParserCreate(encoding)
    parser.StartElementHandler = lambda name, _attributes: begun.append(name)
    parser.Parse(part_of(place, file, 0, _PIECE), False)
    if not begun or begun.count(begun[0]) > 1 or begun[0].rpartition(":")[2].casefold() in names:
        return False
    last, root = part_of(place, file, file.size - _PIECE, file.size), re.escape(begun[0].encode())
    ends, begins = rb"</" + root + rb"\s*>", rb"<" + root + rb"[\s/>]"
    is_end = re.search(ends + rb"\s*\Z", last) is not None
    return is_end and len(re.findall(ends, last)) == 1 and re.search(begins, last) is None


def _broken(error: expat.ExpatError) -> BrokenXmlError:
    why = expat.errors.messages[error.code]
    return BrokenXmlError(
        error.lineno, "it ends too early" if why == expat.errors.XML_ERROR_NO_ELEMENTS else why
    )


def _is_packed(path: str) -> bool:
    return path.endswith((".gz", ".bz2", ".zst"))


class _Reader:
    """Builds elements while a file is parsed."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._open: list[Element] = []
        self._done: list[Element] = []
        self.parser = expat.ParserCreate()
        self.parser.buffer_text = True
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
        if not self._open and name != self._name:
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
