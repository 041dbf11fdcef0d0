"""Which file is to blame when Spark fails, and why, in words for people."""

from __future__ import annotations

import bz2
import gzip
import io
import re
from collections.abc import Iterable
from typing import IO, cast
from urllib.parse import unquote

from partitions.errors import BadFile, in_one_line
from resources.listing import FILE_VANISHED
from resources.places import Place
from resources.spark_process import java_end, said
from resources.stores import spark_failure

BAD_RECORD = "bad_record"
"""Code of a BadFile with a record that does not parse."""

_READING = re.compile(
    r"\[FAILED_READ_FILE[^\]]*\][^\n]*?(?:reading|read) (?:the )?file:? (\S+?)\.?\s+(?:SQLSTATE|\n)|while reading file (\S+?)\.\s"
)
_MISSING = re.compile(r"\[PATH_NOT_FOUND\] Path does not exist: (.+?)\.\s+SQLSTATE")
_CAUSE = re.compile(r"^Caused by: (?:[\w.$]+\.)?([\w$]+): (.+)$", re.MULTILINE)


def bad_file(error: Exception, paths: Iterable[str]) -> BadFile | None:
    """Find the file that made Spark fail among those of the slice; None where no file is to blame, as where a store does not answer."""
    text = str(error)
    if (of_store := spark_failure(text)) and of_store[1].transient:
        return None
    match = _READING.search(text) or _MISSING.search(text)
    if match is None:
        return None
    found = unquote(next(group for group in match.groups() if group))
    path = max((path for path in paths if found.endswith(f"/{path}")), key=len, default=None)
    if path is None:
        return None
    if _MISSING.search(text) or "FILE_NOT_EXIST" in text:
        return BadFile(
            f"file {path}: it was listed, and is gone now. It stays above the watermark",
            path=path,
            why="it was listed, and had vanished when it was to be read",
            code=FILE_VANISHED,
        )
    why = f"cannot be read: {cause(error)}"
    return BadFile(f"file {path} {why}. Mend or remove it; the watermark stays below it", path=path, why=why)


def bad_record(bad: BadFile, record: str, line: int | None) -> BadFile:
    """The same error, naming line and text of the record that does not parse."""
    where = f"file {bad.path}" + (f", line {line}" if line else "")
    shown = record if len(record) <= 200 else record[:197] + "..."
    return BadFile(
        f"{where}: expected a record of the pinned schema, found {shown!r}. Nothing of the file was loaded:"
        " mend or remove it; the watermark stays below it",
        path=bad.path,
        why=(f"line {line}: " if line else "") + f"expected a record of the pinned schema, found {shown!r}",
        code=BAD_RECORD,
    )


def line_of(place: Place, path: str, record: str) -> int | None:
    """The number of the first line that holds this text, from 1; None where no line is it."""
    wanted = record.strip().encode()
    try:
        with _open(place, path) as lines:
            return next((number for number, line in enumerate(lines, 1) if line.strip() == wanted), None)
    except (OSError, EOFError):
        return None


def _open(place: Place, path: str) -> IO[bytes]:
    raw: IO[bytes] = (
        (place.local / path).open("rb") if place.local else io.BytesIO(bytes(place.store.get(path).bytes()))
    )
    if path.endswith(".gz"):
        return cast(IO[bytes], gzip.open(raw))
    return bz2.open(raw) if path.endswith(".bz2") else raw


def cause(error: Exception) -> str:
    """The deepest reason in one line."""
    if end := java_end():
        return end
    if of_store := spark_failure(str(error)):
        return f"{of_store[0]}: {of_store[1]}"
    causes = _CAUSE.findall(str(error))
    if causes and not causes[-1][1].startswith("Traceback "):
        return in_one_line(": ".join(causes[-1]))
    return said(error)
