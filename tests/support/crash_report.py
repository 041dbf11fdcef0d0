"""The page docs/explanation/crash-matrix.md; several tests write a part of it each."""

from __future__ import annotations

import re

from tests.support.feed import CHECKOUT

PAGE = CHECKOUT / "docs/explanation/crash-matrix.md"


def write_part(text: str) -> None:
    """Replace the part with the same first heading, or append it."""
    heading = text.partition("\n")[0]
    parts = [part.rstrip() for part in re.split(r"(?m)^(?=# )", PAGE.read_text()) if part.strip()]
    at = next((at for at, part in enumerate(parts) if part.partition("\n")[0] == heading), len(parts))
    parts[at : at + 1] = [text.rstrip()]
    PAGE.write_text("\n\n".join(parts) + "\n")
