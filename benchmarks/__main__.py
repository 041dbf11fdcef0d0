"""Runs the named measurements, or all: ``python -m benchmarks [NAME…]``.

``python -m benchmarks soak [OPTION…]`` and ``python -m benchmarks real_files [OPTION…]`` are proofs with
options of their own; they
measure nothing and are not among all measurements. ``python -m benchmarks chain [OPTION…]`` and ``python -m
benchmarks reconcile [OPTION…]`` measure with tables of another size.
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
    "chain",
    "reconcile",
)
SOAK, REAL_FILES, CHAIN, RECONCILE = "soak", "real_files", "chain", "reconcile"


def main(names: list[str]) -> int:
    """Run and report the measurements; refuse an unknown name."""
    if names[:1] == [SOAK]:
        from benchmarks.soak.soak import main as soak

        return soak(names[1:])
    if names[:1] == [REAL_FILES]:
        from benchmarks.real_files.proof import main as real_files

        return real_files(names[1:])
    if names[:1] == [CHAIN]:
        from benchmarks.chain import main as chain

        return chain(names[1:])
    if names[:1] == [RECONCILE]:
        from benchmarks.reconcile import main as reconcile

        return reconcile(names[1:])
    unknown = [name for name in names if name not in NAMES]
    if unknown:
        print(
            f"no benchmark {unknown[0]!r}: expected some of {', '.join(NAMES)}, {SOAK} or {REAL_FILES}",
            file=sys.stderr,
        )
        return 2
    for name in names or NAMES:
        import_module(f"benchmarks.{name}").run()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
