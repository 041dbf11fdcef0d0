"""One call of a function of the user: its batches, and its errors with the line of the user's code (docs/reference/python-functions.md, Errors)."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, NoReturn

from partitions.errors import SchemaError, SourceError, SourceUnreachable, StrandlineError, shorten_to_line
from partitions.sources import PythonSource
from resources.sources.python.batches import Raw, WrongYield, raw_batches
from resources.sources.python.request import RowRequest
from resources.user_functions import USERS_ERRORS, UserCode, user_error_line, user_function

_PASSING = (ConnectionError, TimeoutError)
"""What a function raises if trying again can help."""


class FunctionCaller:
    """Calls the functions of one source."""

    def __init__(self, dataflow: str, source: PythonSource, code: UserCode) -> None:
        """Use a definition; nothing is imported before the first call."""
        self._dataflow, self._source, self._code = dataflow, source, code

    def request(self, **asked: Any) -> RowRequest:
        """Return what the function is asked for: the fields of a :class:`RowRequest` that a definition does not fix."""
        params = {name: _listed(value) for name, value in self._source.params.items()}
        return RowRequest(self._dataflow, params=params, connection=dict(self._code.settings), **asked)

    def batches(self, request: RowRequest) -> Generator[Raw]:
        """Yield what the function does.

        Raises:
            SourceError: the function fails, or what it yields cannot be rows.
            SourceUnreachable: it raises ConnectionError or TimeoutError.
        """
        function = user_function("source.function", self._source.function, self._code.folder)
        try:
            yield from raw_batches(function(request))
        except GeneratorExit:
            raise
        except USERS_ERRORS as error:
            self._fail(error, self._source.function, request)

    def highest(self, request: RowRequest, column: str) -> Any:
        """Return what the function ``highest`` does.

        Raises:
            SourceError, SourceUnreachable: as for :meth:`batches`.
        """
        name = self._source.highest or ""
        function = user_function("source.highest", name, self._code.folder)
        try:
            return function(request, column)
        except USERS_ERRORS as error:
            self._fail(error, name, request)

    def wrong(self, error: SchemaError, request: RowRequest) -> SourceError:
        """Return the error for rows that do not fit the schema."""
        return SourceError(
            self._said(
                self._source.function, request, f"{error.message}. Correct the function, or source.schema"
            ),
            code=error.reason,
        )

    def _fail(self, error: BaseException, function: str, request: RowRequest) -> NoReturn:
        if isinstance(error, StrandlineError):
            raise error
        if isinstance(error, WrongYield):
            raise SourceError(self._said(function, request, str(error)), code="function_yield") from None
        made = SourceUnreachable if isinstance(error, _PASSING) else SourceError
        what = f"{shorten_to_line(user_error_line(error)).rstrip(' .')}. Nothing of these rows was saved"
        # The user's own error may quote a secret, and Dagster would show it as the cause.
        raise made(self._said(function, request, what), code="function_failed") from None

    def _said(self, function: str, request: RowRequest, what: str) -> str:
        return self._code.hide(
            f"dataflow {self._dataflow}: function {function}, asked for {request.words}: {what}"
        )


def _listed(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
