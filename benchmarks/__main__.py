"""``python -m benchmarks [NAME…]``: runs the named measurements, or all."""

from __future__ import annotations

import sys
from importlib import import_module

NAMES = ("discovery", "idle", "bulk", "tick", "freshness", "log", "sweep", "ranges", "window_plan", "loading")


def main(names: list[str]) -> int:
    """Run and report; an unknown name is refused."""
    unknown = [name for name in names if name not in NAMES]
    if unknown:
        print(f"no benchmark {unknown[0]!r}: expected some of {', '.join(NAMES)}", file=sys.stderr)
        return 2
    for name in names or NAMES:
        import_module(f"benchmarks.{name}").run()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
