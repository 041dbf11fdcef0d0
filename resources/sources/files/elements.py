"""One element of an XML file, read without Spark and without holding the file: to name what is to blame."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from xml.parsers import expat

from resources.places import Place
from resources.sources.files.lines import opened

_PIECE = 64 * 1024


@dataclass
class Element:
    """An element with all that is in it.

    Attributes:
        name: as it stands there, prefix included.
        line: on which it begins, from 1.
        attributes: by name.
        children: in their order.
        text: its own, without that of its children.
    """

    name: str
    line: int
    attributes: Mapping[str, str]
    children: list[Element] = field(default_factory=list)
    text: str = ""


@dataclass(frozen=True)
class Broken:
    """The place at which a file stops being XML.

    Attributes:
        line: from 1.
        why: in words.
    """

    line: int
    why: str


class _FoundError(Exception):
    """The parser has read enough."""


def element(place: Place, path: str, name: str, number: int) -> Element | Broken | None:
    """Return the element of a name with a number, from 1, of those that are not inside another of the name.

    Returns:
        where the file is broken, if that comes first; None if there are fewer, or the file cannot be opened.
    """
    reader = _Reader(name, number)
    try:
        with opened(place, path) as file:
            while piece := file.read(_PIECE):
                reader.parser.Parse(piece, False)
            reader.parser.Parse(b"", True)
    except _FoundError:
        return reader.open[0]
    except expat.ExpatError as error:
        return Broken(error.lineno, expat.errors.messages[error.code])
    except (OSError, EOFError):
        return None
    return None


class _Reader:
    """Counts elements, and keeps the one that is wanted.

    Attributes:
        open: the wanted element and those inside it that are not closed yet.
    """

    def __init__(self, name: str, number: int) -> None:
        self._name, self._left, self._depth = name, number, 0
        self.open: list[Element] = []
        self.parser = expat.ParserCreate()
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._text

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        if self._depth or name == self._name:
            self._depth += 1
        if self._depth == 1:
            self._left -= 1
        if self._depth and not self._left:
            made = Element(name, self.parser.CurrentLineNumber, attributes)
            if self.open:
                self.open[-1].children.append(made)
            self.open.append(made)

    def _end(self, _: str) -> None:
        if self._depth:
            self._depth -= 1
        if not self.open:
            return
        if not self._depth:
            raise _FoundError
        self.open.pop()

    def _text(self, text: str) -> None:
        if self.open:
            self.open[-1].text += text
