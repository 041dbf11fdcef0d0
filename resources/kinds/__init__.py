"""The kinds of watermark, a room a kind: what runs, decisions and replays ask of it."""
