"""What must be true before a run may write; each breach needs an operator's decision (spec 02, State-loss guard; Fingerprint)."""

from __future__ import annotations

from typing import Any

from partitions.dataflow import Dataflow
from partitions.errors import NeedsDecision
from partitions.invalidation import Change, changes
from partitions.states import nothing_loaded
from resources.watermarks.entry import Entry, Intent
from resources.watermarks.log import WatermarkLog
from resources.writers.target import Landed, TableCommit, TableHead, Target

_LOOKED_AT = 20
"""Entries that are looked through for the definition that the newest was made with."""


def check_definition(dataflow: Dataflow, entry: Entry | None, log: WatermarkLog) -> None:
    """A changed definition is never taken up silently: it would read again, or skip.

    Raises:
        NeedsDecision: code ``definition_changed``.
    """
    if entry is None or not entry.fingerprint or entry.fingerprint == dataflow.fingerprint:
        return
    changed = _changed(dataflow, entry, log)
    said = (
        f": {'; '.join(map(str, changed))}"
        if changed
        else f" (fingerprint {entry.fingerprint}, now {dataflow.fingerprint})"
    )
    name = dataflow.name
    accept = (
        ()
        if any(change.changes_form for change in changed)
        else (f"strandline state accept {name} --reason TEXT",)
    )
    raise NeedsDecision(
        f"dataflow {dataflow.name}: its definition differs from the one that entry {entry.number} was made with{said}."
        " Agree to the change if the watermark still holds, or start anew",
        code="definition_changed",
        choices=(
            *accept,
            f"strandline state reset {name} --reason TEXT",
            f"strandline state reset {name} --replace --reason TEXT",
        ),
    )


def other_place(dataflow: Dataflow, entry: Entry, log: WatermarkLog) -> bool:
    """Whether the definition reads another place than the one that an entry was made with, as far as the log still tells."""
    return any(change.part == "source" for change in _changed(dataflow, entry, log))


def _changed(dataflow: Dataflow, entry: Entry, log: WatermarkLog) -> list[Change]:
    """Return each part that differs; nothing if no intent of that definition is left."""
    numbers = (one.number for one in log.history(dataflow.name, _LOOKED_AT))
    intents = (log.intent(dataflow.name, number) for number in numbers)
    made_with = next((one for one in intents if one and one.fingerprint == entry.fingerprint), None)
    if made_with is None:
        return []
    return changes(made_with.definition, dataflow.identity())


def check_intent(dataflow: Dataflow, intent: Intent) -> None:
    """An unfinished intent is finished with its own definition or not at all.

    Raises:
        NeedsDecision: code ``intent_changed``.
    """
    now = definition_of(dataflow)
    if intent.definition == now:
        return
    changed = sorted(key for key in {*intent.definition, *now} if intent.definition.get(key) != now.get(key))
    raise NeedsDecision(
        f"dataflow {dataflow.name}: slice {intent.number} was begun and not finished, and the definition has changed since ({', '.join(changed)})."
        " Give the slice up, so that its work is planned anew under the definition as it is now; or put the old definition back and run,"
        " which finishes it",
        code="intent_changed",
        choices=(f"strandline state accept {dataflow.name} --reason TEXT", f"strandline run {dataflow.name}"),
    )


def definition_of(dataflow: Dataflow) -> dict[str, object]:
    """What a write depends on; holds no secret, since connections are only named."""
    replacing = {"merge_keys": list(dataflow.target.merge_keys)} if dataflow.kind == "window" else {}
    return {
        **replacing,
        **dataflow.identity(),
        **dataflow.source.reading(),
        "load": dataflow.target.load,
        "partition_by": list(dataflow.target.partition_by),
        "origin_columns": dataflow.target.origin_columns,
        "transform": dataflow.transform,
        "sql": dataflow.sql,
    }


