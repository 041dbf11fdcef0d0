"""Copies of files without their bad records, and in UTF-8."""

from __future__ import annotations

import bz2
import gzip
from collections.abc import Callable, Collection
from pathlib import Path

import pyarrow as pa
import pytest

from partitions.errors import BadFile
from partitions.path.source import SourceFile
from resources.connections.places import Place
from resources.sources.files.copies import (
    REWRITTEN_ENDING,
    FileCopies,
    Rewrite,
    write_in_utf8,
    write_records_as_lines,
)
from resources.sources.files.lines import open_file
from resources.staging import Staging


def copied(
    folder: Path,
    content: bytes,
    texts: set[str],
    path: str = "a.csv",
    header: str | None = None,
    **options: str,
) -> bytes:
    """The content of a copy, unpacked."""
    file = folder / "landing" / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    staging = Staging(Place(str(folder / "lake")))
    place = Place(str(folder / "landing"))
    copies = FileCopies(place, staging, options)
    copies.write_copies({SourceFile(path, len(content), "1", 0): texts}, lambda _: header)
    with open_file(staging.folder, path) as copy:
        return copy.read()


def in_utf8(
    folder: Path,
    content: bytes,
    encoding: str,
    *,
    texts: Collection[str] = (),
    path: str = "a.json",
    rewrite: Rewrite = write_in_utf8,
) -> str:
    """The text of a copy in UTF-8."""
    (folder / path).write_bytes(content)
    staging = Staging(Place(str(folder / "lake")))
    copies = FileCopies(Place(str(folder)), staging, {"encoding": encoding, "lineSep": "\n"})
    copies.write_copies({SourceFile(path, len(content), "1", 0): texts}, lambda _: None, rewrite)
    with open_file(staging.folder, path + REWRITTEN_ENDING) as copy:
        return copy.read().decode()


def _zstd(data: bytes) -> bytes:
    return bytes(pa.compress(data, "zstd", asbytes=True))


@pytest.mark.parametrize(
    ("content", "copy"),
    [
        (b"a\nbad\nb\n", b"a\nb\n"),
        (b"a\r\nbad\r\nb", b"a\r\nb"),
        (b"a\rbad\rb\r\nbad", b"a\rb\r\n"),
        (b"\xef\xbb\xbfbad\na\n", b"a\n"),
        (b"\xef\xbb\xbfa\n\n\nbad\n bad\n", b"\xef\xbb\xbfa\n\n\n bad\n"),
        (b"bad", b""),
    ],
)
def test_all_but_the_lines_of_the_texts_stays_as_it_is(tmp_path: Path, content: bytes, copy: bytes) -> None:
    assert copied(tmp_path, content, {"bad"}) == copy


@pytest.mark.parametrize(
    ("ending", "pack"), [(".gz", gzip.compress), (".bz2", bz2.compress), (".zst", _zstd), ("", bytes)]
)
def test_a_copy_is_packed_as_its_file_is(tmp_path: Path, ending: str, pack: Callable[[bytes], bytes]) -> None:
    path = f"day=1/b {{x}}.ndjson{ending}"
    assert copied(tmp_path, pack(b"a\nbad\nb\n"), {"bad"}, path) == b"a\nb\n"


def test_the_header_stays_also_where_a_bad_line_has_its_text(tmp_path: Path) -> None:
    assert copied(tmp_path, b"\nid\n1\nid\n2\n", {"id"}, header="id") == b"\nid\n1\n2\n"


def test_lines_are_told_apart_as_the_options_say(tmp_path: Path) -> None:
    content = "é|bad ü|b\nb".encode("cp1252")
    assert copied(tmp_path, content, {"bad ü"}, encoding="windows-1252", lineSep="|") == "é|b\nb".encode(
        "cp1252"
    )


def test_a_file_that_does_not_hold_a_bad_line_any_more_is_bad(tmp_path: Path) -> None:
    with pytest.raises(BadFile, match=r"file a\.csv, expected the 2 bad lines of the first check, found 1"):
        copied(tmp_path, b"a\nbad\n", {"bad", "worse"})


def test_many_lines_are_left_out_in_one_pass(tmp_path: Path) -> None:
    lines = [f"{number}\n".encode() for number in range(200_000)]
    bad = {str(number) for number in range(0, 200_000, 7)}
    kept = b"".join(line for number, line in enumerate(lines) if number % 7)
    assert copied(tmp_path, b"".join(lines), bad) == kept
    assert copied(tmp_path, b"|".join(lines), {"199999\n"}, lineSep="|") == b"|".join(lines[:-1]) + b"|"


@pytest.mark.parametrize(
    ("encoding", "codec"),
    [("UTF-16", "utf-16"), ("UTF-16", "utf-16-be"), ("UTF-32", "utf-32-be"), ("UTF-8", "utf-8-sig"), ("UTF-16LE", "utf-16-le"), ("cp1252", "cp1252")],
)  # fmt: skip
def test_a_copy_in_utf8_has_all_letters_and_no_mark(tmp_path: Path, encoding: str, codec: str) -> None:
    text = "é" * 1_100_000 + "\nbad ü\nz"
    assert in_utf8(tmp_path, text.encode(codec), encoding) == text
    if encoding in ("UTF-16LE", "cp1252"):
        assert in_utf8(tmp_path, text.encode(codec), encoding, texts={"bad ü"}) == text.replace("bad ü\n", "")


def test_a_copy_in_utf8_is_not_packed(tmp_path: Path) -> None:
    assert in_utf8(tmp_path, gzip.compress(b"{}"), "utf-8", path="a.json.gz") == "{}"


@pytest.mark.parametrize(
    ("document", "lines"),
    [
        (
            '\ufeff [ {"a":\r\n 1.50, "b": "]\\n"} ,{"a": 1e3}\n]\n',
            '{"a":   1.50, "b": "]\\n"}\n{"a": 1e3}\n',
        ),
        ('{"a":\n[{}, -0]}', '{"a": [{}, -0]}\n'),
        (" [ ] ", ""),
        ("", ""),
    ],
)
def test_records_of_a_document_become_lines_as_written(tmp_path: Path, document: str, lines: str) -> None:
    copy = in_utf8(tmp_path, document.encode("utf-16"), "UTF-16", rewrite=write_records_as_lines)
    assert copy == lines


@pytest.mark.parametrize("texts", [(), {"bad"}])
def test_bytes_that_are_no_text_make_the_file_bad(tmp_path: Path, texts: Collection[str]) -> None:
    with pytest.raises(BadFile, match=r"file a\.json, expected text in cp1252, found other bytes"):
        in_utf8(tmp_path, b"bad\n\x81\n", "cp1252", texts=texts)
