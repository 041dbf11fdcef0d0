"""Judge files under a root: which cannot be loaded, and how the others change the schema.

Belongs here: which of several errors a file gets, and how many of its records may be set aside.
:mod:`resources.sources.files.checker` checks records and headers, :mod:`resources.sources.files.evolving` finds
changes of the schema. See docs/reference/files.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from partitions.dataflow import Dataflow
from partitions.errors import BadFile
from partitions.path.source import SourceFile
from partitions.plan import pluralize
from partitions.supported import bad_records_refusals
from resources.sources.files.checked import BadRecord, CheckedFiles
from resources.sources.files.checker import FileChecker
from resources.sources.files.evolving import SchemaFollower, SchemaGrowth
from resources.sources.files.failures import bad_records_error, unknown_field_error
from resources.sources.files.formats.format import FormatReader
from resources.sources.files.pinned import PinnedSchema
from resources.sources.files.pinning import SAMPLE_FILES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class FileJudge:
    """A judge of the files of one dataflow."""

    def __init__(
        self, form: FormatReader, checker: FileChecker, follower: SchemaFollower, dataflow: Dataflow
    ) -> None:
        """Store the format, the checker, the schema follower and the definition; judge nothing."""
        self._format, self._checker, self._follower, self._dataflow = form, checker, follower, dataflow
        self._refused: set[str] = set()

    def bad_files(
        self, spark: SparkSession, files: Sequence[SourceFile], pinned: PinnedSchema
    ) -> Sequence[BadFile]:
        """Return the files that cannot be loaded exactly, in their order.

        Raises:
            SchemaEvolved: files that load give the pinned schema new columns, wider types or first types.
        """
        bad_files = dict[str, BadFile]()
        considered_files = list(files)
        while considered_files:
            growth, bad = self.judge(spark, considered_files, pinned)
            if not bad and growth.changes:
                raise growth.error
            if growth.changes and len(bad) > 1:
                bad = self._bad_without_others(spark, considered_files, pinned, bad)
            bad_files |= {error.path: error for error in bad}
            if not growth.changes:
                break
            first = next(number for number, file in enumerate(considered_files) if file.path in bad_files)
            files_to_load = (
                considered_files if self._dataflow.on_bad_file == "quarantine" else considered_files[:first]
            )
            considered_files = [file for file in files_to_load if file.path not in bad_files]
        return [bad_files[file.path] for file in files if file.path in bad_files]

    def _bad_without_others(
        self,
        spark: SparkSession,
        files: Sequence[SourceFile],
        pinned: PinnedSchema,
        bad: Sequence[BadFile],
    ) -> Sequence[BadFile]:
        """Return the bad files that stay bad without the columns of the other bad files.

        If there are none, return all but the first.
        """
        if len(bad) > SAMPLE_FILES:  # too many to check each one alone
            return bad
        paths = {error.path for error in bad}
        bad_alone: list[BadFile] = []
        for error in bad:
            considered_files = [file for file in files if file.path == error.path or file.path not in paths]
            _, still_bad = self.judge(spark, considered_files, pinned)
            bad_alone += [candidate for candidate in still_bad if candidate.path == error.path]
        return bad_alone or bad[1:]

    def judge(
        self, spark: SparkSession, files: Sequence[SourceFile], pinned: PinnedSchema
    ) -> tuple[SchemaGrowth, Sequence[BadFile]]:
        """Return the changes that files make to the schema, and the files that cannot be loaded after them."""
        try:
            growth = self._follower.find_growth(spark, files, pinned)
        except BadFile as refused:
            remaining_files = [file for file in files if file.path != refused.path]
            if len(remaining_files) == len(files):
                raise
            growth, bad = self.judge(spark, remaining_files, pinned)
            return growth, [refused, *bad]
        checked = self._checker.check(spark, files, growth.schema)
        records = checked.records_by_path
        set_aside_count, bad_files = 0, list[BadFile]()
        for number, file in enumerate(files):
            bad_records = records.get(file.path, [])
            if file.path in checked.bad_files:
                bad_files.append(checked.bad_files[file.path])
            elif self._format.rules.refuses_unknown and file.path in checked.unknown:
                unknown = checked.unknown[file.path]
                is_declared = pinned.declared is not None
                bad_files.append(
                    unknown_field_error(
                        file.path, unknown.names, unknown.line, self._dataflow, is_declared=is_declared
                    )
                )
            elif set_aside_count + len(bad_records) > self._dataflow.max_bad_records:
                later_paths = [
                    later_file.path for later_file in files[number + 1 :] if later_file.path in records
                ]
                bad_files.append(
                    _too_many_bad_records(
                        self._dataflow, file.path, bad_records, checked, set_aside_count, later_paths
                    )
                )
            else:
                set_aside_count += len(bad_records)
        return growth, bad_files

    def refuse_first_bad(
        self, spark: SparkSession, files: Sequence[SourceFile], pinned: PinnedSchema
    ) -> None:
        """Raise BadFile for the first file that does not fit the schema inferred from it.

        Without that file the others may have other types.
        """
        if len(self._refused) >= SAMPLE_FILES:
            return  # the load finds the others
        checked = self._checker.check(spark, files, pinned)
        records = checked.records_by_path
        for file in files:
            bad_records = records.get(file.path, [])
            bad = checked.bad_files.get(file.path)
            if max(len(bad_records), checked.counts.get(file.path, 0)) > self._dataflow.max_bad_records:
                bad = bad or _too_many_bad_records(self._dataflow, file.path, bad_records, checked, 0, ())
            if bad is not None:
                self._refused.add(file.path)
                raise bad


def _too_many_bad_records(
    dataflow: Dataflow,
    path: str,
    records: Sequence[BadRecord],
    checked: CheckedFiles,
    earlier_count: int,
    later_paths: Sequence[str],
) -> BadFile:
    """Return the error for a file with more bad records than may be set aside.

    Args:
        dataflow: the definition.
        path: the file's path.
        records: the bad records of the file.
        checked: the result for all files.
        earlier_count: the number of records set aside in files before it.
        later_paths: the files behind it with bad records.
    """
    show, max_bad_records = dataflow.show_bad_records, dataflow.max_bad_records
    number = checked.counts.get(path, len(records))
    count_text = f"{'at least ' if checked.is_cut else ''}{pluralize(number, 'bad record')} in all"
    other_paths = later_paths if dataflow.on_bad_file == "stop" else ()
    if not max_bad_records:
        total = count_text if number > 1 else None
        settable = not any(bad_records_refusals(dataflow.source, dataflow.watermark, 1))
        remedy = "fix it, remove it, or set max_bad_records" if settable else "fix or remove it"
        return bad_records_error(
            path, records, show=show, total=total, other_paths=other_paths, remedy=remedy
        )
    earlier_text = f", after {earlier_count} in files before it" if earlier_count else ""
    return bad_records_error(
        path,
        records,
        show=show,
        total=f"{count_text}{earlier_text}, and max_bad_records is {max_bad_records}",
        other_paths=other_paths,
        remedy="fix or remove it, or raise max_bad_records",
    )
