"""How files of each format are read: one module a format."""
