"""Build the errors for bad files: what was expected and found, where, and what to do."""

from __future__ import annotations

import json
from collections.abc import Sequence

from partitions.dataflow import Dataflow
from partitions.errors import BadFile, SchemaError
from partitions.schema_policy import may_take_columns
from partitions.sources.first_draft import infer_separator
from partitions.spelling import first_few
from resources.sources.files.checked import MAX_NAMED_RECORDS, BadRecord

BAD_RECORD = "bad_record"
"""The code of a file with a bad record."""


BAD_HEADER = "bad_header"
"""The code of a file whose header or columns differ from the schema."""


UNKNOWN_FIELD = "unknown_field"
"""The code of a file with fields that the pinned schema lacks."""


OPEN_QUOTE = "open_quote"
"""The code of a CSV file with an unclosed quote."""


BAD_ENCODING = "bad_encoding"
"""The code of a CSV or JSON file that is not UTF-8 although no encoding is named."""


_LONGEST_RECORD = 200


_MAX_NAMES = 10


_FEWEST_NAMES = 2
"""The fewest names of a header that has a separator."""


def type_mismatch_error(
    path: str, column: str, expected_type: str, found_type: str, *, may_rescue: bool = True
) -> BadFile:
    """Return the error for a column whose type never converts to the schema's type."""
    why = f"column {column}: expected {expected_type}, found {found_type}"
    return BadFile(
        f"file {path}, {why}. {_RETYPED_REMEDY}{_rescue_hint(may_rescue)}; the watermark stays below it",
        path=path,
        why=why,
    )


_RETYPED_REMEDY = "Fix or remove it; or, if a type holds the values of all files, declare it in source.schema and load the table again"


def _rescue_hint(may_rescue: bool) -> str:
    """Return the advice to use ``schema_mode: rescue``; "" if the dataflow cannot."""
    return (
        "; or keep values that do not fit as JSON in the column _rescued_data with `schema_mode: rescue`"
        if may_rescue
        else ""
    )


def bad_records_error(
    path: str,
    records: Sequence[BadRecord],
    *,
    show: bool | None,
    total: str | None = None,
    other_paths: Sequence[str] = (),
    remedy: str = "fix or remove it",
) -> BadFile:
    """Return the error for a file with bad records: the first few of them, and their number.

    Args:
        path: the file's path.
        records: at least one, in their order.
        show: ``show_bad_records``: None shows the value that does not fit, True the whole record, too, False
            neither.
        total: the text about their number; None: the number of ``records``.
        other_paths: files of the same slice with bad records.
        remedy: the advice.
    """
    total = total or (f"{len(records)} bad records in all" if len(records) > 1 else None)
    descriptions = [describe_record(record, show=show) for record in records[:MAX_NAMED_RECORDS]]
    hints = dict.fromkeys(f" ({record.hint})" for record in records[:MAX_NAMED_RECORDS] if record.hint)
    why = "; ".join([*descriptions, *([total] if total else [])]) + "".join(hints)
    record_word = "the record" if len(records) == 1 else "them"
    hint = "" if show else f" (show_bad_records: true shows {record_word})"
    also_bad = f" Bad records are also in {first_few(other_paths, MAX_NAMED_RECORDS)}." if other_paths else ""
    return BadFile(
        f"file {path}, {why}{hint}. Nothing of the file was loaded: {remedy}; the watermark stays below it{'.' + also_bad if also_bad else ''}",
        path=path,
        why=why,
        code=BAD_RECORD,
    )


def describe_record(record: BadRecord, *, show: bool | None) -> str:
    """Describe a bad record and its place, with as much of its content as ``show_bad_records`` allows."""
    value = f", {_shortened(record.value)!r}" if record.value is not None and show is None else ""
    where = f"line {record.line}: " if record.line else ""
    return f"{where}{record.why}{value}{f' in {_shortened(record.text)!r}' if show else ''}"


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST_RECORD else text[: _LONGEST_RECORD - 3] + "..."


def bad_document_error(path: str, why: str) -> BadFile:
    """Return the error for a file that cannot be read as a whole."""
    return BadFile(
        f"file {path}, {why}. Nothing of the file was loaded: fix or remove it; the watermark stays below it",
        path=path,
        why=why,
    )


def case_conflict_error(
    path: str, first: str, second: str, line: int | None, *, may_be_ignored: bool = True
) -> BadFile:
    """Return the error for two names that differ in case only, which no table can hold.

    ``may_be_ignored``: whether the format can ignore one of them.
    """
    remedy = "; or declare `source.schema` with one of them and set `unknown_fields: ignore` at the top level of the dataflow"
    where = f"line {line}: " if line else ""
    why = (
        f"{where}expected column names that differ in more than upper and lower case, found {first} and "
        f"{second}"
    )
    return BadFile(
        f"file {path}, {why}. Rename one of them{remedy if may_be_ignored else ''}. Nothing of the file was "
        "loaded; the watermark stays below it",
        path=path,
        why=why,
        code=SchemaError.code,
    )


