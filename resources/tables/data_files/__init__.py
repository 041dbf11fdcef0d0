"""Data files of tables: writing with Spark, finding, reading, and their footers."""
