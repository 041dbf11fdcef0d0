"""Find the file that made Spark fail, and the reason in plain words."""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import unquote

from partitions.errors import BadFile
from partitions.path.bad_files import FILE_VANISHED
from resources.connections.object_store_errors import spark_failure
from resources.sources.files.failures import type_mismatch_error
from resources.spark.failures import root_cause

_READING = re.compile(
    r"\[FAILED_READ_FILE[^\]]*\][^\n]*?(?:reading|read) (?:the )?file:? (\S+?)\.?\s+(?:SQLSTATE|\n)|while reading file (\S+?)\.\s"
)


_MISSING = re.compile(r"\[PATH_NOT_FOUND\] Path does not exist: (.+?)\.\s+SQLSTATE")


_RETYPED = {
    "Parquet": re.compile(
        r"column: \[(?P<column>.+)\], physicalType: (?P<found>\w+), logicalType: (?P<expected>.+)"
    ),
    "Avro": re.compile(
        r"Cannot convert Avro field '(?P<column>.+?)' to SQL .*\(avroType = (?P<found>.+), sqlType = (?P<expected>.+)\)"
    ),
}
"""Spark's messages about a column of another type, by format."""


_QUOTED_VALUES = (
    (
        re.compile(r"the value .*? of the (?=(?:JSON token )?type)", re.DOTALL | re.IGNORECASE),
        "a value of the ",
    ),
    (re.compile(r"(?<=Malformed CSV record: ).*", re.DOTALL), "…"),
    (re.compile(r"(?<=detected in record parsing: ).*", re.DOTALL), "…"),
    (re.compile(r"(?<=For input string: ).*", re.DOTALL), "…"),
)


def find_bad_file(error: Exception, paths: Iterable[str], *, may_rescue: bool = True) -> BadFile | None:
    """Return the file of the slice that made Spark fail; None if no file did.

    A store that does not answer is no file's fault, for example.

    Args:
        error: Spark's error.
        paths: the paths of the files that it read.
        may_rescue: whether the dataflow may have ``schema_mode: rescue``.
    """
    text = str(error)
    if (store_error := spark_failure(text)) and store_error[1].transient:
        return None
    match = _READING.search(text) or _MISSING.search(text)
    if match is None:
        return None
    reported_path = unquote(next(group for group in match.groups() if group))
    path = max((path for path in paths if reported_path.endswith(f"/{path}")), key=len, default=None)
    if path is None:
        return None
    if _MISSING.search(text) or "FILE_NOT_EXIST" in text:
        return BadFile(
            f"file {path}: it vanished after the listing. It stays above the watermark",
            path=path,
            why="it vanished after the listing",
            code=FILE_VANISHED,
        )
    said_by_spark = root_cause(error)
    for form, pattern in _RETYPED.items():
        if (retyped := pattern.search(said_by_spark)) is None:
            continue
        column, found_type, expected_type = (
            retyped[part].strip('"') for part in ("column", "found", "expected")
        )
        return type_mismatch_error(
            path, column, expected_type.lower(), f"{form}'s type {found_type}", may_rescue=may_rescue
        )
    why = f"cannot be read: {explain_unreadable(error)}"
    return BadFile(f"file {path} {why}. Fix or remove it; the watermark stays below it", path=path, why=why)


_WORDS = (
    (r"Invalid sync", "a block does not end with the file's sync marker: it is damaged"),
    (r"Block read partially", "a block has more records than its header says: it is damaged"),
    (r"Block size invalid", "data follows the last block, or it is damaged"),
    (
        r"could not verify page integrity|CRC checksum",
        "a page does not match its checksum: it is damaged",
    ),
    (r"Required field '\w+' was not found|TProtocolException|Struct: org\.", "a page is damaged"),
    (r"Expected EndElement", "an element that holds a value contains a comment or an instruction"),
    (
        r"Invalid UTF-8",
        "its bytes are not UTF-8: name the encoding in options.encoding of the source, or in its declaration",
    ),
    (
        r"MALFORMED_CHARACTER_CODING",
        "its bytes are not text in the encoding that options.encoding names: rewrite it in that encoding, or name its own",
    ),
    (r"ParquetCrypto|Decryptor", "it is encrypted"),
    (r"\[FAILED_READ_FILE", "it is damaged, or ends too early"),
)
"""Messages of Spark's readers, and their meaning in plain words."""


_LIMITS = tuple(
    (pattern, f"{excess} than {option} of source.options allows: raise it")
    for pattern, excess, option in (
        ("exceeds the maximum number of characters defined", "a value is longer", "maxCharsPerColumn"),
        (r"univocity\.[^\n]*ArrayIndexOutOfBounds", "a line has more columns", "maxColumns"),
        ("getMaxNestingDepth", "a record is nested more deeply", "maxNestingDepth"),
        ("getMaxStringLength", "a text is longer", "maxStringLen"),
        ("getMaxNumberLength", "a number is longer", "maxNumLen"),
    )
)
"""Texts anywhere in a reader's message about a limit, and the option that raises it."""


_CLASS = re.compile(r"^(?:\([\w.$]+\) |(?:[\w.$]*\.)?\w*(?:Exception|Error)[\w$]*: )+")


_ADDRESS = re.compile(r"\b(?:file|s3a?|gs|abfss?|wasbs?|hdfs):/+\S+")


def explain_unreadable(error: Exception) -> str:
    """Return why Spark cannot read a file, without Java classes, the file's address, or values."""
    said_by_spark, text = root_cause(error), str(error)
    words = next((words for pattern, words in _WORDS if re.search(pattern, said_by_spark)), None)
    words = words or next((words for pattern, words in _LIMITS if re.search(pattern, text)), None)
    return words or _ADDRESS.sub("it", _CLASS.sub("", _without_values(said_by_spark)))


def _without_values(said_by_spark: str) -> str:
    """Return Spark's message without quoted values, which may be personal data."""
    for quoted, instead in _QUOTED_VALUES:
        said_by_spark = quoted.sub(instead, said_by_spark)
    return said_by_spark