def doubled_names_error(path: str, first: str, second: str) -> BadFile:
    """Return the error for two columns whose names are equal or differ in case only.

    No table can hold both.
    """
    why = f"expected column names that differ in more than upper and lower case, found {first} and {second}"
    return bad_document_error(path, why)


def unreadable_type_error(path: str, column: str, data_type: str) -> BadFile:
    """Return the error for a column whose type Spark cannot read, or no table can hold.

    An empty column name stands for values that are no records.
    """
    if not column:
        return bad_document_error(path, f"expected records, found values without columns, {data_type}")
    return bad_document_error(path, f"column {column}: expected a type that Spark reads, found {data_type}")


def inexact_value_error(
    path: str, column: str, expected: str, own: str, value: str | None, *, may_rescue: bool = True
) -> BadFile:
    """Return the error for a value that its column's type does not hold exactly.

    ``value`` is None if it is hidden.
    """
    value_text = "a value" if value is None else value
    is_far = own in ("date", "timestamp", "timestamp_ntz")
    reason = "which lies beyond the years 1 to 9999" if is_far else "which cannot be converted exactly"
    why = f"column {column}: expected {expected}, found {value_text} of the file's type {own}, {reason}"
    return BadFile(
        f"file {path}, {why}. Nothing of the file was loaded. {_RETYPED_REMEDY}{_rescue_hint(may_rescue)}; the watermark stays below it",
        path=path,
        why=why,
    )


def open_quote_error(path: str, line: int | None, *, over_lines: bool) -> BadFile:
    """Return the error for a CSV file with an unclosed quote.

    ``over_lines``: whether values may span lines, so that the quote is open at the end of the file.
    """
    where = f"line {line}: " if line else ""
    why = f"{where}a quote opens a value and is not closed{'' if over_lines else ' in its line'}"
    option = (
        ""
        if over_lines
        else "If values span several lines, set `options: {multiLine: true}` of the source; else f"
    )
    return BadFile(
        f"file {path}, {why}. {option or 'F'}ix or remove the file. Nothing of it was loaded; the watermark stays below it",
        path=path,
        why=why,
        code=OPEN_QUOTE,
    )


def bad_encoding_error(
    path: str, line: int | None, options: str | None, binary: str | None = None
) -> BadFile:
    """Return the error for a text file that is not UTF-8.

    Args:
        path: the file's path.
        line: the first line that is not UTF-8, from 1; None if there is none.
        options: the options that would read the file if it has the likeliest encoding; None if no option would.
        binary: the kind of file, if it is no text.
    """
    if binary is not None:
        why = f"expected text, found {binary}"
        return BadFile(
            f"file {path}, {why}. Unpack it; or give it the ending of its format, and load it by a dataflow of "
            "that format; or remove it. Nothing of it was loaded; the watermark stays below it",
            path=path,
            why=why,
            code=BAD_ENCODING,
        )
    where = f"line {line}: " if line else ""
    why = f"{where}expected text in UTF-8, found other bytes"
    remedy = (
        "Write the file in UTF-8, or remove it"
        if options is None
        else f"Name the encoding of the files in `options` of the source, such as `{{{options}}}`, or fix or remove the file"
    )
    return BadFile(
        f"file {path}, {why}. {remedy}. Nothing of it was loaded; the watermark stays below it",
        path=path,
        why=why,
        code=BAD_ENCODING,
    )


def bad_header_error(
    path: str, expected: Sequence[str], found_names: Sequence[str], *, may_merge: bool = False
) -> BadFile:
    """Return the error for a CSV file whose header differs from the schema.

    ``may_merge``: whether the dataflow could accept the columns with another schema mode.
    """
    missing = [name for name in expected if name not in found_names]
    new = [name for name in found_names if name not in expected]
    differs = [
        *([f"without {first_few(missing, _MAX_NAMES)}"] if missing else []),
        *([f"{first_few(new, _MAX_NAMES)} not in the schema"] if new else []),
    ]
    doubled, separator = _describe_doubled_names(found_names), other_separator(expected, found_names)
    option = f"`options: {{sep: {json.dumps(separator)}}}` below `source`"
    misread = (f"it seems to be separated by {separator!r}: set {option}" if separator else None) or doubled
    header = (
        f"the header {first_few(expected, _MAX_NAMES, ',')}"
        if expected
        else "a header that names each column once"
    )
    why = f"expected {header}, found {first_few(found_names, _MAX_NAMES, ',')} ({misread or '; '.join(differs) or 'another order'})"
    merge = (
        "accept columns that come and go with `schema_mode: merge` below `target` "
        "(docs/reference/schemas.md), "
        if may_merge and differs and not misread
        else ""
    )
    remedy = (
        f"Set {option}, or fix or remove the file"
        if separator
        else f"Fix or remove it, {merge}or load files with this header by a separate dataflow"
    )
    return BadFile(
        f"file {path}: {why}. Nothing of the file was loaded, because its columns could be mixed up. {remedy}; the watermark stays below it",
        path=path,
        why=why,
        code=BAD_HEADER,
    )


