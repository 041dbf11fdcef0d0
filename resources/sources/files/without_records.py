"""Files without their bad records: copies that are staged, so that Spark reads the other records as it reads those of any file.

A second reader, of lines that were filtered, would have to follow each rule of the first one: it would take numbers in columns of texts apart, and
know nothing of folders.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import IO

from partitions.path.source import SourceFile
from partitions.records.options import by_lower_name, encoding_of
from resources.connections.places import Place
from resources.sources.files.failures import bad_document
from resources.sources.files.lines import opened, packed
from resources.staging import Staging

_LINE = re.compile(rb"([^\r\n]*+)(\r\n|\r|\n|\Z)")
_BLOCK = 1024 * 1024
_MOST_MARKS = 16
_AT_ONCE = 8


class CopiesWithoutRecords:
    """The copies of one run's files; each is made once as long as its staging lasts."""

    def __init__(self, place: Place, staging: Staging, options: Mapping[str, str]) -> None:
        """Use the root of the files, and what the definition says of their lines; nothing is copied yet."""
        self._place, self._staging = place, staging
        self._encoding = encoding_of(options) or "utf-8"
        self._line_break = by_lower_name(options).get("linesep")
        self._copied: set[tuple[str, SourceFile, frozenset[str]]] = set()

    def put(
        self, texts: Mapping[SourceFile, Collection[str]], header: Callable[[SourceFile], str | None]
    ) -> None:
        """Copy files under their own paths into the folder of the staging, some at once.

        Args:
            texts: of lines that are left out, each time that they stand in the file.
            header: returns the text of a file's first record if it is none; it stays.

        Raises:
            BadFile: a file does not hold these lines.
            SourceError: the lake cannot be written.
        """
        folder = self._staging.folder.url
        keys = {(folder, file, frozenset(of_file)): file for file, of_file in texts.items()}
        self._copied = {key for key in self._copied if key[0] == folder}
        new = [file for key, file in keys.items() if key not in self._copied]
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            for _ in pool.map(lambda file: self._copy(file.path, set(texts[file]), header(file)), new):
                pass
        self._copied |= keys.keys()

    def _copy(self, path: str, texts: set[str], header: str | None) -> None:
        text_of, marks = self._decoder(texts), self._marks(texts)
        is_first, is_header_due, removed = True, header in texts, set[str]()
        with opened(self._place, path) as file, self._staging.file(path) as copy, packed(copy, path) as lines:
            for block in self._blocks(file):
                if marks and not any(mark in block for mark in marks):
                    lines.write(block)
                    is_first = False
                    continue
                for line, line_break in self._lines(block):
                    text = text_of(line.removeprefix(codecs.BOM_UTF8) if is_first else line)
                    is_first = False
                    if text is None or text not in texts:
                        lines.write(line + line_break)
                    elif is_header_due and text == header:
                        is_header_due = False
                        lines.write(line + line_break)
                    else:
                        removed.add(text)
        missing = texts - removed
        if missing:
            raise bad_document(
                path,
                f"expected the {len(texts)} bad lines that were told in it, found {len(removed)} of them when it was read again: it has changed, or"
                f" the encoding {self._encoding} has no name that Python knows",
            )

    def _decoder(self, texts: Collection[str]) -> Callable[[bytes], str | None]:
        """Return what makes a text of a line; None of one that is none of the texts."""
        if self._codec != "utf-8":
            return lambda line: line.decode(self._codec, "replace")
        by_bytes = {text.encode(): text for text in texts}
        return by_bytes.get

    def _marks(self, texts: Collection[str]) -> Sequence[bytes]:
        """Return bytes of which each block has some that holds a line to leave out; nothing if they would not be faster to look for."""
        is_fast = self._codec == "utf-8" and len(texts) <= _MOST_MARKS
        return [text.encode() for text in texts] if is_fast else ()

    @property
    def _codec(self) -> str:
        try:
            return codecs.lookup(self._encoding).name
        except LookupError:
            return "utf-8"

    def _blocks(self, file: IO[bytes]) -> Iterator[bytes]:
        """Whole lines, many at once."""
        if self._line_break is None:
            while block := file.read(_BLOCK):
                yield block if block.endswith(b"\n") else block + file.readline()
            return
        line_break, rest = _encoded(self._line_break, self._encoding), b""
        while block := file.read(_BLOCK):
            *lines, rest = (rest + block).split(line_break)
            yield b"".join(line + line_break for line in lines)
        yield rest

    def _lines(self, block: bytes) -> Iterator[tuple[bytes, bytes]]:
        """The lines as Spark tells them apart, each with its line break."""
        if self._line_break is None:
            yield from ((match[1], match[2]) for match in _LINE.finditer(block) if match[0])
            return
        line_break = _encoded(self._line_break, self._encoding)
        *lines, rest = block.split(line_break)
        yield from ((line, line_break) for line in lines)
        if rest:
            yield rest, b""


def _encoded(text: str, encoding: str) -> bytes:
    try:
        return text.encode(encoding)
    except LookupError:
        return text.encode()
