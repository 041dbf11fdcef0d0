"""The code location: Dagster loads ``defs`` from here."""

from platform_assets.build import build_definitions
from platform_assets.project import load_project

defs = build_definitions(load_project())
