"""A kind of watermark, bound to the source of a dataflow: a value that names its parts. Whoever needs one talks to the part.

What only some kinds have is a contract of its own beside the part's, asked of the part by type. What operators' decisions need is in
:mod:`resources.kinds.contract.decisions`.
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
    """One dataflow's, opened by the ``opening.py`` of its kind.

    Attributes:
        planning: what is due.
        stored_slices: how slices are kept with their intents.
        reading: the schema, what exactly a slice is read from, and its rows.
        writing: what the commit of a slice does.
        bad_parts: what cannot be read, and what becomes of the rest.
    """

    planning: Planning[SliceT]
    stored_slices: StoredSlices[SliceT]
    reading: Reading[SliceT]
    writing: Writing[SliceT]
    bad_parts: BadParts[SliceT]
