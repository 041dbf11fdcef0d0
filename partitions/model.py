"""What all definitions that users write have in common."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Annotated, ClassVar

from pydantic import BaseModel, BeforeValidator, ConfigDict

_ISO = re.compile(r"P(?!$)(\d+W)?(\d+D)?(T(?=\d)(\d+H)?(\d+M)?(\d+(\.\d+)?S)?)?")


def _iso(value: object) -> object:
    if isinstance(value, timedelta) or (isinstance(value, str) and _ISO.fullmatch(value)):
        return value
    raise ValueError("expected an ISO 8601 duration such as PT2S, PT5M or P30D, not negative")


Duration = Annotated[timedelta, BeforeValidator(_iso)]
"""An ISO 8601 duration such as PT2S or P30D, not negative."""


class Model(BaseModel):
    """Base of what users write: unknown keys are refused, nothing changes afterwards.

    Attributes:
        written_as: the field that a user writes in the place of the whole; None: a mapping of all fields.
    """

    written_as: ClassVar[str | None] = None

    model_config = ConfigDict(extra="forbid", frozen=True)
