"""What Strandline writes into a commit: number, owner and state, in its text or beside the table if the state is long (docs/protocol.md)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from partitions.errors import NeedsDecision
from resources.connections.places import Place
from resources.tables.contract.commits import Tag, Version
from resources.watermarks.blobs import open_blobs

_LONGEST_STATE = 8 * 1024
"""Characters of a state that a commit carries itself."""


def commit_text(place: Place, tag: Tag, state: str, dataflow: str | None = None) -> str:
    """Return the user metadata of a commit, and put the state beside the table if the text cannot hold it.

    Args:
        place: of the table.
        tag: of the commit.
        state: sentinel JSON text of the watermark after it.
        dataflow: whose commit it is, in a table that several share.
    """
    owned = {
        **({"dataflow": dataflow} if dataflow else {}),
        "owner": tag.owner,
        "number": tag.number,
        "gives_up": tag.gives_up,
        "after": {"version": tag.after.version, "id": tag.after.id} if tag.after else None,
        "rewound": tag.rewound,
        **_state(place, tag, state),
    }
    return json.dumps({"strandline": owned})


def committed_by(text: str, writer: str) -> str:
    """Return a commit's user metadata that also says which writer made it, and why the engine did if it did.

    Args:
        text: from :func:`commit_text`.
        writer: for people, such as ``Strandline (deltalake)`` or ``Spark: the table is partitioned``.
    """
    metadata = json.loads(text)["strandline"]
    return json.dumps({"strandline": {**metadata, "committed_by": writer}})


def _state(place: Place, tag: Tag, state: str) -> dict[str, str]:
    if len(state) <= _LONGEST_STATE:
        return {"state": state}
    name, data = f"_strandline/{tag.owner}.json", state.encode()
    open_blobs(place, "table").put(name, data)
    return {"state_object": name, "state_sha256": hashlib.sha256(data).hexdigest()}


def stored_state(place: Place, ours: Mapping[str, Any], version: Version) -> str:
    """Return the state of a commit, from its text or from beside the table.

    Args:
        place: of the table.
        ours: what Strandline has written into the commit's text.
        version: of the commit, for people.

    Raises:
        NeedsDecision: code ``state_object_missing``: it lies beside the table, and is gone or is another one.
    """
    if "state" in ours:
        return str(ours["state"])
    name, wanted = ours.get("state_object"), ours.get("state_sha256")
    data = open_blobs(place, "table").get(str(name)) if name else None
    if data is None or hashlib.sha256(data).hexdigest() != wanted:
        raise NeedsDecision(
            f"table {place}: expected the watermark of version {version} in {name}, found {'nothing' if data is None else 'another one'}."
            " An older commit's would load rows a second time",
            code="state_object_missing",
        )
    return data.decode()
