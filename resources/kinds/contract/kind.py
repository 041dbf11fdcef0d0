"""A kind of watermark, bound to a dataflow's source: a value that names its parts.

Callers use the part that they need. Optional abilities are protocols beside the part's contract, checked
by ``isinstance``. The rules for operators' decisions are in :mod:`resources.kinds.contract.decisions`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic

from resources.kinds.contract.bad_parts import BadParts
from resources.kinds.contract.planning import Planning
from resources.kinds.contract.reading import Reading
from resources.kinds.contract.slices import SliceT
from resources.kinds.contract.stored_slices import StoredSlices
from resources.kinds.contract.writing import Writing


@dataclass(frozen=True)
class Kind(Generic[SliceT]):
    """The parts of one dataflow's kind, built by the kind's ``opening.py``.

    Attributes:
        planning: decides which slices are due.
        stored_slices: stores slices with their intents.
        reading: provides the schema, a slice's exact input and its rows.
        writing: decides what the commit of a slice does.
        bad_parts: finds what cannot be read, and cuts it out.
    """

    planning: Planning[SliceT]
    stored_slices: StoredSlices[SliceT]
    reading: Reading[SliceT]
    writing: Writing[SliceT]
    bad_parts: BadParts[SliceT]
