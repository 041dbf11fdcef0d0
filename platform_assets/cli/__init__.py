"""The command line, ``strandline`` (docs/reference/cli.md).

Belongs here: arguments, exit codes, and showing results to people or as JSON. One module a command, imported
when it is called. Does not belong here: any work of its own; commands call what Dagster calls.
"""
