"""Files as a source: exactly the listed ones, with their folders' values and their origin as columns (docs/guide-files.md)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple
from uuid import uuid4

from partitions.errors import BadFile, ConfigurationError, SchemaError
from partitions.path.hive import NULL_FOLDER, folder_value, partition_columns
from partitions.path.source import SourceFile
from partitions.sources import FilesSource
from resources.places import Place
from resources.sources.files.failures import other_schema
from resources.sources.files.fields import RECORD, unknown_fields
from resources.sources.files.footers import FieldPath, Footer, footers, paths_of, unknown_columns
from resources.sources.files.lines import first_line, whole_text
from resources.sources.files.misfit import BadRecord, misfit, misfit_in, values_of
from resources.sources.files.nanoseconds import as_inferred, as_numbers, as_times, shown
from resources.spark_process import said
from resources.sql import literal, quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructType

SOURCE_FILE = "_source_file"

_SPARK_FORMAT = {"ndjson": "json", "json": "json", "csv": "csv", "parquet": "parquet"}
_GLOB = frozenset("{}[]*?\\")
_PLAIN = re.compile(r"[A-Za-z0-9_.=/:+@,~-]*")
"""What no writer of URIs escapes."""
_CORRUPT = "_corrupt_record"
_OWN_QUOTES = frozenset({"quote", "escape", "comment", "linesep"})
"""Options of CSV, in lower case, with which a line and its quotes are something else."""
_MOST_RECORDS = 10_000
"""Of a document that are looked at one by one."""
_SAMPLE_FILES = 20
_SAMPLE_BYTES = 64 * 2**20


@dataclass(frozen=True)
class PinnedSchema:
    """The schema that every slice is read with.

    Attributes:
        columns: Spark's JSON form of all columns, those of folders included.
        folders: the columns whose values stand in the names of folders.
        declared: ``source.schema`` as it stood there when it was pinned; None where the schema was inferred.
    """

    columns: str
    folders: tuple[str, ...]
    declared: str | None = None

    @property
    def struct(self) -> StructType:
        """All columns."""
        from pyspark.sql.types import StructType

        return StructType.fromJson(json.loads(self.columns))

    @property
    def data(self) -> StructType:
        """The columns that stand in the files themselves."""
        from pyspark.sql.types import StructType

        return StructType([field for field in self.struct.fields if field.name not in self.folders])

    def beside(self, folders: Iterable[str]) -> PinnedSchema:
        """The same of files whose folders name these columns, too: a declared one may come at any time, and stands in no such file then."""
        named = {name.lower() for name in (*folders, *self.folders)}
        found = tuple(field.name for field in self.struct.fields if field.name.lower() in named)
        return self if set(found) == set(self.folders) else replace(self, folders=found)

    def to_text(self) -> str:
        """As JSON text."""
        declared = {} if self.declared is None else {"declared": self.declared}
        return json.dumps({"columns": json.loads(self.columns), "folders": list(self.folders), **declared})

    @classmethod
    def of(cls, text: str) -> PinnedSchema:
        """Read the text back."""
        raw = json.loads(text)
        return cls(json.dumps(raw["columns"]), tuple(raw["folders"]), raw.get("declared"))


class _Alike(NamedTuple):
    """What the files of one scan have in common: what their paths tell of their rows, and how.

    Attributes:
        alone: the path of an odd file, which no other is scanned with; else "".
        separator: of the values in a line.
        plain: whether Spark reports their paths letter by letter.
        hive: whether Spark reads their folders as we do.
        folders: the columns that their folders name, as these are spelt there.
        numbers: the columns that are read as whole numbers, since they hold nanoseconds; and whether these are instants.
    """

    alone: str
    separator: str
    plain: bool
    hive: bool
    folders: tuple[str, ...]
    numbers: tuple[tuple[FieldPath, bool], ...] = ()


class FilesReader:
    """Reads files under a root."""

    def __init__(self, place: Place, source: FilesSource) -> None:
        """Use a root and what the user declared of its files."""
        self._place = place
        self._source = source
        self._footers: dict[SourceFile, Footer] = {}
        self._remarks: dict[str, None] = {}

    @property
    def remarks(self) -> tuple[str, ...]:
        """What a user should hear of the files that were read so far, each once."""
        return tuple(self._remarks)

    def pin(self, spark: SparkSession, files: Sequence[SourceFile]) -> PinnedSchema | None:
        """The schema of the source: the declared one, or one inferred from a bounded sample, with the folders' columns.

        Args:
            spark: a session.
            files: what is about to be loaded. At most 20 of them, of 64 MiB together, are read.

        Returns:
            None where no file of the sample holds a row and no schema is declared.
        """
        from pyspark.sql.types import StringType, StructField, StructType

        declared = self._declared(spark)
        data = declared if declared is not None else self._infer(spark, _sample(files))
        folders = _spellings(file.path for file in files)
        if data is None or (declared is None and not data.fields):
            return None
        known = {field.name.lower() for field in data.fields}
        added = [StructField(name, StringType()) for lower, name in folders.items() if lower not in known]
        names = tuple(field.name for field in [*data.fields, *added] if field.name.lower() in folders)
        return PinnedSchema(StructType([*data.fields, *added]).json(), names, self._source.schema_)

    def agree(self, spark: SparkSession, pinned: PinnedSchema, dataflow: str) -> None:
        """Refuse a declared schema that was changed after it was pinned: to go on with the old one would say nothing.

        Raises:
            SchemaError: reason ``incompatible_schema``.
        """
        if self._source.schema_ == pinned.declared:
            return
        declared = self._declared(spark)
        if declared is None or declared.fields == pinned.struct.fields[: len(declared.fields)]:
            return
        was = {field.name: field.dataType.simpleString() for field in pinned.struct.fields}
        now = {field.name: field.dataType.simpleString() for field in declared.fields}
        gone = [field.name for field in pinned.data.fields if field.name not in now]
        changed = [name for name in now if was.get(name) != now[name]] + gone
        told = [f"{name} {now[name]}" if name in now else f"no {name}" for name in changed]
        was_told = ", ".join(f"{name} {kind}" for name, kind in was.items())
        raise other_schema(
            f"source.schema: expected the schema that was pinned ({was_told}), found another ({', '.join(told) or 'another order'})",
            "Put it back",
            dataflow,
            changed[0] if changed else None,
        )

    def read(
        self, spark: SparkSession, files: Sequence[SourceFile], pinned: PinnedSchema, *, origin: bool
    ) -> DataFrame:
        """Exactly these files, with the pinned columns in their order, and ``_source_file`` where asked for. Fields that are not pinned are left out.

        Raises:
            SchemaError: reason ``incompatible_schema``: a folder names a column that the pinned schema does not have.
        """
        self._check_folders(files, pinned)
        filled = [file for file in files if file.size > 0]  # a 0-byte file has no rows, whatever its format
        frames = [
            self._load(spark, alike, group, pinned, origin)
            for alike, group in self._alike(filled, pinned).items()
        ]
        if not frames:
            empty = spark.createDataFrame([], pinned.struct)
            return empty.withColumn(SOURCE_FILE, _text(None)) if origin else empty
        result = frames[0]
        for frame in frames[1:]:
            result = result.unionByName(frame)
        return result

    def unknown(
        self, spark: SparkSession, files: Sequence[SourceFile], pinned: PinnedSchema
    ) -> dict[str, list[str]]:
        """The fields of these files that the pinned schema lacks, dotted, by the path of each file that has some.

        Of JSON all records are parsed once for it, and the fields of one record of a file are told; of Parquet the footers are read. A CSV
        file's header is compared by Spark, when the file is loaded.
        """
        if self._source.format == "parquet":
            known = paths_of(pinned.struct)
            found = {path: unknown_columns(one, known) for path, one in self._read_footers(files).items()}
            return {path: [shown(each) for each in names] for path, names in found.items() if names}
        if self._source.format not in ("ndjson", "json"):
            return {}
        from pyspark.sql.types import StringType, StructField, StructType, VariantType

        # A name that is there twice is no reason to look away: the reader takes its last value.
        spark.conf.set("spark.sql.variant.allowDuplicateKeys", "true")
        schema = StructType([StructField(RECORD, VariantType()), StructField(_CORRUPT, StringType())])
        options = {
            "singleVariantColumn": RECORD,
            "mode": "PERMISSIVE",  # what does not parse is told when it is loaded
            "columnNameOfCorruptRecord": _CORRUPT,
        }
        names: dict[str, list[str]] = {}
        for group in self._together([file for file in files if file.size > 0]):
            path = self._path(group)
            names |= unknown_fields(self._scan(spark, group, schema, **options), pinned.struct, path)
        return names

    def open_quotes(self, spark: SparkSession, files: Sequence[SourceFile]) -> dict[str, str]:
        """A line that ends within quotes, by the path of each CSV file that has one.

        Spark closes the value there, and takes the next line for a record: rows that nobody wrote. Nothing is looked for where values may go
        over several lines, or the user's options say what a quote is.
        """
        options = {key.lower(): str(value).lower() for key, value in self._source.options.items()}
        wide = any(size in options.get("encoding", options.get("charset", "")) for size in ("16", "32"))
        lines = self._source.format == "csv" and options.get("multiline") != "true" and not wide
        if not lines or _OWN_QUOTES & options.keys():
            return {}
        from pyspark.sql import functions as F
        from pyspark.sql.types import StringType, StructType

        found: dict[str, str] = {}
        line, schema = F.col("value"), StructType().add("value", StringType())
        for group in self._together([file for file in files if file.size > 0]):
            for separator in {_separator_of(self._source, file.path) for file in group}:
                if len(separator) != 1:
                    continue
                alike = [file for file in group if _separator_of(self._source, file.path) == separator]
                bad = self._scan(spark, alike, schema, form="text").where(line.rlike(_open_quote(separator)))
                rows = bad.groupBy(self._path(alike).alias("path")).agg(F.first(line).alias("line"))
                found |= {row["path"]: row["line"] for row in rows.collect()}
        return found

    def bad_records(
        self, spark: SparkSession, files: Sequence[SourceFile], pinned: PinnedSchema
    ) -> dict[str, BadRecord]:
        """A record that does not parse, for each of these files that has one; of Parquet, which has none of its own, nothing."""
        from pyspark.sql import functions as F
        from pyspark.sql.types import StringType, StructField, StructType

        form = self._source.format
        if form == "parquet":
            return {}
        found: dict[str, BadRecord] = {}
        for group in self._together(files):
            data = pinned.beside(_spellings(file.path for file in group)).data
            schema = StructType([*data.fields, StructField(_CORRUPT, StringType())])
            frame = self._scan(spark, group, schema, mode="PERMISSIVE", columnNameOfCorruptRecord=_CORRUPT)
            # Other columns go along: Spark refuses to select that one alone. Of a document it would be all of the file.
            row = F.first(F.struct("*") if form != "json" else F.struct(*map(quoted, data.names)))
            path = self._path(group)
            bad = frame.filter(F.col(_CORRUPT).isNotNull()).groupBy(path.alias("path"))
            for each in bad.agg(row.alias("row")).collect():
                if form == "json":
                    file = next(file for file in group if file.path == each["path"])
                    found[file.path] = self._bad_document(spark, file, data)
                    continue
                parsed = each["row"].asDict(recursive=True)
                text = parsed.pop(_CORRUPT)
                why = misfit(form, text, parsed, data, _separator_of(self._source, group[0].path))
                found[each["path"]] = BadRecord(text, why)
        return found

    def _bad_document(self, spark: SparkSession, file: SourceFile, data: StructType) -> BadRecord:
        """The first bad one of the records in a document: Spark gives a row for each of them, in their order."""
        rows = self._scan(spark, [file], data, mode="PERMISSIVE").limit(_MOST_RECORDS).collect()
        return misfit_in(
            whole_text(self._place, file.path), [row.asDict(recursive=True) for row in rows], data
        )

    def expected_header(self, path: str, pinned: PinnedSchema) -> list[str] | None:
        """The names that the header of a CSV file must have, in their order; None where files have no header."""
        if self._source.format != "csv" or str(self._source.options.get("header", True)).lower() != "true":
            return None
        return pinned.beside(_spellings([path])).data.fieldNames()

    def header(self, path: str) -> list[str] | None:
        """The names in the header of a CSV file; None where it has none, or none that reads."""
        text = first_line(self._place, path)
        return None if text is None else values_of(text, _separator_of(self._source, path))

    def _path(self, files: Sequence[SourceFile]) -> Column:
        """The path of a row's file. Spark tells it of many; what is read through a view has none."""
        if len(files) == 1:
            return _text(files[0].path)
        return _relative_path(self._place, plain=all(_is_plain(file.path) for file in files))

    def _together(self, files: Sequence[SourceFile]) -> list[list[SourceFile]]:
        """Files that Spark can be asked for in one scan."""
        plain = [file for file in files if not self._is_odd(file)]
        return [*([plain] if plain else []), *([file] for file in files if self._is_odd(file))]

    def _read_footers(self, files: Sequence[SourceFile]) -> dict[str, Footer]:
        """Of these files, each read once for a slice; those that do not read are left out."""
        missing = [file for file in files if file not in self._footers]
        read = footers(self._place, missing)
        kept = {file: self._footers[file] for file in files if file in self._footers}
        self._footers = kept | {file: read[file.path] for file in missing if file.path in read}
        return {file.path: footer for file, footer in self._footers.items()}

    def _alike(self, files: Sequence[SourceFile], pinned: PinnedSchema) -> dict[_Alike, list[SourceFile]]:
        """The files of each scan."""
        found = self._read_footers(files) if self._source.format == "parquet" else {}
        groups: dict[_Alike, list[SourceFile]] = {}
        for file in files:
            alone = file.path if self._is_odd(file) else ""
            folders = tuple(_spellings([file.path]).values())
            plain = _is_plain(file.path)
            hive = plain and _is_hive(file.path)
            numbers = self._numbers(found[file.path], pinned) if file.path in found else ()
            alike = _Alike(alone, _separator(file.path), plain, hive, folders, numbers)
            groups.setdefault(alike, []).append(file)
        return groups

    def _numbers(self, footer: Footer, pinned: PinnedSchema) -> tuple[tuple[FieldPath, bool], ...]:
        """The columns of a file that are read as whole numbers."""
        changed = {
            path: instant
            for path, instant in footer.nanoseconds.items()
            if as_numbers(pinned.struct, {path: instant}) != pinned.struct
        }
        if changed:
            names = ", ".join(sorted(shown(path) for path in changed))
            remark = (
                f"times with nanoseconds are loaded as microseconds, and what lies beyond is cut off: {names}"
            )
            self._remarks[remark] = None
        return tuple(sorted(changed.items()))

    def _load(
        self,
        spark: SparkSession,
        alike: _Alike,
        files: Sequence[SourceFile],
        pinned: PinnedSchema,
        origin: bool,
    ) -> DataFrame:
        """Files that are alike, in one scan.

        What a file's path tells is known here where there is one file. Of many Spark tells the folders' values where it reads them as we do,
        which costs nothing a row; else they are computed from the path that it reports.
        """
        from pyspark.sql import functions as F
        from pyspark.sql.types import StringType, StructField, StructType

        pinned = pinned.beside(alike.folders)
        data = as_numbers(pinned.data, dict(alike.numbers)) if alike.numbers else pinned.data
        if len(files) == 1:
            known = files[0].path
            values = {name.lower(): _text(folder_value(known, name)) for name in alike.folders}
            scan = self._scan(spark, files, data)
            return _select(scan, pinned, data, _text(known) if origin else None, values)
        root = self._place.spark_url
        path = _relative_path(self._place, plain=alike.plain)
        if alike.hive and _is_plain(root):
            columns = [StructField(name, StringType()) for name in alike.folders]
            schema = StructType([*data.fields, *columns])
            scan = self._scan(spark, files, schema, basePath=root, recursiveFileLookup="false")
            values = {name.lower(): F.col(quoted(name)) for name in alike.folders}
        else:
            scan = self._scan(spark, files, data)
            values = {name.lower(): _folder_value(path, name) for name in alike.folders}
        return _select(scan, pinned, data, path if origin else None, values)

    def _scan(
        self,
        spark: SparkSession,
        files: Sequence[SourceFile],
        schema: StructType | None,
        form: str | None = None,
        **changes: str,
    ) -> DataFrame:
        """The files as Spark reads them, before anything else."""
        options = self._options(files, schema is None) | changes
        form = form or _SPARK_FORMAT[self._source.format]
        if not self._is_odd(files[0]):
            reader = spark.read.format(form).options(**options)
            root = _escaped(self._place.spark_url)
            paths = [f"{root}/{file.path}" for file in files]
            return (reader if schema is None else reader.schema(schema)).load(paths)
        # The reader's option against globs is lost on Spark Connect; a view's is not.
        path = f"{self._place.spark_url}/{files[0].path}"
        view = f"odd_{uuid4().hex}"
        given = ", ".join(
            f"{literal(key)} {literal(value)}"
            for key, value in {**options, "path": path, "__globPaths__": "false"}.items()
        )
        columns = f" ({schema.toDDL()})" if schema is not None else ""
        spark.sql(f"CREATE TEMPORARY VIEW {view}{columns} USING {form} OPTIONS ({given})")
        return spark.table(view)

    def _is_odd(self, file: SourceFile) -> bool:
        """Whether Spark would take the path for a glob. A root's letters can be escaped, unless a colon is there, too: globs fail on it."""
        root = self._place.spark_url.rpartition("://")[2]
        return _is_glob(file.path) or (_is_glob(root) and ":" in f"{root}/{file.path}")

    def _options(self, files: Sequence[SourceFile], infer: bool) -> dict[str, str]:
        options: dict[str, str | int | float | bool] = {}
        if self._source.format == "csv":
            # Without the check of the header, reordered columns would be read into each other.
            options = {
                "header": "true",
                "enforceSchema": str(infer).lower(),
                "sep": _separator(files[0].path),
                "inferSchema": str(infer).lower(),
                "escape": '"',  # a quote in quotes is doubled (RFC 4180); Spark's own way is a backslash
            }
        if self._source.format == "json":
            options = {"multiLine": "true"}
        if self._source.format == "parquet" and infer:
            options = {"mergeSchema": "true"}
        ours = {
            "mode": "FAILFAST",
            "ignoreCorruptFiles": "false",
            "ignoreMissingFiles": "false",
            "recursiveFileLookup": "true",  # folders are ours to read: Spark would guess types, and refuse mixed layouts
        }
        user = {
            key: str(value).lower() if isinstance(value, bool) else str(value)
            for key, value in self._source.options.items()
        }
        return {**options, **user, **ours}  # type: ignore[dict-item]

    def _declared(self, spark: SparkSession) -> StructType | None:
        if self._source.schema_ is None:
            return None
        from pyspark.errors import PySparkException

        try:
            return spark.createDataFrame([], self._source.schema_).schema
        except (PySparkException, ValueError, TypeError) as error:
            raise ConfigurationError(
                f"source.schema: expected Spark DDL such as 'id long, name string', found {self._source.schema_!r}: {said(error)}"
            ) from error

    def _infer(self, spark: SparkSession, files: Sequence[SourceFile]) -> StructType | None:
        plain = [file for file in files if not self._is_odd(file)] or list(files[:1])
        if not plain:
            return None
        if self._source.format != "parquet":
            return _nullable(self._scan(spark, plain, None).schema)
        return self._infer_parquet(spark, plain)

    def _infer_parquet(self, spark: SparkSession, files: Sequence[SourceFile]) -> StructType:
        """Spark's own way; of files with nanoseconds apart, since Spark tells these times as whole numbers, if at all."""
        found = self._read_footers(files)
        groups: dict[frozenset[tuple[FieldPath, bool]], list[SourceFile]] = {}
        for file in files:
            nanoseconds = found[file.path].nanoseconds if file.path in found else {}
            groups.setdefault(frozenset(nanoseconds.items()), []).append(file)
        if any(groups):
            spark.conf.set("spark.sql.legacy.parquet.nanosAsLong", "true")
        schemas = {
            group[0].path: as_inferred(_nullable(self._scan(spark, group, None).schema), dict(nanoseconds))
            for nanoseconds, group in groups.items()
        }
        return _merged(schemas)

    def _check_folders(self, files: Sequence[SourceFile], pinned: PinnedSchema) -> None:
        named = pinned.folders if pinned.declared is None else pinned.struct.fieldNames()
        known = {name.lower() for name in named}
        for lower, name in _spellings(file.path for file in files).items():
            if lower not in known:
                example = next(file.path for file in files if name in partition_columns([file.path]))
                raise SchemaError(
                    f"folder column {name!r} of {example}: expected one of {sorted(named)}, as when the schema was pinned;"
                    " schema_mode: strict accepts no new column. Move the file; or name the column in source.schema and start anew",
                    reason="incompatible_schema",
                    field=name,
                )


