"""File formats: their endings, and the options that a user may set.

Reading them: one module per format in ``resources/sources/files/formats``.
"""

from __future__ import annotations

import codecs
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, ValidationError

from partitions.model import Model
from partitions.records.csv_form import REFUSED_OPTIONS as CSV_REFUSED
from partitions.records.forms import lacks_part_of_date
from partitions.records.options import ENCODING_OPTIONS
from partitions.refusal import Refusal
from partitions.spelling import nearest_name


def _suggest_option(name: str, names: Sequence[str]) -> str:
    """Return the valid options in words, the one most similar to an unknown option first."""
    suggestion = nearest_name(name, names)
    return f"{f'{suggestion}, or another ' if suggestion else ''}one of {', '.join(names)}"


def _canonical_name(name: object) -> object:
    return "ndjson" if name == "jsonl" else name  # two names of one format


FormatName = Annotated[
    Literal["ndjson", "json", "csv", "parquet", "avro", "xml", "excel", "debezium"],
    BeforeValidator(_canonical_name),
]

Option = str | int | float | bool

_COMPRESSED = ("", ".gz", ".bz2", ".zst")


class ExcelOptions(Model):
    """The cells of a workbook that are records.

    Attributes:
        sheet: a sheet's name, or its position among the visible sheets, from 1.
        header_row: the row with the column names, from 1; None: the first row that is not empty; 0: there
        is none, and the declared schema names the columns from the left.
        skip_rows: the number of rows below the header that are no records, such as units.
    """

    sheet: Annotated[str, Field(min_length=1)] | Annotated[int, Field(ge=1, strict=True)] = 1
    header_row: Annotated[int, Field(ge=0, strict=True)] | None = None
    skip_rows: Annotated[int, Field(ge=0, strict=True)] = 0


class DebeziumOptions(Model):
    """How a connector of Debezium encodes values; each option has the name of the connector's setting.

    Attributes:
        decimal_handling_mode: for decimals in messages without their schema; None: not told.
        time_precision_mode: for times in messages without their schema; None: not told.
        unavailable_value_placeholder: the mark of a value that the database has not logged.
    """

    decimal_handling_mode: Literal["precise", "string", "double"] | None = None
    time_precision_mode: Literal["connect", "microseconds", "nanoseconds", "isostring"] | None = None
    unavailable_value_placeholder: Annotated[str, Field(min_length=1)] = "__debezium_unavailable_value"


