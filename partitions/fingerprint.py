"""Fingerprint the parts of a dataflow that its state depends on (docs/reference/state.md).

Runs notice by it when they change. ``partitions.fingerprint_changes`` says what each change means for the
state.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from partitions.dataflow import Dataflow
    from partitions.target import Target


def identity(dataflow: Dataflow) -> dict[str, Any]:
    """Return the parts of a definition that the state depends on; changing one needs a decision."""
    by_watermark = dataflow.watermark.identity()
    operators = [operator.model_dump(mode="json") for operator in dataflow.operators]
    return {
        "kind": dataflow.kind,
        "source": dataflow.source.identity() | by_watermark.pop("source", {}),
        **by_watermark,
        **({"operators": operators} if operators else {}),
        "target": {"table": dataflow.table, "format": dataflow.target.format}
        | ({"shared": True} if dataflow.target.shared else {})
        | ({"load": "scd2"} if dataflow.target.load == "scd2" else {})
        | _history(dataflow.target),
    }


def _history(target: Target) -> dict[str, Any]:
    """Return what the versions of a table depend on, as far as the definition says it."""
    names = target.names.model_dump(exclude_defaults=True)
    return {
        **({"names": names} if names else {}),
        **({"open_end": target.open_end} if target.open_end else {}),
    }


def fingerprint(dataflow: Dataflow) -> str:
    """Return a short hash of :func:`identity`."""
    return short_hash(identity(dataflow))


def short_hash(definition: Mapping[str, Any]) -> str:
    """Return the first 16 hexadecimal digits of the SHA-256 of a mapping's JSON, whatever its order."""
    text = json.dumps(definition, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]
