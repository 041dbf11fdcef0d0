"""Puts the texts of references into a document's values, and hides them again in the model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel

from partitions.model import Model
from platform_assets.project.document import Key, ProjectDocument
from platform_assets.project.errors import MissingText, ProjectError
from platform_assets.project.references import (
    EnvRef,
    Reference,
    ReferencedText,
    Secrets,
    Unresolved,
    reference_of,
)
from platform_assets.project.shapes import Shapes, alternatives, below, takes_text


@dataclass
class Resolved:
    """A document's values, with each reference replaced where its model has a text.

    Attributes:
        value: the root mapping.
        texts: the texts put in, by key.
        errors: the references that lead to no text.
    """

    value: dict[str, Any]
    texts: dict[Key, ReferencedText] = field(default_factory=dict)
    errors: list[ProjectError] = field(default_factory=list)


def resolve_values(document: ProjectDocument, model: type[BaseModel], secrets: Secrets) -> Resolved:
    """Return a document's values with every reference looked up where the model has a text."""
    result = Resolved({})

    def inside(value: Any, shapes: Shapes, key: Key) -> Any:
        reference = reference_of(value)
        if reference and takes_text(shapes):
            return look_up(reference, key)
        if isinstance(value, dict):
            return {name: inside(item, below(shapes, name), (*key, name)) for name, item in value.items()}
        if isinstance(value, list):
            return [inside(item, below(shapes, index), (*key, index)) for index, item in enumerate(value)]
        return value

    def look_up(reference: Reference, key: Key) -> Any:
        if reference.needs_user_code:
            expected = "{env: NAME} or {file: PATH}: a function is asked for connections and alerts only"
            result.errors.append(document.error(key, repr(reference), expected))
            return document.get(key)
        try:
            text = secrets.look_up(reference)
        except Unresolved as missing:
            more = " and not empty" if isinstance(reference, EnvRef) else f" ({missing.actual})"
            error = document.error(key, repr(reference), f"{missing.expected}{more}")
            result.errors.append(MissingText(error.file, error.line, error.key, error.actual, error.expected))
            return document.get(key)
        result.texts[key] = ReferencedText(text, repr(reference))
        return text

    result.value = inside(document.value, alternatives(model), ())
    return result


def hide_texts(value: Any, texts: Mapping[Key, ReferencedText]) -> Any:
    """Return a checked value whose repr shows variables' names instead of their texts."""
    if not texts:
        return value
    if isinstance(value, Model) and value.written_as is not None:
        whole = value.written_as
        return value.model_copy(update={whole: hide_texts(getattr(value, whole), texts)})
    if isinstance(value, BaseModel):
        names = {field.alias or name: name for name, field in type(value).model_fields.items()}
        inner = {names[str(part)]: below for part, below in _by_part(texts).items()}
        return value.model_copy(
            update={name: hide_texts(getattr(value, name), below) for name, below in inner.items()}
        )
    if isinstance(value, Mapping):
        return {**value, **{part: hide_texts(value[part], below) for part, below in _by_part(texts).items()}}
    if isinstance(value, tuple):
        inner_items = _by_part(texts)
        return tuple(hide_texts(item, inner_items.get(index, {})) for index, item in enumerate(value))
    return ReferencedText(value, texts[()].written) if isinstance(value, str) else value


def _by_part(texts: Mapping[Key, ReferencedText]) -> dict[str | int, dict[Key, ReferencedText]]:
    parts: dict[str | int, dict[Key, ReferencedText]] = {}
    for (first, *rest), text in texts.items():
        parts.setdefault(first, {})[tuple(rest)] = text
    return parts
