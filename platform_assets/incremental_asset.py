"""``@incremental_asset``: a function of the user as a dataflow.

See docs/how-to/incremental-assets.md. The project reads it from a file of ``dataflows`` (:mod:`platform_assets.project.python_file`). Its rows come
through the same source as those of ``source: {type: python}``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import update_wrapper
from inspect import getframeinfo, isasyncgenfunction, iscoroutinefunction, isfunction
from types import FrameType
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar, Unpack

from partitions.column.predicates import ColumnRange
from partitions.errors import ConfigurationError
from platform_assets.asset_keys import IncrementalAssetKeys
from resources.sources.python.request import Request

if TYPE_CHECKING:
    from resources.sources.python.yielded import Rows

RowsT = TypeVar("RowsT", bound="Rows")
"""What the function returns: a type checker refuses what holds no rows, such as None, a text or a coroutine."""


class CallPosition(NamedTuple):
    """Where a call stands in a file: lines count from 1, columns in bytes from 0; None if unknown."""

    file: str
    line: int | None
    end_line: int | None
    column: int | None
    end_column: int | None

    @classmethod
    def of(cls, frame: FrameType) -> CallPosition:
        """Return the position of the call that a frame is making."""
        info = getframeinfo(frame, context=0)
        positions = info.positions
        if positions is None:
            return cls(frame.f_code.co_filename, info.lineno, None, None, None)
        return cls(
            frame.f_code.co_filename,
            positions.lineno,
            positions.end_lineno,
            positions.col_offset,
            positions.end_col_offset,
        )


@dataclass(frozen=True)
class AssetDefinition:
    """What the decorator was given.

    Attributes:
        function: the user's function.
        keys: the keyword arguments, as they were written.
        call: the call of the decorator.
    """

    function: Callable[[Request], Any]
    keys: Mapping[str, Any]
    call: CallPosition

    @property
    def name(self) -> str:
        """The dataflow's name."""
        return str(self.keys.get("name", self.function.__name__))


class IncrementalAsset(Generic[RowsT]):
    """A function whose rows a dataflow loads; calling it calls the function.

    Attributes:
        definition: what the decorator was given, for the project that loads it.
    """

    def __init__(
        self, function: Callable[[Request], RowsT], keys: Mapping[str, Any], call: CallPosition
    ) -> None:
        """Wrap a function."""
        self.definition = AssetDefinition(function, keys, call)
        self._function = function
        update_wrapper(self, function)

    def __call__(self, request: Request) -> RowsT:
        """Return what the function returns for a request; nothing is saved."""
        return self._function(request)

    def request(
        self,
        *,
        lower: object = None,
        upper: object = None,
        bounds: Mapping[str, tuple[object, object]] | None = None,
        start: Any = None,
        end: Any = None,
        unit: Mapping[str, Any] | None = None,
        params: Mapping[str, Any] | None = None,
        connection: Mapping[str, str] | None = None,
    ) -> Request:
        """Return a request as a run makes it, for tests of the function.

        Args:
            lower: the lower bound of the watermark's only column, exclusive; None: from the beginning.
            upper: its upper bound, inclusive; None: no upper bound.
            bounds: lower and upper bound by column, of a watermark of several columns.
            start: the start of a window, inclusive, with a zone.
            end: the end of the window, exclusive, with a zone.
            unit: the unit, names to values.
            params: replaces the definition's ``params``.
            connection: the settings of the connection.

        Raises:
            ConfigurationError: there is no watermark of one column, and ``lower`` or ``upper`` is set.
        """
        if lower is not None or upper is not None:
            bounds = {self._only_column(): (lower, upper)}
        own_params = self.definition.keys.get("params", {}) if params is None else params
        return Request(
            self.definition.name,
            {column: ColumnRange(column, ends[0], ends[1]) for column, ends in (bounds or {}).items()},
            start,
            end,
            dict(unit or {}),
            {name: list(value) if isinstance(value, tuple) else value for name, value in own_params.items()},
            dict(connection or {}),
        )

    def _only_column(self) -> str:
        watermark = self.definition.keys.get("watermark")
        columns: Sequence[str] = watermark.get("columns", ()) if isinstance(watermark, Mapping) else ()
        if len(columns) != 1:
            raise ConfigurationError(
                f"{self.definition.name}: lower and upper are bounds of a watermark of one column, found"
                f" {', '.join(columns) or 'no column'}. Use bounds={{column: (lower, upper)}}, or start and end"
            )
        return str(columns[0])


def incremental_asset(
    **keys: Unpack[IncrementalAssetKeys],
) -> Callable[[Callable[[Request], RowsT]], IncrementalAsset[RowsT]]:
    """Make a dataflow of the decorated function, which returns or yields the rows of a request.

    The file must lie in the project's ``dataflows`` folder, or a file there must import the function.
    ``strandline validate`` checks the keys; this call checks nothing but the function.

    Args:
        keys: those of a dataflow's YAML file, without ``source``, whose keys ``schema``, ``highest``,
            ``params``, ``connection``, ``window_column`` and ``unit_columns`` stand beside the others.
            ``name`` and ``description`` are by default those of the function.

    Raises:
        TypeError: what is decorated is no function, or an async one.
    """
    call = CallPosition.of(sys._getframe(1))

    def decorate(function: Callable[[Request], RowsT]) -> IncrementalAsset[RowsT]:
        if not isfunction(function):
            raise TypeError(f"incremental_asset: expected a function, found {type(function).__name__}")
        if iscoroutinefunction(function) or isasyncgenfunction(function):
            raise TypeError(
                f"incremental_asset: expected a plain function, found async def {function.__name__}. Nothing awaits"
                " it: call asyncio.run in a plain one"
            )
        return IncrementalAsset(function, dict(keys), call)

    return decorate
