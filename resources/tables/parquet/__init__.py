"""Tables that are folders of Parquet files, which any reader of Parquet reads, with a list of files for each commit (docs/reference/parquet.md)."""
