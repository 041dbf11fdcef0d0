from __future__ import annotations

import pickle

import pytest

from resources.connections.postgres import AddressError, Database, is_database


@pytest.mark.parametrize(
    ("text", "url", "schema", "shown"),
    [
        ("postgresql://h/db", "postgresql://h/db", "strandline", "postgresql://h/db"),
        ("postgres://u@h:5433/db", "postgres://u@h:5433/db", "strandline", "postgresql://h:5433/db"),
        ("postgresql://h/db?schema=mine", "postgresql://h/db", "mine", "postgresql://h/db?schema=mine"),
        (
            "postgresql://h/db?sslmode=require&schema=a%20b&connect_timeout=3",
            "postgresql://h/db?sslmode=require&connect_timeout=3",
            "a b",
            "postgresql://h/db?schema=a%20b",
        ),
        ("postgresql://one,two:5433/db", "postgresql://one,two:5433/db", "strandline", "postgresql://one,two:5433/db"),
        ("postgresql://[::1]:5433/db", "postgresql://[::1]:5433/db", "strandline", "postgresql://[::1]:5433/db"),
        ("postgresql:///db?host=/run/pg", "postgresql:///db?host=/run/pg", "strandline", "postgresql://%2Frun%2Fpg/db"),
        ("postgresql://", "postgresql://", "strandline", "postgresql:///"),
    ],
)  # fmt: skip
def test_an_address_is_libpqs_with_a_schema_of_ours(text: str, url: str, schema: str, shown: str) -> None:
    database = Database.parse(text)
    assert (database.url, database.schema, str(database)) == (url, schema, shown)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("mysql://u:sesame@h/db", "an address of another form"),
        ("postgresql://u:ses/ame@h/db", "an address of another form"),
        ("postgresql://u:ses?ame@h/db", "an address of another form"),
        ("postgresql://u:ses@ame@h/db", "an address of another form"),
        ("postgresql://u:sesame/db", "a port that is not a number"),
        ("postgresql://u:sesame%zz@h/db", "an address that libpq does not accept"),
        ("postgresql://h/db?shema=sesame", "the parameter shema, which libpq does not know"),
        ("postgresql://h/db?schema=", "a schema that PostgreSQL does not allow"),
        ("postgresql://h/db?schema=pg_sesame", "a schema that PostgreSQL does not allow"),
        ("postgresql://h/db?schema=" + "x" * 64, "a schema that PostgreSQL does not allow"),
    ],
)
def test_another_form_is_refused_and_not_repeated(text: str, found: str) -> None:
    with pytest.raises(AddressError) as caught:
        Database.parse(text)
    assert caught.value.actual.startswith(found)
    assert "same" not in caught.value.message


@pytest.mark.parametrize(
    "text",
    [
        "postgresql://user:ses%40me@h/db",
        "postgresql://user@h/db?password=ses@me".replace("@me", "%40me"),
        "postgresql://h/db?sslpassword=ses%40me",
    ],
)
def test_no_text_of_a_database_shows_its_password_and_any_text_can_be_cleaned_of_it(text: str) -> None:
    database = Database.parse(text)
    for shown in (str(database), repr(database), f"{database}"):
        assert "ses" not in shown
        assert "user" not in shown
    assert database.hide("FATAL: ses@me is wrong") == "FATAL: *** is wrong"


def test_a_password_is_hidden_as_it_is_written_too() -> None:
    database = Database.parse("postgresql://user:ses%40me@h/db")
    assert (
        database.hide("cannot open postgresql://user:ses%40me@h/db")
        == "cannot open postgresql://user:***@h/db"
    )


def test_a_database_goes_to_another_process() -> None:
    database = Database.parse("postgresql://user:sesame@h/db?schema=x")
    assert pickle.loads(pickle.dumps(database)) == database


def test_an_address_of_a_database_is_known_by_its_scheme() -> None:
    told = [
        is_database(text)
        for text in ("postgresql://", "postgres://x/y", "./postgresql", "postgresql:/x", "s3://b")
    ]
    assert told == [True, True, False, False, False]
