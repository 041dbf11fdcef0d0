"""All resources of one project, with every kind of watermark."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from resources.kinds.registry import KINDS
from resources.platform.opener import Opener


@dataclass(frozen=True)
class Platform(Opener):
    """The resources of one project. Each is opened on first use."""

    kinds: ClassVar = KINDS
