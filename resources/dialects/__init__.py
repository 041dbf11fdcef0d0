"""Dialects of SQL: quoted names, typed literals. One module each; what they say is decided by ``partitions.predicate``."""

from __future__ import annotations

from resources.dialects.dialect import Dialect
from resources.dialects.mariadb import MARIADB
from resources.dialects.postgresql import POSTGRESQL
from resources.jdbc import System

DIALECTS: dict[System, Dialect] = {"postgresql": POSTGRESQL, "mariadb": MARIADB}

__all__ = ["DIALECTS", "Dialect"]
