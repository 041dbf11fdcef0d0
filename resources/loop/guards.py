"""What must be true before a run may write; each breach needs an operator's decision (spec 02, State-loss guard; Fingerprint)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from partitions.dataflow import Dataflow
from partitions.errors import NeedsDecision
from resources.watermarks.entry import Entry, Intent
from resources.watermarks.log import WatermarkLog

_LOOKED_AT = 20
"""Entries that are looked through for the definition that the newest was made with."""

_INVALIDATES = {
    "kind": "the watermark means something else altogether",
    "source": "what the watermark says is of the old place: whatever lies at or below it in the new one counts as loaded",
    "source.query": "the watermark still holds where rows of the same times and units come out of it",
    "source.window_column": "other rows belong to the windows that were loaded",
    "source.unit_columns": "other rows belong to the units that were loaded",
    "extensions": "files with a new ending at or below the watermark count as late, not as new",
    "prefix_template": "only a cold start looks at it: the watermark still holds",
    "scope": "the watermark has another form: it cannot be taken over, only reset",
    "tracking": "what was ingested so far is known either way: the watermark still holds",
    "time": "the time dimension: under another name the watermark still holds; where there was none, all windows are new",
    "units": "units with other names are new: they are read from the start, and what was loaded of the old ones stays in the table",
    "from": "windows are cut from another instant on: those that start where an old one started keep what is loaded, all others are read anew",
    "window": "windows are cut otherwise: those that start where an old one started keep what is loaded, all others are read anew",
    "timezone": "days are another zone's: windows that start where an old one started keep what is loaded, all others are read anew;"
    " times without a zone mean other instants",
    "target": "the rows that were loaded so far are in the old table: the new one gets only what lies above the watermark",
}
"""What a change of a part of the identity means for the state (spec 02, Fingerprint)."""

_FORMS = ("kind", "scope")
"""Parts by which a watermark has another form, which no other definition can take over."""

_PARTED = ("source", "target")


def check_definition(dataflow: Dataflow, entry: Entry | None, log: WatermarkLog) -> None:
    """A changed definition is never taken up silently: it would read again, or skip.

    Raises:
        NeedsDecision: code ``definition_changed``.
    """
    if entry is None or not entry.fingerprint or entry.fingerprint == dataflow.fingerprint:
        return
    changed = _changed(dataflow, entry, log)
    said = (
        f": {'; '.join(_told(*one) for one in changed)}"
        if changed
        else f" (fingerprint {entry.fingerprint}, now {dataflow.fingerprint})"
    )
    name = dataflow.name
    accept = (
        ()
        if any(part in _FORMS for part, _, _ in changed)
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
    return any(_part(name) == "source" for name, _, _ in _changed(dataflow, entry, log))


def _told(name: str, before: Any, now: Any) -> str:
    return f"{name} was {json.dumps(before)}, is {json.dumps(now)} ({_INVALIDATES[_part(name)]})"


def _changed(dataflow: Dataflow, entry: Entry, log: WatermarkLog) -> list[tuple[str, Any, Any]]:
    """Each part that differs: its name, what it was and what it is; nothing if no intent of that definition is left."""
    numbers = (one.number for one in log.history(dataflow.name, _LOOKED_AT))
    intents = (log.intent(dataflow.name, number) for number in numbers)
    made_with = next((one for one in intents if one and one.fingerprint == entry.fingerprint), None)
    if made_with is None:
        return []
    before, now = _flat(made_with.definition), _flat(dataflow.identity())
    return [(name, before.get(name), now[name]) for name in now if before.get(name) != now[name]]


def _flat(identity: Mapping[str, Any]) -> dict[str, Any]:
    """The parts of source and target by their own names; what else has parts is one value."""
    flat: dict[str, Any] = {}
    for name, value in identity.items():
        parted = name in _PARTED and isinstance(value, Mapping)
        flat |= {f"{name}.{part}": one for part, one in value.items()} if parted else {name: value}
    return flat


def _part(name: str) -> str:
    first, _, last = name.partition(".")
    return next(one for one in (name, last, first) if one in _INVALIDATES)


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
