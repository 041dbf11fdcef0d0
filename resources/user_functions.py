"""User functions that a definition names as ``package.module:name``."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from partitions.errors import ConfigurationError
from resources.hiding import without_secrets
from resources.user_modules import DATAFLOWS, import_module, own_modules

USERS_ERRORS = (Exception, SystemExit)
"""Errors that user code may raise. ``sys.exit`` in a script that became a function must not end a run silently with its own exit code."""

_ROOT = Path(__file__).parent.parent
_PRODUCT = (*(f"{_ROOT / name}/" for name in ("partitions", "resources", "platform_assets")), "<frozen")
_OWN_PROJECT = f"{_ROOT / 'platform_assets' / DATAFLOWS}/"


@dataclass(frozen=True)
class FunctionConnection:
    """The connection that a user function reaches its source with.

    Attributes:
        settings: including secrets; never shown.
    """

    settings: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class UserCode:
    """The code and the settings of a source that is a user function.

    Attributes:
        folder: the project's folder, in which its module may lie.
        settings: the settings of its connection, including secrets; never shown.
    """

    folder: Path
    settings: Mapping[str, str] = field(default_factory=dict, repr=False)

    def hide(self, text: str) -> str:
        """Return a text with each setting's value of four letters or more replaced by the setting's name."""
        for name, value in self.settings.items():
            text = without_secrets(text, [value], f"<{name}>")
        return text

    def __str__(self) -> str:
        """Return the folder."""
        return str(self.folder)


def user_function(key: str, name: str, folder: Path) -> Callable[..., Any]:
    """Import a user function and return it.

    Modules of the checkout and installed ones come before those of the project's folder.

    Args:
        key: the definition's key.
        name: ``package.module:name``.
        folder: the project's folder.

    Raises:
        ConfigurationError: if there is no such module or function, the module cannot be imported, or the
            name is no function's.
    """
    module, _, attribute = name.partition(":")
    try:
        function = getattr(import_module(module, folder), attribute)
    except (ImportError, AttributeError) as error:
        raise ConfigurationError(
            f"{key}: expected a function at {name}, found none: {error}. Correct the name, or define the function there"
        ) from error
    except USERS_ERRORS as error:
        raise ConfigurationError(
            f"{key}: expected a function at {name}; its module fails: {user_error_line(error)}"
        ) from error
    if not callable(function):
        raise ConfigurationError(
            f"{key}: expected a function at {name}, found {type(function).__name__} {attribute}"
        )
    checked: Callable[..., Any] = function
    return checked


def ship_modules(folder: Path) -> None:
    """Have Spark send the project's own modules to its Python workers by value.

    The workers cannot import them. It covers modules that are imported by now.

    Args:
        folder: the project's folder.
    """
    from pyspark import cloudpickle

    for _, module in own_modules(folder.resolve()):
        cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]


def user_error_line(error: BaseException) -> str:
    """Return an error with the file and line of the user's code, or of a library below it, that raised it."""
    message = f"{type(error).__name__}: {error}".rstrip(": ")
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if not _is_product_code(frame.filename)]
    users = [frame for frame in own if "site-packages" not in frame.filename] or own
    return f"{message} ({users[-1].filename}:{users[-1].lineno})" if users else message


def _is_product_code(file: str) -> bool:
    return file.startswith(_PRODUCT) and not file.startswith(_OWN_PROJECT)
