"""What must be true before a run may write; each breach needs an operator's decision (spec 02, State-loss guard; Fingerprint)."""

from __future__ import annotations

from partitions.dataflow import Dataflow
from partitions.errors import NeedsDecision
from partitions.watermark import is_empty
from resources.watermarks.entry import Entry, Intent
from resources.writers.target import TableHead, Target


def check_definition(dataflow: Dataflow, entry: Entry | None) -> None:
    """A changed definition is never taken up silently: it would read again, or skip.

    Raises:
        NeedsDecision: code ``definition_changed``.
    """
    if entry is None or not entry.fingerprint or entry.fingerprint == dataflow.fingerprint:
        return
    raise NeedsDecision(
        f"dataflow {dataflow.name}: its definition differs from the one that entry {entry.number} was made with (fingerprint {entry.fingerprint},"
        f" now {dataflow.fingerprint}). Source path, connection, extensions, filter template, scope, tracking, table and format decide what the watermark means,"
        " so it may now stand for other files. Agree to the change if the watermark still holds, or start anew",
        code="definition_changed",
        choices=(
            f"strandline state accept {dataflow.name} --reason TEXT",
            f"strandline state reset {dataflow.name} --reason TEXT",
        ),
    )


def check_intent(dataflow: Dataflow, intent: Intent) -> None:
    """An unfinished intent is finished with its own definition or not at all.

    Raises:
        NeedsDecision: code ``intent_changed``.
    """
    if intent.definition == definition_of(dataflow):
        return
    changed = sorted(
        key for key in intent.definition if intent.definition[key] != definition_of(dataflow).get(key)
    )
    raise NeedsDecision(
        f"dataflow {dataflow.name}: slice {intent.number} was begun and not finished, and the definition has changed since ({', '.join(changed)})."
        " Give the slice up, so that its files are loaded anew under the definition as it is now; or put the old definition back and run,"
        " which finishes it",
        code="intent_changed",
        choices=(f"strandline state accept {dataflow.name} --reason TEXT", f"strandline run {dataflow.name}"),
    )


def definition_of(dataflow: Dataflow) -> dict[str, object]:
    """What a write depends on; holds no secret, since connections are only named."""
    return {
        **dataflow.identity(),
        "format": dataflow.source.format,
        "schema": dataflow.source.schema_,
        "options": {key: dataflow.source.options[key] for key in sorted(dataflow.source.options)},
        "load": dataflow.target.load,
        "partition_by": list(dataflow.target.partition_by),
        "origin_columns": dataflow.target.origin_columns,
        "transform": dataflow.transform,
        "sql": dataflow.sql,
    }


def check_table(dataflow: Dataflow, entry: Entry | None, target: Target) -> TableHead:
    """State and table must belong together.

    Raises:
        NeedsDecision: ``state_lost``: rows, but no entry; ``table_missing`` and ``table_behind``: an entry, but no such version;
            ``foreign_tag``: somebody else wrote under our tag.
    """
    name, head = dataflow.name, target.head(entry.table_version if entry else None)
    adopt, reset = (f"strandline state {verb} {name} --reason TEXT" for verb in ("adopt", "reset"))
    empty = f"strandline state reset {name} --replace --reason TEXT"
    if entry is None:
        if head.version is not None and (head.tags or head.rows):
            raise NeedsDecision(
                f"dataflow {name}: table {dataflow.table} has data (version {head.version}), but the watermark log has no entry: the state was lost,"
                " or the table belongs to something else. Loading from the start would double its rows. Take the state that the table tells,"
                " import an export of it, empty the table, use another target.table, or decide that everything shall be loaded into it",
                code="state_lost",
                choices=(adopt, f"strandline state import {name} FILE --reason TEXT", empty, reset),
            )
        return head
    if entry.table_version is None:
        return head
    # After a reset nothing is said of the table: it may be dropped before or after, and is then made anew.
    loaded = not is_empty(entry.state())
    if head.version is None and loaded:
        raise NeedsDecision(
            f"dataflow {name}: entry {entry.number} says that the rows are in version {entry.table_version} of table {dataflow.table}, and"
            " there is no such table. Restore the table, or start anew",
            code="table_missing",
            choices=(reset,),
        )
    if head.version is not None and head.version < entry.table_version and loaded:
        raise NeedsDecision(
            f"dataflow {name}: table {dataflow.table} is at version {head.version}, and entry {entry.number} was committed as version"
            f" {entry.table_version}: the table is older than the state (restored from a backup?), and lacks rows that count as loaded. Restore the"
            " newer table, take the state that this one tells, or empty it and start anew",
            code="table_behind",
            choices=(adopt, empty),
        )
    if head.tags.get(entry.app_id, 0) > entry.number:
        raise NeedsDecision(
            f"dataflow {name}: table {dataflow.table} holds number {head.tags[entry.app_id]} under this dataflow's tag, and the newest entry is"
            f" {entry.number}: the state is older than the table (restored from a backup?), or another project writes with a copy of it. Where the"
            " table is right, take the state that it tells",
            code="foreign_tag",
            choices=(adopt, empty),
        )
    return head
