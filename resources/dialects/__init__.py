"""Dialects of SQL, one module per dialect: quoted names, typed literals, comparisons.

``resources.dialects.predicates`` writes conditions with them.
"""

from __future__ import annotations

from resources.connections.jdbc import System
from resources.dialects.dialect import Dialect
from resources.dialects.mariadb import MARIADB
from resources.dialects.postgresql import POSTGRESQL

DIALECTS: dict[System, Dialect] = {"postgresql": POSTGRESQL, "mariadb": MARIADB}

__all__ = ["DIALECTS", "Dialect"]
