"""Decide about rows whose files are gone at the source, when a rewind or replay replaces other rows.

See docs/reference/state.md, rewind; docs/reference/replay.md, Files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import get_args

from partitions.dataflow import Dataflow
from partitions.errors import ConfigurationError, NeedsDecision, SourceError
from partitions.path.gone import GoneFiles
from partitions.plan import pluralize
from partitions.spelling import first_few
from resources.decisions.draft import Draft
from resources.kinds.contract.decisions import KnowsFiles
from resources.loop.guards.definition import changed_parts
from resources.platform.opener import Opener
from resources.watermarks.entry import Entry
from resources.watermarks.file_ranges import GOES

_NAMED = 5


@dataclass(frozen=True)
class GoneRows:
    """The rows of gone files that a rewind comes upon, and what becomes of them.

    Attributes:
        rows: the rows that the table holds of each file.
        answer: what an operator has said.
        notes: more for people to know.
    """

    rows: Mapping[str, int] = field(default_factory=dict)
    answer: GoneFiles | None = None
    notes: tuple[str, ...] = ()

    def with_notes(self, notes: tuple[str, ...]) -> GoneRows:
        """Return the same rows with further notes on the rewind."""
        return replace(self, notes=(*self.notes, *notes))

    def added_to(self, draft: Draft) -> Draft:
        """Return the draft with notes on all gone files, and with a mark on those whose rows are deleted."""
        marked = [(path, 0, "", 0, GOES) for path in self.rows] if self.answer == "delete" else []
        notes = (*draft.notes, *gone_note(self.rows, self.answer), *self.notes)
        paths = {path for path, *_ in marked}
        files = [file for file in draft.files if file[0] not in paths]
        return replace(draft, files=[*files, *marked], notes=notes)


def gone_above(
    platform: Opener,
    dataflow: Dataflow,
    last: Entry,
    watermark: str,
    answer: GoneFiles | None,
    *,
    replace: bool,
    command: str,
) -> GoneRows:
    """Return the rows of files above a watermark that are gone at the source.

    Args:
        platform: the resources.
        dataflow: the dataflow.
        last: the newest entry.
        watermark: sentinel JSON text: what a rewind goes back to.
        answer: what becomes of the rows; None: nobody has said.
        replace: whether the rows of files that are loaded again are deleted.
        command: the rewind as typed, for the commands that answer.

    Raises:
        ConfigurationError: an answer for a kind without files, or without ``replace``.
        SourceError: ``answer`` is ``delete``, and the source cannot be listed.
        NeedsDecision: code ``gone_files``: files are gone, and nobody has said what becomes of their rows.
    """
    rules = platform.rules(dataflow)
    if answer is not None and not (replace and isinstance(rules, KnowsFiles)):
        needed = "--replace beside --gone" if isinstance(rules, KnowsFiles) else "no --gone"
        raise ConfigurationError(
            f"dataflow {dataflow.name}: --gone decides about rows of missing files when the rows around them are replaced: expected {needed}, found"
            f" {'none' if isinstance(rules, KnowsFiles) else f'it with a watermark of type {dataflow.kind}'}"
        )
    if not isinstance(rules, KnowsFiles):
        return GoneRows()
    try:
        rows = rules.gone_above(last, watermark)
    except SourceError as error:
        if answer == "delete":
            raise
        unknown = f"the source cannot be listed, so it is unknown which loaded files are gone; their rows stay: {error.message}"
        return GoneRows(notes=(unknown,) if replace else ())
    if rows and replace and answer is None:
        commands = [f"{command} --gone {word} --reason TEXT" for word in get_args(GoneFiles)]
        raise gone_files_error(dataflow.name, rows, commands)
    return GoneRows(rows, answer)


def gone_at_new_source(
    platform: Opener, dataflow: Dataflow, last: Entry, answer: GoneFiles | None, options: str
) -> GoneRows:
    """Return the rows of files that a changed source lacks, if the next loads replace rows.

    Args:
        platform: the resources.
        dataflow: the dataflow as it is defined now.
        last: the newest entry.
        answer: what becomes of the rows; None: nobody has said.
        options: the other options of the accept as typed, for the commands that answer.

    Raises:
        ConfigurationError: an answer, although the next loads replace no rows, or the source is the same.
        NeedsDecision: code ``gone_files``, as for :func:`gone_above`.
    """
    replaces = last.replace_until is not None and not last.replace_table
    changes = changed_parts(dataflow, last, platform.log) if replaces else ()
    is_other_source = changes is None or any(change.part in ("source", "extensions") for change in changes)
    if replaces and is_other_source:
        words = f"strandline state accept {dataflow.name}{options}"
        return gone_above(platform, dataflow, last, last.watermark, answer, replace=True, command=words)
    if answer is not None:
        raise ConfigurationError(
            f"dataflow {dataflow.name}: --gone decides about rows of missing files if an accept changes the source while loads replace rows after"
            " a rewind: expected no --gone, found it without such a rewind or change. Run the command without it",
        )
    return GoneRows()


def gone_files_error(
    dataflow: str, rows_by_file: Mapping[str, int], commands: Sequence[str]
) -> NeedsDecision:
    """Return the error that asks what becomes of the rows of gone files.

    Args:
        dataflow: the dataflow's name.
        rows_by_file: the rows that the table holds of each file.
        commands: the command that deletes the rows, and the one that keeps them.
    """
    return NeedsDecision(
        f"dataflow {dataflow}: expected the source to hold every loaded file whose rows are replaced; missing: {describe_gone(rows_by_file)}. A file"
        " that came back under another name would be in the table twice. Delete the rows of missing files (--gone delete), or keep them"
        " (--gone keep)",
        code="gone_files",
        choices=tuple(commands),
    )


def describe_gone(rows_by_file: Mapping[str, int]) -> str:
    """Return the files and their rows for people."""
    rows = pluralize(sum(rows_by_file.values()), "row")
    return f"{pluralize(len(rows_by_file), 'file')} ({first_few(list(rows_by_file), _NAMED)}) with {rows} in the table"


def gone_note(
    rows_by_file: Mapping[str, int], answer: GoneFiles | None, *, new_source: str | None = None
) -> tuple[str, ...]:
    """Return what becomes of the rows of gone files, for people.

    Args:
        rows_by_file: the rows that the table holds of each file.
        answer: what becomes of them.
        new_source: the source's path if its definition has changed, so that the files may be elsewhere.
    """
    if not rows_by_file:
        return ()
    why = "missing at the source"
    if new_source is not None:
        why = f"the source as it is defined now ({new_source}) has no file of their path"
    fate = "their rows are deleted" if answer == "delete" else "their rows stay"
    return (f"{why}, so {fate}: {describe_gone(rows_by_file)}",)
