"""Tables that are folders of Parquet files, with a list of files per commit.

See docs/reference/parquet.md.

Any reader of Parquet can read them.
"""
