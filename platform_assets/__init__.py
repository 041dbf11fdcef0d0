"""The presentation: all that Dagster shows and runs, and the command line.

Belongs here: presenting. Project files become assets, sensors, checks and jobs; people and scripts get a
command line. Does not belong here: deciding what is due (``partitions``) and touching the data
(``resources``). This layer imports the two below it; they never import this one.
"""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import partitions
import resources


def _folder(module: ModuleType) -> Path:
    """Return the folder that holds a package or a plain module."""
    places = list(getattr(module, "__path__", [])) or [module.__file__ or ""]
    return Path(places[0]).resolve().parent


def _guard(*neighbours: ModuleType) -> None:
    """Raise if a neighbour is another project's package.

    Two unrelated packages named ``resources`` and ``partitions`` exist on the public index. Imported by
    accident they fail much later, with an error that blames Strandline's code.

    Raises:
        ImportError: if a neighbour does not lie beside this package.
    """
    home = Path(__file__).resolve().parent.parent
    for module in neighbours:
        folder = _folder(module)
        if folder != home:
            raise ImportError(
                f"expected the package {module.__name__!r} beside platform_assets in {home}, found another"
                f" of that name in {folder}. Run from the project's folder (Dagster: working_directory: .), or"
                f" remove the other one: pip uninstall {module.__name__}"
            )


_guard(partitions, resources)