def _nullable(schema: StructType) -> StructType:
    from pyspark.sql.types import StructField, StructType

    return StructType(
        [StructField(field.name, field.dataType, True, field.metadata) for field in schema.fields]
    )


def _merged(schemas: Mapping[str, StructType]) -> StructType:
    """The columns of all these schemas, each by the path of a file that has it.

    Raises:
        BadFile: where a column has two types.
    """
    from pyspark.sql.types import StructField, StructType

    found: dict[str, StructField] = {}
    for path, schema in schemas.items():
        for field in schema.fields:
            known = found.setdefault(field.name.lower(), field)
            if known.dataType != field.dataType:
                kinds = known.dataType.simpleString(), field.dataType.simpleString()
                why = f"column {field.name}: expected {kinds[0]}, as in other files, found {kinds[1]}"
                raise BadFile(
                    f"file {path}, {why}. Declare source.schema, or mend the file", path=path, why=why
                )
    return StructType(list(found.values()))


def _sample(files: Sequence[SourceFile]) -> list[SourceFile]:
    """Files with content, evenly over the list, within the bounds; one at least."""
    filled = [file for file in files if file.size > 0]
    step = max(1, len(filled) // _SAMPLE_FILES)
    chosen: list[SourceFile] = []
    for file in filled[::step][:_SAMPLE_FILES]:
        if chosen and sum(each.size for each in chosen) + file.size > _SAMPLE_BYTES:
            break
        chosen.append(file)
    return chosen


def _open_quote(separator: str) -> str:
    """A pattern for lines of CSV that end within quotes. It never goes back, so that a long line costs no more than its length."""
    other = f"[^{re.escape(separator)}]*+"
    quoted_value = '"(?:[^"]++|"")*+'
    return f'^(?:(?:{quoted_value}"{other}|(?!"){other}){re.escape(separator)})*+{quoted_value}$'


def _separator(path: str) -> str:
    return "\t" if ".tsv" in path.rpartition("/")[2] else ","


def _separator_of(source: FilesSource, path: str) -> str:
    """The user's own goes before what the ending says."""
    given = source.options.get("sep", source.options.get("delimiter"))
    return _separator(path) if given is None else str(given)


def _spellings(paths: Iterable[str]) -> dict[str, str]:
    """The names of the folders above these files as they are first spelt there, by their lower case: Spark's columns are told apart by that."""
    names: dict[str, str] = {}
    for name in partition_columns(list(paths)):
        names.setdefault(name.lower(), name)
    return names


def _is_plain(path: str) -> bool:
    """Whether Spark reports a path letter by letter."""
    return _PLAIN.fullmatch(path) is not None


def _is_hive(path: str) -> bool:
    """Whether Spark reads the folders of a plain path as we do: there are some, each a column of its own with a value."""
    folders = [part.partition("=") for part in path.split("/")[:-1]]
    names = {name.lower() for name, _, value in folders if name and value}
    return 0 < len(names) == len(folders)


def _relative_path(place: Place, *, plain: bool) -> Column:
    """The file's path below the root. Spark writes it as a URI: ``file:/x`` or ``file:///x``, percent-encoded unless it is plain."""
    from pyspark.sql import functions as F

    root = place.spark_url.rstrip("/") + "/"
    uri = F.col("_metadata.file_path")
    if not (plain and _is_plain(root)):
        decoded = F.url_decode(F.replace(uri, F.lit("+"), F.lit("%2B")))
        uri = F.when(uri.contains("%"), decoded).otherwise(uri)
    return F.substr(uri, F.locate(root, uri) + F.lit(len(root)))


def _folder_value(path: Column, name: str) -> Column:
    """The text of the first folder ``name=value`` in a path that has one, unescaped as Hive's and Spark's writers escape it."""
    from pyspark.sql import functions as F

    mark, below = f"/{name}=", F.concat(F.lit("/"), path)
    text = F.substring_index(F.substr(below, F.locate(mark, below) + F.lit(len(mark))), "/", 1)
    unescaped = F.coalesce(F.try_url_decode(F.replace(text, F.lit("+"), F.lit("%2B"))), text)
    return F.when(text != NULL_FOLDER, F.when(text.contains("%"), unescaped).otherwise(text))


def _select(
    df: DataFrame,
    pinned: PinnedSchema,
    data: StructType,
    path: Column | None,
    folders: Mapping[str, Column],
) -> DataFrame:
    """The pinned columns in their order: from the file, or from its folders, by their names in lower case; then the path where it is given."""
    from pyspark.sql import functions as F

    read = {field.name: field.dataType for field in data.fields}
    columns = [
        folders.get(field.name.lower(), _text(None)).cast(field.dataType).alias(field.name)
        if field.name in pinned.folders
        else as_times(F.col(quoted(field.name)), read[field.name], field.dataType).alias(field.name)
        if read[field.name] != field.dataType
        else F.col(quoted(field.name))
        for field in pinned.struct.fields
    ]
    return df.select(*columns, *([path.alias(SOURCE_FILE)] if path is not None else []))


def _text(value: str | None) -> Column:
    from pyspark.sql import functions as F

    return F.lit(value).cast("string")


def _is_glob(text: str) -> bool:
    return not _GLOB.isdisjoint(text)


def _escaped(root: str) -> str:
    return "".join(f"\\{character}" if character in _GLOB else character for character in root)
