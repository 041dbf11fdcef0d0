"""The output of streams, computed row by row in plain Python, to compare Spark's with."""
