"""Answer with pages of orders, each after a pause; print the port. It ends with its standard input."""

import json
import sys
import time
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import parse_qs, urlsplit

PAGES, ROWS, PAUSE = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
START = datetime(2026, 1, 1, tzinfo=UTC)


def page(number: int) -> bytes:
    first = number * ROWS
    items = [
        {
            "id": first + number,
            "updated_at": (START + timedelta(seconds=first + number)).isoformat(),
            "customer": f"customer {number % 97}",
            "amount": number / 100,
            "address": {"city": f"city {number % 13}", "zip": f"{number:05d}"},
            "lines": [{"sku": f"s{number % 7}", "count": 1}, {"sku": "x", "count": 2}],
        }
        for number in range(ROWS)
    ]
    following = number + 1 if number + 1 < PAGES else None
    return json.dumps({"data": {"items": items, "next": following}}).encode()


ANSWERS = [page(number) for number in range(PAGES)]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 1 << 16
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        time.sleep(PAUSE)
        answer = ANSWERS[int(parse_qs(urlsplit(self.path).query).get("cursor", ["0"])[0])]
        self.send_response_only(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
Thread(target=server.serve_forever, daemon=True).start()
print(server.server_address[1], flush=True)
sys.stdin.read()
