"""Data files of tables: written by Spark, found again, read, and their footers."""
