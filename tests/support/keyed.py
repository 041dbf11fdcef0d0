"""A stand-in for S3 that lists as S3 does and SeaweedFS does not.

It lists whole keys in byte order, with exact ``StartAfter``. It knows ListObjectsV2 and HEAD of its
objects, accepts any
credentials, and counts its LIST calls.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from itertools import islice
from urllib.parse import parse_qs, quote, unquote, urlsplit
from xml.sax.saxutils import escape

from resources.connections.places import Place, S3Connection
from tests.support.http import QuietHandler, Server

_TIME = "2026-01-01T00:00:00.000Z"
_HTTP_TIME = "Thu, 01 Jan 2026 00:00:00 GMT"


class KeyedS3(Server):
    """One bucket, whatever its name, that lists by key.

    Attributes:
        sizes: the sizes of its objects by key.
        page: the number of keys of a LIST call.
    """

    def __init__(self) -> None:
        super().__init__(_Handler)
        self.lists = 0
        self.page = 1000
        self.sizes: dict[str, int] = {}
        self.keys: list[str] = []
        self.place = Place(
            "s3://keyed", S3Connection(f"http://127.0.0.1:{self.port}", "us-east-1", "key", "secret")
        )

    def hold(self, keys: Iterable[str], size: int = 1) -> Place:
        """Hold exactly these keys; return the bucket's root."""
        self.sizes = dict.fromkeys(keys, size)
        self.keys = sorted(self.sizes, key=str.encode)
        self.lists = 0
        return Place(
            "s3://keyed", S3Connection(f"http://127.0.0.1:{self.port}", "us-east-1", "key", "secret")
        )


class _Handler(QuietHandler):
    server: KeyedS3

    def do_GET(self) -> None:  # noqa: N802  http.server's name
        """Answer ListObjectsV2."""
        query = {name: values[0] for name, values in parse_qs(urlsplit(self.path).query).items()}
        self.server.lists += 1
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter")
        after = query.get("continuation-token") or query.get("start-after", "")
        keys = self.server.keys
        if delimiter:
            keys = list(
                dict.fromkeys(_listed_key(key, prefix, delimiter) for key in keys if key.startswith(prefix))
            )
        ahead = (keys[index] for index in range(bisect_right(keys, after), len(keys)))
        matching = list(islice((key for key in ahead if key.startswith(prefix)), self.server.page + 1))
        encoded = "encoding-type" in query
        encode = quote if encoded else escape
        page, more = matching[: self.server.page], len(matching) > self.server.page
        items = "".join(
            f"<CommonPrefixes><Prefix>{encode(key)}</Prefix></CommonPrefixes>"
            if delimiter and key.endswith(delimiter)
            else f"<Contents><Key>{encode(key)}</Key><LastModified>{_TIME}</LastModified><ETag>&quot;{len(key)}&quot;</ETag>"
            f"<Size>{self.server.sizes[key]}</Size></Contents>"
            for key in page
        )
        encoding = "<EncodingType>url</EncodingType>" if encoded else ""
        token = f"<NextContinuationToken>{escape(page[-1])}</NextContinuationToken>" if more else ""
        head = f"<IsTruncated>{'true' if more else 'false'}</IsTruncated>{encoding}"
        text = (
            f'<?xml version="1.0" encoding="UTF-8"?><ListBucketResult>{head}{token}{items}</ListBucketResult>'
        )
        self.answer(200, {"Content-Type": "application/xml"}, text.encode())

    def do_HEAD(self) -> None:  # noqa: N802  http.server's name
        """Answer for one object."""
        key = unquote(urlsplit(self.path).path).split("/", 2)[2]
        if key not in self.server.sizes:
            self.answer(404, {})
            return
        headers = {
            "ETag": f'"{len(key)}"',
            "Content-Length": str(self.server.sizes[key]),
            "Last-Modified": _HTTP_TIME,
        }
        self.answer(200, headers)


def _listed_key(key: str, prefix: str, delimiter: str) -> str:
    """Return a key, or the folder that stands for it."""
    inner, separator, _ = key[len(prefix) :].partition(delimiter)
    return f"{prefix}{inner}{separator}" if separator else key
