"""The rules of rows: which rows fail, where they go, and how they are released."""
