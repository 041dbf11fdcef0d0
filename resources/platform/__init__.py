"""The resources that a dataflow needs to run, built from settings: log, lake, Spark and source."""
