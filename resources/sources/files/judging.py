"""Judge files under a root: which of them cannot be loaded exactly, and what their schema becomes with the others (docs/reference/files.md).

Belongs here: which of several errors a file is refused with, and how many of its records may be set aside. What is wrong with records and headers is
looked for by :mod:`resources.sources.files.checker`, what a schema becomes by :mod:`resources.sources.files.evolving`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from partitions.dataflow import Dataflow
from partitions.errors import BadFile
from partitions.path.source import SourceFile
from partitions.plan import counted
from partitions.supported import bad_records_refusals
from resources.sources.files.checked import BadRecord, CheckedFiles
from resources.sources.files.checker import FileChecker
from resources.sources.files.evolving import Growth, SchemaFollower
from resources.sources.files.failures import bad_records, unknown_field
from resources.sources.files.formats.format import FormatReader
from resources.sources.files.pinned import PinnedSchema
from resources.sources.files.pinning import SAMPLE_FILES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class FileJudge:
    """Judges the files of one dataflow."""

    def __init__(
        self, form: FormatReader, checker: FileChecker, follower: SchemaFollower, dataflow: Dataflow
    ) -> None:
        """Use what looks through the files, and what follows their schema; none was judged yet."""
        self._format, self._checker, self._follower, self._dataflow = form, checker, follower, dataflow
        self._refused: set[str] = set()

    def bad_files(
        self, spark: SparkSession, files: Sequence[SourceFile], pinned: PinnedSchema
    ) -> Sequence[BadFile]:
        """Return the files that cannot be loaded exactly, in their order.

        Raises:
            SchemaEvolved: the pinned schema gets new columns, wider types or first types from files that load; others tell none.
        """
        bad_files = dict[str, BadFile]()
        telling = list(files)
        while telling:
            growth, bad = self.judge(spark, telling, pinned)
            if not bad and growth.changes:
                raise growth.error
            if growth.changes and len(bad) > 1:
                bad = self._bad_without_others(spark, telling, pinned, bad)
            bad_files |= {error.path: error for error in bad}
            if not growth.changes:
                break
            first = next(number for number, file in enumerate(telling) if file.path in bad_files)
            loaded = telling if self._dataflow.on_bad_file == "quarantine" else telling[:first]
            telling = [file for file in loaded if file.path not in bad_files]
        return [bad_files[file.path] for file in files if file.path in bad_files]

    def _bad_without_others(
        self,
        spark: SparkSession,
        files: Sequence[SourceFile],
        pinned: PinnedSchema,
        bad: Sequence[BadFile],
    ) -> Sequence[BadFile]:
        """Return those of some bad files that are bad without the others, whose columns may have made them so; all but the first if none is."""
        if len(bad) > SAMPLE_FILES:  # of so many each would cost a look
            return bad
        paths = {error.path for error in bad}
        bad_alone: list[BadFile] = []
        for error in bad:
            telling = [file for file in files if file.path == error.path or file.path not in paths]
            _, still_bad = self.judge(spark, telling, pinned)
            bad_alone += [other for other in still_bad if other.path == error.path]
        return bad_alone or bad[1:]

    def judge(
        self, spark: SparkSession, files: Sequence[SourceFile], pinned: PinnedSchema
    ) -> tuple[Growth, Sequence[BadFile]]:
        """Return what the pinned schema becomes with files, and which of them cannot be loaded exactly with that."""
        try:
            growth = self._follower.growth(spark, files, pinned)
        except BadFile as refused:
            others = [file for file in files if file.path != refused.path]
            if len(others) == len(files):
                raise
            growth, bad = self.judge(spark, others, pinned)
            return growth, [refused, *bad]
        checked = self._checker.check(spark, files, growth.schema)
        records = checked.records_by_path
        set_aside, bad_files = 0, list[BadFile]()
        for number, file in enumerate(files):
            of_file = records.get(file.path, [])
            if file.path in checked.bad_files:
                bad_files.append(checked.bad_files[file.path])
            elif self._format.rules.refuses_unknown and file.path in checked.unknown:
                unknown = checked.unknown[file.path]
                is_declared = pinned.declared is not None
                bad_files.append(
                    unknown_field(
                        file.path, unknown.names, unknown.line, self._dataflow, is_declared=is_declared
                    )
                )
            elif set_aside + len(of_file) > self._dataflow.max_bad_records:
                after = [other.path for other in files[number + 1 :] if other.path in records]
                bad_files.append(
                    _too_many_bad_records(self._dataflow, file.path, of_file, checked, set_aside, after)
                )
            else:
                set_aside += len(of_file)
        return growth, bad_files

    def refuse_first_bad(
        self, spark: SparkSession, files: Sequence[SourceFile], pinned: PinnedSchema
    ) -> None:
        """Raise BadFile for the first of some files that cannot be loaded with a schema that was inferred from them: without it they may have other types."""
        if len(self._refused) >= SAMPLE_FILES:
            return  # others are found when they are loaded
        checked = self._checker.check(spark, files, pinned)
        records = checked.records_by_path
        for file in files:
            of_file = records.get(file.path, [])
            bad = checked.bad_files.get(file.path)
            if max(len(of_file), checked.counts.get(file.path, 0)) > self._dataflow.max_bad_records:
                bad = bad or _too_many_bad_records(self._dataflow, file.path, of_file, checked, 0, ())
            if bad is not None:
                self._refused.add(file.path)
                raise bad


def _too_many_bad_records(
    dataflow: Dataflow,
    path: str,
    records: Sequence[BadRecord],
    checked: CheckedFiles,
    before: int,
    after: Sequence[str],
) -> BadFile:
    """The error for a file with records that may not be set aside, or with too many of them.

    Args:
        dataflow: the definition.
        path: of the file.
        records: of the file.
        checked: what else is known of the files.
        before: records of the files before it, which are set aside.
        after: files behind it with bad records.
    """
    show, most = dataflow.show_bad_records, dataflow.max_bad_records
    number = checked.counts.get(path, len(records))
    of_file = f"{'at least ' if checked.is_cut else ''}{counted(number, 'bad record')} in all"
    others = after if dataflow.on_bad_file == "stop" else ()
    if not most:
        total = of_file if number > 1 else None
        settable = not any(bad_records_refusals(dataflow.source.form, dataflow.kind, 1))
        remedy = "mend it, remove it, or set max_bad_records" if settable else "mend or remove it"
        return bad_records(path, records, show=show, total=total, others=others, remedy=remedy)
    of_slice = f", after {before} in files before it" if before else ""
    return bad_records(
        path,
        records,
        show=show,
        total=f"{of_file}{of_slice}, and max_bad_records is {most}",
        others=others,
        remedy="mend or remove it, or raise max_bad_records",
    )
