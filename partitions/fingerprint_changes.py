"""What a change of a dataflow's identity means for its state (docs/reference/state.md).

The identity is what the state depends on (``Dataflow.identity``). A run stops if it has changed; the message says, part by part,
what becomes of the watermark.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

MEANINGS = {
    "kind": "the watermark means something else altogether",
    "source": "what the watermark says is of the old place: whatever lies at or below it in the new one counts as loaded",
    "source.query": "the watermark still holds if rows of the same times and units come out of it",
    "source.from": "only the first run of a stream looks at it: the watermark still holds",
    "source.window_column": "other rows belong to the windows that were loaded",
    "source.unit_columns": "other rows belong to the units that were loaded",
    "columns": "the stored values are of other columns: it cannot be taken over, only reset",
    "zone": "times without a zone, and days, mean other instants",
    "extensions": "files with a new ending at or below the watermark count as late, not as new",
    "prefix_template": "only a cold start looks at it: the watermark still holds",
    "scope": "the watermark has another form: it cannot be taken over, only reset",
    "tracking": "what was ingested so far is known either way: the watermark still holds",
    "time": "the time dimension: under another name the watermark still holds; if there was none, all windows are new",
    "units": "units with other names are new: they are read from the start, and what was loaded of the old ones stays in the table",
    "from": "windows are cut from another instant on: those that start where an old one started keep what is loaded, all others are read anew",
    "window": "windows are cut otherwise: those that start where an old one started keep what is loaded, all others are read anew",
    "timezone": "days are another zone's: windows that start where an old one started keep what is loaded, all others are read anew;"
    " times without a zone mean other instants",
    "engine": "the other engine keeps another state: it cannot be taken over, only reset",
    "event_time": "the watermarks are of another column: they cannot be taken over, only reset",
    "split": "the watermarks are of other splits: they cannot be taken over, only reset",
    "operators": "what the operators remember is of others: it cannot be taken over, only reset",
    "policy": "Spark's checkpoint keeps the policy that it was begun with",
    "output_mode": "Spark's checkpoint keeps the output mode that it was begun with",
    "source.sources": "Spark's checkpoint knows its sources by their order, and what it has read of each",
    "target": "the rows that were loaded so far are in the old table: the new one gets only what lies above the watermark",
    "target.format": "a table keeps its format: another format needs another table",
    "target.load": "a table of versions takes load: scd2 alone, and rows of other loads are no versions",
}
"""By part of the identity. A part of ``source`` or ``target`` without a line of its own means what the whole means."""

_NOTHING_LOADED = "nothing counts as loaded, so the new table gets all that there is"
"""What a change of the target means if the watermark is empty."""

_OF_SPARK = "Spark's checkpoint belongs to the source that it was begun with"
"""What a change of a source without a line of its own means where the watermark is Spark's."""

_OF_FILES = "files of the new place whose paths were loaded count as loaded; others at or below the watermark are late"
"""What a change of a source without a line of its own means where the watermark is a path."""

_FORMS = (
    "target.load",
    "kind",
    "scope",
    "columns",
    "engine",
    "event_time",
    "split",
    "operators",
    "policy",
    "output_mode",
)
"""Parts by which the watermark, or the table, has another form, which no other definition can take over."""

_PARTED = ("source", "target")
"""What is compared part by part."""


class DefinitionChange(NamedTuple):
    """A part of the identity that has changed.

    Attributes:
        name: of the part, such as ``source.path``.
        before: what it was; None: there was no such part.
        now: what it is.
        by_spark: whether the watermark is Spark's own, so that a checkpoint goes with it.
        is_empty: whether the watermark is, so that nothing counts as loaded.
        by_path: whether the watermark is a path, so that the log knows each file that was loaded.
    """

    name: str
    before: Any
    now: Any
    by_spark: bool = False
    is_empty: bool = False
    by_path: bool = False

    @property
    def part(self) -> str:
        """The part of :data:`MEANINGS` that it belongs to."""
        first, _, last = self.name.partition(".")
        known = [part for part in (self.name, last, first) if part in MEANINGS]
        return known[0]

    @property
    def changes_form(self) -> bool:
        """Whether the watermark has another form now, so that it cannot be taken over."""
        return self.name in _FORMS

    @property
    def meaning(self) -> str:
        """What becomes of the watermark."""
        if self.is_empty and self.part == "target" and not self.changes_form:
            return _NOTHING_LOADED
        if self.part == "source" and (self.by_spark or self.by_path):
            return _OF_SPARK if self.by_spark else _OF_FILES
        return MEANINGS[self.part]

    def __str__(self) -> str:
        """What was, what is, and what that means for the state."""
        return f"{self.name} was {_words(self.before)}, is {_words(self.now)} ({self.meaning})"


def _words(value: Any) -> str:
    if isinstance(value, list | tuple) and value and all(isinstance(each, Mapping) for each in value):
        return "; ".join(map(_declared, value))
    if isinstance(value, Mapping) and all(isinstance(each, str) for each in value.values()):
        return ", ".join(f"{name}: {each}" for name, each in value.items()) or "nothing"
    if isinstance(value, list | tuple) and all(isinstance(each, str) for each in value):
        return ", ".join(value) or "nothing"
    return value if isinstance(value, str) else "nothing" if value is None else json.dumps(value)


def _declared(part: Mapping[str, Any]) -> str:
    """Return a part of a list of declarations as a line: its type, and its settings."""
    settings = {name: value for name, value in part.items() if name != "type"}
    kind = str(part.get("type", ""))
    return (
        f"{kind} ({', '.join(f'{name}: {_words(each)}' for name, each in settings.items())})"
        if settings
        else kind
    )


def changes(
    before: Mapping[str, Any], now: Mapping[str, Any], load: str = "another"
) -> list[DefinitionChange]:
    """Return each part of an identity that is another now. What the old table holds is no matter for a new one.

    Args:
        before: the identity that a state was made with; it may hold more, such as how it loaded.
        now: the identity of the definition.
        load: how the definition loads. An identity names ``scd2`` alone.
    """
    then, current, by_spark = _flat(before), _flat(now), now.get("engine") == "structured_streaming"
    named = [*current, *(name for name in then if name not in current and _is_known(name))]
    changed = [name for name in named if then.get(name) != current.get(name)]
    then |= {"target.load": then.get("target.load") or before.get("load", "another")}
    current |= {"target.load": current.get("target.load") or load}
    if "target.table" in changed:
        changed = [name for name in changed if name != "target.load"]
    by_path = now.get("kind") == "path"
    return [
        DefinitionChange(name, then.get(name), current.get(name), by_spark, by_path=by_path)
        for name in changed
    ]


def _is_known(name: str) -> bool:
    """Whether something is a part of an identity; what else was stored beside one is none."""
    return name in MEANINGS or name.partition(".")[0] in _PARTED


def _flat(identity: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parts of source and target by their own names; what else has parts is one value."""
    flat: dict[str, Any] = {}
    for name, value in identity.items():
        if name in _PARTED and isinstance(value, Mapping):
            flat |= {f"{name}.{part}": of_part for part, of_part in value.items()}
        else:
            flat[name] = value
    return flat
