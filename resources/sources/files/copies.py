"""Write staged copies of files without their bad records, or in UTF-8, for Spark's own reader.

A second reader for filtered or decoded lines would have to repeat each rule of the first one: it would split
numbers in text columns, and know nothing of folders.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import IO

from partitions.path.source import SourceFile
from partitions.records.json_decoding import records_of_document
from partitions.records.options import encoding_of, with_lower_names
from resources.connections.places import Place
from resources.sources.files.failures import bad_document_error
from resources.sources.files.lines import codec_of, compress, open_file
from resources.staging import Staging

Rewrite = Callable[[IO[bytes], IO[bytes], str], None]
"""Rewrites a file in a given encoding into another one in UTF-8; raises UnicodeError for bytes that are no text."""

REWRITTEN_ENDING = ".json"
"""The ending of a rewritten copy: Spark would decompress one that ends with ``.gz``."""

_LINE = re.compile(rb"([^\r\n]*+)(\r\n|\r|\n|\Z)")
_BLOCK = 1024 * 1024
_MAX_MARKS = 16
_AT_ONCE = 8


class FileCopies:
    """The staged copies of one run's files; each is written once while its staging lasts."""

    def __init__(self, place: Place, staging: Staging, options: Mapping[str, str]) -> None:
        """Store the root of the files and the options of their lines; copy nothing."""
        self._place, self._staging = place, staging
        self._encoding = encoding_of(options) or "utf-8"
        self._line_break = with_lower_names(options).get("linesep")
        self._copied: set[tuple[str, SourceFile, frozenset[str]]] = set()

    def write_copies(
        self,
        texts: Mapping[SourceFile, Collection[str]],
        header: Callable[[SourceFile], str | None],
        rewrite: Rewrite | None = None,
    ) -> None:
        """Copy files under their own paths into the staging folder, several at a time.

        Args:
            texts: by file, the lines to leave out wherever they stand.
            header: returns the text of a file's header, which stays; None if it has none.
            rewrite: writes the copies in UTF-8, uncompressed, with ``REWRITTEN_ENDING`` behind their paths; None:
                copies keep the form of their files.

        Raises:
            BadFile: a file lacks one of these lines, or has bytes that are no text.
            SourceError: the lake cannot be written.
        """
        folder = self._staging.folder.url
        keys = {(folder, file, frozenset(file_texts)): file for file, file_texts in texts.items()}
        self._copied = {key for key in self._copied if key[0] == folder}
        new_files = [file for key, file in keys.items() if key not in self._copied]
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            for _ in pool.map(
                lambda file: self._copy(file.path, set(texts[file]), header(file), rewrite), new_files
            ):
                pass
        self._copied |= keys.keys()

    def _copy(self, path: str, texts: set[str], header: str | None, rewrite: Rewrite | None) -> None:
        if rewrite is None:
            with (
                open_file(self._place, path) as file,
                self._staging.file(path) as copy,
                compress(copy, path) as lines,
            ):
                self._write_remaining(path, file, lines, texts, header)
            return
        with open_file(self._place, path) as file, self._staging.file(path + REWRITTEN_ENDING) as copy:
            try:
                if texts:
                    self._write_remaining(path, file, copy, texts, header, in_utf8=True)
                else:
                    rewrite(file, copy, self._encoding)
            except UnicodeError as error:
                raise bad_document_error(
                    path, f"expected text in {self._encoding}, found other bytes"
                ) from error

    def _write_remaining(
        self,
        path: str,
        file: IO[bytes],
        lines: IO[bytes],
        texts: set[str],
        header: str | None,
        *,
        in_utf8: bool = False,
    ) -> None:
        """Write the lines that have none of these texts.

        Raises:
            BadFile: no line has one of the texts.
            UnicodeError: a line is no text.
        """
        text_of, marks = self._decoder(texts), self._marks(texts)
        is_first, is_header_due, removed = True, header in texts, set[str]()
        for block in self._blocks(file):
            if marks and not any(mark in block for mark in marks):
                lines.write(block)
                is_first = False
                continue
            for line, line_break in self._lines(block):
                text = text_of(line.removeprefix(codecs.BOM_UTF8) if is_first else line)
                is_first = False
                is_header = is_header_due and text == header
                is_header_due = is_header_due and not is_header
                if text is not None and text in texts and not is_header:
                    removed.add(text)
                elif in_utf8:
                    lines.write((line + line_break).decode(self._codec).encode())
                else:
                    lines.write(line + line_break)
        missing = texts - removed
        if missing:
            raise bad_document_error(
                path,
                f"expected the {len(texts)} bad lines of the first check, found {len(removed)} of them at the second "
                f"read: the file changed, or Python does not know the encoding {self._encoding}",
            )

    def _decoder(self, texts: Collection[str]) -> Callable[[bytes], str | None]:
        """Return a function that decodes a line; it may return None for a line that is none of the texts."""
        if self._codec != "utf-8":
            return lambda line: line.decode(self._codec, "replace")
        by_bytes = {text.encode(): text for text in texts}
        return by_bytes.get

    def _marks(self, texts: Collection[str]) -> Sequence[bytes]:
        """Return byte strings that any block with a line to leave out contains one of.

        Empty if searching for them is not faster.
        """
        is_fast = self._codec == "utf-8" and len(texts) <= _MAX_MARKS
        return [text.encode() for text in texts] if is_fast else ()

    @property
    def _codec(self) -> str:
        try:
            return codecs.lookup(self._encoding).name
        except LookupError:
            return "utf-8"

    def _blocks(self, file: IO[bytes]) -> Iterator[bytes]:
        """Yield blocks of whole lines."""
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
        """Yield the lines as Spark splits them, each with its line break."""
        if self._line_break is None:
            yield from ((match[1], match[2]) for match in _LINE.finditer(block) if match[0])
            return
        line_break = _encoded(self._line_break, self._encoding)
        *lines, rest = block.split(line_break)
        yield from ((line, line_break) for line in lines)
        if rest:
            yield rest, b""


def write_in_utf8(file: IO[bytes], copy: IO[bytes], encoding: str) -> None:
    """Write a text in UTF-8, without a byte order mark.

    Raises:
        UnicodeError: the bytes are no text in their encoding.
    """
    block = file.read(_BLOCK)
    decoder = codecs.getincrementaldecoder(codec_of(encoding, block))()
    text = decoder.decode(block).removeprefix("\ufeff")
    while block:
        copy.write(text.encode())
        block = file.read(_BLOCK)
        text = decoder.decode(block, final=not block)


def write_records_as_lines(file: IO[bytes], copy: IO[bytes], encoding: str) -> None:
    """Write each record of a JSON document unchanged on its own line.

    Raises:
        UnicodeError: the document is no text in its encoding.
    """
    data = file.read()
    for record in records_of_document(data.decode(codec_of(encoding, data))):
        copy.write(f"{record}\n".encode())


def _encoded(text: str, encoding: str) -> bytes:
    try:
        return text.encode(encoding)
    except LookupError:
        return text.encode()
