"""Copies of files without their bad records."""

from __future__ import annotations

import bz2
import gzip
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from partitions.errors import BadFile
from partitions.path.source import SourceFile
from resources.connections.places import Place
from resources.sources.files.lines import opened
from resources.sources.files.without_records import CopiesWithoutRecords
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
    copies = CopiesWithoutRecords(place, staging, options)
    copies.put({SourceFile(path, len(content), "1", 0): texts}, lambda _: header)
    with opened(staging.folder, path) as copy:
        return copy.read()


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
    with pytest.raises(BadFile, match=r"file a\.csv, expected the 2 bad lines that were told in it, found 1"):
        copied(tmp_path, b"a\nbad\n", {"bad", "worse"})


def test_many_lines_are_left_out_in_one_pass(tmp_path: Path) -> None:
    lines = [f"{number}\n".encode() for number in range(200_000)]
    bad = {str(number) for number in range(0, 200_000, 7)}
    kept = b"".join(line for number, line in enumerate(lines) if number % 7)
    assert copied(tmp_path, b"".join(lines), bad) == kept
    assert copied(tmp_path, b"|".join(lines), {"199999\n"}, lineSep="|") == b"|".join(lines[:-1]) + b"|"
