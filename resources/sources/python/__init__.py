"""Functions of the user as a source (docs/reference/python-functions.md)."""
