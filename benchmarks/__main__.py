"""Run the named measurements, or all: ``python -m benchmarks [NAME…]``.

``python -m benchmarks soak [OPTION…]`` is a proof with its own options; it measures nothing and is not among all measurements.
"""

from __future__ import annotations

import sys
from importlib import import_module

NAMES = (
    "discovery",
    "idle",
    "bulk",
    "tick",
    "freshness",
    "many",
    "log",
    "sweep",
    "ranges",
    "window_plan",
    "loading",
    "columns",
    "loads",
    "api_pages",
    "care",
    "replay",
    "streams",
    "cluster",
)
SOAK = "soak"


def main(names: list[str]) -> int:
    """Run and report; refuse an unknown name."""
    if names[:1] == [SOAK]:
        from benchmarks.soak.soak import main as soak

        return soak(names[1:])
    unknown = [name for name in names if name not in NAMES]
    if unknown:
        print(f"no benchmark {unknown[0]!r}: expected some of {', '.join(NAMES)}, or {SOAK}", file=sys.stderr)
        return 2
    for name in names or NAMES:
        import_module(f"benchmarks.{name}").run()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
