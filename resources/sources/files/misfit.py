"""Why a record does not fit a schema, in words that quote none of its values: they may be personal data.

Spark is the judge: a field to blame is one that stands in the record and that Spark could not read.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from partitions.json_types import json_type
from partitions.plan import counted

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType

NOTHING_KNOWN = "the record does not parse"


class BadRecord(NamedTuple):
    """A record that does not fit.

    Attributes:
        text: the record itself, which is shown only to who asks for it.
        why: what was expected of it, and what was found.
        line: of the file, from 1; None if no line tells.
        value: the text that does not fit; None if there is none to show.
    """

    text: str
    why: str
    line: int | None = None
    value: str | None = None


_DECIMAL_COMMA = re.compile(r"[-+]?[\d.]*\d,\d+")
_OTHER_DATE = re.compile(r"\d{1,2}[./-]\d{1,2}[./-]\d{2,4}\b|\d{4}[./]\d{1,2}[./]\d{1,2}\b|\d{8}$")


def misfit_in_document(document: str, parsed: Sequence[Mapping[str, Any]], schema: StructType) -> BadRecord:
    """The first record of a JSON document that does not fit; ``parsed`` is what Spark made of each."""
    try:
        content = json.loads(document)
    except (ValueError, RecursionError):
        return BadRecord(document, misfit_in_object(document, {}, schema))
    if not isinstance(content, list):
        return BadRecord(document, misfit_in_object(document, parsed[0] if parsed else {}, schema))
    for number, (record, read) in enumerate(zip(content, parsed, strict=False), 1):
        if not isinstance(record, dict):
            return BadRecord(
                json.dumps(record), f"record {number}: expected a JSON object, found {json_type(record)}"
            )
        if why := _blamed(record, read, schema, ""):
            return BadRecord(json.dumps(record), f"record {number}: {why}")
    return BadRecord(document, NOTHING_KNOWN)


def values_of(line: str, separator: str) -> list[str]:
    """The values in a line of CSV; a quote in quotes is doubled."""
    try:
        return next(csv.reader([line], delimiter=separator), [])
    except (csv.Error, TypeError):  # a separator of several letters
        return line.split(separator)


def misfit_in_object(text: str, parsed: Mapping[str, Any], schema: StructType) -> str:
    """What is wrong with the text of a JSON object.

    Args:
        text: the record.
        parsed: what Spark made of it: NULL if it could not read a field.
        schema: that it was read with.
    """
    try:
        record = json.loads(text)
    except json.JSONDecodeError as error:
        return f"expected a JSON object, found text that is none ({error.msg}, character {error.pos + 1})"
    except RecursionError:
        return NOTHING_KNOWN
    if not isinstance(record, dict):
        return f"expected a JSON object, found {json_type(record)}"
    return _blamed(record, parsed, schema, "") or NOTHING_KNOWN


def _blamed(record: Mapping[str, Any], parsed: Mapping[str, Any], schema: StructType, above: str) -> str:
    from pyspark.sql.types import StructType

    for field in schema.fields:
        value, read = record.get(field.name), parsed.get(field.name)
        if isinstance(field.dataType, StructType) and isinstance(value, dict) and isinstance(read, dict):
            inner = _blamed(value, read, field.dataType, f"{above}{field.name}.")
            if inner:
                return inner
        elif value is not None and (read is None or _lost(value, read)):
            return misfit_of_field(f"{above}{field.name}", field.dataType, json_type(value))
    return ""


def _lost(value: Any, read: Any) -> bool:
    """Whether Spark could not read some of what an array holds."""
    if not isinstance(value, list) or not isinstance(read, list):
        return False
    return len(value) != len(read) or any(
        mine is not None and its is None for mine, its in zip(value, read, strict=True)
    )


def misfit_in_line(text: str, parsed: Mapping[str, Any], schema: StructType, separator: str) -> str:
    """What is wrong with a line of CSV; arguments as of :func:`misfit_in_object`."""
    values, fields = values_of(text, separator), schema.fields
    if len(values) != len(fields):
        return f"expected {counted(len(fields), 'value')}, found {len(values)}"
    for value, field in zip(values, fields, strict=True):
        if value != "" and parsed.get(field.name) is None:
            return misfit_of_field(field.name, field.dataType, _kind_of_text(value, field.dataType))
    return NOTHING_KNOWN


def _kind_of_text(text: str, kind: DataType) -> str:
    """What a text is, as far as this tells which option or type would read it; never the text itself."""
    from pyspark.sql.types import DateType, FractionalType, TimestampNTZType, TimestampType

    if isinstance(kind, FractionalType) and _DECIMAL_COMMA.fullmatch(text.strip()):
        return "a number with a decimal comma, which a decimal holds if options.locale names a country that writes it so"
    if isinstance(kind, DateType | TimestampType | TimestampNTZType) and _OTHER_DATE.match(text.strip()):
        return "a date in another form, which options.dateFormat or timestampFormat names"
    return "other text"


def misfit_of_field(name: str, kind: DataType, found: str) -> str:
    """What is wrong with a value."""
    return f"field {name}: expected {kind.simpleString()}, found {found}"
