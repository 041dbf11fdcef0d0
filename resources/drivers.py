"""The Python packages that only some projects need: an extra of the installation brings each."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec

from partitions.errors import ConfigurationError

_EXTRAS: Mapping[str, tuple[str, str]] = {
    "psycopg": ("postgres", "PostgreSQL"),
    "pymysql": ("mysql", "MariaDB and MySQL"),
    "python_calamine": ("excel", "Excel and OpenDocument files"),
}
"""By module: the extra that brings it, and what needs it."""


def require_driver(module: str) -> None:
    """Raise if a package is missing, with the command that installs it.

    Args:
        module: its module, one of those that an extra brings.

    Raises:
        ConfigurationError: the package is missing.
    """
    if find_spec(module) is None:
        extra, what = _EXTRAS[module]
        raise ConfigurationError(
            f"{what}: expected the Python package {module.replace('_', '-')}, found none. "
            f"Install it: pip install 'strandline[{extra}]'"
        )