@dataclass(frozen=True)
class FileFormat:
    """A file format, and the options that a user may set.

    Attributes:
        endings: case-sensitive, without a compression's ending.
        is_text: whether a file may be compressed as a whole.
        always_checked: why fields that the schema lacks cannot be ignored; None: they can.
        required: options without which files cannot be read, with what is expected.
        refused: options, in lower case, that would silently lose or change rows, with the advice for each.
        options: the format's own options; None: it takes those of Spark's reader.
        reader_options: the options of Spark's reader that are allowed, in their usual spelling.
        is_line_based: whether Spark splits lines before it decodes them, so that the bytes of a line end
        must be known.
        rescue_refusal: the schema modes to use since ``_rescued_data`` cannot keep misfitting values;
        None: it can.
        lists_units: whether a file can list units, which are read without Spark.
        records_are_lines: whether each record is a line, so that a bad record can be set aside alone.
        records_name_fields: whether each record names its own fields, so that it can lack one.
        sends_changes: whether each record is a change of a row, with its operation and position.
    """

    endings: tuple[str, ...]
    is_text: bool = True
    always_checked: str | None = None
    required: Mapping[str, str] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)
    options: type[Model] | None = None
    reader_options: Sequence[str] = ()
    is_line_based: bool = False
    rescue_refusal: str | None = (
        "strict or merge (Strandline sees that a record has a value that does not fit, but not which field)"
    )
    lists_units: bool = False
    records_are_lines: bool = False
    records_name_fields: bool = False
    sends_changes: bool = False

    @property
    def all_endings(self) -> tuple[str, ...]:
        """The endings, also with each compression that the format allows."""
        return tuple(
            plain + packed for plain in self.endings for packed in (_COMPRESSED if self.is_text else ("",))
        )

    def refusals(self, user_options: Mapping[str, Option], schema: str | None) -> Iterator[Refusal]:
        """Yield options that are missing, unknown or wrong.

        Args:
            user_options: the options that the user set.
            schema: the declared schema.
        """
        names = {name.lower() for name in user_options}
        for name, expected in self.required.items():
            if name.lower() not in names:
                yield Refusal(("source", "options", name), "nothing", expected)
        refused = self.refused if self.options else {**_REFUSED, **self.refused}
        for name in user_options:
            if name.lower() in refused:
                yield Refusal(("source", "options", name), repr(user_options[name]), refused[name.lower()])
            encoding = str(user_options[name]) if name.lower() in ENCODING_OPTIONS else "utf-8"
            if fault := self._encoding_fault(encoding, names):
                yield Refusal(("source", "options", name), repr(encoding), fault)
            if name.lower() in _TIME_FORMAT_OPTIONS and lacks_part_of_date(str(user_options[name])):
                yield Refusal(
                    ("source", "options", name),
                    repr(user_options[name]),
                    "a format with year, month and day, such as dd.MM.yyyy: Spark would fill in a part that it leaves "
                    "out. Or declare the column as string",
                )
        if self.options is None:
            yield from self._unknown_options(user_options)
            return
        try:
            options = self.options.model_validate(user_options)
        except ValidationError as error:
            for problem in error.errors():
                name = str(problem["loc"][0])
                is_known = name in self.options.model_fields
                yield Refusal(
                    ("source", "options", name),
                    repr(user_options[name]) if is_known else "an unknown option",
                    _EXPECTED.get(name, "")
                    if is_known
                    else _suggest_option(name, [*self.options.model_fields]),
                )
            return
        if isinstance(options, ExcelOptions) and options.header_row == 0 and schema is None:
            yield Refusal(
                ("source", "schema"), "nothing", "the columns from the left, since header_row: 0 names none"
            )

    def _unknown_options(self, options: Mapping[str, Option]) -> Iterator[Refusal]:
        """Yield options that Spark's reader would silently ignore; names with a dot belong to Hadoop."""
        known_options = {
            name.lower() for name in (*self.reader_options, *self.required, *self.refused, *_REFUSED)
        }
        names = sorted((*self.reader_options, *self.required), key=str.casefold)
        for name in options:
            if name.lower() not in known_options and "." not in name:
                yield Refusal(("source", "options", name), "an unknown option", _suggest_option(name, names))

    def _encoding_fault(self, encoding: str, names: Collection[str]) -> str | None:
        """Return what to set instead of an encoding that files cannot be read with; None if they can.

        ``names`` are the lower-case names of all options.
        """
        try:
            encoding_name = codecs.lookup(encoding).name
            "".encode(encoding)  # also fails for codecs that are no text encodings, such as rot13
        except LookupError:
            return "the name of an encoding, such as windows-1252, ISO-8859-1 or UTF-16"
        if not self.is_line_based or encoding_name == "utf-8":
            return None
        if encoding_name in ("utf-16", "utf-32"):
            order = f"{encoding}LE or {encoding}BE"
            return f"{order}, with lineSep: without the byte order the ends of lines are unknown"
        return None if "linesep" in names else 'lineSep: "\\n" with it'


_BAD_RECORDS = "no such option: a record that does not fit is an error, or set aside by max_bad_records"
_FOLDERS = (
    "no such option: all folders below `path` are read, and folders such as day=2026-01-31 become columns"
)
_BY_TIME = (
    "no such option: the watermark says which files are loaded, so files that a filter skips would be lost"
)
_INFERENCE = "no such option: types are inferred where source.schema is missing; declare string to keep texts"

_REFUSED: Mapping[str, str] = {
    "mode": _BAD_RECORDS,
    "badrecordspath": _BAD_RECORDS,
    "columnnameofcorruptrecord": _BAD_RECORDS,
    "ignorecorruptfiles": "no such option: on_bad_file: quarantine skips unreadable files, and names them",
    "ignoremissingfiles": "no such option: files that vanish stay above the watermark",
    "path": _FOLDERS,
    "paths": _FOLDERS,
    "recursivefilelookup": _FOLDERS,
    "basepath": _FOLDERS,
    "pathglobfilter": "no such option: source.extensions names the endings of the files that are read",
    "modifiedafter": _BY_TIME,
    "modifiedbefore": _BY_TIME,
    "rescueddatacolumn": "no such option: target.schema_mode: rescue keeps what does not fit",
}
"""Options of Spark's readers, in lower case, that would silently lose rows or files, or that a load sets itself; with the advice for each."""

_JSON_REFUSED: Mapping[str, str] = {
    "singlevariantcolumn": "no such option: declare source.schema, with fields of the type variant",
    "enabledatetimeparsingfallback": "no such option: set timestampFormat to the form of times",
}

_TIME_FORMAT_OPTIONS = frozenset({"dateformat", "timestampformat", "timestampntzformat"})
"""The options that give the format of dates and times, in lower case."""

_EXPECTED = {
    "sheet": "the name of a sheet, or its place among the sheets, from 1",
    "header_row": "the number of the row with the names of the columns, from 1; or 0 if there is none",
    "skip_rows": "how many rows below the header are not records",
    "decimal_handling_mode": "the connector's decimal.handling.mode: precise, string or double",
    "time_precision_mode": (
        "the connector's time.precision.mode: connect, microseconds, nanoseconds or isostring (the adaptive modes "
        "need messages with their schema: their numbers do not tell their unit)"
    ),
    "unavailable_value_placeholder": "the connector's unavailable.value.placeholder, a text",
}
"""What is expected, by option of ``ExcelOptions`` and ``DebeziumOptions``."""

