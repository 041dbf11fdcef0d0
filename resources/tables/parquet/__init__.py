"""Tables that are folders of Parquet files, with a list of files per commit (docs/format-parquet.md).

Any reader of Parquet can read them.
"""
