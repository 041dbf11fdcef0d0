"""The contract of a format of files: how Spark scans them, what their schema is, and what is wrong with one that is bad. One module a format.

Belongs here: the contract, and what formats have in common unless one of them says otherwise. What a user may say of a format is in
``partitions.sources.formats``.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from partitions.dataflow import Dataflow
from partitions.errors import BadFile
from partitions.path.source import SourceFile
from partitions.sources.formats import Option
from resources.places import Place
from resources.sources.files.checked import CheckedFiles
from resources.sources.files.failures import BAD_RECORD, UNKNOWN_FIELD, bad_record, unknown_field
from resources.sources.files.misfit import BadRecord
from resources.sources.files.pinned import PinnedSchema
from resources.sources.files.rescuing import rescued_columns
from resources.sources.files.scan import Scanner
from resources.sql import quoted
from resources.staging import Staging

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructField, StructType

CORRUPT = "_corrupt_record"
"""The column of a scan for the text of a record that does not parse."""


class FormatReader(ABC):
    """Files of one format under a root.

    Attributes:
        READER: the name of Spark's reader.
        PACKAGE: the Maven coordinates of the reader; None: Spark has it.
        place: the root.
        source: what the definition says of the files.
        scanner: scans them where they lie.
    """

    READER: ClassVar[str]
    PACKAGE: ClassVar[str | None] = None

    def __init__(self, place: Place, dataflow: Dataflow, staging: Staging) -> None:
        """Use a root, and what a definition says of the files below it; nothing is opened.

        Args:
            place: the root.
            dataflow: the definition.
            staging: takes rows that Spark cannot read where they lie.
        """
        self.place, self.source, self.scanner = place, dataflow.files, Scanner(place)
        self._dataflow, self._staging = dataflow, staging

    @property
    def is_strict(self) -> bool:
        """Whether each file must have the pinned columns; in mode overwrite they are pinned anew in each run."""
        return self._dataflow.target.schema_mode in ("strict", "overwrite")

    @property
    def rescues(self) -> bool:
        """Whether what does not fit the pinned columns goes to ``_rescued_data``."""
        return self._dataflow.target.schema_mode == "rescue"

    @property
    def remarks(self) -> Sequence[str]:
        """What a user should hear of the files that were read so far, each once."""
        return ()

    def options(self, path: str, *, infer: bool) -> Mapping[str, Option]:
        """Return what Spark's reader is told of files such as this one, unless the user says otherwise.

        Args:
            path: of a file.
            infer: whether the schema is asked for.
        """
        return {}

    def apart(self, path: str) -> str:
        """Return what the files of one scan must have in common, as their paths tell it."""
        return ""

    def located(self, files: Sequence[SourceFile], pinned: PinnedSchema) -> Scanner:
        """Return what scans these files: where they lie, or where their rows were put for Spark.

        Raises:
            BadFile: the rows of a file cannot be had.
        """
        return self.scanner

    def schemas(
        self,
        files: Sequence[SourceFile],
        data: StructType,
    ) -> Mapping[str, StructType]:
        """Return the schemas to read some files with, by path, as far as these differ from the pinned one (:func:`as_times` changes the rows)."""
        return {}

    def scan(
        self,
        spark: SparkSession,
        files: Sequence[SourceFile],
        schema: StructType | None,
        scanner: Scanner | None = None,
        /,
        **changes: str,
    ) -> DataFrame:
        """Return files as Spark reads them, before anything else."""
        given = {**self.options(files[0].path, infer=schema is None), **self.source.options}
        options = {
            key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in given.items()
        }
        return (scanner or self.scanner).scan(spark, files, schema, self.READER, options, **changes)

    def own_schemas(
        self, spark: SparkSession, files: Sequence[SourceFile], data: StructType
    ) -> Mapping[str, StructType]:
        """Return the schemas to read files with, by path, so that all that they hold is read; those of files that need none are missing."""
        return self.schemas(files, data)

    def rescue(
        self,
        spark: SparkSession,
        files: Sequence[SourceFile],
        own: StructType | None,
        data: StructType,
        scanner: Scanner,
        bad: Collection[str] | None,
    ) -> DataFrame:
        """Return the pinned columns of files, and ``_rescued_data`` with what does not fit.

        Args:
            spark: a session.
            files: of one schema.
            own: that schema, by :meth:`own_schemas`.
            data: the pinned columns.
            scanner: of the files.
            bad: texts of records that are left out; None if there are none.
        """
        read = data if own is None else own
        rows = self.scan_without(spark, files, read, scanner, bad)
        return rescued_columns(rows, read, data, self.parsed)

    def parsed(self, given: StructField, wanted: StructField) -> Column | None:
        """Return the value of a pinned column that the text of a file's column means; None if files have types of their own."""
        return None

    def scan_good(
        self,
        spark: SparkSession,
        files: Sequence[SourceFile],
        schema: StructType,
        scanner: Scanner | None = None,
        /,
        **changes: str,
    ) -> DataFrame:
        """Return files as Spark reads them, without the records that do not parse if these are set aside; else one of them fails the read."""
        from pyspark.sql import functions as F
        from pyspark.sql.types import StringType, StructField, StructType

        if not self._dataflow.max_bad_records:
            return self.scan(spark, files, schema, scanner, **changes)
        wide = StructType([*schema.fields, StructField(CORRUPT, StringType())])
        options = {**changes, "mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT}
        rows = self.scan(spark, files, wide, scanner, **options)
        # Spark parses only the columns that are asked for, and a record is bad by any of them: a condition that each row meets asks for all.
        values = [F.col(quoted(name)) for name in schema.names]
        has_no_hash = any(kind in schema.simpleString() for kind in ("map<", "variant"))
        asks_for_all = (
            F.length(F.to_json(F.struct(*values))) >= 0 if has_no_hash else F.hash(*values) >= F.lit(-(2**31))
        )
        return rows.where(F.col(quoted(CORRUPT)).isNull() & asks_for_all)

    def records_aside(
        self, spark: SparkSession, files: Sequence[SourceFile], pinned: PinnedSchema, most: int
    ) -> Sequence[tuple[str, BadRecord]]:
        """Return the records that :meth:`scan_good` leaves out, each with its file, at most so many, in the order of the files."""
        return ()

    def check(self, spark: SparkSession, files: Sequence[SourceFile], pinned: PinnedSchema) -> CheckedFiles:
        """Look through files before they are loaded, and return what of them cannot be loaded exactly.

        Args:
            spark: a session.
            files: with content.
            pinned: the schema that they are to be loaded with.
        """
        most = self._dataflow.max_bad_records
        return CheckedFiles(
            {bad.path: bad for bad in self.misleading(spark, files, pinned)},
            self.records_aside(spark, files, pinned, most + 1) if most else (),
        )

    def scan_without(
        self,
        spark: SparkSession,
        files: Sequence[SourceFile],
        schema: StructType,
        scanner: Scanner | None,
        records: Collection[str] | None,
        /,
        **changes: str,
    ) -> DataFrame:
        """Return files as Spark reads them; line by line, without the records of these texts, if there are texts: :meth:`check` has told them as bad."""
        return self.scan_good(spark, files, schema, scanner, **changes)

    def infer(self, spark: SparkSession, files: Sequence[SourceFile]) -> StructType | None:
        """Return the columns that stand in these files; None if none does.

        Raises:
            BadFile: a file contradicts the others, or does not read.
        """
        return self.scan(spark, files, None).schema

    def misleading(
        self, spark: SparkSession, files: Sequence[SourceFile], pinned: PinnedSchema
    ) -> Iterator[BadFile]:
        """Yield files that Spark would load otherwise than they are meant, without a word."""
        yield from self._with_unknown_fields(spark, files, pinned)

    def closer(self, spark: SparkSession, file: SourceFile, pinned: PinnedSchema) -> BadFile | None:
        """Return what is wrong with a file that Spark has failed at, if a closer look tells."""
        return next(iter(self._with_bad_records(spark, [file], pinned)), None)

    def alike(
        self, spark: SparkSession, files: Sequence[SourceFile], pinned: PinnedSchema, bad: BadFile
    ) -> list[BadFile]:
        """Return the files that are bad as this one is, as far as one look tells."""
        if bad.code == BAD_RECORD:
            return self._with_bad_records(spark, files, pinned)
        return list(self._with_unknown_fields(spark, files, pinned)) if bad.code == UNKNOWN_FIELD else []

    def unknown_fields(
        self,
        spark: SparkSession,
        files: Sequence[SourceFile],
        pinned: PinnedSchema,
    ) -> Mapping[str, list[str]]:
        """Return the fields that the pinned schema lacks, dotted, by the path of each file that has some."""
        return {}

    def names_of(
        self, spark: SparkSession, files: Sequence[SourceFile], names: Sequence[str]
    ) -> Mapping[str, frozenset[str]]:
        """Return the names of columns that each file has in its header or in any record, case-folded, by path; of a file that does not tell nothing.

        Args:
            spark: a session.
            files: with records.
            names: that are asked for; of others nothing need be told.
        """
        return {}

    def other_columns(
        self, spark: SparkSession, files: Sequence[SourceFile], pinned: PinnedSchema
    ) -> Mapping[str, StructType]:
        """Return the columns of files that may have others than the pinned schema, each by the path of a file that has them.

        A format whose values are texts gives a column that is pinned its pinned type: its values tell no other.
        """
        return {}

    def wider_columns(
        self, spark: SparkSession, files: Sequence[SourceFile], pinned: PinnedSchema
    ) -> StructType | None:
        """Return the pinned columns with wider types for whole numbers that do not fit; None if all fit, or each file tells its types."""
        return None

    def line_of_field(self, path: str, name: str) -> int | None:
        """Return the line of a file in which a field stands first, from 1; None if no line tells."""
        return None

    def bad_records(
        self,
        spark: SparkSession,
        files: Sequence[SourceFile],
        pinned: PinnedSchema,
    ) -> Mapping[str, BadRecord]:
        """Return a record that does not parse, by the path of each file that has one."""
        return {}

    def _with_unknown_fields(
        self, spark: SparkSession, files: Sequence[SourceFile], pinned: PinnedSchema
    ) -> Iterator[BadFile]:
        """Files with fields that the pinned schema lacks, in their order; none if such fields are left out (``unknown_fields: ignore``), or become columns."""
        if self._dataflow.unknown_fields == "ignore" or not self.is_strict or not files:
            return
        names_of = self.unknown_fields(spark, files, pinned)
        for file in files:
            if names := names_of.get(file.path):
                yield unknown_field(file.path, names, self.line_of_field(file.path, names[0]), self._dataflow)

    def _with_bad_records(
        self, spark: SparkSession, files: Sequence[SourceFile], pinned: PinnedSchema
    ) -> list[BadFile]:
        try:
            records = self.bad_records(spark, files, pinned)
        except Exception:  # noqa: BLE001 - looking closer is a courtesy; whatever is bad is found when it is written
            return []
        show, aside = self._dataflow.show_bad_records, self._dataflow.may_set_records_aside
        return [
            bad_record(path, record, show=show, may_be_set_aside=aside) for path, record in records.items()
        ]
