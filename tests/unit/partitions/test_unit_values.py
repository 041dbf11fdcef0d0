from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from partitions.unit_values import fit_value

BERLIN = ZoneInfo("Europe/Berlin")
WALL = datetime.fromisoformat("2024-06-01T02:00:00")


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        (None, "whole", None),
        (5, "whole", 5),
        (" 5", "whole", 5),
        (1.5, "whole", 1.5),
        ("1.50", "number", Decimal("1.50")),
        (Decimal("1.5"), "number", Decimal("1.5")),
        ("x", "text", "x"),
        (" x ", "text", " x "),
        (5, "text", "5"),
        (True, "flag", True),
        ("False", "flag", False),
        (date(2024, 6, 1), "day", date(2024, 6, 1)),
        ("2024-06-01", "day", date(2024, 6, 1)),
        (WALL, "local", WALL),
        (datetime(2024, 6, 1, tzinfo=UTC), "local", WALL),
        ("2024-06-01T02:00:00", "local", WALL),
        (datetime(2024, 6, 1, tzinfo=UTC), "instant", datetime(2024, 6, 1, tzinfo=UTC)),
        (WALL, "instant", datetime(2024, 6, 1, tzinfo=UTC)),
        ("2024-06-01T00:00:00Z", "instant", datetime(2024, 6, 1, tzinfo=UTC)),
    ],
)
def test_a_value_becomes_one_of_its_column(value: Any, kind: Any, expected: Any) -> None:
    found = fit_value(value, kind, BERLIN)
    assert (found, type(found)) == (expected, type(expected))


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("x", "whole"),
        ("1.5", "whole"),
        (True, "whole"),
        ("nan", "number"),
        (float("inf"), "number"),
        (1, "flag"),
        ("yes", "flag"),
        (1.5, "text"),
        (True, "text"),
        ("a\x00b", "text"),
        ("\ud800", "text"),
        (WALL, "day"),
        ("2024-13-01", "day"),
        (date(2024, 6, 1), "local"),
        (date(2024, 6, 1), "instant"),
        (5, "instant"),
        ([1], "text"),
    ],
)
def test_a_value_that_cannot_be_one_is_refused(value: Any, kind: Any) -> None:
    with pytest.raises(ValueError, match=r"found|surrogates"):
        fit_value(value, kind, BERLIN)
