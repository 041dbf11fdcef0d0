"""Functions of the user as a source (docs/source-python.md)."""
