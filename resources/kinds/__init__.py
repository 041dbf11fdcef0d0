"""The kinds of watermark, one package each: the parts that runs, decisions and replays use."""
