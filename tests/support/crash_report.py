"""The page docs/explanation/crash-matrix.md, each part of which another test writes."""

from __future__ import annotations

import re

from tests.support.feed import CHECKOUT

PAGE = CHECKOUT / "docs/explanation/crash-matrix.md"


def write_part(text: str) -> None:
    """Put a part, which begins with its heading of the first level, in the place of the one with this heading, or at the end."""
    heading = text.partition("\n")[0]
    parts = [part.rstrip() for part in re.split(r"(?m)^(?=# )", PAGE.read_text()) if part.strip()]
    at = next((at for at, part in enumerate(parts) if part.partition("\n")[0] == heading), len(parts))
    parts[at : at + 1] = [text.rstrip()]
    PAGE.write_text("\n\n".join(parts) + "\n")
