"""Signatures of functions that Dagster takes."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

from dagster import AssetExecutionContext

from platform_assets.factory.annotations import annotate


def _function() -> Any:
    def load(context: Any) -> Any:
        return context

    annotate(load, context=AssetExecutionContext, returns=Iterator[Any])
    return load


def test_an_annotated_function_has_types_in_its_signature() -> None:
    signature = inspect.signature(_function())
    assert [parameter.annotation for parameter in signature.parameters.values()] == [AssetExecutionContext]
    assert signature.return_annotation == Iterator[Any]


def test_functions_of_the_same_types_share_one_signature() -> None:
    assert inspect.signature(_function()) is inspect.signature(_function())
