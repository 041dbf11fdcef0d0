"""A secret does not show in a text for people, in whatever form a library quotes it."""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.connections.iceberg_rest import RestCatalogServer
from resources.connections.jdbc import JdbcConnection
from resources.connections.postgres import Database
from resources.hiding import without_secrets
from resources.user_functions import UserCode

SECRET = "s3cr3t/Tok+en%=1 ä'<\"&"
FORMS: dict[str, Callable[[str], str]] = {
    "plain": str,
    "in a URL": lambda text: quote(text, safe=""),
    "in a path": quote,
    "in a form": quote_plus,
    "in a URL within a URL": lambda text: quote(quote(text, safe=""), safe=""),
    "in small percent escapes": lambda text: re.sub(
        "%..", lambda match: match[0].lower(), quote(text, safe="")
    ),
    "in JSON": lambda text: json.dumps({"token": text}),
    "in Python": repr,
    "in HTML": html.escape,
    "in Base64": lambda text: base64.b64encode(text.encode()).decode(),
    "in Base64 for URLs": lambda text: base64.urlsafe_b64encode(text.encode()).decode(),
    "in Base64 without its end": lambda text: base64.b64encode(text.encode()).decode().rstrip("="),
}


@pytest.mark.parametrize("form", FORMS)
@given(secret=st.text(st.characters(exclude_categories=["Cs"]), min_size=4, max_size=30))
def test_no_secret_shows_in_any_form(form: str, secret: str) -> None:
    quoted = FORMS[form](secret)
    shown = without_secrets(f"401 for <{quoted}>", [secret], "\x00")
    assert quoted.removeprefix('{"token": "').removesuffix('"}') not in shown.replace("\x00", "")
    assert "\x00" in shown


@pytest.mark.parametrize("form", FORMS)
def test_what_is_around_a_secret_stays(form: str) -> None:
    shown = without_secrets(f"before {FORMS[form](SECRET)} after", [SECRET], "***")
    assert (shown.startswith("before "), "***" in shown, shown.endswith(" after")) == (True, True, True)


def test_a_secret_within_another_hides_neither_in_part() -> None:
    assert without_secrets("abcdef and abcd", ["abcd", "abcdef"], "***") == "*** and ***"


def test_a_short_value_stays() -> None:
    assert without_secrets("an abc", ["abc"], "***") == "an abc"


@pytest.mark.parametrize(
    "hide",
    [
        UserCode(Path(), {"token": SECRET}).hide,
        JdbcConnection.parse(url="jdbc:postgresql://h/d", user="u", password=SECRET).hide,
        Database.parse(f"postgresql://u:{quote(SECRET, safe='')}@h/d").hide,
        RestCatalogServer("http://h", token=SECRET).hide,
    ],
    ids=["a function", "a database", "the state", "a catalog"],
)
@pytest.mark.parametrize("form", ["plain", "in a URL", "in JSON", "in Base64"])
def test_each_connection_hides_all_forms(hide: Callable[[str], str], form: str) -> None:
    assert FORMS[form](SECRET) not in hide(f"401 for {FORMS[form](SECRET)}")