def check_table(
    dataflow: Dataflow, entry: Entry | None, target: Target, intent: Intent | None = None
) -> TableHead:
    """Raise if state and table do not belong together; every path to a write, and every decision that builds on the state, passes here.

    Args:
        dataflow: the definition.
        entry: the newest entry.
        target: the table.
        intent: the open one of the next number, whose commit, or give-up, may be in the table.

    Returns:
        what the table's log says.

    Raises:
        NeedsDecision: ``state_lost``: a table with data, of which no entry knows; ``table_missing``, ``table_behind`` and
            ``table_replaced``: the table does not have the recorded commit, or no longer its rows, or is one that came since; ``foreign_tag``: somebody else wrote
            under this dataflow's tag; ``tags_expire``: the table forgets tags.
    """
    stops = _Stops(dataflow, entry)
    if entry is None or entry.table is None:
        begun = TableCommit(intent.table_version) if intent and intent.table_version is not None else None
        head = target.head(begun, intent.app_id if intent else None)
        if head.newest is not None and not _has_ended(head, intent) and target.has_data():
            raise stops.lost(head)
    else:
        head = target.head(recorded(entry), entry.app_id)
        _check_recorded(entry, head, stops, intent)
        if _is_unseen(entry, head, intent) and target.has_data():
            raise stops.unseen(head)
    if head.tags_expire:
        raise stops.expiring(head)
    return head


def moved(dataflow: Dataflow, entry: Entry | None) -> bool:
    """Whether the definition names another table than the one that an entry knows."""
    return entry is not None and entry.table is not None and entry.table != dataflow.table


def expiring(dataflow: Dataflow, head: TableHead) -> NeedsDecision:
    """The error for a table that forgets tags."""
    return _Stops(dataflow, None).expiring(head)


def in_table(dataflow: Dataflow, commit: TableCommit) -> dict[str, Any]:
    """What an entry says of the commit that its table must have from now on; :func:`recorded` reads it back."""
    return {
        "table": dataflow.table,
        "table_version": commit.version,
        "table_commit": commit.id,
        "table_number": commit.number,
        "table_file": commit.file,
    }


def recorded(entry: Entry) -> TableCommit:
    """The commit that the table of an entry must have."""
    return TableCommit(entry.table_version, entry.table_commit, entry.table_number, entry.table_file)


def claimed(entry: Entry | None) -> TableCommit | None:
    """The commit that the table must go back to, for all rows that count as loaded to be in it; None where none count."""
    if entry is None or entry.table_version is None or nothing_loaded(entry.kind, entry.state()):
        return None  # after a reset nothing is said of the rows: the table may be dropped before or after, and is then made anew
    return recorded(entry)


def _check_recorded(entry: Entry, head: TableHead, stops: _Stops, intent: Intent | None) -> None:
    loaded = claimed(entry) is not None
    if head.newest is None:
        if loaded:
            raise stops.missing()
        return
    if loaded and not head.kept:
        raise stops.replaced(head)
    if loaded and head.undone:
        raise stops.undone(head)
    if loaded and head.rewritten:
        raise stops.rewritten()
    # Of commits that were cleaned from the table's log only the tag is left: it must be the one that was recorded.
    number = intent.number if intent else entry.table_number if head.cleaned else entry.number
    strangers = [one for one in head.landed if not (intent and _finishes(one, intent))]
    # A reset that saw another table did not decide about this one; but if it empties the table, it empties any.
    if (strangers and not (entry.replace_table and not head.kept)) or head.tag > number:
        raise stops.foreign(head)


def _is_unseen(entry: Entry, head: TableHead, intent: Intent | None) -> bool:
    """Whether there is a table that nobody has decided about: the entry counts no rows as loaded, and saw none, or another one."""
    if claimed(entry) is not None or head.newest is None or entry.replace_table:
        return False
    return not _has_ended(head, intent) and (entry.table_version is None or not head.kept)


def _has_ended(head: TableHead, intent: Intent | None) -> bool:
    """Whether a commit of the table ends the open intent."""
    return intent is not None and _finishes(head.find(intent.number), intent)


def _finishes(landed: Landed | None, intent: Intent) -> bool:
    """Whether a commit ends an intent: its write, or a give-up of its number."""
    return (
        landed is not None
        and landed.number == intent.number
        and (landed.owner == intent.id or landed.gives_up)
    )


