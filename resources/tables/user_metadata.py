"""The text that Strandline writes into a commit: number, owner and state.

See docs/explanation/protocol.md.

A long state goes into an object beside the table.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from partitions.errors import NeedsDecision
from resources.connections.places import Place
from resources.tables.contract.commits import Tag, Version
from resources.watermarks.blobs import open_blobs

_LONGEST_STATE = 8 * 1024
"""Longest state, in characters, that a commit's text carries."""


def commit_text(place: Place, tag: Tag, state: str, dataflow: str | None = None) -> str:
    """Return the user metadata of a commit; store a long state beside the table.

    Args:
        place: place of the table.
        tag: tag of the commit.
        state: sentinel JSON text of the watermark after the commit.
        dataflow: dataflow that commits, if several share the table.
    """
    metadata = {
        **({"dataflow": dataflow} if dataflow else {}),
        "owner": tag.owner,
        "number": tag.number,
        "gives_up": tag.gives_up,
        "after": {"version": tag.after.version, "id": tag.after.id} if tag.after else None,
        "rewound": tag.rewound,
        **({"writer": asdict(tag.writer)} if tag.writer else {}),
        **({"deletes": True} if tag.deletes else {}),
        **_state(place, tag, state),
    }
    return json.dumps({"strandline": metadata})


def with_writer(text: str, writer: str) -> str:
    """Add to a commit's user metadata which writer made it, and why if it was the engine.

    Args:
        text: text from :func:`commit_text`.
        writer: description for people, such as ``Strandline (deltalake)`` or ``Spark: the table is
            partitioned``.
    """
    metadata = json.loads(text)["strandline"]
    return json.dumps({"strandline": {**metadata, "committed_by": writer}})


def _state(place: Place, tag: Tag, state: str) -> dict[str, str]:
    if len(state) <= _LONGEST_STATE:
        return {"state": state}
    name, data = f"_strandline/{tag.owner}.json", state.encode()
    open_blobs(place, "table").put(name, data)
    return {"state_object": name, "state_sha256": hashlib.sha256(data).hexdigest()}


def stored_state(place: Place, metadata: Mapping[str, Any], version: Version) -> str:
    """Return the state of a commit, from its text or from the object beside the table.

    Args:
        place: place of the table.
        metadata: Strandline's part of the commit's user metadata.
        version: version of the commit, for messages.

    Raises:
        NeedsDecision: code ``state_object_missing``: the object is missing or holds another state.
    """
    if "state" in metadata:
        return str(metadata["state"])
    name, expected_hash = metadata.get("state_object"), metadata.get("state_sha256")
    data = open_blobs(place, "table").get(str(name)) if name else None
    if data is None or hashlib.sha256(data).hexdigest() != expected_hash:
        raise NeedsDecision(
            f"table {place}: expected the watermark of version {version} in {name}, found "
            f"{'nothing' if data is None else 'another watermark'}. The watermark of an older commit "
            "would load rows a second time. Restore the object; or use `state import`, `state set` or "
            "`state reset --replace`",
            code="state_object_missing",
        )
    return data.decode()
