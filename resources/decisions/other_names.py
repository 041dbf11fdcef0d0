"""Decide about files that `state accept --below loaded` took as loaded under other names.

Nothing in a row tells that it stands for such a file, so a decision that goes back in the log or to an
older table may double or lose rows (docs/reference/state.md, set, accept and import).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from partitions.dataflow import Dataflow
from partitions.errors import ConfigurationError, NeedsDecision
from partitions.path.source import SourceFile
from partitions.plan import pluralize
from partitions.spelling import first_few
from resources.decisions.draft import Draft
from resources.decisions.files_in_table import HeldRows
from resources.decisions.reasons import OTHER_ROOT
from resources.kinds.contract.decisions import KnowsFiles, OtherNames, StateRules
from resources.kinds.contract.lost_rows import DeletedRows
from resources.watermarks.entry import Entry

_NAMED = 5


def other_names(rules: StateRules, last: Entry | None, watermark: str) -> OtherNames:
    """Return the files that count as loaded under other names; none for a kind that loads no files."""
    return rules.under_other_names(last, watermark) if isinstance(rules, KnowsFiles) else OtherNames()


def without_other_names(rows: HeldRows, names: OtherNames) -> HeldRows:
    """Return the held rows without files that count as loaded under other names: the decision lists them."""
    paths = {file.path for file in (*names.loaded, *names.unsure)}
    listed = [row for row in rows.files.listed if row[0] not in paths]
    missing = [file for file in rows.files.missing if file.path not in paths]
    return replace(rows, files=replace(rows.files, listed=listed, missing=missing))


def with_other_names(draft: Draft, names: OtherNames, answer: DeletedRows | None = None) -> Draft:
    """Return the draft with records of the files that count as loaded under other names.

    Args:
        draft: the draft of a decision whose own lists count from now on.
        names: the files.
        answer: what becomes of those whose rows the table may lack.
    """
    skipped = names.unsure if answer == "skip" else ()
    files = [*draft.files, *((*file.row, OTHER_ROOT) for file in (*names.loaded, *skipped))]
    return replace(draft, files=files, notes=(*draft.notes, *_notes(names, answer)))


def check_unsure_names(dataflow: Dataflow, names: OtherNames, answer: DeletedRows | None) -> None:
    """Raise if the table may lack rows of files that count as loaded, and no answer says their fate.

    Raises:
        NeedsDecision: code ``other_files``.
    """
    files = [*names.unsure, *names.unsure_above]
    if not files or answer is not None:
        return
    command = f"strandline state adopt {dataflow.name} --deleted"
    raise NeedsDecision(
        f"dataflow {dataflow.name}: expected a table with all loads before `state accept --below loaded`, found one that may lack some. Nothing tells"
        f" whether it has the rows of files that count as loaded under other names: {_named(files)}. Choose what happens to them: --deleted"
        " load loads them; --deleted skip counts those at or below the watermark as loaded",
        code="other_files",
        choices=tuple(f"{command} {word} --reason TEXT" for word in ("load", "skip")),
    )


def with_maybe_renamed(
    dataflow: Dataflow, names: OtherNames, rows: HeldRows, answer: DeletedRows | None
) -> OtherNames:
    """Return the names with files that may be loaded ones under other names, if the log does not know.

    The table then holds rows of files that the source lacks, and the source has files without rows.

    Raises:
        NeedsDecision: code ``other_files``: there are such files, and ``answer`` does not say what they are.
    """
    missing, absent = rows.files.missing, rows.files.absent
    if not missing or not absent:
        return names
    if answer is None:
        command = f"strandline state adopt {dataflow.name} --deleted"
        raise NeedsDecision(
            f"dataflow {dataflow.name}: expected rows of each file at or below the watermark, since the log does not know all loads; found none of"
            f" {_named(missing)}, and rows of files that the source lacks: {_named(absent)}. The former may be the latter under other names. Choose"
            " what they are: new files (--deleted load loads them), or loaded ones (--deleted skip)",
            code="other_files",
            choices=tuple(f"{command} {word} --reason TEXT" for word in ("load", "skip")),
        )
    return replace(names, unsure=[*names.unsure, *missing])


def refuse_other_names(dataflow: Dataflow, names: OtherNames, decision: str) -> None:
    """Raise if a decision would load rows again that the table holds under other names, or may hold.

    Raises:
        ConfigurationError: code ``other_names``.
    """
    files = [*names.above, *names.unsure, *names.unsure_above]
    if not files:
        return
    name = dataflow.name
    raise ConfigurationError(
        f"dataflow {name}: expected files whose rows carry their path, found {_named(files)} that `state accept --below loaded` took as loaded under"
        f" other names. After {decision} their rows could be in the table twice, or missing. Take the state of the table (`state adopt`), or load"
        " everything again with `state reset --replace`",
        code="other_names",
        choices=(
            f"strandline state adopt {name} --reason TEXT",
            f"strandline state reset {name} --replace --reason TEXT",
        ),
    )


def describe_doubtful_names(names: OtherNames) -> tuple[str, ...]:
    """Return notes on files whose rows may be missing, or be there twice, after a decision."""
    lines = (
        (names.above, "taken as loaded under other names, and read again, so their rows are there twice"),
        (
            names.unsure_above,
            "taken as loaded under other names, and read again; the table may have their rows",
        ),
        (names.unsure, "count as loaded under other names, although the table may lack their rows"),
    )
    return tuple(f"{words}: {_named(files)}" for files, words in lines if files)


def _notes(names: OtherNames, answer: DeletedRows | None) -> tuple[str, ...]:
    """Return which files count as loaded under other names, and which are loaded, for people."""
    never_read = [*names.loaded, *(names.unsure if answer == "skip" else ())]
    read = [*(names.unsure if answer == "load" else ()), *names.unsure_above]
    lines = (
        (never_read, "count as loaded under other names, so never read"),
        (read, "do not count as loaded under other names, so later loads read them"),
    )
    notes = (f"{words}: {_named(files)}" for files, words in lines if files)
    return (*notes, *describe_doubtful_names(OtherNames(above=names.above)))


def _named(files: Sequence[SourceFile]) -> str:
    return f"{pluralize(len(files), 'file')} ({first_few([file.path for file in files], _NAMED)})"
