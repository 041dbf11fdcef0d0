from __future__ import annotations

from pathlib import Path

import pytest
from obstore.store import LocalStore, S3Store

from partitions.errors import ConfigurationError, SourceError
from resources.connections.places import Place, S3Connection


def test_a_relative_folder_counts_from_the_base() -> None:
    assert Place.parse("./landing/x", Path("/project")).local == Path("/project/landing/x")
    assert Place.parse("/data", Path("/project")).local == Path("/data")


def test_a_file_url_is_a_folder_and_percent_decoded() -> None:
    assert Place.parse("file:///a%20b", Path("/")).local == Path("/a b")


@pytest.mark.parametrize(
    "text",
    ["s3://bucket/prefix", "s3://bucket", "gs://bucket/a", "az://container/a", "s3://bucket/a#b?c%20d é"],
)
def test_a_prefix_is_taken_as_it_stands(text: str) -> None:
    place = Place.parse(text, Path("/"))
    assert (place.url, place.local) == (text, None)


def test_slashes_around_a_prefix_do_not_count() -> None:
    assert Place.parse("s3://bucket//a/", Path("/")).url == "s3://bucket/a"
    assert Place.parse("s3://bucket/", Path("/")).child("a").url == "s3://bucket/a"


@pytest.mark.parametrize(
    "text", ["ftp://host/x", "s3://", "s3:///x", "s3://bu cket/x", "s3://bucket/a//b", "s3://bucket/../b"]
)
def test_a_place_that_no_request_can_go_to_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError, match="expected"):
        Place.parse(text, Path("/"))


@pytest.mark.parametrize(
    "make",
    [
        lambda: Place.parse("s3://user:sesame@bucket/x", Path("/")),
        lambda: S3Connection("http://user:sesame@host"),
    ],
)
def test_credentials_in_an_address_are_refused_and_not_repeated(make: object) -> None:
    with pytest.raises(ConfigurationError) as caught:
        make()  # type: ignore[operator]
    assert "sesame" not in str(caught.value)


@pytest.mark.parametrize("endpoint", ["host:8333", "ftp://host", "http://", "http://a b", "http://host?x=1"])
def test_an_endpoint_that_no_request_can_go_to_is_refused(endpoint: str) -> None:
    with pytest.raises(ConfigurationError, match="endpoint"):
        S3Connection(endpoint)


@pytest.mark.parametrize(
    "endpoint",
    [None, "http://127.0.0.1:8333", "https://s3.example.com", "http://[::1]:9000", "https://host/base"],
)
def test_an_endpoint_is_a_plain_url(endpoint: str | None) -> None:
    assert S3Connection(endpoint).endpoint == endpoint


def test_no_secret_is_in_the_text_of_a_place() -> None:
    place = Place("s3://bucket", S3Connection("http://host", "r", "AKIA", "sesame", "token"))
    for word in ("AKIA", "sesame", "token"):
        assert word not in f"{place!r} {place}"


def test_a_store_is_relative_to_its_place(tmp_path: Path) -> None:
    assert isinstance(Place(str(tmp_path)).store, LocalStore)
    store = Place("s3://bucket/a b%20", S3Connection("http://host", "r", "k", "s")).store
    assert isinstance(store, S3Store)
    assert str(store.prefix) == "a b%20"


def test_a_missing_folder_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(SourceError) as caught:
        _ = Place(str(tmp_path / "none")).store
    assert caught.value.code == "source_missing"
    assert not (tmp_path / "none").exists()


def test_only_directory_buckets_have_no_order() -> None:
    assert Place("s3://bucket/x--x-s3").ordered
    assert not Place("s3://bucket--use1-az4--x-s3/x").ordered


def test_each_library_is_told_in_its_own_words() -> None:
    place = Place("s3://bucket/x", S3Connection("http://host", "r", "k", "s"))
    assert place.spark_url == "s3a://bucket/x"
    assert place.spark_conf["fs.s3a.bucket.bucket.endpoint"] == "http://host"
    assert place.storage_options["aws_allow_http"] == "true"
    assert Place("/data").storage_options == {}
