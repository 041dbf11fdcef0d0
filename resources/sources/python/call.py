"""Calls of a user's function: its batches, and its errors with the line of the user's code.

See docs/reference/python-functions.md, Errors.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, NoReturn

from partitions.errors import SchemaError, SourceError, SourceUnreachable, StrandlineError, shorten_to_line
from partitions.sources import PythonSource
from resources.sources.python.request import Request
from resources.sources.python.yielded import InvalidYield, Raw, raw_batches
from resources.user_functions import USERS_ERRORS, UserCode, user_error_line, user_function

_TRANSIENT_ERRORS = (ConnectionError, TimeoutError)
"""What a function raises if trying again can help."""


class FunctionCaller:
    """Calls the functions of one source."""

    def __init__(self, dataflow: str, source: PythonSource, code: UserCode) -> None:
        """Use a definition; nothing is imported before the first call."""
        self._dataflow, self._source, self._code = dataflow, source, code

    def request(self, **bounds: Any) -> Request:
        """Return a request with these bounds, and the definition's params and connection."""
        params = {name: _tuple_to_list(value) for name, value in self._source.params.items()}
        return Request(self._dataflow, params=params, connection=dict(self._code.settings), **bounds)

    def batches(self, request: Request) -> Generator[Raw]:
        """Yield the batches of the function.

        Raises:
            SourceError: the function fails, or yields something other than rows.
            SourceUnreachable: it raises ConnectionError or TimeoutError.
        """
        function = user_function("source.function", self._source.function, self._code.folder)
        try:
            yield from raw_batches(function(request))
        except GeneratorExit:
            raise
        except USERS_ERRORS as error:
            self._fail(error, self._source.function, request)

    def highest(self, request: Request, column: str) -> Any:
        """Return the result of the function ``highest``.

        Raises:
            SourceError, SourceUnreachable: as for :meth:`batches`.
        """
        name = self._source.highest or ""
        function = user_function("source.highest", name, self._code.folder)
        try:
            return function(request, column)
        except USERS_ERRORS as error:
            self._fail(error, name, request)

    def misfit_error(self, error: SchemaError, request: Request) -> SourceError:
        """Return the error for rows that do not fit the schema."""
        return SourceError(
            self._error_text(
                self._source.function, request, f"{error.message}. Correct the function, or source.schema"
            ),
            code=error.reason,
        )

    def _fail(self, error: BaseException, function: str, request: Request) -> NoReturn:
        if isinstance(error, StrandlineError):
            raise error
        if isinstance(error, InvalidYield):
            raise SourceError(
                self._error_text(function, request, str(error)), code="function_yield"
            ) from None
        error_class = SourceUnreachable if isinstance(error, _TRANSIENT_ERRORS) else SourceError
        problem = f"{shorten_to_line(user_error_line(error)).rstrip(' .')}. Nothing of these rows was saved"
        # The user's own error may quote a secret, and Dagster would show it as the cause.
        raise error_class(self._error_text(function, request, problem), code="function_failed") from None

    def _error_text(self, function: str, request: Request, problem: str) -> str:
        return self._code.hide(
            f"dataflow {self._dataflow}: function {function}, called {request.call_words}: {problem}"
        )


def _tuple_to_list(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
