"""Files as a source, in project files: what a format needs, has and lacks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.unit.platform_assets.project.conftest import Make

PATH = "watermark: {type: path}\n"
COLUMN = "watermark: {type: column, columns: [id]}\n"
BAD_RECORDS = "a record that does not fit is an error, or set aside by max_bad_records"
ENDINGS = "source.extensions names the endings of the files that are read"
BY_TIME = "the watermark says which files are loaded, so files that a filter skips would be lost"
KNOWN = "sheet, or another one of sheet, header_row, skip_rows"
ROW = "the number of the row with the names of the columns, from 1; or 0 if there is none"
SHEET = "the name of a sheet, or its place among the sheets, from 1"


@pytest.mark.parametrize(
    ("source", "rest", "errors"),
    [
        ("format: xml, options: {rowTag: order, attributePrefix: '@'}", PATH, []),
        ("format: xml, options: {ROWTAG: order}", COLUMN, []),
        ("format: xml", PATH, [("source.options.rowTag", "nothing", "the name of the element that is a record, such as order")]),
        ("format: excel, options: {sheet: '2026', header_row: 3, skip_rows: 1}", PATH, []),
        ("format: excel, options: {sheet: 2}", COLUMN, []),
        ("format: csv, options: {MODE: PERMISSIVE}", PATH, [("source.options.MODE", "'PERMISSIVE'", f"no such option: {BAD_RECORDS}")]),
        (
            "format: parquet, options: {pathGlobFilter: '*.x', modifiedAfter: '2026-01-01'}",
            PATH,
            [
                ("source.options.pathGlobFilter", "'*.x'", f"no such option: {ENDINGS}"),
                ("source.options.modifiedAfter", "'2026-01-01'", f"no such option: {BY_TIME}"),
            ],
        ),
        (
            "format: ndjson, options: {multiLine: true}",
            PATH,
            [
                (
                    "source.options.multiLine",
                    "True",
                    "no such option: records over several lines need `format: json`",
                )
            ],
        ),
        ("format: parquet, options: {parquet.page.size: 1, INT96REBASEMODE: CORRECTED}", PATH, []),
        ("format: csv, options: {nanValue: n/a, timeZone: UTC, Delimiter: ';'}", COLUMN, []),
        ("format: avro, options: {ignoreExtension: false}", COLUMN, [("source.options.ignoreExtension", "False", f"no such option: {ENDINGS}")]),
        ("format: excel, options: {sheets: Data}", PATH, [("source.options.sheets", "an unknown option", KNOWN)]),
        ("format: excel, options: {sheet: 0, header_row: -1}", PATH, [("source.options.header_row", "-1", ROW), ("source.options.sheet", "0", SHEET)]),
        ("format: excel, options: {skip_rows: two}", PATH, [("source.options.skip_rows", "'two'", "how many rows below the header are not records")]),
        ("format: excel, options: {header_row: 0}", PATH, [("source.schema", "nothing", "the columns from the left, since header_row: 0 names none")]),
        ("format: excel, schema: id long, options: {header_row: 0}", PATH, []),
        ("format: avro", COLUMN, []),
        ("format: csv", COLUMN, []),
        ("format: csv, missing: empty", COLUMN, [("source.missing", "empty", "no such key (only windows have folders of their own)")]),
        (
            "format: csv",
            COLUMN + "on_bad_file: quarantine\n",
            [
                (
                    "on_bad_file",
                    "quarantine",
                    "stop (rows of a file that is repaired later may lie below the stored value, and no run would read them)",
                )
            ],
        ),
        (
            "format: csv",
            PATH + "unknown_fields: ignore\n",
            [
                (
                    "unknown_fields",
                    "ignore beside csv",
                    "check (only ndjson, json, parquet, avro, xml, excel, debezium, the answers of an API and the rows of a function can ignore fields; the header of a csv file must be the schema's)",
                )
            ],
        ),
    ],
)  # fmt: skip
def test_what_a_format_lacks_or_does_not_have_is_named_with_its_key(
    make: Make, source: str, rest: str, errors: list[tuple[str, str, str]]
) -> None:
    found = make(f"source: {{type: files, path: ./landing, {source}}}\n{rest}").errors
    assert sorted((error.key or "", error.actual, error.expected) for error in found) == sorted(errors)


@pytest.mark.parametrize(
    ("form", "name", "meant"),
    [
        ("csv", "delimeter", "delimiter, or another one of charset,"),
        ("csv", "seperator", "sep, or another one of charset,"),
        ("json", "sep", "lineSep, or another one of allowBackslashEscapingAnyCharacter,"),
        ("xml, options: {rowTag: x}", "rowtags", "rowTag, or another one of attributePrefix,"),
        ("parquet", "compression", "one of datetimeRebaseMode, int96RebaseMode, mergeSchema"),
        ("avro", "rebaseMode", "datetimeRebaseMode, or another one of "),
    ],
)
def test_an_option_that_spark_would_ignore_is_refused_with_the_nearest_one(
    make: Make, form: str, name: str, meant: str
) -> None:
    options = f"{form[:-1]}, {name}: x}}" if "options" in form else f"{form}, options: {{{name}: x}}"
    (error,) = make(f"source: {{type: files, path: ./landing, format: {options}}}\n{PATH}").errors
    assert (error.key, error.actual) == (f"source.options.{name}", "an unknown option")
    assert error.expected.startswith(meant)