class _Stops:
    """The errors that stop a run over a table, each with commands of which one leads on whatever became of the table."""

    def __init__(self, dataflow: Dataflow, entry: Entry | None) -> None:
        self._name, self._table = dataflow.name, dataflow.table
        self._entry = entry
        name = dataflow.name
        self._adopt = f"strandline state adopt {name} --reason TEXT"
        self._reset = f"strandline state reset {name} --reason TEXT"
        self._empty = f"strandline state reset {name} --replace --reason TEXT"
        self._import = f"strandline state import {name} FILE --reason TEXT"

    def lost(self, head: TableHead) -> NeedsDecision:
        said = "has no entry" if self._entry is None else "has no entry that knows the table"
        return self._stop(
            "state_lost",
            f"table {self._table} has data (version {head.version}), but the watermark log {said}: the state was lost,"
            " or the table belongs to something else. Loading from the start would double its rows. Take the state that the table tells,"
            " import an export of the state, empty the table, use another target.table, or decide that everything is loaded into it",
            (self._adopt, self._import, self._empty, self._reset),
        )

    def missing(self) -> NeedsDecision:
        return self._stop(
            "table_missing",
            f"{self._says()}, and there is no such table. Restore the table, or reset the state, so that everything is loaded again",
            (self._reset,),
        )

    def replaced(self, head: TableHead) -> NeedsDecision:
        version = self._entry.table_version if self._entry else None
        if version is not None and head.version is not None and head.version < version:
            return self._behind(
                f"the table is at version {head.version}: it is older than the state (restored from a backup?)"
            )
        return self._stop(
            "table_replaced",
            f"{self._says()}, and that version is another commit now (the newest is {head.version}): the table was made again, copied or restored."
            " Put the table back, take the state that this one tells, or empty it and start again",
            (self._adopt, self._empty, self._reset),
        )

    def unseen(self, head: TableHead) -> NeedsDecision:
        made = f"entry {self._entry.number} ({self._entry.why})" if self._entry else "the state"
        return self._stop(
            "table_replaced",
            f"table {self._table} has data (version {head.version}), and is not what {made} was made with: it came since. Loading everything into"
            " it could double rows. Take the state that it tells, empty it, or decide that everything is loaded into it",
            (self._adopt, self._empty, self._reset),
        )

    def undone(self, head: TableHead) -> NeedsDecision:
        return self._behind(f"somebody else has replaced all rows of the table since: {head.undone}")

    def rewritten(self) -> NeedsDecision:
        return self._behind(
            "that commit was cleaned from the table's log, and the file that it added is in the table no more: the table was restored, or its"
            " files were rewritten, as OPTIMIZE does, and nothing is left that tells which",
            lacks="may lack",
        )

    def _behind(self, how: str, lacks: str = "lacks") -> NeedsDecision:
        return self._stop(
            "table_behind",
            f"{self._says()}, but {how}. It {lacks} rows that count as loaded. Put the newer table back, take the state that this one tells, or"
            " empty it and start again",
            (self._adopt, self._empty),
        )

    def foreign(self, head: TableHead) -> NeedsDecision:
        number = self._entry.number if self._entry else 0
        holds = max((one.number for one in head.landed), default=head.tag)
        return self._stop(
            "foreign_tag",
            f"table {self._table} holds number {holds} under this dataflow's tag in a commit that the watermark log does not know; the newest entry"
            f" is {number}. The state is older than the table (restored from a backup?), or another project writes with a copy of it. If the"
            " table is right, take the state that it tells",
            (self._adopt, self._empty),
        )

    def expiring(self, head: TableHead) -> NeedsDecision:
        return self._stop(
            "tags_expire",
            f"table {self._table} has the property {head.tags_expire}, by which it forgets the tags that keep a slice from being written twice."
            " Remove the property",
            (f"ALTER TABLE {self._table} UNSET TBLPROPERTIES ('{head.tags_expire}')",),
        )

    def _says(self) -> str:
        entry = self._entry
        return f"entry {entry.number if entry else 0} says that the rows are in version {entry.table_version if entry else None} of table {self._table}"

    def _stop(self, code: str, said: str, choices: tuple[str, ...]) -> NeedsDecision:
        return NeedsDecision(f"dataflow {self._name}: {said}", code=code, choices=choices)
