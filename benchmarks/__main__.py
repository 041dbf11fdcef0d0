"""``python -m benchmarks [NAME…]``: runs the named measurements, or all. ``python -m benchmarks soak [OPTION…]`` measures nothing, and is never
one of all: it is a proof, with options of its own."""

from __future__ import annotations

import sys
from importlib import import_module

NAMES = ("discovery", "idle", "bulk", "tick", "freshness", "log", "sweep", "ranges", "window_plan", "loading")
SOAK = "soak"


def main(names: list[str]) -> int:
    """Run and report; an unknown name is refused."""
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