_TEXT_OPTIONS = ("dateFormat", "encoding", "charset", "locale", "samplingRatio", "timeZone", "timestampFormat", "timestampNTZFormat")  # fmt: skip
_NUMBER_OPTIONS = ("nanValue", "negativeInf", "nullValue", "positiveInf")
_JSON_OPTIONS = (
    *_TEXT_OPTIONS,
    "allowBackslashEscapingAnyCharacter",
    "allowComments",
    "allowNonNumericNumbers",
    "allowNumericLeadingZeros",
    "allowSingleQuotes",
    "allowUnquotedControlChars",
    "allowUnquotedFieldNames",
    "dropFieldIfAllNull",
    "inferTimestamp",
    "lineSep",
    "maxNestingDepth",
    "maxNumLen",
    "maxStringLen",
    "prefersDecimal",
    "primitivesAsString",
)
_CSV_OPTIONS = (
    *_TEXT_OPTIONS,
    *_NUMBER_OPTIONS,
    "columnPruning",
    "comment",
    "delimiter",
    "emptyValue",
    "escape",
    "header",
    "ignoreLeadingWhiteSpace",
    "ignoreTrailingWhiteSpace",
    "inputBufferSize",
    "lineSep",
    "maxCharsPerColumn",
    "maxColumns",
    "multiLine",
    "preferDate",
    "quote",
    "sep",
)
_XML_OPTIONS = (
    *_TEXT_OPTIONS,
    *_NUMBER_OPTIONS,
    "attributePrefix",
    "excludeAttribute",
    "ignoreNamespace",
    "ignoreSurroundingSpaces",
    "preferDate",
    "prefersDecimal",
    "rowValidationXSDPath",
    "useLegacyXMLParser",
    "valueTag",
    "wildcardColName",
)
_AVRO_OPTIONS = ("datetimeRebaseMode", "enableStableIdentifiersForUnionType", "recursiveFieldMaxDepth", "stableIdentifierPrefixForUnionType")  # fmt: skip
_PARQUET_OPTIONS = ("datetimeRebaseMode", "int96RebaseMode", "mergeSchema")

FORMATS: Mapping[str, FileFormat] = {
    "ndjson": FileFormat(
        (".ndjson", ".jsonl", ".json"),
        refused={
            **_JSON_REFUSED,
            "multiline": "no such option: records over several lines need `format: json`",
        },
        reader_options=_JSON_OPTIONS,
        is_line_based=True,
        rescue_refusal=None,
        lists_units=True,
        records_are_lines=True,
        records_name_fields=True,
    ),
    "json": FileFormat(
        (".json",),
        refused={
            **_JSON_REFUSED,
            "multiline": "no such option: a file is one document; `format: ndjson` reads a record a line",
        },
        reader_options=_JSON_OPTIONS,
        rescue_refusal=None,
        lists_units=True,
        records_name_fields=True,
    ),
    "csv": FileFormat(
        (".csv", ".tsv"),
        always_checked="the header of a csv file must be the schema's",
        refused={**CSV_REFUSED, "inferschema": _INFERENCE},
        reader_options=_CSV_OPTIONS,
        rescue_refusal=None,
        lists_units=True,
        records_are_lines=True,
    ),
    "parquet": FileFormat(
        (".parquet",), is_text=False, reader_options=_PARQUET_OPTIONS, rescue_refusal=None, lists_units=True
    ),
    "avro": FileFormat(
        (".avro",),
        is_text=False,
        refused={
            "avroschema": "no such option: source.schema names the columns; another schema would add its own defaults",
            "avroschemaurl": "no such option: source.schema names the columns; another schema would add its own defaults",
            "positionalfieldmatching": "no such option: fields are matched by their names",
            "ignoreextension": "no such option: source.extensions names the endings of the files that are read",
        },
        reader_options=_AVRO_OPTIONS,
        rescue_refusal=None,
    ),
    "xml": FileFormat(
        (".xml",),
        required={"rowTag": "the name of the element that is a record, such as order"},
        refused={**_JSON_REFUSED, "inferschema": _INFERENCE},
        reader_options=_XML_OPTIONS,
    ),
    "excel": FileFormat(
        (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods"), is_text=False, options=ExcelOptions, lists_units=True
    ),
    "debezium": FileFormat(
        (".json", ".ndjson", ".jsonl"),
        options=DebeziumOptions,
        rescue_refusal="strict or merge (a change is applied as a whole, or not at all)",
        records_are_lines=True,
        records_name_fields=True,
        sends_changes=True,
    ),
}
"""The formats, by the word that a user writes."""
