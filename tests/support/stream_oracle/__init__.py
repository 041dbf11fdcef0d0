"""What streams emit, row by row in plain Python: what Spark's own ways of doing it are held against."""
