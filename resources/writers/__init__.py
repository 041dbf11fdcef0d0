"""Targets: how a slice's rows and its tag land in a table, in one commit (spec 05)."""
