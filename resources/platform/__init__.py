"""What a dataflow needs to run, put together from settings: log, lake, Spark, and where its source lies."""
