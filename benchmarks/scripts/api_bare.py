"""Fetch all pages with the client alone and parse them; print the seconds and the records."""

import json
import sys
import time

import requests

session, cursor, records = requests.Session(), None, 0
before = time.monotonic()
while True:
    answer = session.get(f"{sys.argv[1]}/orders", params={"cursor": cursor} if cursor else {}, timeout=60)
    answer.raise_for_status()
    data = answer.json()["data"]
    records += len(data["items"])
    cursor = data["next"]
    if cursor is None:
        break
print(json.dumps({"seconds": time.monotonic() - before, "rows": records}))