def _describe_doubled_names(names: Sequence[str]) -> str | None:
    """Describe the columns that a header names more than once, in any case; None if there are none."""
    folded = [name.casefold() for name in names]
    repeated = dict.fromkeys(name for name, fold in zip(names, folded, strict=True) if folded.count(fold) > 1)
    return (
        f"{first_few(list(repeated), _MAX_NAMES)}: a column name occurs twice; rename one of the columns"
        if repeated
        else None
    )


def other_separator(expected: Sequence[str], found_names: Sequence[str]) -> str | None:
    """Return the separator that a header seems to have, if it was read with another one; else None.

    It names more of the expected columns, or stands inside a header that was read as one name.
    """
    header, keys = ",".join(found_names), {name.casefold() for name in expected}
    separator = infer_separator(header)
    names = [name.strip('" ').casefold() for name in header.split(separator)]
    if len(names) < _FEWEST_NAMES or len(names) == len(found_names):
        return None
    fits_better = len(keys.intersection(names)) > len(keys.intersection(map(str.casefold, found_names)))
    is_one_name = len(found_names) == 1 and len(expected) != 1
    return separator if fits_better or is_one_name else None


def schema_mismatch_error(expected: str, back: str, dataflow: str, field: str | None) -> SchemaError:
    """Return the error for a definition or source that does not fit the pinned schema.

    A reset alone does not help: the table keeps its columns and refuses the rows, and the old definition would load
    all rows a second time.

    Args:
        expected: what was expected and found.
        back: how to go on with the pinned schema.
        dataflow: the dataflow's name.
        field: the first column that differs.
    """
    return SchemaError(
        f"{expected}. schema_mode: strict accepts no change. {back}; or run the reset below, which empties the table and loads"
        " everything that is still at the source into the new columns",
        reason="incompatible_schema",
        field=field,
        choices=(f"strandline state reset {dataflow} --replace --reason TEXT",),
    )


def unknown_field_error(
    path: str, names: Sequence[str], line: int | None, dataflow: Dataflow, *, is_declared: bool
) -> BadFile:
    """Return the error for a file with fields that the schema lacks.

    ``is_declared``: whether the definition declares the schema; if not, it was inferred and pinned.
    """
    name = dataflow.name
    merge = (
        "accept new fields with `schema_mode: merge` below `target`, or "
        if may_take_columns(dataflow)
        else ""
    )
    where = f"line {line}: " if line else ""
    why = (
        f"{where}expected the fields of the {_schema_word(is_declared)}, found "
        f"{first_few(names, _MAX_NAMES)} beside them"
    )
    return BadFile(
        f"file {path}, {why}. schema_mode: strict accepts no new field, so nothing of the file was loaded; the watermark stays below it. Fix"
        f" the file; or in dataflows/{name}.yaml {merge}leave them out with"
        f" `unknown_fields: ignore` at its top level; or load the table again with a schema that has them: `strandline state reset {name} --replace --reason TEXT`",
        path=path,
        why=why,
        code=UNKNOWN_FIELD,
    )


def no_known_columns_error(
    path: str,
    expected: Sequence[str],
    names: Sequence[str],
    place: str = "",
    hint: str = "",
    *,
    is_declared: bool,
) -> BadFile:
    """Return the error for a file that has none of the schema's columns, so that no value would be loaded.

    Args:
        path: the file's path.
        expected: the schema's columns.
        names: the file's columns.
        place: where the names stand, such as a sheet.
        hint: where else the columns may stand.
        is_declared: whether the definition declares the schema.
    """
    where = f"{place}: " if place else ""
    why = f"{where}expected columns of the {_schema_word(is_declared)} ({first_few(expected, _MAX_NAMES)}), found only {first_few(names, _MAX_NAMES)}{hint}"
    return BadFile(
        f"file {path}, {why}. Nothing of the file was loaded: fix or remove it, or load files with such "
        "columns by a separate dataflow; the watermark stays below it",
        path=path,
        why=why,
        code=BAD_HEADER,
    )


def _schema_word(is_declared: bool) -> str:
    return "declared schema" if is_declared else "pinned schema"
