"""The kinds of watermark, each bound to its source: what differs between them, as the loop sees it."""
